//! Three real servers that agree: starting, losing one, losing the majority, and coming back.

use std::net::SocketAddr;
use std::time::Duration;

use bellwether_testkit::{Ensemble, RawClient, eventually};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_ensemble_serves_while_a_majority_of_it_lives() {
    let mut ensemble = Ensemble::start(3);
    let leader = ensemble.leader().expect("somebody leads when all serve");
    RawClient::connect(ensemble.members()[0].address()).unwrap().create("/kept", b"").unwrap();

    ensemble.member(leader).kill();
    let (next, after) = ((leader + 1) % 3, (leader + 2) % 3);
    // A member says that it serves until it notices that its leader is gone.
    eventually("the others agree", SOON, async || {
        [next, after].iter().all(|&member| makes(ensemble.members()[member].address(), "/without"))
    })
    .await;

    ensemble.member(next).freeze();
    eventually("one of three does not serve", SOON, async || !ensemble.members()[after].serves()).await;
    ensemble.heal();
    for member in ensemble.members() {
        // A follower may be behind what the leader has, until it is asked to catch up.
        let path = format!("/seen-by-{}", member.address().port());
        eventually("it serves", SOON, async || makes(member.address(), &path)).await;
        let mut client = RawClient::connect(member.address()).unwrap();
        assert!(client.exists("/kept").unwrap() && client.exists("/without").unwrap());
    }
}

/// Whether a client of this server got a znode made, or found it.
fn makes(server: SocketAddr, path: &str) -> bool {
    let there = |client: &mut RawClient| Ok(client.exists(path)? || client.create(path, b"").is_ok());
    RawClient::connect(server).and_then(|mut client| there(&mut client)).unwrap_or(false)
}
