//! Tests of leftovers: notes without a record, and containers that were never used.

use super::super::*;
use super::stage::{Stage, WALL, job};
use crate::outcome::{Reason, Rejection};
use crate::path::Bucket;
use crate::txn::Op;

/// Runs rounds in which one list has these znodes; returns the operations committed for it.
fn tidied(parent: &str, names: &[&str], stats: &[Option<Stat>], outcome: &Outcome<()>) -> Vec<Vec<Op>> {
    let mut stage = Stage::new();
    let mut committed = Vec::new();
    let mut listed = false;
    while !listed {
        stage.round_but(|request| match request {
            Effect::Names(parents) if parents == &[parent.to_owned()] => {
                listed = true;
                let names = names.iter().map(|name| (*name).to_owned()).collect();
                Some(Event::Names(Ok(vec![Some(names)])))
            }
            Effect::Stat(paths) => {
                assert_eq!(paths.len(), stats.len(), "{paths:?}");
                Some(Event::Stats(Ok(stats.to_vec())))
            }
            Effect::Commit(batch) => {
                committed.push(batch.ops().cloned().collect());
                Some(Event::Committed(batch.clone(), outcome.clone()))
            }
            _ => None,
        });
    }
    assert_eq!(stage.removed, 0, "no record was removed");
    committed
}

/// L6: a client of an earlier build ended between creating the container and submitting. ZooKeeper does not remove such
/// a container.
#[test]
fn an_unused_container_is_removed_after_an_hour() {
    let (old, new) = (WallMillis(WALL.0 - 3_600_000), WallMillis(WALL.0 - 1_000));
    let stats = [Some((old, 0)), Some((new, 0)), Some((old, 2)), None];
    let lanes = Bucket::all().nth(4).unwrap().lanes();
    for parent in [path::DELAYED, &lanes] {
        let committed = tidied(parent, &["1", "2", "3", "4"], &stats, &Outcome::Applied(()));
        let gone = Op::Delete { path: format!("{parent}/1"), version: None };
        assert_eq!(committed, [vec![txn::fence(7), gone]], "{parent}");
    }
}

/// L6
#[test]
fn a_note_without_a_record_is_removed_unless_the_job_is_resubmitted() {
    let stats = [None, Some((WALL, 0))];
    let taken = Outcome::Rejected(Rejection { at: 1, reason: Reason::NodeExists });
    for outcome in [Outcome::Applied(()), taken] {
        let names = ["job-1", "job-2", "not a job"];
        let committed = tidied(path::QUARANTINE, &names, &stats, &outcome);
        assert_eq!(committed, [[vec![txn::fence(7)], txn::remove_note(&job(1))].concat()]);
    }
}

/// A lost reply.
#[test]
fn leftovers_without_an_answer_are_scanned_again_at_their_next_turn() {
    let (mut stage, mut asked) = (Stage::new(), Vec::new());
    for _ in 0..300 {
        stage.round_but(|request| match request {
            Effect::Names(parents) => {
                asked.extend(parents.clone());
                Some(Event::Names(Err(())))
            }
            _ => None,
        });
    }
    let times = |parent: &str| asked.iter().filter(|asked| *asked == parent).count();
    assert!(times(path::QUARANTINE) >= 18 && times(path::DELAYED) >= 18);
    assert!(Bucket::all().all(|bucket| times(&bucket.lanes()) >= 1));
}
