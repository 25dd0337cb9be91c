//! Visibility and order of replies while a batch is being committed.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use bellwether_keeper::server::{Keeper, StopReason};
use bellwether_keeper::store::{Changes, Memory, Reader, Snapshot, Status, Store, StoreError};

use crate::wire::*;

/// A store whose commits are controlled by the test.
struct Held {
    rows: Memory,
    begun: Sender<Changes>,
    end: Receiver<bool>,
    /// Receives a message for each call of `tidy`; a dropped receiver makes `tidy` fail.
    tidied: Sender<()>,
    /// The number of calls of `tidy` that report more work.
    untidy: u32,
}

/// The test's side of the store.
struct Hands {
    begun: Mutex<Receiver<Changes>>,
    end: Sender<bool>,
    tidied: Mutex<Receiver<()>>,
}

impl Hands {
    /// Waits until a commit starts that changes this path; completes all others.
    fn until_commit_of(&self, path: &str) {
        let begun = self.begun.lock().expect("the lock is not poisoned");
        loop {
            let changes = begun.recv_timeout(PATIENCE).expect("a commit");
            if format!("{changes:?}").contains(&format!("{path:?}")) {
                return;
            }
            self.end.send(true).expect("the store is waiting");
        }
    }
}

fn full() -> StoreError {
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    StoreError::Full { file: "keeper.redb".into(), doing: "committing", source }
}

impl Store for Held {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        self.rows.load()
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.begun.send(changes.clone()).expect("the test receives");
        match self.end.recv().expect("the test is running") {
            true => self.rows.commit(changes),
            false => Err(full()),
        }
    }

    fn tidy(&mut self) -> Result<bool, StoreError> {
        self.tidied.send(()).map_err(|_gone| full())?;
        self.untidy = self.untidy.saturating_sub(1);
        Ok(self.untidy > 0)
    }

    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.reader()
    }

    fn status(&self) -> Status {
        self.rows.status()
    }
}

async fn held(untidy: u32) -> (Keeper, Hands) {
    let (begun, begins) = channel();
    let (ends, end) = channel();
    let (tidied, tidies) = channel();
    let store = Held { rows: Memory::new(), begun, end, tidied, untidy };
    let keeper = Keeper::builder().store(store).start().await.expect("a keeper");
    (keeper, Hands { begun: Mutex::new(begins), end: ends, tidied: Mutex::new(tidies) })
}

/// Opens a session; completes the commit that each new session causes.
async fn session(keeper: &Keeper, hands: &Hands) -> Wire {
    let mut opening = std::pin::pin!(Wire::session(keeper.address()));
    loop {
        tokio::select! {
            (wire, _session) = &mut opening => return wire,
            () = tokio::task::yield_now() => {
                if hands.begun.lock().expect("the lock is not poisoned").try_recv().is_ok() {
                    hands.end.send(true).expect("the store is waiting");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_during_a_commit_are_answered_with_the_next_one() {
    let (keeper, hands) = held(0).await;
    let mut first = session(&keeper, &hands).await;
    let mut second = session(&keeper, &hands).await;
    first.send(1, CREATE, &create("/a", b"", PERSISTENT)).await;
    hands.until_commit_of("/a");
    let mut both = request(1, EXISTS, &read("/a", false));
    both.extend(request(2, CREATE, &create("/b", b"", PERSISTENT)));
    second.send_raw(&both).await;

    hands.end.send(true).expect("the store is waiting");
    assert_eq!(first.receive().await.expect("a reply").error, 0);
    hands.until_commit_of("/b");
    hands.end.send(true).expect("the store is waiting");
    assert_eq!(
        second.receive().await.expect("a reply").error,
        0,
        "the znode was visible before it was durable"
    );
    assert_eq!(second.receive().await.expect("a reply").error, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_of_a_change_that_never_became_durable_is_not_answered() {
    let (keeper, hands) = held(0).await;
    let mut writer = session(&keeper, &hands).await;
    let mut reader = session(&keeper, &hands).await;
    writer.send(1, CREATE, &create("/a", b"", PERSISTENT)).await;
    hands.until_commit_of("/a");
    for xid in 0..100 {
        reader.send(xid, EXISTS, &read("/a", false)).await;
    }
    hands.end.send(false).expect("the store is waiting");
    assert_eq!(reader.receive().await, None, "a reply based on a write that is not durable");
    assert_eq!(writer.receive().await, None);
    assert!(matches!(keeper.wait().await, Err(StopReason::Commit(_))));
}

/// Completes every commit; returns the messages from `tidy`.
fn undisturbed(hands: Hands) -> Receiver<()> {
    let Hands { begun, end, tidied } = hands;
    std::thread::spawn(move || {
        let begun = begun.into_inner().expect("the lock is not poisoned");
        begun.iter().take_while(|_changes| end.send(true).is_ok()).count()
    });
    tidied.into_inner().expect("the lock is not poisoned")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_lets_the_store_do_all_its_deferred_work() {
    let (keeper, hands) = held(3).await;
    let tidied = undisturbed(hands);
    for _ in 0..3 {
        tidied.recv_timeout(PATIENCE).expect("tidy is called again while there is more work");
    }
    let (mut writer, _) = Wire::session(keeper.address()).await;
    tidied.recv_timeout(PATIENCE).expect("the new session caused a commit");
    assert_eq!(writer.call(1, CREATE, &create("/a", b"", PERSISTENT)).await.error, 0);
    tidied.recv_timeout(PATIENCE).expect("tidy is called after a commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_deferred_work_stops_the_server() {
    let (keeper, hands) = held(1).await;
    drop(undisturbed(hands));
    let reason = tokio::time::timeout(PATIENCE, keeper.wait()).await.expect("in time");
    assert!(matches!(reason, Err(StopReason::Commit(_))), "{reason:?}");
}
