//! The namespace that results from the committed transactions.
//!
//! The replay checks each transaction. A transaction that creates an existing znode, deletes an absent one, or does not
//! follow its predecessor shows that the history is incomplete, so no verdict on it is reliable. Such an error is
//! reported under the id `H`.

mod groups;
mod jobs;
mod value;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::rc::Rc;

use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};

pub use self::groups::{Group, Groups, part};
pub use self::jobs::{Job, JobPlace, Jobs, TurnOrder, Worker};
pub use self::value::{Spot, Value, Znode};
use super::TxnOp;
use super::segments::Segments;

/// The namespace after a transaction.
#[derive(Debug, Default)]
pub struct Truth {
    zxid: i64,
    znodes: BTreeMap<Rc<str>, Znode>,
    jobs: Jobs,
    groups: Groups,
    segments: Segments,
}

/// A transaction that is being replayed.
#[derive(Default)]
struct Replay {
    commit: Commit,
    /// The positions of its changes by path. A transaction may change thousands of znodes.
    changed: HashMap<Rc<str>, usize>,
}

/// The effect of one transaction on one znode.
#[derive(Debug, Clone)]
pub struct Change {
    /// The path.
    pub path: Rc<str>,
    /// The meaning of the path.
    pub spot: Spot,
    /// The znode before the transaction.
    pub before: Option<Znode>,
    /// The znode after the transaction.
    pub after: Option<Znode>,
}

/// A committed transaction, decoded.
#[derive(Debug, Default)]
pub struct Commit {
    /// Its number.
    pub zxid: i64,
    /// The session that sent it.
    pub session: i64,
    /// The versions that it checked.
    pub checks: Vec<(String, i32)>,
    /// Its changes; a znode that it both created and deleted is left out.
    pub changes: Vec<Change>,
}

impl Commit {
    /// Returns the epoch that it checked (S3).
    #[must_use]
    pub fn epoch_checked(&self) -> Option<i32> {
        self.checks.iter().find(|(path, _)| path == path::EPOCH).map(|(_, version)| *version)
    }

    /// Returns the worker that had this attempt, if the transaction moves it to the worker that sends it: it creates the
    /// assignment, deletes that of the former worker with the token before the move, and sets the record.
    #[must_use]
    pub fn moved_from(&self, change: &Change, truth: &Truth) -> Option<WorkerId> {
        let Spot::Place(Place::Assignment(to, job)) = &change.spot else { return None };
        let (None, Some(after)) = (&change.before, change.after.as_ref()?.assignment()) else { return None };
        let from = self.changes.iter().find_map(|other| match &other.spot {
            Spot::Place(Place::Assignment(from, moved)) if moved == job && from != to => {
                let before = other.before.as_ref()?.assignment()?;
                let token = other.after.is_none().then_some(before.fencing_token);
                (after.moved_from.is_some() && token == after.moved_from).then_some(*from)
            }
            _ => None,
        })?;
        let sets = self.change_of(&path::record(job)).is_some_and(|record| record.before.is_some());
        let own = truth.worker(*to).is_some_and(|worker| worker.session == self.session);
        (sets && own).then_some(from)
    }

    /// Whether the change is a part of the move of an attempt.
    #[must_use]
    pub fn moves(&self, change: &Change, truth: &Truth) -> bool {
        let Spot::Place(Place::Assignment(_, job)) = &change.spot else { return false };
        let of_job = |other: &&Change| match &other.spot {
            Spot::Place(Place::Assignment(_, moved)) => moved == job,
            _ => false,
        };
        self.changes.iter().filter(of_job).any(|other| self.moved_from(other, truth).is_some())
    }

    /// Returns its change of this znode.
    #[must_use]
    pub fn change_of(&self, path: &str) -> Option<&Change> {
        self.changes.iter().find(|change| &*change.path == path)
    }
}

