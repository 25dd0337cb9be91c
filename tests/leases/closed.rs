//! What a task that outlives the handler learns about the close of an attempt, and how a node ends without a drain.

use std::time::Duration;

use bellwether::handler::{Closed, Stop, with_state};
use bellwether::node::WorkerState;
use bellwether::testing::Cluster;
use bellwether::{Handlers, JobContext, JobId, State};
use bellwether_core::job::{Attempt, Ending, JobRecord};
use bellwether_core::outcome::Outcome;
use bellwether_core::time::WallMillis;
use bellwether_core::{path, txn, wire};
use bellwether_testkit::eventually;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::stage::{Gate, LEASE, SOON, assignment, job, look, over};

/// A cluster whose handler sends its context, and then returns (`quick`) or waits until it is dropped (`slow`).
async fn cluster(nodes: usize) -> (Cluster, UnboundedReceiver<JobContext>) {
    let (to, contexts) = unbounded_channel();
    let to = with_state(to);
    let quick = to.job("quick", |to, context: JobContext, (): ()| async move {
        to.send(context).unwrap();
        Ok(())
    });
    let slow = to.job("slow", |to, context: JobContext, (): ()| async move {
        to.send(context.clone()).unwrap();
        match context.attempt() {
            1 => std::future::pending().await,
            _ => Ok(()),
        }
    });
    let handlers = Handlers::new().add(quick).add(slow);
    (Cluster::builder(handlers).nodes(nodes).start().await.unwrap(), contexts)
}

async fn next(contexts: &mut UnboundedReceiver<JobContext>) -> JobContext {
    timeout(SOON, contexts.recv()).await.unwrap().unwrap()
}

async fn closed(context: &JobContext) -> Closed {
    timeout(SOON, context.closed()).await.unwrap()
}

#[tokio::test]
async fn an_attempt_is_reported_as_written_when_its_end_can_be_read() {
    let (cluster, mut contexts) = cluster(1).await;
    cluster.client().submit(job("quick", "quick")).await.unwrap();
    let context = next(&mut contexts).await;
    assert_eq!(closed(&context).await, Closed::Written);
    let view = cluster.client().get(context.job()).await.unwrap().unwrap();
    assert_eq!(view.state, State::Succeeded);
    assert_eq!(context.stop_reason(), None);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_stopped_attempt_has_a_reason_and_its_end_is_written() {
    let (cluster, mut contexts) = cluster(1).await;
    let client = cluster.client();
    for (id, with, reason, state) in [
        ("cancelled", job("slow", "cancelled"), Stop::Cancelled, State::Cancelled),
        ("expired", job("slow", "expired").lease(LEASE), Stop::LeaseExpired, State::Succeeded),
        ("late", job("slow", "late").timeout(LEASE).max_attempts(1), Stop::TimedOut, State::Dead),
    ] {
        client.submit(with).await.unwrap();
        let context = next(&mut contexts).await;
        assert_eq!((context.job().as_str(), context.stop_reason()), (id, None));
        if id == "cancelled" {
            client.cancel(context.job()).await.unwrap();
        }
        context.cancelled().await;
        assert_eq!(context.stop_reason(), Some(reason));
        assert_eq!(closed(&context).await, Closed::Written);
        assert_eq!(over(&cluster, id).await.state, state);
        if state == State::Succeeded {
            assert_eq!(next(&mut contexts).await.attempt(), 2);
        }
    }
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn an_attempt_that_another_process_closed_is_fenced() {
    let (cluster, mut contexts) = cluster(1).await;
    cluster.client().submit(job("slow", "a")).await.unwrap();
    let context = next(&mut contexts).await;
    assert_eq!((context.lease(), context.timeout()), (Duration::from_secs(300), None));
    let (zk, id) = (look(&cluster).await, JobId::new("a").unwrap());
    let (_, version) = assignment(&cluster, &zk, "a").await;
    let node = zk.get(path::record(&id)).await.unwrap().unwrap();
    let record: JobRecord = wire::decode(&node.data).unwrap();
    let attempt = Attempt { number: 1, worker: context.worker() };
    let (after, next) = record.close(attempt, Ending::Cancelled, WallMillis(1), 0);
    let ops = txn::close(&id, context.worker(), node.version, Some(version), &after, &next);
    assert_eq!(zk.commit(ops).await, Outcome::Applied(()));
    assert_eq!(closed(&context).await, Closed::Fenced);
    eventually("the handler is told to stop", SOON, async || context.stop_reason() == Some(Stop::Closed))
        .await;
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn an_aborted_node_leaves_its_attempt_as_a_loss_and_the_outcome_unknown() {
    let (cluster, mut contexts) = cluster(2).await;
    cluster.client().submit(job("slow", "a")).await.unwrap();
    let context = next(&mut contexts).await;
    let mut host = None;
    for node in cluster.nodes() {
        let state = node.node().watch_worker().changed().await;
        if state == Some(WorkerState::Serving(context.worker())) {
            host = Some(node.node());
        }
    }
    let host = host.expect("a node has the worker's id");
    let mut watch = host.watch_worker();
    host.abort().await;
    assert_eq!(closed(&context).await, Closed::Unknown);
    while timeout(SOON, watch.changed()).await.unwrap().is_some() {}
    let view = over(&cluster, "a").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 2, 1), "{view:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_stop_without_a_grace_period_hands_back_attempts_that_the_first_lets_run() {
    let gate = Gate::new();
    let wait = with_state(gate.clone()).job("wait", |gate, context, (): ()| async move {
        gate.come(&context);
        if context.attempt() == 1 {
            gate.wait().await;
        }
        Ok(())
    });
    let cluster = Cluster::builder(Handlers::new().add(wait)).nodes(2).start().await.unwrap();
    cluster.client().submit(job("wait", "a")).await.unwrap();
    gate.has_come("a", 1).await;
    let worker = crate::stage::view(&cluster, "a").await.worker.unwrap();
    let mut host = None;
    for node in cluster.nodes() {
        let mut watch = node.node().watch_worker();
        if watch.changed().await == Some(WorkerState::Serving(worker)) {
            host = Some((node.node(), watch));
        }
    }
    let (host, mut watch) = host.unwrap();
    let first = tokio::spawn({
        let host = host.clone();
        async move { host.stop_within(Duration::from_secs(3_600)).await }
    });
    assert_eq!(timeout(SOON, watch.changed()).await.unwrap(), Some(WorkerState::Draining(worker)));
    timeout(SOON, host.stop_within(Duration::ZERO)).await.unwrap();
    timeout(SOON, first).await.unwrap().unwrap();
    let view = over(&cluster, "a").await;
    assert_eq!((view.state, view.losses, view.failures), (State::Succeeded, 0, 0), "{view:?}");
    gate.open();
    cluster.stop().await.unwrap();
}
