//! Runs the jobs of each customer on one node, where its caches are warm. When a node leaves, only its customers
//! move.
//!
//! Uses rendezvous placement: a key ranks the workers by their ids alone.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example affinity
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bellwether::placement::BuiltInStrategy;
use bellwether::{Client, Handlers, Job, Node};

const SOON: Duration = Duration::from_secs(30);
const CUSTOMERS: usize = 12;
const JOBS_EACH: usize = 5;

/// The expected output.
pub(crate) const EXPECTED: &str = "\
60 jobs of 12 customers ran, each customer's on one node
one node left
60 jobs of 12 customers ran, each customer's on one node
its customers moved, and no others
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let client = Client::connect(zookeeper).await?;
    let mut nodes = BTreeMap::new();
    for name in ["red", "green", "blue"] {
        nodes.insert(name.to_owned(), node(zookeeper, name).await?);
    }
    client.set_placement_strategy(BuiltInStrategy::Rendezvous.into()).await?;
    // One job per node, selected by its tag: once they have run, the leader knows all nodes.
    for name in nodes.keys() {
        client.submit(Job::new("where", &()).tags([name])).await?.wait(SOON).await?;
    }

    let before = homes(&client).await?;
    story += &told(&before);
    let leaver = before["customer-0"].clone();
    if let Some(node) = nodes.remove(&leaver) {
        node.stop().await;
    }
    story += "one node left\n";
    let after = homes(&client).await?;
    story += &told(&after);
    for (customer, home) in &before {
        assert_eq!(after[customer] != *home, *home == leaver, "{customer}: {home}, then {}", after[customer]);
    }
    story += "its customers moved, and no others\n";

    client.close().await;
    for node in nodes.values() {
        node.stop().await;
    }
    Ok(story)
}

/// Starts a node whose jobs return its name. It has spare slots, because a full worker's jobs go to the next in the
/// ranking.
async fn node(zookeeper: &str, name: &'static str) -> Result<Node, Box<dyn Error>> {
    let handlers = Handlers::new().job("where", move |_, (): ()| async move { Ok(name) });
    let node = Node::builder(zookeeper).node_id(name).tags([name]).handlers(handlers).slots(100);
    Ok(node.start().await?)
}

/// Returns the node on which each customer's jobs ran.
async fn homes(client: &Client) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut homes = BTreeMap::new();
    for n in 0..CUSTOMERS * JOBS_EACH {
        let customer = format!("customer-{}", n % CUSTOMERS);
        let job = client.submit(Job::new("where", &()).affinity(&customer)).await?;
        let home: String = serde_json::from_slice(job.result(SOON).await?.bytes())?;
        let known = homes.entry(customer.clone()).or_insert_with(|| home.clone());
        assert_eq!(*known, home, "{customer} ran in two places");
    }
    Ok(homes)
}

fn told(homes: &BTreeMap<String, String>) -> String {
    let (jobs, customers) = (homes.len() * JOBS_EACH, homes.len());
    format!("{jobs} jobs of {customers} customers ran, each customer's on one node\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("affinity"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
