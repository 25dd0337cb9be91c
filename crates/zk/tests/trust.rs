//! A session is trusted from the sending of a request that ZooKeeper's leader has heard of, for nine tenths of its timeout.

use std::time::{Duration, Instant};

use bellwether_testkit::{Proxy, namespace, op};
use bellwether_zk::connect;

#[tokio::test]
async fn an_answered_read_does_not_extend_the_trust() {
    let to = namespace("reads-prove-nothing").parse().expect("a connect string");
    let zk = connect(&to, Duration::from_millis(400)).await.expect("a session");
    let begun = zk.last_contact();
    while begun.elapsed() < zk.session_timeout() {
        zk.get("/".to_owned()).await.expect("an answer");
    }
    assert_eq!(zk.last_contact(), begun);
    while zk.last_contact() == begun {
        assert!(begun.elapsed() < Duration::from_secs(10), "syncs extend the trust");
        zk.heartbeat().await.expect("an answer");
    }
}

#[tokio::test]
async fn trust_starts_when_the_answered_request_was_sent() {
    let proxy = Proxy::to(&namespace("late-answer"));
    let to = proxy.connect_string().parse().expect("a connect string");
    let zk = connect(&to, Duration::from_secs(5)).await.expect("a session");

    let held = proxy.hold_reply(op::SYNC);
    let asked = zk.heartbeat();
    let sent_by = Instant::now();
    held.fired().await;
    held.release();
    asked.await.expect("an answer");
    assert!(
        zk.last_contact() <= sent_by,
        "the arrival of a reply does not show when the server heard from us"
    );

    let lease = zk.session_timeout() - zk.session_timeout() / 10;
    assert_eq!(zk.trusted_until(), zk.last_contact() + lease, "a tenth of the timeout is not trusted");
}
