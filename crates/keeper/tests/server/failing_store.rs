//! Only durable writes are acknowledged, and a server that cannot commit stops.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_keeper::server::{Keeper, StopReason};
use bellwether_keeper::store::{Changes, Memory, Reader, Snapshot, Status, Store, StoreError};

use crate::wire::*;

/// A store whose disk becomes full or stalls.
struct Failing {
    rows: Memory,
    full: Arc<AtomicBool>,
    then: Then,
}

/// The behaviour of a commit on a full disk.
#[derive(Clone, Copy)]
enum Then {
    Fail,
    Panic,
    Stall(Duration),
}

impl Store for Failing {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        self.rows.load()
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        if !self.full.load(Ordering::SeqCst) {
            return self.rows.commit(changes);
        }
        match self.then {
            Then::Fail => {
                let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
                Err(StoreError::Full {
                    file: "/var/lib/keeper/keeper.redb".into(),
                    doing: "committing",
                    source,
                })
            }
            Then::Panic => panic!("a panic caused by this test"),
            Then::Stall(time) => {
                std::thread::sleep(time);
                self.full.store(false, Ordering::SeqCst);
                self.rows.commit(changes)
            }
        }
    }

    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.reader()
    }

    fn status(&self) -> Status {
        self.rows.status()
    }
}

async fn failing(then: Then) -> (Keeper, Arc<AtomicBool>) {
    let full = Arc::new(AtomicBool::new(false));
    let store = Failing { rows: Memory::new(), full: Arc::clone(&full), then };
    (
        Keeper::builder().store(store).tick_time(Duration::from_millis(500)).start().await.expect("a keeper"),
        full,
    )
}

#[tokio::test]
async fn a_failed_commit_sends_nothing_and_stops_the_server() {
    let (keeper, full) = failing(Then::Fail).await;
    let address = keeper.address();
    let (mut watcher, _) = Wire::session(address).await;
    assert_eq!(watcher.call(1, ADD_WATCH, &add_watch_recursive("/")).await.error, 0);
    let (mut writer, _) = Wire::session(address).await;
    let mut unborn = Wire::open(address).await;
    assert!(keeper.stopped().is_none());

    full.store(true, Ordering::SeqCst);
    let mut requests = request(7, CREATE, &create("/a", b"", PERSISTENT));
    requests.extend(request(8, GET_DATA, &read("/a", false)));
    writer.send_raw(&requests).await;
    assert_eq!(writer.receive().await, None, "a reply to a write that is not durable");
    assert_eq!(watcher.receive().await, None, "a notification of a write that is not durable");
    assert!(unborn.closes().await);

    let reason = keeper.wait().await.expect_err("the commit failed");
    assert!(matches!(reason, StopReason::Commit(_)), "{reason:?}");
    let source = reason.source().expect("the store's error").to_string();
    assert_eq!(source, "no space left for /var/lib/keeper/keeper.redb while committing");
    assert!(keeper.stopped().is_some());
    eventually("the listener is closed", async || tokio::net::TcpStream::connect(address).await.is_err())
        .await;
    keeper.backup("/nowhere").await.expect_err("a stopped server has no store");
    keeper.stop().await.expect_err("the server had stopped with an error");
}

#[tokio::test]
async fn writes_before_a_full_disk_are_answered_and_reads_still_work() {
    let (keeper, full) = failing(Then::Fail).await;
    let (mut writer, _) = Wire::session(keeper.address()).await;
    for xid in 0..100 {
        assert_eq!(writer.call(xid, CREATE, &create(&format!("/a{xid}"), b"", PERSISTENT)).await.error, 0);
    }
    full.store(true, Ordering::SeqCst);
    // Reads need no commit and so still work.
    assert_eq!(writer.call(100, EXISTS, &read("/a99", false)).await.error, 0);
    writer.send(101, CREATE, &create("/b", b"", PERSISTENT)).await;
    assert_eq!(writer.receive().await, None);
}

#[tokio::test]
async fn a_panic_of_the_engine_stops_the_server() {
    let (keeper, full) = failing(Then::Panic).await;
    let (mut writer, _) = Wire::session(keeper.address()).await;
    full.store(true, Ordering::SeqCst);
    writer.send(1, CREATE, &create("/a", b"", PERSISTENT)).await;
    assert!(writer.closes().await);
    let reason = tokio::time::timeout(Duration::from_secs(10), keeper.wait()).await.expect("in time");
    assert!(matches!(reason, Err(StopReason::Panicked)), "{reason:?}");
}

#[tokio::test]
async fn a_stalled_disk_expires_no_session_with_unread_pings() {
    const WINDOW: i32 = 3_000;
    let (keeper, full) = failing(Then::Stall(Duration::from_millis(2_500))).await;
    let (mut writer, _) = Wire::session(keeper.address()).await;
    let mut busy = Wire::open(keeper.address()).await;
    let session = busy.hello(1, 0, &[0; 16]).await.expect("a session");
    assert_eq!(session.timeout_ms, 1_000);
    full.store(true, Ordering::SeqCst);
    writer.send(1, CREATE, &create("/a", b"", PERSISTENT)).await;
    // More than the limit of unanswered requests: the later ones stay in the socket.
    let window: Vec<u8> = (0..WINDOW).flat_map(|xid| request(xid, EXISTS, &read("/", false))).collect();
    busy.send_raw(&window).await;
    let mut pings = 0;
    while full.load(Ordering::SeqCst) {
        busy.send(-2, PING, &[]).await;
        pings += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(writer.receive().await.expect("a reply").error, 0);
    for _ in 0..WINDOW + pings {
        assert_eq!(busy.receive().await.expect("the session is alive").error, 0);
    }
}

#[tokio::test]
async fn a_stalled_disk_expires_no_session_whose_client_pings() {
    let (keeper, full) = failing(Then::Stall(Duration::from_millis(2_500))).await;
    let (mut writer, writing) = Wire::session(keeper.address()).await;
    let mut pinging = Wire::open(keeper.address()).await;
    let session = pinging.hello(1, 0, &[0; 16]).await.expect("a session");
    assert_eq!(session.timeout_ms, 1_000);
    assert!(writing.timeout_ms > 2_500, "the writer's session must outlast the stall");
    full.store(true, Ordering::SeqCst);
    writer.send(1, CREATE, &create("/a", b"", PERSISTENT)).await;
    let mut pings = 0;
    while full.load(Ordering::SeqCst) {
        pinging.send(-2, PING, &[]).await;
        pings += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(writer.receive().await.expect("a reply").error, 0);
    for _ in 0..pings {
        assert_eq!(pinging.receive().await.expect("the session is alive").error, 0);
    }
}
