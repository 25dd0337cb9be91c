//! Handlers with middleware and with a concurrency limit, on a worker.

use std::time::Duration;

use bellwether::handler::middleware::from_fn;
use bellwether::handler::with_state;
use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, State, handler};
use bellwether_testkit::eventually;

use crate::stage::{Gate, LEASE, SOON, job, over, view};

#[tokio::test]
async fn a_panic_of_a_layer_or_of_a_handler_inside_it_is_a_failed_attempt() {
    let panics = from_fn(async |_, _| panic!("planned: in the layer"));
    let outside = from_fn(|context, next| async move { next.run(context).await });
    let handlers = Handlers::new()
        .add(handler::job("layer", |_, (): ()| async { Ok(()) }).layer(panics))
        .add(handler::blocking_job("thread", |_, (): ()| -> Result<(), HandlerError> {
            panic!("planned: in the thread")
        }))
        .job("task", |_, (): ()| async { panic!("planned: in the task") as Result<(), HandlerError> })
        .layer(outside);
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    for kind in ["layer", "thread", "task"] {
        let wait = Duration::from_millis(1);
        cluster.client().submit(job(kind, kind).max_attempts(2).backoff(wait, wait)).await.unwrap();
        let ended = over(&cluster, kind).await;
        assert_eq!((ended.state, ended.attempt, ended.failures), (State::Dead, 2, 2), "{ended:?}");
        assert_eq!(ended.error.unwrap(), format!("panicked: planned: in the {kind}"));
    }
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_layer_sees_each_attempt_with_its_context_and_may_change_its_outcome() {
    let patient = from_fn(|context, next| async move {
        let attempt = context.attempt();
        match next.run(context).await {
            Err(error) if attempt == 1 => {
                assert_eq!(error.message(), "not yet");
                Err(HandlerError::retry_later(Duration::from_secs(1)))
            }
            other => other,
        }
    });
    let unready = handler::job("unready", |context, (): ()| async move {
        if context.attempt() == 1 { Err(HandlerError::new("not yet")) } else { Ok(context.attempt()) }
    });
    let cluster = Cluster::builder(Handlers::new().add(unready.layer(patient))).start().await.unwrap();
    cluster.client().submit(job("unready", "unready").max_attempts(1)).await.unwrap();
    let ended = over(&cluster, "unready").await;
    assert_eq!((ended.state, ended.attempt, ended.failures), (State::Succeeded, 2, 0), "{ended:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn jobs_over_the_limit_of_their_kind_wait_and_delay_no_other_kind() {
    let gate = Gate::new();
    let scarce = with_state(gate.clone()).job("scarce", |gate, context, (): ()| async move {
        gate.come(&context);
        gate.wait().await;
        Ok(())
    });
    let handlers = Handlers::new().add(scarce.concurrency(1)).job("free", |_, (): ()| async { Ok(()) });
    let cluster = Cluster::builder(handlers).configure(|_, node| node.slots(4)).start().await.unwrap();
    for id in ["first", "second"] {
        cluster.client().submit(job("scarce", id)).await.unwrap();
        eventually("the job is assigned", SOON, async || view(&cluster, id).await.state == State::Running)
            .await;
    }
    gate.has_come("first", 1).await;
    cluster.client().submit(job("free", "free")).await.unwrap();
    assert_eq!(over(&cluster, "free").await.state, State::Succeeded);
    assert!(gate.came("second").is_empty(), "it waits for the first");
    gate.open();
    for id in ["first", "second"] {
        let ended = over(&cluster, id).await;
        assert_eq!((ended.state, ended.attempt), (State::Succeeded, 1), "{ended:?}");
    }
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn an_abandoned_blocking_handler_counts_towards_the_limit_of_its_kind() {
    let gate = Gate::new();
    let deaf = with_state(gate.clone()).blocking_job("deaf", |gate, context, (): ()| {
        gate.come(&context);
        gate.block();
        Ok(())
    });
    let handlers = Handlers::new().add(deaf.lease(LEASE).concurrency(1));
    let cluster = Cluster::builder(handlers).configure(|_, node| node.slots(4)).start().await.unwrap();
    cluster.client().submit(job("deaf", "deaf")).await.unwrap();
    gate.has_come("deaf", 1).await;
    // The second attempt waits, and is handed back after a third of its lease.
    eventually("a later attempt has waited, or has begun", SOON, async || {
        gate.came("deaf").len() > 1 || view(&cluster, "deaf").await.attempt >= 4
    })
    .await;
    let began = gate.came("deaf");
    gate.open();
    assert_eq!(began, [1], "no other run begins while the thread runs");
    let ended = over(&cluster, "deaf").await;
    assert_eq!((ended.state, ended.losses), (State::Succeeded, 1), "{ended:?}");
    assert_eq!(gate.came("deaf").len(), 2, "{ended:?}");
    cluster.stop().await.unwrap();
}
