//! A client that does not read costs a bounded amount of memory and does not affect other clients.
//!
//! A separate test program, because it measures the memory of the whole process.

mod wire;

use std::time::{Duration, Instant};

use bellwether_keeper::server::limits::{NOTICE_BYTES, OUTSTANDING_REQUESTS, REPLIES_HIGH};

use self::wire::*;

/// Returns the resident memory of the process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    let kib: usize = line.split_whitespace().next().expect("a number").parse().expect("a number");
    kib * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded_when_clients_do_not_read() {
    notifications_close_their_connection().await;
    replies_pause_and_resume_when_they_are_read().await;
}

/// Notifications cannot be parked: the connection is closed.
async fn notifications_close_their_connection() {
    let keeper = keeper().await;
    let mut deaf = Wire::open(keeper.address()).await;
    // The session must outlast the test, because the connection of an expired session is closed too.
    let session = deaf.hello(40_000, 0, &[0; 16]).await.expect("a session");
    assert_eq!(deaf.call(1, ADD_WATCH, &add_watch_recursive("/")).await.error, 0);

    let (mut writer, _) = Wire::session(keeper.address()).await;
    let path = format!("/{}", "long-name-".repeat(100));
    assert_eq!(writer.call(1, CREATE, &create(&path, b"", PERSISTENT)).await.error, 0);
    let before = resident();
    let (mut most, mut sent) = (0, 0);
    let change: Vec<u8> = request(2, SET_DATA, &set_data(&path, b"")).repeat(100);
    // The kernel's buffers take a few additional megabytes.
    while monitored(keeper.address(), "zk_watch_count").await > 0 {
        writer.send_raw(&change).await;
        for _ in 0..100 {
            assert_eq!(writer.receive().await.expect("other clients are served").error, 0);
        }
        sent += 100 * path.len();
        most = most.max(resident());
        assert!(sent < 20 * NOTICE_BYTES, "{sent} bytes of notifications, and the connection is still open");
    }
    assert!(sent > NOTICE_BYTES, "closed below the limit: {sent}");
    assert!(most.saturating_sub(before) < 5 * NOTICE_BYTES, "grew by {}", most - before);
    assert!(deaf.closes().await);
    let again = Wire::attach(keeper.address(), &session).await;
    assert!(again.is_some(), "the session is kept");
}

/// Replies can be parked: the socket is not read until the client reads.
async fn replies_pause_and_resume_when_they_are_read() {
    const SIZE: usize = 100_000;
    const READS: usize = 5 * OUTSTANDING_REQUESTS;
    let keeper = keeper().await;
    let mut deaf = Wire::open(keeper.address()).await;
    deaf.hello(40_000, 0, &[0; 16]).await.expect("a session");
    assert_eq!(deaf.call(1, CREATE, &create("/big", &vec![7; SIZE], PERSISTENT)).await.error, 0);
    let before = resident();
    // 500 MB of replies.
    let reads: Vec<u8> = (0..i32::try_from(READS).expect("a number"))
        .flat_map(|xid| request(xid, GET_DATA, &read("/big", false)))
        .collect();
    let (mut from, mut to) = tokio::io::split(deaf.stream);
    let asking = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut to, &reads).await.expect("the requests are sent");
        to
    });
    eventually("the server holds requests back", async || {
        monitored(keeper.address(), "zk_unsent_bytes").await >= i64::try_from(REPLIES_HIGH).expect("a bound")
            && monitored(keeper.address(), "zk_outstanding_requests").await
                >= i64::try_from(OUTSTANDING_REQUESTS).expect("a bound")
    })
    .await;
    let (mut other, _) = Wire::session(keeper.address()).await;
    let start = Instant::now();
    for xid in 0..100 {
        assert_eq!(other.call(xid, SET_DATA, &set_data("/big", &[7; 10])).await.error, 0);
        assert!(resident().saturating_sub(before) < 20 * REPLIES_HIGH, "grew to {}", resident());
    }
    assert!(start.elapsed() < Duration::from_secs(5), "other clients waited: {:?}", start.elapsed());

    let mut length = [0; 4];
    for xid in 0..i32::try_from(READS).expect("a number") {
        let answer = async {
            tokio::io::AsyncReadExt::read_exact(&mut from, &mut length).await.expect("a length");
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            tokio::io::AsyncReadExt::read_exact(&mut from, &mut frame).await.expect("a frame");
            frame
        };
        let frame = tokio::time::timeout(PATIENCE, answer).await.expect("replies resume");
        assert_eq!(frame[..4], xid.to_be_bytes(), "replies have the order of their requests");
    }
    drop(asking.await.expect("all requests are sent"));
    assert_eq!(monitored(keeper.address(), "zk_outstanding_requests").await, 0);
    assert_eq!(monitored(keeper.address(), "zk_unsent_bytes").await, 0);
}
