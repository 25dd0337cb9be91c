//! Payloads and results that ZooKeeper, its operators and the console cannot read.
//!
//! The client encrypts the payload, the worker decrypts it before the handler runs, and encrypts its result for the client. A
//! client without the key sees that there is a job, and its encrypted bytes. See `cipher.rs` for the codec.
//!
//! ```sh
//! cargo run --example encryption
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod cipher;

use std::error::Error;
use std::time::Duration;

use bellwether::{Client, Handlers, JobKind, Node};

use cipher::Keys;

/// Charges a card.
struct Charge;

impl JobKind for Charge {
    const NAME: &'static str = "charge";
    type Payload = String;
    type Result = String;
}

/// The expected output.
pub(crate) const EXPECTED: &str = "\
the result: receipt for 4242-4242
stored as: application/vnd.bellwether.encoded
the card is readable in the stored payload: false
";

/// Returns the keys of all clients and workers. A real program reads them from its secret store.
fn keys() -> Keys {
    Keys::new(2, [0x2b; 32]).also(1, [0x1a; 32])
}

/// Runs a job whose payload and result are encrypted, and reads its stored payload with a client that has no key.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or the job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let handlers = Handlers::new().kind::<Charge>(|_, card| async move { Ok(format!("receipt for {card}")) });
    let node = Node::builder(zookeeper).handlers(handlers).payload_codec(keys()).start().await?;

    let client = Client::builder(zookeeper).payload_codec(keys()).connect().await?;
    let job = client.submit(Charge::job(&"4242-4242".to_owned())).await?;
    let receipt = job.result(Duration::from_secs(30)).await?;

    let without_key = Client::connect(zookeeper).await?;
    let stored = without_key.get(job.id()).await?.and_then(|view| view.payload).ok_or("no payload")?;
    let content_type = stored.content_type().as_str();
    let readable = stored.bytes().windows(4).any(|four| four == b"4242");

    client.close().await;
    without_key.close().await;
    node.stop().await;
    Ok(format!(
        "the result: {receipt}\nstored as: {content_type}\n\
         the card is readable in the stored payload: {readable}\n"
    ))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let told = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("encryption"))).await?;
    print!("{told}");
    assert_eq!(told, EXPECTED);
    Ok(())
}
