//! The outcomes of a handler: a result, never again, later; and its progress and checkpoint for the next attempt.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example outcomes
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::{Client, HandlerError, Handlers, Job, Node, handler};

const SOON: Duration = Duration::from_secs(30);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
on_invalid of charge-7: there is no account 7
charge-7: dead: there is no account 7, on attempt 1
patient: succeeded, on attempt 3, after 0 failures
import: running: 40 %: two of five files
import: succeeded, on attempt 2, continued at file 2
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    // Can never succeed: dead immediately, without further attempts.
    let charge = handler::job("charge", |_, account: u32| async move {
        Err::<(), _>(HandlerError::invalid(format!("there is no account {account}")))
    });
    let charge = charge.on_invalid(move |context, why| {
        let told = format!("on_invalid of {}: {why}", context.job());
        tells.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        async {}
    });
    let handlers = Handlers::new()
        .add(charge)
        // Waits for an external event: a snooze is neither a failure nor a loss.
        .job("patient", |context, (): ()| async move {
            match context.attempt() {
                1..=2 => Err(HandlerError::retry_later(Duration::from_secs(1))),
                _ => Ok(()),
            }
        })
        // Fails half-way, and the next attempt continues there.
        .job("import", |context, (): ()| async move {
            let from = context.last_checkpoint().map_or(0, |done| done[0]);
            if from > 0 {
                return Ok(from);
            }
            context.checkpoint([2])?;
            context.progress(40, "two of five files")?;
            // Long enough to be observed: progress is written once a second.
            tokio::time::sleep(Duration::from_secs(3)).await;
            Err(HandlerError::new("the disk is full"))
        });
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;
    let client = Client::connect(zookeeper).await?;
    let mut story = String::new();

    let charge = client.submit(Job::new("charge", &7).id("charge-7")).await?.wait(SOON).await?;
    for told in told.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        story += &format!("{told}\n");
    }
    story += &format!("{}: {}, on attempt {}\n", charge.id, charge.status(), charge.attempt);

    let patient = client.submit(Job::new("patient", &()).id("patient").max_attempts(1)).await?;
    let patient = patient.wait(SOON).await?;
    let (state, attempt, failures) = (patient.state, patient.attempt, patient.failures);
    story += &format!("patient: {state}, on attempt {attempt}, after {failures} failures\n");

    let short = Duration::from_millis(50);
    let import = client.submit(Job::new("import", &()).id("import").backoff(short, short)).await?;
    let running = loop {
        let view = client.get(import.id()).await?.ok_or("it was submitted")?;
        if view.progress.is_some() {
            break view;
        }
        tokio::time::sleep(short).await;
    };
    story += &format!("import: {}\n", running.status());
    let end = import.wait(SOON).await?;
    let from =
        end.result.map(|result| String::from_utf8_lossy(result.bytes()).into_owned()).unwrap_or_default();
    story += &format!("import: {}, on attempt {}, continued at file {from}\n", end.state, end.attempt);

    client.close().await;
    node.stop().await;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("outcomes"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
