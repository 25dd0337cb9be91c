//! Handlers with middleware on a worker.

use std::time::Duration;

use bellwether::handler::middleware::from_fn;
use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, State, handler};

use crate::stage::{job, over};

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
