//! Priority, earliest start and expiry of jobs.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example priorities
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bellwether::client::SubmitError;
use bellwether::handler::with_state;
use bellwether::{Client, Handlers, Job, JobError, Kind, Node, State};

const SOON: Duration = Duration::from_secs(30);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
by priority: urgent, ordinary, ordinary too, some day
delayed until its start time, and ran only then
the offer expired before a worker could start it: dead, after 0 attempts
an expiry before the start is refused
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: &str| story += &format!("{line}\n");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mailed = with_state(Arc::clone(&order)).job("mail", |order, _, subject: String| async move {
        order.lock().unwrap_or_else(PoisonError::into_inner).push(subject);
        Ok(())
    });
    let handlers = Handlers::new().add(mailed).job("ping", |_, (): ()| async { Ok(()) });
    let client = Client::connect(zookeeper).await?;
    let mail = |subject: &str| Job::new("mail", &subject);

    // Jobs of a paused kind accumulate; after the pause the most urgent one goes first. A leader that is elected
    // during the pause respects it from the start.
    let kind = Kind::new("mail")?;
    client.pause_kind(&kind, "the example").await?;
    let node = Node::builder(zookeeper).handlers(handlers).slots(1).start().await?;
    let jobs =
        [mail("ordinary"), mail("some day").priority(0), mail("ordinary too"), mail("urgent").priority(9)];
    let mut handles = Vec::new();
    for job in jobs {
        handles.push(client.submit(job).await?);
    }
    // The leader learns of jobs in the order of their submission: after the ping it knows of the mails.
    client.submit(Job::new("ping", &())).await?.wait(SOON).await?;
    client.resume_kind(&kind).await?;
    for handle in &handles {
        handle.wait(SOON).await?;
    }
    let order = order.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
    tell(&format!("by priority: {order}"));

    let at = SystemTime::now() + Duration::from_secs(1);
    let later = client.submit(mail("later").run_at(at)).await?;
    let view = client.get(later.id()).await?.ok_or("it was accepted")?;
    assert_eq!(view.state, State::Delayed);
    later.wait(SOON).await?;
    assert!(SystemTime::now() >= at);
    tell("delayed until its start time, and ran only then");

    // No worker has this tag, and the job expires after half a second.
    let offer = mail("offer").tags(["nobody"]).expires_in(Duration::from_millis(500));
    let end = client.submit(offer).await?.wait(SOON).await?;
    tell(&format!(
        "the offer expired before a worker could start it: {}, after {} attempts",
        end.state, end.attempt
    ));

    let never = mail("never").delay(Duration::from_secs(60)).expires_in(Duration::from_secs(30));
    let refused = client.submit(never).await;
    assert!(matches!(refused, Err(SubmitError::Invalid(JobError::Timing(_)))));
    tell("an expiry before the start is refused");

    client.close().await;
    node.stop().await;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("priorities"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
