//! Tests with a widely used client library.

use std::time::Duration;

use bellwether_keeper::server::{Keeper, Storage};
use zookeeper_client::{Acls, AddWatchMode, Client, CreateMode, Error, EventType, SessionState};

use crate::wire::*;

async fn connect(keeper: &Keeper) -> Client {
    Client::connector()
        .with_session_timeout(Duration::from_secs(4))
        .connect(&keeper.connect_string())
        .await
        .expect("a client")
}

fn open(mode: CreateMode) -> zookeeper_client::CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

#[tokio::test]
async fn znodes_versions_and_transactions_are_as_expected() {
    let keeper = keeper().await;
    let client = connect(&keeper).await;
    let (created, sequence) =
        client.create("/a", b"1", &open(CreateMode::Persistent)).await.expect("created");
    assert!(sequence.into_i64() < 0, "no sequence");
    let (data, stat) = client.get_data("/a").await.expect("data");
    assert_eq!((data.as_slice(), stat.version, stat.czxid), (&b"1"[..], 0, created.czxid));
    assert_eq!(client.set_data("/a", b"2", Some(5)).await, Err(Error::BadVersion));
    let written = client.set_data("/a", b"2", Some(0)).await.expect("written");
    assert_eq!(written.version, 1);

    let mut multi = client.new_multi_writer();
    multi.add_check_version("/a", 1).expect("added");
    multi.add_create("/a/b", b"", &open(CreateMode::Persistent)).expect("added");
    multi.add_delete("/nowhere", None).expect("added");
    multi.commit().await.expect_err("all or none");
    assert_eq!(client.check_stat("/a/b").await, Ok(None));
    let (_, sequence) =
        client.create("/a/s-", b"", &open(CreateMode::EphemeralSequential)).await.expect("created");
    assert_eq!(sequence.into_i64(), 0);
    assert_eq!(client.delete("/a", None).await, Err(Error::NotEmpty));
}

#[tokio::test]
async fn watches_of_all_kinds_fire_in_order() {
    let keeper = keeper().await;
    let (watching, writing) = (connect(&keeper).await, connect(&keeper).await);
    let mut recursive = watching.watch("/", AddWatchMode::PersistentRecursive).await.expect("a watch");
    let (_, once) = watching.check_and_watch_stat("/a").await.expect("a watch");
    writing.create("/a", b"", &open(CreateMode::Persistent)).await.expect("created");
    for number in 0..100 {
        writing.set_data("/a", &[number], None).await.expect("written");
    }
    writing.delete("/a", None).await.expect("deleted");
    assert_eq!(once.changed().await.event_type, EventType::NodeCreated);
    assert_eq!(recursive.changed().await.event_type, EventType::NodeCreated);
    for _ in 0..100 {
        assert_eq!(recursive.changed().await.event_type, EventType::NodeDataChanged);
    }
    assert_eq!(recursive.changed().await.event_type, EventType::NodeDeleted);
}

#[tokio::test]
async fn a_client_keeps_its_session_over_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = async |listen| {
        let storage = Storage::Directory(directory.path().to_owned());
        Keeper::builder().listen(listen).store(storage).start().await.expect("a keeper")
    };
    let keeper = start("127.0.0.1:0".parse().expect("an address")).await;
    let address = keeper.address();
    let client = connect(&keeper).await;
    client.create("/e", b"", &open(CreateMode::Ephemeral)).await.expect("created");
    let mut states = client.state_watcher();
    keeper.stop().await.expect("a clean stop");
    let keeper = start(address).await;
    let back = async { while states.changed().await != SessionState::SyncConnected {} };
    tokio::time::timeout(PATIENCE, back).await.expect("connected again");
    let (_, stat) = client.get_data("/e").await.expect("its ephemeral");
    assert_eq!(stat.ephemeral_owner, client.session_id().0);
    keeper.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn dropping_a_client_deletes_its_ephemerals_immediately() {
    let keeper = keeper().await;
    let (gone, left) = (connect(&keeper).await, connect(&keeper).await);
    gone.create("/e", b"", &open(CreateMode::Ephemeral)).await.expect("created");
    let (_, _, watcher) = left.get_and_watch_data("/e").await.expect("a watch");
    drop(gone);
    let event = tokio::time::timeout(Duration::from_secs(2), watcher.changed()).await.expect("in time");
    assert_eq!(event.event_type, EventType::NodeDeleted);
}
