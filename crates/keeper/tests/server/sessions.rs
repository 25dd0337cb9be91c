//! Sessions outlive connections and servers, and expire after their timeout.

use std::time::{Duration, Instant};

use bellwether_keeper::server::{Keeper, StartError, Storage};

use crate::wire::*;

const NO_NODE: i32 = -101;

async fn exists(wire: &mut Wire, path: &str) -> bool {
    match wire.call(77, EXISTS, &read(path, false)).await.error {
        0 => true,
        NO_NODE => false,
        other => panic!("error {other}"),
    }
}

#[tokio::test]
async fn a_session_without_requests_expires_with_its_ephemerals() {
    let keeper = Keeper::builder().tick_time(Duration::from_millis(50)).start().await.expect("a keeper");
    let mut wire = Wire::open(keeper.address()).await;
    let session = wire.hello(1, 0, &[0; 16]).await.expect("a session");
    assert_eq!(session.timeout_ms, 100, "the shortest timeout is two ticks");
    assert_eq!(wire.call(1, CREATE, &create("/e", b"", EPHEMERAL)).await.error, 0);
    let left = Instant::now();
    drop(wire);

    let (mut other, _) = Wire::session(keeper.address()).await;
    assert!(exists(&mut other, "/e").await, "the znode was deleted with the connection");
    eventually("the ephemeral znode is deleted", async || !exists(&mut other, "/e").await).await;
    assert!(left.elapsed() >= Duration::from_millis(100), "the session expired too early");
    assert!(Wire::attach(keeper.address(), &session).await.is_none(), "an expired session was re-attached");
}

#[tokio::test]
async fn pings_keep_a_session_alive() {
    let keeper = Keeper::builder().tick_time(Duration::from_millis(500)).start().await.expect("a keeper");
    let mut wire = Wire::open(keeper.address()).await;
    let session = wire.hello(1, 0, &[0; 16]).await.expect("a session");
    // Long compared with the pauses of a busy machine.
    assert_eq!(session.timeout_ms, 1_000);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(wire.call(-2, PING, &[]).await.error, 0);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn re_attaching_moves_the_session_and_closes_the_old_connection() {
    let keeper = keeper().await;
    let (mut first, session) = Wire::session(keeper.address()).await;
    assert_eq!(first.call(1, CREATE, &create("/e", b"", EPHEMERAL)).await.error, 0);
    let mut second = Wire::attach(keeper.address(), &session).await.expect("the same session");
    assert!(first.closes().await, "two connections for one session");
    assert!(exists(&mut second, "/e").await);
    assert_eq!(second.call(2, CLOSE_SESSION, &[]).await.error, 0);
    assert!(second.closes().await);
    let (mut other, _) = Wire::session(keeper.address()).await;
    assert!(!exists(&mut other, "/e").await, "the ephemeral znode of a closed session exists");
}

#[tokio::test]
async fn sessions_and_znodes_survive_a_restart_on_the_same_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = async |listen| {
        let storage = Storage::Directory(directory.path().to_owned());
        Keeper::builder().listen(listen).store(storage).start().await.expect("a keeper")
    };
    let keeper = start("127.0.0.1:0".parse().expect("an address")).await;
    let address = keeper.address();
    let (mut wire, session) = Wire::session(address).await;
    assert_eq!(wire.call(1, CREATE, &create("/p", b"kept", PERSISTENT)).await.error, 0);
    let last = wire.call(2, CREATE, &create("/e", b"", EPHEMERAL)).await;
    keeper.stop().await.expect("a clean stop");
    assert!(wire.closes().await, "connections end with the server");

    let keeper = start(address).await;
    let mut wire = Wire::attach(address, &session).await.expect("the session from before");
    let data = wire.call(3, GET_DATA, &read("/p", false)).await;
    assert_eq!(&data.body[..8], b"\0\0\0\x04kept");
    assert!(data.zxid >= last.zxid, "the zxid decreased");
    assert!(exists(&mut wire, "/e").await);
    assert_eq!(wire.call(4, CLOSE_SESSION, &[]).await.error, 0);
    keeper.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn a_stopped_server_refuses_connections() {
    let keeper = keeper().await;
    let address = keeper.address();
    let (mut idle, _) = Wire::session(address).await;
    let mut unborn = Wire::open(address).await;
    keeper.stop().await.expect("a clean stop");
    assert!(idle.closes().await);
    assert!(unborn.closes().await);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn dropping_a_keeper_stops_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = || Storage::Directory(directory.path().to_owned());
    let keeper = Keeper::builder().store(storage()).start().await.expect("a keeper");
    let (mut wire, _) = Wire::session(keeper.address()).await;
    drop(keeper);
    assert!(wire.closes().await);
    eventually("the directory is free", async || Keeper::builder().store(storage()).start().await.is_ok())
        .await;
}

#[tokio::test]
async fn an_address_in_use_and_a_directory_in_use_are_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = || Storage::Directory(directory.path().to_owned());
    let keeper = Keeper::builder().store(storage()).start().await.expect("a keeper");
    let address = Keeper::builder().listen(keeper.address()).start().await.expect_err("two on one address");
    assert!(address.to_string().contains(&keeper.address().to_string()), "{address}");
    let directory = Keeper::builder().store(storage()).start().await.expect_err("two on one directory");
    assert_eq!(directory.to_string(), "the store cannot be opened");
}

