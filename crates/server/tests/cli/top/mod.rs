//! `bellwether top` against real nodes: on a terminal, as a page, and as a stream.

mod terminal;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bellwether::client::{SnapshotOptions, WrappingCount};
use bellwether::{Client, Job};
use bellwether_testkit::{Cut, Proxy, eventually, namespace};
use serde_json::{Value, json};

use crate::run::{command, run, run_in};
use terminal::Terminal;

const SOON: Duration = Duration::from_secs(20);

/// A running node; killed when dropped.
struct Node(Child);

impl Node {
    fn start(to: &str, name: &str, options: &[&str]) -> Self {
        let mut command = command(&["node", "--zookeeper", to, "--node-id", name, "--session-timeout", "1s"]);
        Self(command.args(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn led_by(client: &Client, node: &str) {
    eventually(&format!("{node} is the leader"), SOON, async || {
        let leader = client.leader().await.unwrap();
        leader.is_some_and(|leader| leader.standing && leader.node.as_str() == node)
    })
    .await;
}

async fn workers(client: &Client, count: usize) {
    eventually("the workers are registered", SOON, async || client.workers().await.unwrap().len() == count)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn top_survives_a_new_leader_a_lost_connection_and_a_resize() {
    let to = namespace("top");
    let client = Client::connect(&to).await.unwrap();
    let first = Node::start(&to, "first", &["--slots", "8"]);
    led_by(&client, "first").await;
    let _second = Node::start(&to, "second", &["--slots", "8"]);
    workers(&client, 2).await;
    let proxy = Proxy::to(&to);
    let there = proxy.connect_string();
    let top = command(&["top", "--zookeeper", &there, "--interval", "250ms"]);
    let mut terminal = Terminal::run(&top, 30, 110);
    terminal.shows("first leads, epoch").await;
    terminal.shows("of 16 busy").await;
    for n in 0..20 {
        let job = Job::new("sleep", &json!({ "millis": 60_000 })).id(format!("job-{n}"));
        client.submit(job).await.unwrap();
    }
    terminal.shows("16 of 16 busy").await;
    terminal.shows("4 queued").await;
    terminal.shows("q quit").await;

    drop(first);
    terminal.shows("second leads, epoch").await;
    terminal.shows("of 8 busy").await;

    proxy.refuse();
    proxy.cut(Cut::Reset);
    terminal.shows("Data is").await;
    terminal.shows("second leads, epoch").await;
    proxy.heal();
    terminal.shows_no_more("Data is").await;

    terminal.resize(12, 60);
    terminal.shows("q quit").await;
    eventually("the page fits the terminal", SOON, async || {
        let shown = terminal.shown();
        shown.lines().nth(11).is_some_and(|foot| foot.starts_with("q quit"))
    })
    .await;
    terminal.press("s");
    terminal.shows("by rate").await;
    assert!(terminal.is_in_use() && terminal.settings().contains("-icanon"));
    terminal.press("q");
    assert_eq!(terminal.ended().await, Some(0));
    eventually("the terminal is restored", SOON, async || !terminal.is_in_use()).await;
    assert!(!terminal.settings().contains("-icanon"), "{}", terminal.settings());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_namespace_is_shown_only_to_its_user() {
    // The node creates the namespace, so only its user has access.
    let to = format!("{}/closed", namespace("top-login"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "correct-horse-battery\n").unwrap();
    let login = ["--zookeeper-user", "bellwether", "--zookeeper-password-file", file.to_str().unwrap()];
    let _node = Node::start(&to, "only", &[&login[..], &["--slots", "3"]].concat());
    let top = ["top", "--zookeeper", &to, "--interval", "250ms"];
    // Until the node has created the namespace, the command fails.
    eventually("the namespace exists", SOON, async || {
        run(&[&top[..], &login, &["--once"]].concat()).code == 0
    })
    .await;
    let mut terminal = Terminal::run(&command(&[&top[..], &login].concat()), 30, 110);
    terminal.shows("only leads, epoch").await;
    terminal.shows("0 of 3 busy").await;
    terminal.press("q");
    assert_eq!(terminal.ended().await, Some(0));
    let refused = run(&[&top[..], &["--once"]].concat()).exits(3);
    assert_eq!(refused.stdout, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_top_prints_one_page_and_json_has_one_object_per_line() {
    let to = namespace("top-once");
    let client = Client::connect(&to).await.unwrap();
    let _node = Node::start(&to, "only", &["--slots", "3"]);
    led_by(&client, "only").await;
    workers(&client, 1).await;
    let job = Job::new("nobody-serves-this", &json!(1));
    client.submit(job).await.unwrap();

    let page = run_in(&to, &["top", "--interval", "250ms"]).exits(0).stdout;
    for text in ["only leads, epoch", "0 of 3 busy", "1 queued", "nobody-serves-this", "0.0 submitted"] {
        assert!(page.contains(text), "{text:?} is not in\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "without a terminal there are no colours: {page:?}");

    let once = run_in(&to, &["--output", "json", "top", "--once", "--interval", "250ms"]).exits(0);
    assert_eq!(once.stdout.lines().count(), 1, "{once:?}");
    let told = once.json();
    assert_eq!(told["leader"]["node"], "only");
    assert_eq!(told["jobs"]["queued"], 1);
    assert_eq!(told["workers"][0]["slots"], 3);
    assert_eq!(told["trouble"], Value::Null);

    let mut stream = command(&["--output", "json", "top", "--interval", "250ms", "--zookeeper", &to])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(stream.stdout.take().unwrap()).lines();
    let (mut seen, mut submitted) = (0, 0);
    while seen == 0 && submitted < 200 {
        client.submit(Job::new("sum", &json!([submitted, 1]))).await.unwrap();
        submitted += 1;
        let told = serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
        seen += usize::from(told["per_second"]["submitted"].as_f64().unwrap() > 0.0);
    }
    assert!(seen > 0, "a submitted job is shown in the rate");
    eventually("each job has left the inbox once", SOON, async || {
        let worker = client.workers().await.unwrap().remove(0);
        worker.assigned == 0 && worker.ended.since(WrappingCount::default()) == Some(submitted)
    })
    .await;
    drop(lines);
    let status = tokio::task::spawn_blocking(move || stream.wait().unwrap()).await.unwrap();
    assert!(status.success(), "a closed stdout is not a failure: {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_a_snapshot_do_not_grow_with_the_number_of_jobs() {
    let to = namespace("top-cost");
    let direct = Client::connect(&to).await.unwrap();
    let jobs = (0..800).map(|n| {
        let kind = if n % 4 == 0 { "rare" } else { "usual" };
        Job::new(kind, &json!(n)).id(format!("job-{n}"))
    });
    for accepted in direct.submit_many(jobs, |_| {}).await {
        accepted.unwrap();
    }
    let proxy = Proxy::to(&to);
    let client = Client::connect(&proxy.connect_string()).await.unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    proxy.witness(move |_, request| {
        // The session may send a heartbeat in the meantime.
        if request.op != bellwether_testkit::op::PING {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let options = SnapshotOptions::default().minutes(1_000).sample(0);
    let snapshot = client.snapshot(options).await.unwrap();
    let cost = requests.load(Ordering::Relaxed);
    println!("{cost} requests");
    assert!((10..=25).contains(&cost), "{cost} requests");
    assert_eq!(snapshot.depths.queued, 800);
    assert_eq!(snapshot.record_totals.created.since(WrappingCount::default()), Some(800));
    assert_eq!(snapshot.queued.sampled, 800, "waiting jobs are counted");
    let rare = snapshot.queued.of(&bellwether::Kind::new("rare").unwrap()).unwrap();
    assert_eq!((rare.exact, rare.count), (true, 200));
    let again = client.snapshot(options.sample(1)).await.unwrap();
    assert_eq!(again.record_totals, snapshot.record_totals, "a snapshot changes nothing");
}

#[test]
fn an_absent_namespace_and_an_invalid_interval_are_rejected() {
    let to = namespace("top-refused");
    run_in(&format!("{to}/nowhere"), &["top", "--once"]).exits(3);
    run_in(&to, &["top", "--interval", "10ms"]).exits(2).says("250ms to 3600s");
    run(&["top"]).exits(2).says("BELLWETHER_ZOOKEEPER");
}
