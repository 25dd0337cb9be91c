//! A namespace is created once, by the first node, and a foreign namespace or one with another layout is refused.

mod closed;

use std::time::Duration;

use bellwether_core::failover::Failover;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::Shard;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire;
use bellwether_testkit::{ZooKeeperServer, namespace};
use bellwether_zk::{NamespaceError, Zk, connect, open_namespace, settle_strategy};
use futures::future::join_all;
use metrics_exporter_prometheus::PrometheusBuilder;

async fn session(to: &str) -> Zk {
    connect(&to.parse().expect("a connect string"), Duration::from_secs(5)).await.expect("a session")
}

fn create(path: &str, data: &[u8]) -> Vec<Op> {
    vec![Op::Create { path: path.into(), data: data.into(), lifetime: Lifetime::Persistent }]
}

fn serves() -> String {
    format!("serves version {}", wire::LAYOUT_VERSION)
}

#[tokio::test]
async fn concurrent_nodes_create_a_namespace_once() {
    let to = namespace("made-once") + "/deeper/still";
    let (one, two) = (session(&to).await, session(&to).await);
    let (first, second) = tokio::join!(open_namespace(&one, true), open_namespace(&two, true));
    assert_eq!((first, second), (Ok(Failover::default()), Ok(Failover::default())));
    let buckets = one.children(path::JOBS.into()).await.unwrap().unwrap();
    assert_eq!(buckets.len(), Bucket::all().count());
    for bucket in [Bucket::all().next(), Bucket::all().last()].into_iter().flatten() {
        let parents = one.children(bucket.jobs()).await.unwrap().unwrap();
        assert_eq!(parents.len(), bucket.sub_buckets().count());
    }
    assert_eq!(open_namespace(&one, false).await, Ok(Failover::default()));
}

