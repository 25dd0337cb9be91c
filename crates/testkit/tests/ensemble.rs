//! An ensemble of three servers: start, loss of one member, loss of the majority, recovery; a follower that is cut off
//! from its leader, or behind it.

use std::net::SocketAddr;
use std::time::Duration;

use bellwether_testkit::{Ensemble, RawClient, eventually};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_ensemble_serves_while_it_has_a_majority() {
    let mut ensemble = Ensemble::builder(3).start();
    let leader = ensemble.leader().expect("an ensemble that serves has a leader");
    RawClient::connect(ensemble.members()[0].address()).unwrap().create("/kept", b"").unwrap();

    ensemble.member(leader).kill();
    let (next, after) = ((leader + 1) % 3, (leader + 2) % 3);
    // A member reports that it serves until it notices the loss of its leader.
    eventually("the other members form a majority", SOON, async || {
        [next, after].iter().all(|&member| makes(ensemble.members()[member].address(), "/without"))
    })
    .await;

    ensemble.member(next).freeze();
    eventually("a single member does not serve", SOON, async || !ensemble.members()[after].serves()).await;
    ensemble.heal();
    for member in ensemble.members() {
        // A follower can lag behind the leader until a write makes it catch up.
        let path = format!("/seen-by-{}", member.address().port());
        eventually("the member serves", SOON, async || makes(member.address(), &path)).await;
        let mut client = RawClient::connect(member.address()).unwrap();
        assert!(client.exists("/kept").unwrap() && client.exists("/without").unwrap());
    }
}

#[tokio::test]
async fn a_follower_that_is_cut_off_answers_stale_reads() {
    const SYNC_LIMIT: u32 = 150;
    let ensemble = Ensemble::builder(3).sync_limit(SYNC_LIMIT).start();
    let leader = ensemble.leader().expect("an ensemble that serves has a leader");
    let follower = (leader + 1) % 3;
    let mut reader = RawClient::connect(ensemble.members()[follower].address()).unwrap();
    let mut writer = RawClient::connect(ensemble.members()[leader].address()).unwrap();

    ensemble.cut_off(follower);
    writer.create("/while-cut", b"").unwrap();
    assert!(!reader.exists("/while-cut").unwrap());
    ensemble.reconnect();
    let address = ensemble.members()[follower].address();
    let sees = async |path: &str| {
        RawClient::connect(address).and_then(|mut client| client.exists(path)).unwrap_or(false)
    };
    eventually("the follower catches up", SOON, async || sees("/while-cut").await).await;

    let mut reader = RawClient::connect(address).unwrap();
    ensemble.delay(follower, Duration::from_secs(2));
    writer.create("/while-behind", b"").unwrap();
    assert!(!reader.exists("/while-behind").unwrap());
    // With a new connection each time: a follower that joins its leader again closes those of its clients.
    eventually("the follower sees the znode late", SOON, async || sees("/while-behind").await).await;
}

/// Returns whether a client of this server can create the znode or finds it.
fn makes(server: SocketAddr, path: &str) -> bool {
    let there = |client: &mut RawClient| Ok(client.exists(path)? || client.create(path, b"").is_ok());
    RawClient::connect(server).and_then(|mut client| there(&mut client)).unwrap_or(false)
}
