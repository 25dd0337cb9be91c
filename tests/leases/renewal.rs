//! Lease renewals: their effect and their cost.

use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::testing::Cluster;
use bellwether::{Handlers, State, handler};
use bellwether_testkit::eventually;

use crate::stage::{Gate, LEASE, SOON, assignment, job, look, over, record_version};

/// Handlers that run until the gate opens.
fn held(gate: &Gate) -> Handlers {
    let gate = with_state(gate.clone());
    let auto = gate.job("auto", |gate, context, (): ()| async move {
        gate.come(&context);
        gate.wait().await;
        Ok(())
    });
    let asking = gate.job("asking", |gate, context, lease: Duration| async move {
        gate.come(&context);
        let before = context.lease_until();
        context.renew_lease(lease)?;
        gate.wait().await;
        Ok(context.lease_until() > before)
    });
    Handlers::new().add(auto.auto_renew(true)).add(asking.lease(LEASE))
}

#[tokio::test]
async fn a_lease_that_is_renewed_automatically_keeps_its_job() {
    let gate = Gate::new();
    let cluster = Cluster::builder(held(&gate)).start().await.unwrap();
    let zk = look(&cluster).await;
    cluster.client().submit(job("auto", "kept").lease(LEASE)).await.unwrap();
    gate.has_come("kept", 1).await;
    eventually("the lease was renewed for four leases", SOON, async || {
        let (standing, version) = assignment(&cluster, &zk, "kept").await;
        assert_eq!((standing.attempt, standing.lease), (1, LEASE));
        version >= 12
    })
    .await;
    gate.open();
    let view = over(&cluster, "kept").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_job_may_disable_the_automatic_renewal_of_its_kind() {
    let gate = Gate::new();
    let cluster = Cluster::builder(held(&gate)).start().await.unwrap();
    let refuses = job("auto", "lost").lease(LEASE).auto_renew(false).max_losses(1);
    cluster.client().submit(refuses).await.unwrap();
    let view = over(&cluster, "lost").await;
    assert_eq!((view.state, view.losses), (State::Dead, 1), "{view:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_requested_renewal_is_written_once_and_extends_the_lease() {
    let gate = Gate::new();
    let cluster = Cluster::builder(held(&gate)).start().await.unwrap();
    let zk = look(&cluster).await;
    let asks = bellwether::Job::new("asking", &Duration::from_secs(600)).id("asks");
    cluster.client().submit(asks).await.unwrap();
    gate.has_come("asks", 1).await;
    eventually("the lease is renewed", SOON, async || assignment(&cluster, &zk, "asks").await.1 == 1).await;
    let (standing, _) = assignment(&cluster, &zk, "asks").await;
    assert!(standing.lease > Duration::from_secs(590), "{standing:?}");
    gate.open();
    let view = over(&cluster, "asks").await;
    assert_eq!((view.state, view.attempt), (State::Succeeded, 1), "{view:?}");
    assert_eq!(view.result.unwrap().bytes(), b"true");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn an_awaited_renewal_is_stored_when_the_call_returns() {
    let gate = Gate::new();
    let awaits = with_state(gate.clone()).job("awaits", |gate, context, lease: Duration| async move {
        context.renew_lease_confirmed(lease).await?;
        gate.come(&context);
        gate.wait().await;
        Ok(context.lease_until()).map(|until| until > std::time::Instant::now() + lease / 2)
    });
    let handlers = Handlers::new().add(awaits.lease(60 * LEASE));
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let zk = look(&cluster).await;
    let awaits = bellwether::Job::new("awaits", &Duration::from_secs(600)).id("awaits");
    cluster.client().submit(awaits).await.unwrap();
    gate.has_come("awaits", 1).await;
    let (stored, version) = assignment(&cluster, &zk, "awaits").await;
    assert_eq!((stored.lease, version), (Duration::from_secs(600), 1));
    gate.open();
    let view = over(&cluster, "awaits").await;
    assert_eq!((view.state, view.attempt), (State::Succeeded, 1), "{view:?}");
    assert_eq!(view.result.unwrap().bytes(), b"true");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_lease_out_of_bounds_is_an_error_that_names_the_field() {
    let handlers = Handlers::new().job("asking", |context, lease: Duration| async move {
        context.renew_lease(lease)?;
        Ok(())
    });
    let attempt = bellwether::testing::Attempt::of(bellwether::Job::new("asking", &Duration::MAX));
    let error = attempt.unwrap().perform(&handlers).await.unwrap_err().to_string();
    assert!(error.starts_with("the attempt failed: lease must be 1s to 7d, not "), "{error}");
    let long = handler::job("asking", |_, (): ()| async { Ok(()) }).lease(Duration::MAX);
    let error = Handlers::new().add(long).check().unwrap_err().to_string();
    assert!(error.starts_with("kind asking: lease must be 1s to 7d, not "), "{error}");
    let short = bellwether::Job::new("x", &()).lease(Duration::from_millis(999)).check();
    assert!(short.unwrap_err().to_string().starts_with("lease must be 1s to"));
}

/// Its life is two transactions: the assignment and the close.
#[tokio::test]
async fn a_job_shorter_than_a_third_of_its_lease_writes_only_its_end() {
    let gate = Gate::new();
    let cluster = Cluster::builder(held(&gate)).start().await.unwrap();
    let zk = look(&cluster).await;
    cluster.client().submit(job("auto", "short").lease(60 * LEASE)).await.unwrap();
    gate.has_come("short", 1).await;
    // A renewal of another job at the same time shows that renewals are written.
    cluster.client().submit(job("auto", "long").lease(LEASE)).await.unwrap();
    gate.has_come("long", 1).await;
    eventually("the other job renews", SOON, async || assignment(&cluster, &zk, "long").await.1 >= 3).await;
    assert_eq!(assignment(&cluster, &zk, "short").await.1, 0);
    gate.open();
    over(&cluster, "short").await;
    assert_eq!(record_version(&zk, "short").await, 1, "the record was set once, by the close");
    cluster.stop().await.unwrap();
}