/// Opening reads the layout first and then lists other znodes: the layout may be created in between.
#[tokio::test]
async fn a_reader_never_sees_a_partial_namespace() {
    for n in 0..3 {
        let to = namespace(&format!("meanwhile-{n}"));
        let maker = session(&to).await;
        let readers = (0..4).map(|_| async {
            let zk = session(&to).await;
            loop {
                match open_namespace(&zk, false).await {
                    Ok(_) => break,
                    Err(NamespaceError::Absent { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let (made, _) = tokio::join!(open_namespace(&maker, true), join_all(readers));
        assert_eq!(made, Ok(Failover::default()));
    }
}

#[tokio::test]
async fn opening_without_create_creates_nothing() {
    let to = namespace("reader") + "/typo";
    let zk = session(&to).await;
    let refused = open_namespace(&zk, false).await.unwrap_err();
    assert!(matches!(refused, NamespaceError::Absent { .. }), "{refused}");
    assert_eq!(zk.get("/".into()).await, Ok(None));
}

#[tokio::test]
async fn a_newer_and_an_older_layout_are_refused_with_both_versions() {
    for (name, version, way_out) in [
        ("newer", wire::LAYOUT_VERSION + 1, "upgrade this build"),
        ("older", wire::LAYOUT_VERSION - 1, "start with an empty namespace"),
    ] {
        let zk = session(&namespace(name)).await;
        open_namespace(&zk, true).await.unwrap();
        let layout = zk.get(path::LAYOUT.into()).await.unwrap().unwrap();
        let data = wire::encode(&wire::Layout::new(version));
        let set = Op::Set { path: path::LAYOUT.into(), data, version: layout.version };
        assert_eq!(zk.commit(vec![set]).await, Outcome::Applied(()));
        for create in [true, false] {
            let refused = open_namespace(&zk, create).await.unwrap_err().to_string();
            for part in [&format!("layout version {version}"), &serves(), way_out] {
                assert!(refused.contains(part), "{refused}");
            }
        }
    }
}

#[tokio::test]
async fn a_chroot_with_other_data_is_refused() {
    let to = namespace("foreign");
    let (address, chroot) = to.split_once('/').unwrap();
    let root = session(address).await;
    let mut path = String::new();
    for part in format!("{chroot}/brokers").split('/') {
        path = format!("{path}/{part}");
        root.commit(create(&path, b"")).await;
    }
    let refused = open_namespace(&session(&to).await, true).await.unwrap_err().to_string();
    assert!(refused.contains("holds other data (brokers)") && refused.contains(&serves()), "{refused}");
}

#[tokio::test]
async fn deleted_znodes_of_a_namespace_are_created_again() {
    let zk = session(&namespace("repaired")).await;
    open_namespace(&zk, true).await.unwrap();
    let (bucket, shard) = (Bucket::all().nth(7).unwrap(), Shard::all().nth(7).unwrap());
    let other = Bucket::all().nth(8).unwrap().sub_buckets().last().unwrap().path();
    let all = bucket.sub_buckets().map(SubBucket::path).chain([bucket.jobs(), other]);
    let all = all.chain([path::ready_shard(shard), path::QUARANTINE.into()]).collect::<Vec<_>>();
    for path in all.clone() {
        assert_eq!(zk.commit(vec![Op::Delete { path, version: None }]).await, Outcome::Applied(()));
    }
    open_namespace(&zk, true).await.unwrap();
    let read = zk.get_many(all).await.unwrap();
    assert!(read.iter().all(Option::is_some), "{read:?}");
}

#[tokio::test]
async fn every_session_reads_the_times_of_the_namespace_and_refuses_unreadable_ones() {
    let zk = session(&namespace("failover")).await;
    open_namespace(&zk, true).await.unwrap();
    let [beat, trust, wait] = [100, 250, 300].map(Duration::from_millis);
    let times = Failover { beat, trust, wait };
    let set = |data: Vec<u8>| Op::Set { path: path::FAILOVER.into(), data, version: -1 };
    assert_eq!(zk.commit(vec![set(wire::encode(&times))]).await, Outcome::Applied(()));
    for create in [true, false] {
        assert_eq!(open_namespace(&zk, create).await, Ok(times));
    }
    let contradictory = wire::encode(&Failover { trust: wait, ..times });
    for unreadable in [b"garbage".to_vec(), contradictory] {
        assert_eq!(zk.commit(vec![set(unreadable)]).await, Outcome::Applied(()));
        for create in [true, false] {
            let refused = open_namespace(&zk, create).await.unwrap_err();
            assert!(matches!(refused, NamespaceError::UnreadableFailover { .. }), "{refused}");
        }
    }
    let delete = Op::Delete { path: path::FAILOVER.into(), version: None };
    assert_eq!(zk.commit(vec![delete]).await, Outcome::Applied(()));
    assert_eq!(open_namespace(&zk, true).await, Ok(Failover::default()));
    assert!(zk.get(path::FAILOVER.into()).await.unwrap().is_some(), "a node creates it again");
}

/// Candidates of two strategies do not see each other.
#[tokio::test]
async fn the_first_candidate_decides_the_election_strategy_of_the_namespace() {
    let to = namespace("strategy");
    let (one, two) = (session(&to).await, session(&to).await);
    open_namespace(&one, true).await.unwrap();
    let (queue, single) =
        tokio::join!(settle_strategy(&one, Strategy::Queue), settle_strategy(&two, Strategy::Single));
    assert!(queue.is_ok() != single.is_ok(), "{queue:?} {single:?}");
    let (winner, loser) =
        if queue.is_ok() { (Strategy::Queue, Strategy::Single) } else { (Strategy::Single, Strategy::Queue) };
    for zk in [&one, &two] {
        assert_eq!(settle_strategy(zk, winner).await, Ok(()));
        let refused = settle_strategy(zk, loser).await.unwrap_err();
        assert!(!refused.may_pass());
        let said = refused.to_string();
        assert!(said.contains(&format!("use the election strategy {winner}, not {loser}")), "{said}");
    }
    // A change of the strategy, as the error describes it.
    let layout = Op::Delete { path: path::LAYOUT.into(), version: None };
    assert_eq!(one.commit(vec![layout]).await, Outcome::Applied(()));
    open_namespace(&one, true).await.unwrap();
    assert_eq!(settle_strategy(&one, loser).await, Ok(()));
}

#[tokio::test]
async fn only_in_the_root_a_znode_named_zookeeper_belongs_to_zookeeper() {
    let server = ZooKeeperServer::builder().memory().start();
    assert_eq!(open_namespace(&session(&server.connect_string()).await, true).await, Ok(Failover::default()));
    let to = namespace("with-zookeeper");
    let (address, chroot) = to.split_once('/').unwrap();
    let root = session(address).await;
    let mut path = String::new();
    for part in format!("{chroot}/zookeeper").split('/') {
        path = format!("{path}/{part}");
        root.commit(create(&path, b"")).await;
    }
    let refused = open_namespace(&session(&to).await, true).await.unwrap_err();
    assert!(!refused.may_pass());
    assert!(refused.to_string().contains("holds other data (zookeeper)"), "{refused}");
}

#[test]
fn a_lost_connection_may_pass() {
    assert!(NamespaceError::Disconnected.may_pass());
}

/// The checks of a namespace in use must cost its nodes nothing but reads.
#[tokio::test]
async fn opening_a_complete_namespace_that_is_open_to_all_writes_nothing() {
    let zk = session(&namespace("complete")).await;
    open_namespace(&zk, true).await.unwrap();
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _installed = metrics::set_default_local_recorder(&recorder);
    open_namespace(&zk, true).await.unwrap();
    let text = handle.render();
    assert!(text.contains("request=\"read\"") && !text.contains("request=\"write\""), "{text}");
}
