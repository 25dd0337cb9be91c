//! How long a session is trusted: from the sending of the last request that was answered, and no longer.

use std::time::{Duration, Instant};

use bellwether_testkit::{Proxy, namespace, op};
use bellwether_zk::connect;

#[tokio::test]
async fn a_late_answer_proves_no_more_than_that_the_server_heard_the_question() {
    let proxy = Proxy::to(&namespace("late-answer"));
    let to = proxy.connect_string().parse().expect("a connect string");
    let zk = connect(&to, Duration::from_secs(5)).await.expect("a session");

    let held = proxy.hold_reply(op::EXISTS);
    let asked = zk.heartbeat();
    let sent_by = Instant::now();
    held.fired().await;
    held.release();
    asked.await.expect("an answer");
    assert!(zk.last_contact() <= sent_by, "the answer's coming is no sign of when the server heard of us");

    let lease = zk.session_timeout() - zk.session_timeout() / 10;
    assert_eq!(zk.trusted_until(), zk.last_contact() + lease, "a tenth is kept back");
}
