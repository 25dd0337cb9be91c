//! A process whose gateway died goes on with its attempts at another gateway.

use std::net::SocketAddr;
use std::process::Command;

use bellwether::{Client, State};
use bellwether_gateway::Gateway;
use bellwether_testkit::{Process, binary_or, eventually, unused_address};
use serde_json::{Value, json};

use super::worker::{Remote, reference, succeeded};
use crate::ask::Ask;
use crate::stage::{SOON, Stage};

/// A gateway in its own process, which can be killed.
struct Mortal {
    process: Process,
    address: SocketAddr,
}

impl Mortal {
    async fn start(stage: &Stage) -> Self {
        let address = unused_address().unwrap();
        let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
        command.args(["--zookeeper", &stage.to, "node", "--roles", "gateway"]);
        command.args(["--http-listen", &address.to_string()]);
        let process = Process::start("gateway", &mut command).unwrap();
        eventually("the gateway serves", SOON, async || {
            tokio::net::TcpStream::connect(address).await.is_ok()
                && Ask::get("/readyz").of(address).await.status == 200
        })
        .await;
        Self { process, address }
    }
}

/// A gateway in this process.
async fn gateway(stage: &Stage) -> Gateway {
    let client = Client::connect(&stage.to).await.unwrap();
    Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap()).start().await.unwrap()
}

/// The attempt as a registration lists it.
fn held(attempt: &Value) -> Value {
    let mut held = reference(attempt);
    for field in ["generation", "submission"] {
        held[field] = attempt[field].clone();
    }
    held
}

impl Remote {
    /// The same process at another gateway.
    fn at(&self, gateway: SocketAddr) -> Self {
        Self { key: self.key.clone(), gateway, token: self.token.clone() }
    }

    /// Polls until the process has this number of attempts.
    async fn attempts(&self, count: usize) -> Vec<Value> {
        let mut attempts = Vec::<Value>::new();
        while attempts.len() < count {
            let polled = self.poll(&attempts.iter().collect::<Vec<_>>()).await;
            attempts.extend(polled["attempts"].as_array().unwrap().iter().cloned());
        }
        attempts
    }

    /// Registers with what the process runs, and returns the answer.
    async fn take_over(&self, former: &Value, running: &[&Value]) -> Value {
        let running = running.iter().map(|attempt| held(attempt)).collect::<Vec<_>>();
        self.register(json!({ "former_worker": former, "running": running })).await.is(200).json()
    }
}

