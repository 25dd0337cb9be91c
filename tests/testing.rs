//! The public test kit, as a service's tests use it.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::testing::{Attempt, AttemptError, Cluster};
use bellwether::{HandlerError, Handlers, Job, JobKind, Remedy, State, Tag};
use bellwether_testkit::eventually;
use tokio::runtime::Handle;
use tokio::sync::watch;

#[allow(dead_code, reason = "the test calls run, not main")]
#[path = "../examples/testing.rs"]
mod example;

const SOON: Duration = Duration::from_secs(30);

struct Square;

impl JobKind for Square {
    const NAME: &'static str = "square";
    type Payload = i64;
    type Result = i64;
}

fn squares() -> Handlers {
    Handlers::new().kind::<Square>(|_, n| async move { Ok(n * n) })
}

/// A handler that counts its runs, which end when `may_end` is set.
fn held(may_end: &watch::Sender<bool>, begun: &Arc<AtomicU32>) -> Handlers {
    let shared = with_state((may_end.subscribe(), Arc::clone(begun)));
    Handlers::new().add(shared.job("held", |(mut may_end, begun), _, (): ()| async move {
        begun.fetch_add(1, Ordering::SeqCst);
        may_end.wait_for(|may_end| *may_end).await?;
        Ok(())
    }))
}

#[tokio::test]
async fn an_attempt_is_performed_without_a_cluster() {
    let attempt = Attempt::of(Square::job(&7)).unwrap();
    assert_eq!(attempt.result(&squares()).await.unwrap(), 49);

    let handlers = Handlers::new()
        .job("attempt", |context, (): ()| async move { Ok(context.attempt()) })
        .job("until-cancelled", |context, (): ()| async move {
            context.cancelled().await;
            Err::<(), _>(HandlerError::new("cancelled"))
        });
    let attempt = Attempt::of(Job::new("attempt", &())).unwrap().number(3);
    assert_eq!(attempt.perform(&handlers).await.unwrap().bytes(), b"3");

    let told = Attempt::of(Job::new("until-cancelled", &()).id("told")).unwrap();
    assert_eq!(told.context().job().as_str(), "told");
    told.cancellation().cancel();
    assert_eq!(told.perform(&handlers).await.unwrap_err().to_string(), "the attempt failed: cancelled");

    let unknown = Attempt::of(Job::new("unknown", &())).unwrap().perform(&handlers).await;
    assert!(matches!(unknown, Err(AttemptError::NoHandler(_))), "{unknown:?}");
    assert_eq!(unknown.unwrap_err().remedy(), Remedy::FixInput);
    assert!(Attempt::of(Job::new("attempt", &()).id("a/b")).is_err(), "the id is malformed");
}

#[tokio::test]
async fn a_killed_nodes_jobs_run_elsewhere_after_its_session_has_timed_out() {
    let (may_end, begun) = (watch::Sender::new(false), Arc::default());
    let mut cluster = Cluster::builder(held(&may_end, &begun)).nodes(2).start().await.unwrap();
    let job = cluster.client().submit(Job::new("held", &())).await.unwrap();
    eventually("the job runs", SOON, async || begun.load(Ordering::SeqCst) == 1).await;
    let name = cluster.client().get(job.id()).await.unwrap().unwrap().node.unwrap();
    let killed = cluster.named(name.as_str()).unwrap();
    killed.kill().await;
    assert!(!killed.leads());
    assert!(!killed.expire().await, "a killed node has no session to expire");
    // Its registration remains until the server expires the session, as after the crash of a process.
    assert_eq!(cluster.client().workers().await.unwrap().len(), 2);

    may_end.send_replace(true);
    let end = job.wait(SOON).await.unwrap();
    assert_eq!((end.state, end.attempt, end.losses), (State::Succeeded, 2, 1), "{end:?}");
    cluster.add().await.unwrap();
    cluster.ready().await.unwrap();
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_node_with_an_expired_session_returns_under_another() {
    let cluster = Cluster::builder(squares()).start().await.unwrap();
    let before = cluster.client().leader().await.unwrap().unwrap();
    assert!(cluster.leader().await.unwrap().expire().await);
    eventually("the node is the leader again", SOON, async || {
        let now = cluster.client().leader().await.unwrap().unwrap();
        now.standing && now.epoch > before.epoch && now.session != before.session
    })
    .await;
    let job = cluster.client().submit(Square::job(&3)).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), 9);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_disconnected_node_is_not_the_leader_until_it_is_mended() {
    let cluster = Cluster::builder(squares()).start().await.unwrap();
    let node = &cluster.nodes()[0];
    for cut in [true, false] {
        if cut {
            node.cut_off()
        } else {
            node.lose_replies()
        }
        // Its leadership lease ends, so it must not act as the leader.
        eventually("the node is not the leader", SOON, async || !node.leads()).await;
        let job = cluster.client().submit(Square::job(&4)).await.unwrap();
        let queued = cluster.client().get(job.id()).await.unwrap().unwrap();
        assert_eq!(queued.state, State::Queued);
        node.mend();
        assert_eq!(job.result(SOON).await.unwrap(), 16);
    }
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_stopped_cluster_leaves_no_tasks() {
    let before = Handle::current().metrics().num_alive_tasks();
    for killed in [false, true] {
        let cluster = Cluster::builder(squares()).nodes(2).start().await.unwrap();
        if killed {
            cluster.leader().await.unwrap().kill().await;
        }
        cluster.stop().await.unwrap();
        eventually("no task is left", SOON, async || Handle::current().metrics().num_alive_tasks() == before)
            .await;
    }
}

#[tokio::test]
async fn each_node_can_be_configured_separately() {
    let cluster = Cluster::builder(squares())
        .nodes(2)
        .configure(|n, node| node.candidate(n == 0).slots(3).tags([format!("tag-{n}")]))
        .start()
        .await
        .unwrap();
    assert_eq!(cluster.leader().await.unwrap().name(), "node-0");
    let workers = cluster.client().workers().await.unwrap();
    let told = workers.into_iter().map(|worker| worker.info.unwrap());
    let mut told = told.map(|info| (info.node.to_string(), info.slots, info.tags)).collect::<Vec<_>>();
    told.sort();
    let node = |n| (format!("node-{n}"), 3, vec![Tag::new(format!("tag-{n}")).unwrap()]);
    assert_eq!(told, [node(0), node(1)]);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn the_example_prints_the_expected_output() {
    assert_eq!(example::run().await.unwrap(), example::EXPECTED);
}