#[tokio::test]
async fn a_backup_is_made_while_the_server_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::Directory(directory.path().join("served"));
    let keeper = Keeper::builder().store(storage).start().await.expect("a keeper");
    let (mut wire, _) = Wire::session(keeper.address()).await;
    for number in 0..50 {
        assert_eq!(
            wire.call(number, CREATE, &create(&format!("/n{number}"), b"x", PERSISTENT)).await.error,
            0
        );
    }
    let file = directory.path().join("copy");
    let writes = async {
        for xid in 100..200 {
            assert_eq!(wire.call(xid, SET_DATA, &set_data("/n0", b"y")).await.error, 0);
        }
    };
    let (copied, ()) = tokio::join!(keeper.backup(&file), writes);
    assert!(copied.expect("a copy").nodes >= 50);
    keeper.backup(&file).await.expect_err("an existing file is not overwritten");
    keeper.stop().await.expect("a clean stop");

    let restored = directory.path().join("restored");
    bellwether_keeper::store::restore(&file, &restored).expect("restored");
    let keeper = Keeper::builder().store(Storage::Directory(restored)).start().await.expect("a keeper");
    let (mut wire, _) = Wire::session(keeper.address()).await;
    assert!(exists(&mut wire, "/n49").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_pings_but_reads_slowly_keeps_its_session() {
    // More than the socket buffers hold, so that requests are parked.
    const BIG: usize = 1_000_000;
    const READS: i32 = 40;
    let keeper = Keeper::builder().tick_time(Duration::from_millis(500)).start().await.expect("a keeper");
    let mut wire = Wire::open(keeper.address()).await;
    let session = wire.hello(1, 0, &[0; 16]).await.expect("a session");
    assert_eq!(session.timeout_ms, 1_000);
    assert_eq!(wire.call(0, CREATE, &create("/big", &vec![7; BIG], PERSISTENT)).await.error, 0);
    for xid in 1..=READS {
        wire.send(xid, GET_DATA, &read("/big", false)).await;
    }
    let start = Instant::now();
    let mut pings = 0;
    while start.elapsed() < Duration::from_millis(2_500) {
        wire.send(-2, PING, &[]).await;
        pings += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for xid in 1..=READS {
        assert_eq!(wire.receive().await.expect("the session is alive").xid, xid);
    }
    for _ in 0..pings {
        assert_eq!(wire.receive().await.expect("the session is alive").error, 0);
    }
}

#[tokio::test]
async fn bounds_without_a_valid_timeout_are_rejected_at_the_start() {
    let millis = Duration::from_millis;
    let with = |min: Option<u64>, max: Option<u64>| {
        Keeper::builder().min_session_timeout(min.map(millis)).max_session_timeout(max.map(millis))
    };
    for (builder, bounds) in [
        (with(None, Some(0)), (4_000, 0)),
        (with(None, Some(3_999)), (4_000, 3_999)),
        (with(Some(0), None), (0, 40_000)),
        (with(Some(50_000), None), (50_000, 40_000)),
    ] {
        let refused = builder.start().await.map(drop);
        match refused {
            Err(StartError::SessionBounds { shortest, longest }) => {
                assert_eq!((shortest, longest), (millis(bounds.0), millis(bounds.1)));
            }
            other => panic!("{bounds:?}: {other:?}"),
        }
    }
    let one = with(Some(3_000), Some(3_000)).start().await.expect("a keeper");
    let (_wire, session) = Wire::session(one.address()).await;
    assert_eq!(session.timeout_ms, 3_000);
}
