//! How a node stops.

use std::time::Duration;

use bellwether::{Client, Job, State};
use bellwether_testkit::{Cut, Process, Proxy, eventually, namespace};
use nix::sys::signal::Signal;

use crate::run::{command, run_in};

const SOON: Duration = Duration::from_secs(20);

fn start(to: &str, options: &[&str]) -> Process {
    let mut command = command(&["node", "--zookeeper", to, "--session-timeout", "4s"]);
    Process::start("the node", command.args(options)).unwrap()
}

/// Returns its exit code and all its log output.
async fn ended(node: &mut Process) -> (Option<i32>, String) {
    (node.ended(SOON).await.code(), node.said())
}

/// Waits until a job that sleeps for an hour runs.
async fn running(client: &Client) {
    let job = Job::new("sleep", &serde_json::json!({ "millis": 3_600_000 }));
    let job = client.submit(job.id("a")).await.unwrap();
    eventually("the job runs", SOON, async || {
        client.get(job.id()).await.unwrap().unwrap().state == State::Running
    })
    .await;
}

#[tokio::test]
async fn a_second_signal_ends_a_drain_immediately_and_the_leader_recovers_its_jobs() {
    for (first, second) in [(Signal::SIGTERM, Signal::SIGINT), (Signal::SIGINT, Signal::SIGINT)] {
        let to = namespace("second-signal");
        let client = Client::connect(&to).await.unwrap();
        let mut node = start(&to, &["--drain-grace", "1h"]);
        running(&client).await;
        node.signal(first);
        eventually("the node drains", SOON, async || {
            let workers = client.workers().await.unwrap();
            workers.iter().any(|worker| worker.info.as_ref().is_ok_and(|info| info.draining))
        })
        .await;
        assert!(!node.has_ended(), "its job still runs");
        node.signal(second);
        let (code, said) = ended(&mut node).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("and drains; send the signal again to stop immediately"), "{said}");
        assert!(said.contains("bellwether: ctrl-c during the drain: the remaining jobs"), "{said}");

        let _spare = start(&to, &[]);
        eventually("its job is recovered as lost", SOON, async || {
            client.get(&bellwether::JobId::new("a").unwrap()).await.unwrap().unwrap().losses == 1
        })
        .await;
    }
}

#[tokio::test]
async fn a_node_that_cannot_hand_back_its_jobs_warns_and_fails() {
    let to = namespace("abandoned");
    let client = Client::connect(&to).await.unwrap();
    let _leader = start(&to, &["--roles", "candidate"]);
    let proxy = Proxy::to(&to);
    let mut node = start(&proxy.connect_string(), &["--roles", "worker", "--drain-grace", "100ms"]);
    running(&client).await;
    proxy.refuse();
    proxy.cut(Cut::Reset);
    node.signal(Signal::SIGTERM);
    let (code, said) = ended(&mut node).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("WARN") && said.contains("the node gave up its drain"), "{said}");
}

#[tokio::test]
async fn a_node_uses_the_settings_of_its_file() {
    let to = namespace("file");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    std::fs::write(&file, format!("[node]\nzookeeper = {to:?}\nnode_id = \"from-a-file\"\nslots = 3\n"))
        .unwrap();
    let mut node = command(&["node", "-q", "--config", file.to_str().unwrap()]);
    let _node = Process::start("the node", &mut node).unwrap();
    let client = Client::connect(&to).await.unwrap();
    eventually("the worker is registered", SOON, async || {
        let workers = client.workers().await.unwrap();
        let mut registered = workers.iter().filter_map(|worker| worker.info.as_ref().ok());
        registered.any(|info| info.node.as_str() == "from-a-file" && info.slots == 3)
    })
    .await;
}

#[tokio::test]
async fn a_drained_worker_finishes_its_running_jobs_and_leaves() {
    let to = namespace("told-to-drain");
    let client = Client::connect(&to).await.unwrap();
    let mut node = start(&to, &["--node-id", "tired", "--slots", "1"]);
    let sleep = |id: &str| Job::new("sleep", &serde_json::json!({ "millis": 1_500 })).id(id);
    let job = client.submit(sleep("a")).await.unwrap();
    eventually("the job runs", SOON, async || {
        client.get(job.id()).await.unwrap().unwrap().state == State::Running
    })
    .await;
    let waits = client.submit(sleep("b")).await.unwrap();
    run_in(&to, &["worker", "drain", "nobody"]).exits(4).says("there is no worker nobody");
    let drained =
        run_in(&to, &["worker", "drain", "tired", "--wait", "--deadline", "20s", "--output", "json"]);
    let told = drained.exits(0).json();
    assert_eq!((told[0]["node"].as_str(), told[0]["outcome"].as_str()), (Some("tired"), Some("left")));
    assert!(client.workers().await.unwrap().is_empty());
    assert_eq!(job.wait(SOON).await.unwrap().attempt, 1, "the running job was finished by its worker");
    let waits = client.get(waits.id()).await.unwrap().unwrap();
    assert_eq!(waits.state, State::Queued, "no worker is left to start it: {waits:?}");
    assert!(client.leader().await.unwrap().unwrap().standing, "its node is still the leader");
    node.signal(Signal::SIGTERM);
    assert_eq!(ended(&mut node).await.0, Some(0));
}

#[tokio::test]
async fn ended_jobs_are_shown_with_the_node_of_their_worker_while_it_lives() {
    let to = namespace("names-of-nodes");
    let mut node = start(&to, &["--node-id", "diligent"]);
    let submit = ["job", "submit", "sum", "[1, 2]", "--id", "three", "--wait"];
    let names_it = |words: &[&str]| run_in(&to, words).exits(0).stdout.contains("diligent");
    assert!(names_it(&submit));
    for words in [&["job", "wait", "three"][..], &["job", "list"], &["job", "show", "three"]] {
        assert!(names_it(words), "{words:?}");
    }
    node.signal(Signal::SIGTERM);
    assert_eq!(ended(&mut node).await.0, Some(0));
    assert!(!names_it(&["job", "list"]), "the worker has left");
}
