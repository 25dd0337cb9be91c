//! Three real servers that agree: starting, losing one, losing the majority, and coming back.

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
    eventually("the others agree", SOON, async || {
        [next, after].iter().all(|&member| ensemble.members()[member].serves())
    })
    .await;
    RawClient::connect(ensemble.members()[next].address()).unwrap().create("/without", b"").unwrap();

    ensemble.member(next).freeze();
    eventually("one of three does not serve", SOON, async || !ensemble.members()[after].serves()).await;
    ensemble.heal();
    for member in ensemble.members() {
        let mut client = RawClient::connect(member.address()).unwrap();
        // A follower may be behind what the leader has, until it is asked to catch up.
        client.create(&format!("/seen-by-{}", member.address().port()), b"").unwrap();
        assert!(client.exists("/kept").unwrap() && client.exists("/without").unwrap());
    }
}
