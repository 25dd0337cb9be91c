//! Manual changes of the election's znodes.

use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::machine::election::leadership::Inactive;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_zk::Zk;

use crate::stage::*;

async fn delete(witness: &Zk, path: &str) {
    let op = Op::Delete { path: path.to_owned(), version: None };
    assert_eq!(witness.commit(vec![op]).await, Outcome::Applied(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_znode_is_deleted_is_replaced() {
    let (namespace, witness) = stage("deleted-candidate").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    let (_, old) = a.leads().await;
    let b = Node::start(&namespace, "b", Strategy::Queue).await;
    b.is(Inactive::Standby).await;
    delete(&witness, old.candidate()).await;
    assert!(b.leads().await.1.epoch() > old.epoch());
    a.is(Inactive::Standby).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_epoch_is_recreated_above_the_last_one() {
    let (namespace, witness) = stage("deleted-epoch").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    let (_, first) = a.leads().await;
    a.election.step_down().await;
    a.election.stand();
    let (_, second) = a.leads_above(first.epoch()).await;
    delete(&witness, path::EPOCH).await;
    let (_, third) = a.leads_above(second.epoch()).await;
    assert_eq!(epoch(&witness).await, third.epoch());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwritten_epoch_is_claimed_over() {
    let (namespace, witness) = stage("overwritten-epoch").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    let (_, old) = a.leads().await;
    let garbage = Op::Set { path: path::EPOCH.to_owned(), data: b"\0garbage".to_vec(), version: old.epoch() };
    assert_eq!(witness.commit(vec![garbage]).await, Outcome::Applied(()));
    let (_, new) = a.leads_above(old.epoch()).await;
    assert_eq!(epoch(&witness).await, new.epoch());
}

/// A claim checks the candidate's version, so an overwritten candidate could never claim.
#[tokio::test(flavor = "multi_thread")]
async fn an_overwritten_candidate_is_replaced() {
    let (namespace, witness) = stage("written-candidate").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    a.leads().await;
    let b = Node::start(&namespace, "b", Strategy::Queue).await;
    b.is(Inactive::Standby).await;
    for name in candidates(&witness).await {
        let path = path::candidate(&name);
        let set = Op::Set { path, data: b"x".to_vec(), version: 0 };
        assert_eq!(witness.commit(vec![set]).await, Outcome::Applied(()));
    }
    a.election.step_down().await;
    b.leads().await;
    assert_eq!(candidates(&witness).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_parent_of_the_candidates_is_recreated() {
    let (namespace, witness) = stage("deleted-parent").await;
    delete(&witness, path::ELECTION).await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    a.leads().await;
}
