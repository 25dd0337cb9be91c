//! Outcomes that a handler can choose.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, Job, State, handler};

use crate::stage::{job, over};

#[tokio::test]
async fn an_invalid_job_is_dead_immediately_after_on_invalid_ran() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    let charge = handler::job("charge", |_, account: String| async move {
        Err::<(), _>(HandlerError::invalid(format!("there is no account {account}")))
    });
    let charge = charge.on_invalid(move |context, why| {
        tells.lock().unwrap().push(format!("{} {}: {why}", context.job(), context.attempt()));
        async {}
    });
    let cluster = Cluster::builder(Handlers::new().add(charge)).start().await.unwrap();
    let client = cluster.client();
    client.submit(Job::new("charge", "7").id("no-account")).await.unwrap();
    client.submit(Job::new("charge", &7).id("no-text")).await.unwrap();
    let view = over(&cluster, "no-account").await;
    assert_eq!((view.state, view.attempt, view.failures), (State::Dead, 1, 0), "{view:?}");
    assert_eq!(view.error.as_deref(), Some("there is no account 7"));
    let view = over(&cluster, "no-text").await;
    assert_eq!((view.state, view.attempt), (State::Dead, 1), "{view:?}");
    let error = view.error.unwrap();
    assert!(error.starts_with("the payload does not fit kind charge: "), "{error}");
    let mut told = told.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["no-account 1: there is no account 7".to_owned(), format!("no-text 1: {error}")]);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_panic_of_on_invalid_changes_nothing() {
    let bad = handler::job("bad", |_, (): ()| async { Err::<(), _>(HandlerError::invalid("no")) })
        .on_invalid(|_, _| async { panic!("planned: on purpose") });
    let cluster = Cluster::builder(Handlers::new().add(bad)).start().await.unwrap();
    cluster.client().submit(job("bad", "bad")).await.unwrap();
    let view = over(&cluster, "bad").await;
    assert_eq!((view.state, view.error.as_deref()), (State::Dead, Some("no")), "{view:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_snoozed_job_counts_no_failure_and_no_loss() {
    let handlers = Handlers::new().job("patient", |context, (): ()| async move {
        if context.attempt() <= 3 {
            return Err(HandlerError::retry_later(Duration::from_secs(1)));
        }
        Ok(context.attempt())
    });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    cluster.client().submit(job("patient", "patient").max_attempts(1).max_losses(1)).await.unwrap();
    let view = over(&cluster, "patient").await;
    assert_eq!((view.state, view.attempt), (State::Succeeded, 4), "{view:?}");
    assert_eq!((view.failures, view.losses), (0, 0), "{view:?}");
    cluster.stop().await.unwrap();
}
