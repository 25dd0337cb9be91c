//! Books the payments of each account one at a time, in the order of their submission. Different accounts do not wait
//! for each other.
//!
//! A failed payment waits for its backoff, and the next payments of its account wait behind it: no payment overtakes
//! another.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example lanes
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::{Client, HandlerError, Handlers, Job, Node};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(30);
const ACCOUNTS: [&str; 2] = ["alice", "bob"];
const PAYMENTS: u32 = 5;

/// The expected output.
pub(crate) const EXPECTED: &str = "\
alice: 1 2 3 4 5
bob: 1 2 failed 3 4 5
";

#[derive(Serialize, Deserialize)]
struct Payment {
    account: String,
    number: u32,
}

/// The bookings of each account in order.
type Books = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let books = Books::default();
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        nodes.push(Node::builder(zookeeper).node_id(name).handlers(handlers(&books)).start().await?);
    }
    let client = Client::connect(zookeeper).await?;
    let payments = (1..=PAYMENTS).flat_map(|number| ACCOUNTS.map(|account| (account, number)));
    let jobs = payments.map(|(account, number)| {
        let payment = Payment { account: account.to_owned(), number };
        let wait = Duration::from_millis(50);
        Job::new("pay", &payment).lane(account).backoff(wait, wait)
    });
    for job in client.submit_many(jobs, |_| {}).await {
        job?.wait(SOON).await?;
    }
    client.close().await;
    for node in nodes {
        node.stop().await;
    }
    let books = books.lock().map_err(|_| "a handler panicked")?;
    Ok(books.iter().map(|(account, booked)| format!("{account}: {}\n", booked.join(" "))).collect())
}

/// The handlers. One of bob's payments fails once.
fn handlers(books: &Books) -> Handlers {
    Handlers::new().add(with_state(Arc::clone(books)).job("pay", |books, job, payment: Payment| async move {
        let mut books = books.lock().map_err(|_| HandlerError::new("another handler panicked"))?;
        let booked = books.entry(payment.account.clone()).or_default();
        if payment.account == "bob" && payment.number == 3 && job.attempt() == 1 {
            booked.push("failed".to_owned());
            return Err(HandlerError::new("the bank is closed"));
        }
        booked.push(payment.number.to_string());
        Ok(())
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("lanes"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
