//! A machine whose wall clock is a year ahead of ZooKeeper's: its node does not lead, the times that its client sets are
//! right, a purge keeps a job that has just ended, and a snapshot names the host until the clock is correct.
//!
//! The clock is that of the process, so this binary has one test. The keeper of the test cluster runs in the same process, but
//! reads the machine's clock.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::{Duration, SystemTime};

use bellwether::client::{SnapshotOptions, State};
use bellwether::testing::Cluster;
use bellwether::{Client, Handlers, Job};
use bellwether_host::clock::testing::set_ahead;
use bellwether_testkit::eventually;

const SOON: Duration = Duration::from_secs(30);
const YEAR_MS: i64 = 365 * 86_400_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_a_year_ahead_does_not_lead_and_a_client_sets_the_right_times() {
    let handlers = Handlers::new().job("echo", |_, n: i64| async move { Ok(n) });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let node = cluster.leader().await.unwrap();
    let ended = cluster.client().submit(Job::new("echo", &1)).await.unwrap();
    assert_eq!(ended.wait(SOON).await.unwrap().state, State::Succeeded);

    set_ahead(YEAR_MS);
    node.cut_off();
    eventually("the leader pauses", SOON, async || !node.leads()).await;
    // A new connection reads ZooKeeper's clock.
    node.mend();
    let stands = async || cluster.client().leader().await.unwrap().unwrap().standing;
    eventually("the node withdraws its candidate", SOON, async || !stands().await).await;
    assert!(!node.leads());

    let client = Client::connect(cluster.zookeeper()).await.unwrap();
    let job = Job::new("echo", &7).delay(Duration::from_millis(100)).expires_in(Duration::from_secs(600));
    let job = client.submit(job).await.unwrap();
    let view = client.get(job.id()).await.unwrap().unwrap();
    let near = |at: SystemTime| at < SystemTime::now() + Duration::from_secs(700);
    assert!(near(view.submitted_at.unwrap()) && near(view.expires_at.unwrap()), "{view:?}");
    assert!(near(view.not_before.unwrap()), "{view:?}");
    let purged = client.purge_jobs(&[ended.id().clone()], |_| {}).await.unwrap();
    assert_eq!((purged.removed, purged.young), (0, 1), "the job ended less than a minute ago");

    let reports = async || client.snapshot(SnapshotOptions::default()).await.unwrap().wrong_clocks;
    eventually("the node and the client report the clock", SOON, async || reports().await.len() == 2).await;
    let reported = reports().await;
    assert!(reported.iter().all(|clock| (YEAR_MS / 1_000 - clock.ahead).abs() < 60), "{reported:?}");
    assert_eq!(reported.iter().filter(|clock| clock.node.is_some()).count(), 1, "{reported:?}");

    set_ahead(0);
    // So does a new session.
    assert!(node.expire().await);
    eventually("the node leads again", SOON, async || node.leads()).await;
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    client.close().await;
    let reports = async || cluster.client().snapshot(SnapshotOptions::default()).await.unwrap().wrong_clocks;
    eventually("the reports end with their sessions", SOON, async || reports().await.is_empty()).await;
    cluster.stop().await.unwrap();
}
