//! The smallest service: an embedded node, a typed handler, and a client.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`), or starts one:
//!
//! ```sh
//! cargo run --example embed
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use bellwether::{Client, Handlers, JobKind, Node};

struct Square;

impl JobKind for Square {
    const NAME: &'static str = "square";
    type Payload = i64;
    type Result = i64;
}

/// The expected output.
pub(crate) const EXPECTED: &str = "7 squared is 49\n";

/// Starts a node, runs a job on it, and stops it.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or the job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let handlers = Handlers::new().kind::<Square>(|_, n| async move { Ok(n * n) });
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;

    let client = Client::connect(zookeeper).await?;
    let job = client.submit(Square::job(&7)).await?;
    let square = job.result(Duration::from_secs(30)).await?;

    client.close().await;
    node.stop().await;
    Ok(format!("7 squared is {square}\n"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let told = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("embed"))).await?;
    print!("{told}");
    assert_eq!(told, EXPECTED);
    Ok(())
}
