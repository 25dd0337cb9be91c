//! Bytes that no client sends: the connection ends, the server does not.

use std::time::{Duration, Instant};

use bellwether_keeper::server::limits::{FIRST_FRAME_BYTES, FRAME_BYTES};
use bellwether_keeper::server::{Keeper, Limits};

use crate::wire::*;

const MARSHALLING_ERROR: i32 = -5;
const UNIMPLEMENTED: i32 = -6;
const BAD_ARGUMENTS: i32 = -8;

/// Checks that other clients are still served.
async fn serves(keeper: &Keeper) {
    let (mut wire, _) = Wire::session(keeper.address()).await;
    assert_eq!(wire.call(1, EXISTS, &read("/", false)).await.error, 0);
    assert_eq!(wire.call(2, CLOSE_SESSION, &[]).await.error, 0);
}

#[tokio::test]
async fn random_bytes_end_their_connection_only() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let keeper = keeper().await;
    for _ in 0..200 {
        let mut wire = Wire::open(keeper.address()).await;
        let mut noise = vec![0; random.usize(4..200)];
        random.fill(&mut noise);
        if random.bool() {
            wire.hello(10_000, 0, &[0; 16]).await.expect("a session");
        }
        // Unframed noise is mostly an excessive length; framed noise is an invalid request.
        wire.send_raw(&if random.bool() { framed(&noise) } else { noise }).await;
        drop(wire);
    }
    serves(&keeper).await;
}

#[tokio::test]
async fn a_client_without_a_session_cannot_make_the_server_keep_a_long_frame() {
    // Not closed because it is slow.
    let limits = Limits::default().handshake_time(Duration::from_secs(3_600));
    let keeper = Keeper::builder().limits(limits).start().await.expect("a keeper");
    for announced in [FIRST_FRAME_BYTES + 1, FRAME_BYTES] {
        let mut fresh = Wire::open(keeper.address()).await;
        fresh.send_raw(&i32::try_from(announced).expect("a length").to_be_bytes()).await;
        assert!(fresh.closes().await, "first frame of {announced} bytes");
    }
    serves(&keeper).await;
}

#[tokio::test]
async fn invalid_frame_lengths_close_the_connection() {
    let keeper = keeper().await;
    let too_long = i32::try_from(FRAME_BYTES).expect("a length") + 1;
    for length in [-1, i32::MIN, too_long, i32::MAX] {
        let mut fresh = Wire::open(keeper.address()).await;
        fresh.send_raw(&length.to_be_bytes()).await;
        assert!(fresh.closes().await, "first frame of {length} bytes");

        let (mut wire, _) = Wire::session(keeper.address()).await;
        let path = format!("/before{length}");
        let mut bytes = request(1, CREATE, &create(&path, &[], PERSISTENT));
        bytes.extend(length.to_be_bytes());
        wire.send_raw(&bytes).await;
        assert!(wire.closes().await, "frame of {length} bytes");
        let (mut other, _) = Wire::session(keeper.address()).await;
        let found = other.call(1, EXISTS, &read(&path, false)).await;
        assert_eq!(found.error, 0, "the request before a length of {length} was executed");
    }
    serves(&keeper).await;
}

#[tokio::test]
async fn the_longest_frame_is_served() {
    let keeper = keeper().await;
    let (mut wire, _) = Wire::session(keeper.address()).await;
    let around = request(1, CREATE, &create("/long", &[], PERSISTENT)).len() - size_of::<i32>();
    let data = vec![7; FRAME_BYTES - around];
    assert_eq!(wire.call(1, CREATE, &create("/long", &data, PERSISTENT)).await.error, 0);
    let read = wire.call(2, GET_DATA, &read("/long", false)).await;
    assert_eq!(read.error, 0);
    assert_eq!(read.body[4..4 + data.len()], data);
}

#[tokio::test]
async fn a_frame_can_arrive_in_single_bytes() {
    let keeper = keeper().await;
    let (mut wire, _) = Wire::session(keeper.address()).await;
    for byte in request(9, EXISTS, &read("/", false)) {
        wire.send_raw(&[byte]).await;
    }
    assert_eq!(wire.receive().await.expect("a reply").xid, 9);
}

