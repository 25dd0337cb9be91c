//! How a service tests its handlers: one handler alone, and a whole cluster whose leader dies.
//!
//! ```sh
//! cargo run --example testing --features testing
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::testing::{Attempt, Cluster};
use bellwether::{HandlerError, Handlers, JobKind};

/// The service: charges each order exactly once, even if the job runs again.
struct Charge;

impl JobKind for Charge {
    const NAME: &'static str = "charge";
    type Payload = u32;
    type Result = String;
}

type Ledger = Arc<Mutex<BTreeSet<String>>>;

fn handlers(ledger: &Ledger) -> Handlers {
    Handlers::new().add(with_state(Arc::clone(ledger)).kind::<Charge>(|ledger, context, cents| async move {
        // The job's id is the same for every attempt.
        let order = context.job().to_string();
        let first = ledger.lock().unwrap_or_else(PoisonError::into_inner).insert(order);
        if cents == 0 {
            return Err(HandlerError::new("nothing to charge"));
        }
        Ok(if first { format!("charged {cents}") } else { "charged before".to_owned() })
    }))
}

/// The expected output.
pub(crate) const EXPECTED: &str = "\
a first attempt: charged 995
a second attempt: charged before
an empty order: the attempt failed: nothing to charge
the leader dies: 20 of 20 orders are charged, each once
";

/// Runs the tests and returns their output.
///
/// # Errors
/// Fails if one of the tests fails.
pub(crate) async fn run() -> Result<String, Box<dyn Error>> {
    let mut story = String::new();

    // One handler alone: no cluster, nothing stored.
    let service = handlers(&Ledger::default());
    let attempt = Attempt::of(Charge::job(&995).id("order-7"))?;
    story += &format!("a first attempt: {}\n", attempt.result(&service).await?);
    story += &format!("a second attempt: {}\n", attempt.number(2).result(&service).await?);
    let refused = Attempt::of(Charge::job(&0))?.result(&service).await;
    story += &format!("an empty order: {}\n", refused.err().ok_or("it should be refused")?);

    // The service in a cluster in this process.
    let ledger = Ledger::default();
    let cluster = Cluster::builder(handlers(&ledger)).nodes(3).start().await?;
    let orders = (1..=20).map(|n| Charge::job(&n).id(format!("order-{n}")));
    let submitted = cluster.client().submit_many(orders, |_| {}).await;
    cluster.leader().await?.kill().await;
    let mut charged = 0;
    for order in submitted {
        let result = order?.result(Duration::from_secs(60)).await?;
        charged += usize::from(result.starts_with("charged"));
    }
    let once = ledger.lock().unwrap_or_else(PoisonError::into_inner).len();
    story += &format!("the leader dies: {charged} of {once} orders are charged, each once\n");
    cluster.stop().await?;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let story = run().await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