/// Returns the attempt with the token that it got by the takeover.
fn renamed(attempt: &Value, answer: &Value) -> Value {
    let taken = &answer["taken_over"];
    let expected = json!([{
        "job": attempt["job"], "attempt": attempt["attempt"], "fencing_token": attempt["fencing_token"],
        "new_fencing_token": taken[0]["new_fencing_token"],
    }]);
    assert_eq!(taken, &expected, "{answer}");
    let mut attempt = attempt.clone();
    attempt["fencing_token"] = taken[0]["new_fencing_token"].clone();
    attempt
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_continues_at_another_gateway_after_its_gateway_was_killed() {
    let stage = Stage::new("takeover-killed").await;
    let _leader = stage.leader().await;
    let mut doomed = Mortal::start(&stage).await;
    let remote = Remote { gateway: doomed.address, ..Remote::new(&stage) };
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    for id in ["old", "new"] {
        stage.submit(id, json!({})).await;
    }
    let attempts = remote.attempts(2).await;
    doomed.process.kill();

    let other = remote.at(stage.address());
    let answer = other.take_over(&former, &[&attempts[0], &attempts[1]]).await;
    assert_eq!(answer["taken_over"].as_array().unwrap().len(), 2, "{answer}");
    assert_ne!(answer["worker"], former);
    assert_eq!(
        other.look(&[&attempts[0], &attempts[1]]).await,
        json!({ "attempts": [], "stop": [], "draining": false }),
        "the attempts go on and are not delivered again"
    );
    other.heartbeat(&attempts[0], json!({ "percent": 70, "message": "sending" })).await;
    let id = attempts[0]["job"].as_str().unwrap().to_owned();
    eventually("the progress is shown", SOON, async || {
        let job = stage.get(&format!("/v1/jobs/{id}")).await.json();
        (&job["percent"], &job["worker"]) == (&json!(70), &answer["worker"])
    })
    .await;
    // One is finished with the token that the process had, the other one with the new one.
    other.close(&attempts[0], succeeded()).await;
    let mut renamed = attempts[1].clone();
    let taken = answer["taken_over"].as_array().unwrap().iter().find(|taken| taken["job"] == renamed["job"]);
    renamed["fencing_token"] = taken.unwrap()["new_fencing_token"].clone();
    other.close(&renamed, succeeded()).await;
    other.close(&attempts[1], succeeded()).await;
    for id in ["old", "new"] {
        let view = stage.ended(id).await;
        assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");
    }
    assert_eq!(other.look(&[]).await["attempts"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_lives_and_cannot_be_reached_loses_the_attempt_to_another_one() {
    let stage = Stage::new("takeover-alive").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    let second = gateway(&stage).await;
    let other = remote.at(second.address());
    let answer = other.take_over(&former, &[&attempt]).await;
    let moved = renamed(&attempt, &answer);
    // The first gateway learns that its attempt is closed for it.
    assert_eq!(remote.poll(&[&attempt]).await["stop"][0]["reason"], "closed");
    remote.finish(&attempt, json!({ "failed": "no" })).await.problem(409, "attempt-fenced", "");
    other.close(&moved, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");

    // The process returns to the first gateway, which still has its earlier worker.
    stage.post(&format!("/v1/workers/{}/drain", former.as_str().unwrap()), "").await.is(200);
    stage.submit("b", json!({})).await;
    let attempt = other.attempt(&[]).await;
    let back = json!({ "former_worker": answer["worker"], "running": [held(&attempt)] });
    remote.register(back.clone()).await.problem(503, "unavailable", "an earlier worker of this process");
    eventually("the earlier worker is removed", SOON, async || {
        remote.register(back.clone()).await.status == 200
    })
    .await;
    remote.close(&attempt, succeeded()).await;
    let view = stage.ended("b").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_registration_after_a_lost_answer_gives_the_same_answer() {
    let stage = Stage::new("takeover-lost-answer").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    let gateways = [gateway(&stage).await, gateway(&stage).await];
    let second = remote.at(gateways[0].address());
    let running = [&attempt];
    let (one, two) = tokio::join!(second.take_over(&former, &running), second.take_over(&former, &running));
    assert_eq!(one, two);
    renamed(&attempt, &one);
    assert_eq!(second.take_over(&former, &[&attempt]).await, one);
    // The process heard nothing and registers at a third gateway, with the token that it has.
    let third = remote.at(gateways[1].address());
    let answer = third.take_over(&one["worker"], &[&attempt]).await;
    let moved = renamed(&attempt, &answer);
    second.finish(&attempt, json!({ "failed": "no" })).await.problem(409, "attempt-fenced", "");
    third.close(&moved, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");
    for gateway in gateways {
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_the_leader_has_closed_is_not_taken_over() {
    let stage = Stage::new("takeover-late").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let former = remote.register(json!({ "session_timeout": "5s" })).await.is(200).json()["worker"].clone();
    stage.submit("a", json!({})).await;
    let lost = remote.attempt(&[]).await;
    let second = gateway(&stage).await;
    let elsewhere = Remote { gateway: second.address(), ..Remote::new(&stage) };
    elsewhere.register(json!({})).await.is(200);
    // The process was silent for too long.
    let again = elsewhere.attempt(&[]).await;
    assert_eq!(again["attempt"], 2);
    let other = remote.at(second.address());
    let answer = other.take_over(&former, &[&lost]).await;
    assert_eq!(answer["taken_over"], json!([]));
    let stop = other.poll(&[&lost]).await["stop"].clone();
    assert_eq!((&stop[0]["job"], &stop[0]["reason"]), (&json!("a"), &json!("closed")), "{stop}");
    other.finish(&lost, succeeded()).await.problem(409, "attempt-fenced", "");
    elsewhere.close(&again, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.attempt), (State::Succeeded, 2), "{view:?}");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_cancelled_after_the_death_of_its_gateway_is_stopped_by_the_next_one() {
    let stage = Stage::new("takeover-cancelled").await;
    let _leader = stage.leader().await;
    let mut doomed = Mortal::start(&stage).await;
    let remote = Remote { gateway: doomed.address, ..Remote::new(&stage) };
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    doomed.process.kill();
    stage.post("/v1/jobs/a/cancel", "").await.is(200);
    let other = remote.at(stage.address());
    let running = [&attempt];
    let (_, stop) = tokio::join!(other.take_over(&former, &running), async {
        eventually("the process is told to stop", SOON, async || {
            let answer = other.post("/heartbeat", json!({ "running": [reference(&attempt)] })).await;
            answer.status == 200 && answer.json()["stop"][0]["reason"] == "cancelled"
        })
        .await;
    });
    let () = stop;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Cancelled, 1, 0), "{view:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_taken_over_may_be_finished_in_a_drain_and_is_handed_back_at_its_end() {
    let stage = Stage::new("takeover-drain").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    for id in ["a", "b"] {
        stage.submit(id, json!({})).await;
    }
    let [first, second] = remote.attempts(2).await.try_into().unwrap();
    let gateway = gateway(&stage).await;
    let other = remote.at(gateway.address());
    let answer = other.take_over(&former, &[&first, &second]).await;
    assert_eq!(answer["taken_over"].as_array().unwrap().len(), 2, "{answer}");
    // The first gateway lives. Its worker of this process must not get the job.
    remote.call("DELETE", "", &json!({})).await.is(204);
    other.post("/drain", json!({})).await.is(204);
    other.close(&first, succeeded()).await;
    // The gateway stops: what is left is handed back without a loss.
    gateway.stop().await;
    let fresh = Remote::registered(&stage, json!({})).await;
    let again = fresh.attempt(&[]).await;
    assert_eq!((&again["job"], &again["attempt"]), (&second["job"], &json!(2)));
    fresh.close(&again, succeeded()).await;
    let (one, two) = (first["job"].as_str().unwrap(), second["job"].as_str().unwrap());
    for (id, attempts) in [(one, 1), (two, 2)] {
        let view = stage.ended(id).await;
        assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, attempts, 0), "{view:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_process_that_registered_the_former_worker_takes_over() {
    let stage = Stage::new("takeover-owner").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    let second = gateway(&stage).await;
    let thief = Remote { gateway: second.address(), ..Remote::new(&stage) };
    assert_eq!(thief.take_over(&former, &[&attempt]).await["taken_over"], json!([]));
    // Without the submission nothing proves which job of this id the process runs.
    let other = remote.at(second.address());
    let mut unproven = held(&attempt);
    unproven["submission"] = Value::Null;
    let answer =
        other.register(json!({ "former_worker": former, "running": [unproven] })).await.is(200).json();
    assert_eq!(answer["taken_over"], json!([]));
    remote.close(&attempt, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_takes_over_no_more_than_it_has_slots_and_its_free_slots_are_known() {
    let stage = Stage::new("takeover-slots").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let former = remote.register(json!({})).await.is(200).json()["worker"].clone();
    for id in ["a", "b"] {
        stage.submit(id, json!({})).await;
    }
    let [first, second] = remote.attempts(2).await.try_into().unwrap();
    let gateway = gateway(&stage).await;
    let other = remote.at(gateway.address());
    let body = json!({ "slots": 1, "former_worker": former, "running": [held(&first), held(&second)] });
    let answer = other.register(body).await.is(200).json();
    let moved = renamed(&first, &answer);
    // The slot is in use, so the only other worker gets the next job. It still has the attempt that was not moved.
    stage.submit("c", json!({})).await;
    let third = remote.attempt(&[&second]).await;
    assert_eq!(third["job"], "c");
    for attempt in [&second, &third] {
        remote.close(attempt, succeeded()).await;
    }
    other.close(&moved, succeeded()).await;
    gateway.stop().await;
}
