//! Progress of an attempt while it runs, and its checkpoint for the next attempt.

use bellwether::handler::with_state;
use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, State};
use bellwether_testkit::eventually;

use crate::stage::{Gate, SOON, job, over, view};

/// A handler that counts on from the last checkpoint.
fn counts(gate: &Gate) -> Handlers {
    let counts = with_state(gate.clone()).job("counts", |gate, context, (): ()| async move {
        gate.come(&context);
        let from = context.last_checkpoint().map_or(0, |bytes| bytes[0]);
        context.checkpoint([from + 1])?;
        context.progress(10 * (from + 1), format!("step {}", from + 1))?;
        if context.attempt() == 1 {
            gate.wait().await;
        }
        Ok(from)
    });
    Handlers::new().add(counts.auto_renew(true))
}

#[tokio::test]
async fn progress_of_a_running_job_is_visible_and_its_checkpoint_survives_the_worker() {
    let gate = Gate::new();
    let cluster = Cluster::builder(counts(&gate)).nodes(3).start().await.unwrap();
    cluster.client().submit(job("counts", "counts")).await.unwrap();
    eventually("the progress of the job is written", SOON, async || {
        view(&cluster, "counts").await.status() == "running: 10 %: step 1"
    })
    .await;
    let seen = view(&cluster, "counts").await;
    assert_eq!(seen.progress.unwrap().checkpoint(), [1]);
    // Kills its worker and the leader, which may be the same node.
    let worker = cluster.named(seen.node.unwrap().as_str()).unwrap();
    worker.kill().await;
    let leader = cluster.leader().await.unwrap();
    leader.kill().await;
    let ended = over(&cluster, "counts").await;
    assert_eq!((ended.state, ended.attempt), (State::Succeeded, 2), "{ended:?}");
    assert_eq!(ended.result.unwrap().bytes(), b"1", "the second attempt continued from the checkpoint");
    assert_eq!(ended.progress.unwrap().checkpoint(), [2], "the last checkpoint is written with the close");
    gate.open();
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn the_next_attempt_starts_with_the_checkpoint_of_a_failed_one() {
    let handlers = Handlers::new().job("fails", |context, (): ()| async move {
        match context.last_checkpoint() {
            Some(bytes) => Ok(bytes.to_vec()),
            None => {
                context.checkpoint(*b"half")?;
                Err(HandlerError::new("no luck"))
            }
        }
    });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let short = std::time::Duration::from_millis(1);
    cluster.client().submit(job("fails", "fails").backoff(short, short)).await.unwrap();
    let ended = over(&cluster, "fails").await;
    assert_eq!((ended.state, ended.attempt), (State::Succeeded, 2), "{ended:?}");
    assert_eq!(ended.result.unwrap().bytes(), serde_json::to_vec(b"half").unwrap());
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn progress_out_of_bounds_is_an_error_that_names_the_field() {
    let handlers = Handlers::new().job("boasts", |context, (): ()| async move {
        context.progress(101, "more than all")?;
        Ok(())
    });
    let attempt = bellwether::testing::Attempt::of(job("boasts", "boasts")).unwrap();
    let error = attempt.perform(&handlers).await.unwrap_err().to_string();
    assert_eq!(error, "the attempt failed: percent must be 0 to 100, not 101");
    assert_eq!(attempt.context().newest_progress(), bellwether_core::job::Progress::default());
}
