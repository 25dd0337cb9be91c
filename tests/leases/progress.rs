//! What an attempt says while it runs, and leaves to the next.

use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, State};
use bellwether_testkit::eventually;

use crate::stage::{Gate, SOON, job, over, view};

/// Counts on from where the attempt before it was.
fn counts(gate: &Gate) -> Handlers {
    let gate = gate.clone();
    Handlers::new()
        .job("counts", move |context, (): ()| {
            gate.come(&context);
            let gate = gate.clone();
            async move {
                let from = context.last_checkpoint().map_or(0, |bytes| bytes[0]);
                context.checkpoint([from + 1])?;
                context.progress(10 * (from + 1), format!("step {}", from + 1))?;
                if context.attempt() == 1 {
                    gate.wait().await;
                }
                Ok(from)
            }
        })
        .renew_automatically()
}

#[tokio::test]
async fn progress_is_seen_while_a_job_runs_and_its_checkpoint_survives_the_death_of_its_worker() {
    let gate = Gate::new();
    let cluster = Cluster::builder(counts(&gate)).nodes(3).start().await.unwrap();
    cluster.client().submit(job("counts", "counts")).await.unwrap();
    eventually("its progress is written", SOON, async || {
        view(&cluster, "counts").await.status() == "running: 10 %: step 1"
    })
    .await;
    let seen = view(&cluster, "counts").await;
    assert_eq!(seen.progress.unwrap().checkpoint(), [1]);
    // Its worker, and the leader, whichever of the nodes they are.
    let worker = cluster.named(seen.node.unwrap().as_str()).unwrap();
    worker.kill().await;
    let leader = cluster.leader().await.unwrap();
    leader.kill().await;
    let ended = over(&cluster, "counts").await;
    assert_eq!((ended.state, ended.attempt), (State::Succeeded, 2), "{ended:?}");
    assert_eq!(ended.result.unwrap().bytes(), b"1", "it went on from the checkpoint");
    assert_eq!(ended.progress.unwrap().checkpoint(), [2], "what was said last goes with the close");
    gate.open();
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_failed_attempt_said_last_is_what_the_next_begins_with() {
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
async fn progress_out_of_its_bounds_fails_by_name() {
    let handlers = Handlers::new().job("boasts", |context, (): ()| async move {
        context.progress(101, "more than all")?;
        Ok(())
    });
    let attempt = bellwether::testing::Attempt::of(job("boasts", "boasts")).unwrap();
    let error = attempt.perform(&handlers).await.unwrap_err().to_string();
    assert_eq!(error, "the attempt failed: percent must be 0 to 100, not 101");
    assert_eq!(attempt.context().said(), bellwether_core::job::Progress::default());
}
