//! Many connections, and many requests on one.

mod wire;

use bellwether_keeper::server::{Keeper, Storage};

use self::wire::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clients_are_served_at_once() {
    let keeper = keeper().await;
    let mut wires = Vec::new();
    for number in 0..1_000 {
        let (mut wire, _) = Wire::session(keeper.address()).await;
        wire.send(1, CREATE, &create(&format!("/c{number}"), b"", EPHEMERAL)).await;
        wires.push(wire);
    }
    for wire in &mut wires {
        assert_eq!(wire.receive().await.expect("an answer").error, 0);
    }
    assert_eq!(monitored(keeper.address(), "zk_ephemerals_count").await, 1_000);
    for wire in &mut wires {
        wire.send(2, CLOSE_SESSION, &[]).await;
    }
    for wire in &mut wires {
        assert_eq!(wire.receive().await.expect("an answer").error, 0);
        assert!(wire.closes().await);
    }
    assert_eq!(monitored(keeper.address(), "zk_ephemerals_count").await, 0);
    eventually("all places are free", async || {
        monitored(keeper.address(), "zk_num_alive_connections").await == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_of_writes_is_committed_together_and_answered_in_order() {
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
            tokio::io::AsyncReadExt::read_exact(&mut from, &mut frame).await.expect("an answer");
            assert_eq!(frame[4..8], xid.to_be_bytes());
            let newer = i64::from_be_bytes(frame[8..16].try_into().expect("a zxid"));
            assert!(newer > zxid);
            zxid = newer;
            assert_eq!(frame[16..20], [0; 4], "error");
            assert_eq!(frame[20 + 32..20 + 36], (xid + 1).to_be_bytes(), "version");
        }
    };
    let (asked, ()) = tokio::join!(asked, answered);
    asked.expect("asked");
    let commits = monitored(keeper.address(), "zk_commit_count").await - before;
    println!("{WRITES} writes in {commits} commits");
    assert!(commits < i64::from(WRITES) / 10, "{commits} commits for {WRITES} pipelined writes");
}
