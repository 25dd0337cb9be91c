//! The picture of the README: the overview of a cluster that works.

use std::time::{Duration, Instant};

use bellwether::{Access, Client, HandlerError, Handlers, Job, Node, Scheme};
use bellwether_gateway::Gateway;
use bellwether_testkit::namespace;

use crate::browser::browse;

/// For how long the cluster works before the picture is taken, in seconds: `cargo xtask screenshot` sets it to 14 samples.
const WORKS_FOR: &str = "BELLWETHER_PICTURE_AFTER";

/// Handlers that take some time, and of which a few fail.
fn handlers() -> Handlers {
    let works = |millis: u64| async move { tokio::time::sleep(Duration::from_millis(millis)).await };
    Handlers::new()
        .job("mail", move |_, millis: u64| async move {
            works(millis).await;
            if millis.is_multiple_of(97) {
                return Err(HandlerError::invalid("the address does not exist"));
            }
            Ok(())
        })
        .job("thumbnail", move |_, millis: u64| async move {
            works(2 * millis).await;
            Ok(())
        })
        .job("report", move |_, millis: u64| async move {
            works(4 * millis).await;
            Ok(())
        })
}

/// Submits jobs in waves until the time is over.
async fn submit(client: &Client, until: Instant) {
    for wave in 0_u64.. {
        if Instant::now() > until {
            return;
        }
        let many = 10 + 14 * (wave % 40).min(40 - wave % 40);
        let jobs = (0..many).map(|number| {
            let kind = ["mail", "mail", "mail", "thumbnail", "report"][usize::try_from(number % 5).unwrap()];
            Job::new(kind, &(50 + (wave * 31 + number * 17) % 400))
        });
        // The lane is slower than its jobs arrive, so some of them wait. The reminder has its time after the picture.
        let invoice = Job::new("report", &400).id(format!("invoice-{wave}")).lane("account-7");
        let reminder = Job::new("mail", &100).delay(Duration::from_secs(600));
        for job in jobs.chain([invoice, reminder]) {
            client.submit(job).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_is_live_while_a_cluster_works() {
    let works_for = std::env::var(WORKS_FOR).map_or(3, |seconds| seconds.parse().unwrap());
    let to = format!("{}/production", namespace("console-picture"));
    // A namespace that only its user may change has no alert.
    let access = || Access::login(Scheme::Digest, "bellwether", "password");
    let client = async || Client::builder(&to).access(access()).connect().await.unwrap();
    let gateway = Gateway::builder(client().await).listen("127.0.0.1:0".parse().unwrap());
    let gateway = gateway.start().await.unwrap();
    let mut nodes = Vec::new();
    for name in ["berlin-1", "berlin-2", "dublin-1"] {
        let node = Node::builder(&to).access(access()).node_id(name).handlers(handlers()).slots(32);
        nodes.push(node.start().await.unwrap());
    }
    let submitter = client().await;
    browse(gateway.address(), async |page| {
        page.looks(1280, 960).await;
        page.open("#/").await;
        page.shows("Live").await;
        submit(&submitter, Instant::now() + Duration::from_secs(works_for)).await;
        page.shows("Live").await;
        page.screenshot("readme").await;
    })
    .await;
    for node in nodes {
        node.stop().await;
    }
}
