//! Many connections, and many requests on one connection.

mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_keeper::server::limits::COMMIT_NODES;
use bellwether_keeper::server::{Keeper, Storage};
use bellwether_keeper::store::{Changes, Memory, Reader, Snapshot, Status, Store, StoreError};

use self::wire::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clients_are_served_concurrently() {
    let keeper = keeper().await;
    let mut wires = Vec::new();
    for number in 0..1_000 {
        let (mut wire, _) = Wire::session(keeper.address()).await;
        wire.send(1, CREATE, &create(&format!("/c{number}"), b"", EPHEMERAL)).await;
        wires.push(wire);
    }
    for wire in &mut wires {
        assert_eq!(wire.receive().await.expect("a reply").error, 0);
    }
    assert_eq!(monitored(keeper.address(), "zk_ephemerals_count").await, 1_000);
    for wire in &mut wires {
        wire.send(2, CLOSE_SESSION, &[]).await;
    }
    for wire in &mut wires {
        assert_eq!(wire.receive().await.expect("a reply").error, 0);
        assert!(wire.closes().await);
    }
    assert_eq!(monitored(keeper.address(), "zk_ephemerals_count").await, 0);
    eventually("all slots are free", async || {
        monitored(keeper.address(), "zk_num_alive_connections").await == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_writes_share_commits_and_are_answered_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::Directory(directory.path().to_owned());
    let keeper = Keeper::builder().store(storage).start().await.expect("a keeper");
    let (mut wire, _) = Wire::session(keeper.address()).await;
    assert_eq!(wire.call(-7, CREATE, &create("/n", b"", PERSISTENT)).await.error, 0);
    let before = monitored(keeper.address(), "zk_commit_count").await;
    const WRITES: i32 = 10_000;
    let window: Vec<u8> =
        (0..WRITES).flat_map(|xid| request(xid, SET_DATA, &set_data("/n", &xid.to_be_bytes()))).collect();
    let (mut from, mut to) = wire.stream.split();
    let asked = tokio::io::AsyncWriteExt::write_all(&mut to, &window);
    let answered = async {
        let mut zxid = 0;
        for xid in 0..WRITES {
            let mut frame = [0; 4 + 16 + 68];
            tokio::io::AsyncReadExt::read_exact(&mut from, &mut frame).await.expect("a reply");
            assert_eq!(frame[4..8], xid.to_be_bytes());
            let newer = i64::from_be_bytes(frame[8..16].try_into().expect("a zxid"));
            assert!(newer > zxid);
            zxid = newer;
            assert_eq!(frame[16..20], [0; 4], "error");
            assert_eq!(frame[20 + 32..20 + 36], (xid + 1).to_be_bytes(), "version");
        }
    };
    let (asked, ()) = tokio::join!(asked, answered);
    asked.expect("the requests are sent");
    let commits = monitored(keeper.address(), "zk_commit_count").await - before;
    println!("{WRITES} writes in {commits} commits");
    assert!(commits < i64::from(WRITES) / 10, "{commits} commits for {WRITES} pipelined writes");
}

/// A store that records its largest commit and can delay one.
struct Noting {
    rows: Memory,
    slow: Arc<AtomicBool>,
    largest: Arc<AtomicUsize>,
}

impl Store for Noting {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        self.rows.load()
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        if self.slow.swap(false, Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(500));
        }
        self.largest.fetch_max(changes.rows.len(), Ordering::SeqCst);
        self.rows.commit(changes)
    }

    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.reader()
    }

    fn status(&self) -> Status {
        self.rows.status()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_many_multis_is_committed_in_parts() {
    const OPS: usize = 3_000;
    const MULTIS: i32 = 12;
    let (slow, largest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let store = Noting { rows: Memory::new(), slow: Arc::clone(&slow), largest: Arc::clone(&largest) };
    let keeper = Keeper::builder().store(store).start().await.expect("a keeper");
    let mut wires = Vec::new();
    for number in 0..MULTIS {
        let (wire, _) = Wire::session(keeper.address()).await;
        wires.push((number, wire));
    }
    let (mut first, _) = Wire::session(keeper.address()).await;
    // During this commit the multis form a batch, up to the limit.
    slow.store(true, Ordering::SeqCst);
    first.send(1, CREATE, &create("/first", b"", PERSISTENT)).await;
    for (number, wire) in &mut wires {
        let mut body = Vec::new();
        for op in 0..OPS {
            body.extend([0, 0, 0, 1, 0, 255, 255, 255, 255]);
            body.extend(create(&format!("/{number}-{op}"), b"", PERSISTENT));
        }
        body.extend([255, 255, 255, 255, 1, 255, 255, 255, 255]);
        wire.send(*number, MULTI, &body).await;
    }
    for (number, wire) in &mut wires {
        let answer = wire.receive().await.expect("a reply");
        assert_eq!((answer.xid, answer.error, &answer.body[..4]), (*number, 0, &[0, 0, 0, 1][..]));
    }
    // One row per znode, and the parent's row.
    let most = COMMIT_NODES + OPS + 1;
    let largest = largest.load(Ordering::SeqCst);
    assert!((2 * OPS..=most).contains(&largest), "{largest} rows in one commit, at most {most}");
}