impl Truth {
    /// Returns the number of the newest transaction.
    #[must_use]
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// Returns a znode.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Znode> {
        self.znodes.get(path)
    }

    /// Iterates over the znodes below a path, in order.
    pub fn below(&self, parent: &str) -> impl Iterator<Item = (&str, &Znode)> {
        let inside = format!("{parent}/");
        self.znodes
            .range::<str, _>((Bound::Included(inside.as_str()), Bound::Unbounded))
            .map(|(path, znode)| (&**path, znode))
            .take_while(move |(path, _)| path.starts_with(&inside))
    }

    /// Returns the version of `/epoch`.
    #[must_use]
    pub fn epoch(&self) -> Option<i32> {
        self.get(path::EPOCH).map(|znode| znode.version)
    }

    /// Returns the znode of a job's record.
    #[must_use]
    pub fn record(&self, job: &JobId) -> Option<&Znode> {
        self.get(&path::record(job))
    }

    /// Returns the state of jobs, workers and lanes.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Returns the state of groups apart from their records.
    #[must_use]
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns a worker that has registered.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<&Worker> {
        self.jobs.worker(worker)
    }

    /// Replays a transaction, with segments written out as single jobs. Adds impossible operations to `flaws`.
    pub(super) fn apply(
        &mut self,
        zxid: i64,
        session: i64,
        ops: &[TxnOp],
        flaws: &mut Vec<String>,
    ) -> Commit {
        if zxid <= self.zxid {
            flaws.push(format!("transaction {zxid:#x} follows {:#x}", self.zxid));
        }
        self.zxid = zxid;
        let mut replay = Replay::default();
        (replay.commit.zxid, replay.commit.session) = (zxid, session);
        for op in &*self.segments.write_out(ops) {
            self.apply_op(op, &mut replay, flaws);
        }
        let mut commit = replay.commit;
        commit.changes.retain(|change| change.before.is_some() || change.after.is_some());
        for change in &commit.changes {
            self.jobs.note(change);
            self.groups.note(change);
        }
        commit
    }

    fn apply_op(&mut self, op: &TxnOp, replay: &mut Replay, flaws: &mut Vec<String>) {
        let Commit { zxid, session, .. } = replay.commit;
        match op {
            TxnOp::Check { path, version } => {
                let found = self.get(path).map(|znode| znode.version);
                if found != Some(*version) {
                    flaws.push(format!("{path} was checked at version {version} and is {found:?}"));
                }
                replay.commit.checks.push((path.clone(), *version));
            }
            TxnOp::Create { path, data, ephemeral } => {
                let spot = Spot::of(path);
                let znode = Znode {
                    value: Value::decode(&spot, &data.0),
                    version: 0,
                    czxid: zxid,
                    owner: if *ephemeral { session } else { 0 },
                };
                if self.put(path, spot, Some(znode), replay).is_some() {
                    flaws.push(format!("{path} was created but already existed"));
                }
            }
            TxnOp::Set { path, data, version } => {
                let spot = Spot::of(path);
                let Some(before) = self.get(path) else {
                    return flaws.push(format!("{path} was set but did not exist"));
                };
                if *version != before.version + 1 {
                    flaws.push(format!("{path} was set from version {} to {version}", before.version));
                }
                let value = Value::decode(&spot, &data.0);
                let znode = Znode { value, version: *version, ..before.clone() };
                self.put(path, spot, Some(znode), replay);
            }
            TxnOp::Delete { path } => {
                if self.put(path, Spot::of(path), None, replay).is_none() {
                    flaws.push(format!("{path} was deleted but did not exist"));
                }
            }
            TxnOp::CloseSession => {
                let owned = self.znodes.iter().filter(|(_, znode)| znode.owner == session && session != 0);
                let owned: Vec<Rc<str>> = owned.map(|(path, _)| path.clone()).collect();
                for path in owned {
                    self.put(&path, Spot::of(&path), None, replay);
                }
            }
        }
    }

    /// Inserts or removes a znode. Returns the previous one.
    fn put(&mut self, path: &str, spot: Spot, znode: Option<Znode>, replay: &mut Replay) -> Option<Znode> {
        let path: Rc<str> =
            self.znodes.get_key_value(path).map_or_else(|| path.into(), |(path, _)| path.clone());
        let before = match znode.clone() {
            Some(znode) => self.znodes.insert(path.clone(), znode),
            None => self.znodes.remove(&path),
        };
        let changes = &mut replay.commit.changes;
        match replay.changed.entry(path) {
            Entry::Occupied(changed) => changes[*changed.get()].after = znode,
            Entry::Vacant(unchanged) => {
                let path = unchanged.key().clone();
                unchanged.insert(changes.len());
                changes.push(Change { path, spot, before: before.clone(), after: znode });
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Bytes;

    fn create(path: &str, ephemeral: bool) -> TxnOp {
        TxnOp::Create { path: path.to_owned(), data: Bytes::default(), ephemeral }
    }

    fn delete(path: &str) -> TxnOp {
        TxnOp::Delete { path: path.to_owned() }
    }

    #[test]
    fn the_end_of_a_session_deletes_its_ephemerals() {
        let (mut truth, mut flaws) = (Truth::default(), vec![]);
        truth.apply(1, 7, &[create("/a", true), create("/b", false)], &mut flaws);
        truth.apply(2, 8, &[create("/c", true)], &mut flaws);
        let commit = truth.apply(3, 7, &[TxnOp::CloseSession], &mut flaws);
        assert_eq!(commit.changes.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["/a"]);
        assert!(truth.get("/b").is_some() && truth.get("/c").is_some());
        assert_eq!(flaws, Vec::<String>::new());
    }

    #[test]
    fn a_znode_created_and_deleted_by_one_transaction_is_not_a_change() {
        let (mut truth, mut flaws) = (Truth::default(), vec![]);
        let commit = truth.apply(1, 7, &[create("/a", false), delete("/a")], &mut flaws);
        assert!(commit.changes.is_empty() && flaws.is_empty());
    }

    #[test]
    fn an_incomplete_history_is_reported() {
        let flaws = |ops: &[TxnOp]| {
            let (mut truth, mut flaws) = (Truth::default(), vec![]);
            truth.apply(5, 7, &[create("/a", false)], &mut flaws);
            truth.apply(6, 7, ops, &mut flaws);
            flaws.len()
        };
        assert_eq!(flaws(&[create("/a", false)]), 1);
        assert_eq!(flaws(&[delete("/b")]), 1);
        assert_eq!(flaws(&[TxnOp::Check { path: "/a".into(), version: 1 }]), 1);
        assert_eq!(flaws(&[TxnOp::Set { path: "/a".into(), data: Bytes::default(), version: 2 }]), 1);
        assert_eq!(flaws(&[TxnOp::Set { path: "/a".into(), data: Bytes::default(), version: 1 }]), 0);
    }

    #[test]
    fn below_returns_exactly_the_znodes_under_the_path() {
        let (mut truth, mut flaws) = (Truth::default(), vec![]);
        let ops = ["/a", "/a-b", "/a/x", "/a/y", "/ab"].map(|path| create(path, false));
        truth.apply(1, 7, &ops, &mut flaws);
        assert_eq!(truth.below("/a").map(|(path, _)| path).collect::<Vec<_>>(), ["/a/x", "/a/y"]);
    }
}
