//! A session is trusted from the sending of a request that ZooKeeper's leader has heard of, for nine tenths of its timeout.

use std::time::Duration;

use bellwether_core::outcome::Outcome;
use bellwether_core::time::{Millis, as_millis};
use bellwether_core::txn::{Lifetime, Op};
use bellwether_testkit::{Ensemble, Proxy, RawClient, ZooKeeperServer, namespace, op};
use bellwether_zk::clock::uptime;
use bellwether_zk::{Access, connect, connect_trusted};

fn now() -> Millis {
    Millis(as_millis(uptime()))
}

#[tokio::test]
async fn an_answered_read_does_not_extend_the_trust() {
    let to = namespace("reads-prove-nothing").parse().expect("a connect string");
    let zk = connect(&to, Duration::from_millis(400)).await.expect("a session");
    let begun = zk.last_contact();
    while now().since(begun) < zk.session_timeout() {
        zk.get("/".to_owned()).await.expect("an answer");
    }
    assert_eq!(zk.last_contact(), begun);
    while zk.last_contact() == begun {
        assert!(now().since(begun) < Duration::from_secs(10), "syncs extend the trust");
        zk.heartbeat().await.expect("an answer");
    }
    assert!(zk.last_contact() > begun && zk.last_contact() <= now());
    assert!(zk.trust().until() >= zk.trusted_until());
}

#[tokio::test]
async fn a_session_can_be_trusted_for_a_shorter_time_but_not_for_a_longer_one() {
    let to = namespace("shorter").parse().expect("a connect string");
    let zk = connect(&to, Duration::from_secs(5)).await.expect("a session");
    for (asked, granted) in [(3, 3), (4, 3)] {
        zk.shorten(Duration::from_secs(asked));
        assert_eq!(zk.session_timeout(), Duration::from_secs(granted));
    }
}

#[tokio::test]
async fn trust_starts_when_the_answered_request_was_sent() {
    let proxy = Proxy::to(&namespace("late-answer"));
    let to = proxy.connect_string().parse().expect("a connect string");
    let zk = connect(&to, Duration::from_secs(5)).await.expect("a session");

    let held = proxy.hold_reply(op::SYNC);
    let asked = zk.heartbeat();
    let sent_by = now();
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

/// The follower answers reads for 20 s after it was cut off; its leader expires the session long before.
#[tokio::test(flavor = "multi_thread")]
async fn trust_ends_before_the_session_of_a_follower_that_is_cut_off() {
    const SYNC_LIMIT: u32 = 100;
    const HEARTBEATS: u32 = 5;
    let ensemble = Ensemble::builder(3).sync_limit(SYNC_LIMIT).start();
    let leader = ensemble.leader().expect("an ensemble that serves has a leader");
    let follower = (leader + 1) % 3;
    let to = ensemble.members()[follower].connect_string().parse().expect("a connect string");
    let zk = connect(&to, Duration::from_millis(1_500)).await.expect("a session");
    let path = "/alive".to_owned();
    let alive = Op::Create { path: path.clone(), data: Vec::new(), lifetime: Lifetime::Ephemeral };
    assert_eq!(zk.commit(vec![alive]).await, Outcome::Applied(()));

    let begun = zk.last_contact();
    let beating = zk.clone();
    let beats = tokio::spawn(async move {
        let mut interval = tokio::time::interval(beating.session_timeout() / HEARTBEATS);
        loop {
            interval.tick().await;
            // Errors are expected after the cut.
            drop(beating.heartbeat().await);
        }
    });
    let deadline = begun + Duration::from_secs(20);
    while zk.last_contact() == begun {
        assert!(now() < deadline, "heartbeats extend the trust");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    ensemble.cut_off(follower);
    let mut observer = RawClient::connect(ensemble.members()[leader].address()).expect("a session");
    while observer.exists(&path).expect("an answer") {
        assert!(now() < deadline, "the leader expires the session");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(zk.trusted_until() < now(), "a session that has expired is not trusted");
    beats.abort();
}

/// After a reconnection to the other server the session would live for its timeout only, which the client library does
/// not report.
#[tokio::test]
async fn the_shortest_timeout_that_any_server_grants_counts() {
    let patient = ZooKeeperServer::builder().memory().tick_ms(1_000).start();
    let strict = ZooKeeperServer::builder().memory().start();
    // A server grants at least two ticks.
    let (asked, two_ticks) = (Duration::from_millis(400), Duration::from_secs(2));
    let to = |first: &ZooKeeperServer, second: &ZooKeeperServer| {
        let (first, second) = (first.connect_string(), second.connect_string());
        format!("{first},{second},127.0.0.1:1").parse().expect("a connect string")
    };
    // The client library connects to any of the servers, so one session shows nothing.
    let both = [to(&patient, &strict), to(&strict, &patient)];
    for to in both.iter().cycle().take(12) {
        let zk = connect_trusted(to, &Access::default(), asked).await.expect("a session");
        assert_eq!(zk.session_timeout(), asked, "the server with the shorter tick");
        assert!(zk.trusted_until() < now() + asked);
    }
    drop(strict);
    let alone = format!("{},127.0.0.1:1", patient.connect_string()).parse().expect("a connect string");
    let zk = connect_trusted(&alone, &Access::default(), asked).await.expect("a session");
    assert_eq!(zk.session_timeout(), two_ticks, "a server that is down is not considered");
}

#[tokio::test]
async fn a_single_server_is_not_asked_twice_and_each_of_several_is() {
    let proxies = [Proxy::to(&namespace("asked-1")), Proxy::to(&namespace("asked-2"))];
    let handshakes = || proxies.iter().map(Proxy::handshakes).sum::<u64>();
    let [one, two] = proxies.each_ref().map(Proxy::address);
    let timeout = Duration::from_secs(5);
    for (to, asked) in [(one.to_string(), 1), (format!("{one},{two}"), 3)] {
        let before = handshakes();
        let to = to.parse().expect("a connect string");
        let zk = connect_trusted(&to, &Access::default(), timeout).await.expect("a session");
        assert_eq!(handshakes() - before, asked);
        drop(zk);
    }
}