#[tokio::test]
async fn a_truncated_request_gets_an_error() {
    let keeper = keeper().await;
    let (mut wire, _) = Wire::session(keeper.address()).await;
    let whole = create("/a", b"data", PERSISTENT);
    for length in 0..whole.len() - 1 {
        let xid = i32::try_from(length).expect("short");
        assert_eq!(wire.call(xid, CREATE, &whole[..length]).await.error, MARSHALLING_ERROR, "{length} bytes");
    }
    assert_eq!(wire.call(1_000, CREATE, &whole).await.error, 0);
}

#[tokio::test]
async fn a_frame_without_a_header_closes_the_connection() {
    let keeper = keeper().await;
    for length in 0..8 {
        let (mut wire, _) = Wire::session(keeper.address()).await;
        wire.send_frame(&vec![0; length]).await;
        assert!(wire.closes().await, "{length} bytes");
    }
}

#[tokio::test]
async fn an_unknown_code_gets_an_error() {
    let keeper = keeper().await;
    for code in [4711, 99, -12, i32::MIN] {
        let (mut wire, _) = Wire::session(keeper.address()).await;
        assert_eq!(wire.call(1, code, b"whatever").await.error, UNIMPLEMENTED, "code {code}");
    }
    serves(&keeper).await;
}

#[tokio::test]
async fn a_wrong_password_gets_no_session_and_closes_no_connection() {
    let keeper = keeper().await;
    let (mut owner, session) = Wire::session(keeper.address()).await;
    let mut thief = Wire::open(keeper.address()).await;
    let mut password = session.password.clone();
    password[0] ^= 1;
    assert_eq!(thief.hello(10_000, session.id, &password).await, None);
    assert!(thief.closes().await);
    assert_eq!(owner.call(1, EXISTS, &read("/", false)).await.error, 0, "the owner is still served");
}

#[tokio::test]
async fn a_connection_without_a_first_frame_is_closed_in_time() {
    let limits = Limits::default().handshake_time(Duration::from_millis(200));
    let keeper = Keeper::builder().limits(limits).start().await.expect("a keeper");
    let start = Instant::now();
    let mut silent = Wire::open(keeper.address()).await;
    let mut half = Wire::open(keeper.address()).await;
    half.send_raw(&[0, 0]).await;
    let mut announced = Wire::open(keeper.address()).await;
    announced.send_raw(&[0, 0, 0, 44, 0, 0]).await;
    let (mut wire, _) = Wire::session(keeper.address()).await;
    for wire in [&mut silent, &mut half, &mut announced] {
        assert!(wire.closes().await);
    }
    assert!(start.elapsed() >= limits.handshake_time, "closed too early");
    assert_eq!(wire.call(1, EXISTS, &read("/", false)).await.error, 0, "a connection with a session is kept");
}

#[tokio::test]
async fn connections_above_the_limit_are_closed_and_slots_are_reused() {
    let limits = Limits::default().connections_per_address(2);
    let keeper = Keeper::builder().limits(limits).start().await.expect("a keeper");
    let (first, _) = Wire::session(keeper.address()).await;
    let (_second, _) = Wire::session(keeper.address()).await;
    let mut third = Wire::open(keeper.address()).await;
    assert!(third.closes().await);
    drop(first);
    eventually("a slot is free again", async || {
        let mut wire = Wire::open(keeper.address()).await;
        wire.send_raw(b"ruok").await;
        wire.receive_word().await == "imok"
    })
    .await;
}

#[tokio::test]
async fn a_multi_read_with_a_too_large_result_is_rejected() {
    let keeper = keeper().await;
    let (mut wire, _) = Wire::session(keeper.address()).await;
    let data = vec![7; 1_000_000];
    assert_eq!(wire.call(1, CREATE, &create("/big", &data, PERSISTENT)).await.error, 0);
    let times = |times| {
        let mut body = Vec::new();
        for _ in 0..times {
            body.extend(GET_DATA.to_be_bytes());
            body.push(0);
            body.extend((-1_i32).to_be_bytes());
            body.extend(read("/big", false));
        }
        body.extend((-1_i32).to_be_bytes());
        body.push(1);
        body.extend((-1_i32).to_be_bytes());
        body
    };
    let some = wire.call(2, MULTI_READ, &times(10)).await;
    assert_eq!(some.error, 0);
    assert!(some.body.len() > 10 * data.len());
    assert_eq!(wire.call(3, MULTI_READ, &times(40_000)).await.error, BAD_ARGUMENTS);
    serves(&keeper).await;
}
