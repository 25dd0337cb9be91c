//! Groups: one of three members, whose bucket is the only one that has any, with its records.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::super::*;
use super::stage::{MINUTE, Stage};
use crate::group::{End, GroupRecord, Mark, Parent, Stage as GroupStage};
use crate::job::{Membership, Role, Verdict};
use crate::name::{GroupId, JobId, Kind};
use crate::outcome::{Reason, Rejection};

fn id() -> GroupId {
    GroupId::new("batch").unwrap()
}

fn done(at: WallMillis) -> GroupRecord {
    let record = GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), at);
    GroupRecord { total: Some(3), stage: GroupStage::Done { at }, ..record }
}

/// A tree of znodes, with the group in it.
struct Tree {
    stage: Stage,
    group: GroupRecord,
    znodes: BTreeSet<String>,
    read: usize,
}

impl Tree {
    /// Of three members, with their records.
    fn new(ends: [End; 3]) -> Self {
        let stage = Stage::new();
        let group = done(stage.wall());
        let mut tree = Self { stage, group, znodes: BTreeSet::new(), read: 0 };
        let (wall, znodes) = (tree.stage.wall(), &mut tree.znodes);
        znodes.extend([path::group(&id()), path::members(&id())]);
        znodes.extend([path::mark_chunk(&id(), 0), path::place_chunk(&id(), 0)]);
        znodes.insert(path::mark(&id(), Mark::Join, End::Succeeded));
        for (number, end) in (0..).zip(ends) {
            znodes.insert(path::mark(&id(), Mark::Member(number), end));
            let job = JobId::member(&tree.group.kind, &id(), number).unwrap();
            let found = over(wall);
            tree.stage.records.insert(job, found);
        }
        tree.stage.records.insert(tree.group.join_id(&id()).unwrap(), over(wall));
        tree
    }

    fn round(&mut self) {
        let mut event = Event::Go;
        loop {
            let effects = self.stage.feed(event);
            let mut next = None;
            for effect in effects {
                let answer = match effect {
                    Effect::Rest(wait) => {
                        self.stage.now = self.stage.now + wait;
                        Event::Go
                    }
                    Effect::Idle => return,
                    Effect::Removed(count) => {
                        self.stage.removed += count;
                        continue;
                    }
                    Effect::Count(Shelf::Groups, buckets) => {
                        let there = self.znodes.contains(&path::group(&id()));
                        let count = |of: &Bucket| usize::from(there && *of == Bucket::of_group(&id()));
                        let counts = buckets.iter().map(count).collect();
                        Event::Counted(Shelf::Groups, buckets, Ok(counts))
                    }
                    Effect::List(Shelf::Groups, bucket) => {
                        self.read += 1;
                        Event::Listed(Shelf::Groups, bucket, Ok(vec![id().to_string()]))
                    }
                    Effect::Groups(groups) => {
                        let found = (self.group.clone(), 4, self.stage.wall());
                        let GroupStage::Done { at } = found.0.stage else { panic!("{found:?}") };
                        Event::Groups(groups, Ok(vec![Some((found.0, found.1, at))]))
                    }
                    Effect::Names(parents) => {
                        let below = |parent: &String| {
                            let inside = format!("{parent}/");
                            let children = self.znodes.iter().filter_map(|path| path.strip_prefix(&inside));
                            children.filter(|name| !name.contains('/')).map(String::from).collect()
                        };
                        Event::Names(Ok(parents.iter().map(|parent| Some(below(parent))).collect()))
                    }
                    Effect::Commit(batch) => {
                        let outcome = self.commit(&batch);
                        Event::Committed(batch, outcome)
                    }
                    other => self.stage.answer(other),
                };
                assert_eq!(next.replace(answer), None, "one request at a time");
            }
            event = next.expect("it rests, asks, or is idle");
        }
    }

    fn commit(&mut self, batch: &Batch<String>) -> Outcome<()> {
        assert_eq!(batch.ops().next(), Some(&txn::fence(7)), "behind the epoch");
        let (mut znodes, mut records) = (self.znodes.clone(), self.stage.records.clone());
        for (at, op) in batch.ops().enumerate().skip(1) {
            let Op::Delete { path, version } = op else { panic!("{op:?}") };
            let rejected = |reason| Outcome::Rejected(Rejection { at, reason });
            if path.starts_with("/jobs/") {
                let job = JobId::new(path.rsplit('/').next().unwrap()).unwrap();
                match records.get(&job) {
                    Some(Found::Over { version: there, .. }) if Some(*there) == *version => {}
                    Some(_) => return rejected(Reason::BadVersion),
                    None => return rejected(Reason::NoNode),
                }
                records.remove(&job);
            } else if znodes.iter().any(|other| other.starts_with(&format!("{path}/"))) {
                return rejected(Reason::NotEmpty);
            } else if !znodes.remove(path) {
                return rejected(Reason::NoNode);
            }
        }
        (self.znodes, self.stage.records) = (znodes, records);
        Outcome::Applied(())
    }
}

fn over(at: WallMillis) -> Found {
    Found::Over {
        version: 3,
        verdict: Verdict::Cancelled,
        at,
        modified: at,
        grouped: true,
        counted: true,
        sub_jobs: None,
    }
}

/// Of one that was retried after its group had gone on.
fn over_again(at: WallMillis, nested: Option<GroupId>) -> Found {
    let Found::Over { version, verdict, modified, grouped, .. } = over(at) else { unreachable!() };
    Found::Over { version, verdict, at, modified, grouped, counted: false, sub_jobs: nested }
}

const ENDS: [End; 3] = [End::Succeeded, End::Dead, End::Succeeded];

#[test]
fn a_group_goes_with_all_of_its_records_once_the_longest_of_their_times_is_over() {
    let mut tree = Tree::new(ENDS);
    tree.stage.after(MINUTE + ROUND);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.znodes.len()), (4, 8), "one is dead: two minutes");
    tree.stage.after(MINUTE + ROUND);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.stage.removed), (0, 4));
    assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
}

#[test]
fn a_group_with_an_open_member_stays_as_it_is() {
    let mut tree = Tree::new(ENDS);
    tree.znodes.insert(path::place(&id(), 7));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.znodes.len()), (4, 9));
    tree.znodes.remove(&path::place(&id(), 7));
    tree.stage.after(MINUTE);
    tree.round();
    assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
}

#[test]
fn a_member_that_was_retried_after_the_join_keeps_its_group_until_it_is_over_again() {
    let mut tree = Tree::new(ENDS);
    let job = JobId::member(&tree.group.kind, &id(), 1).unwrap();
    tree.stage.records.insert(job.clone(), Found::Left);
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.stage.records.contains_key(&job));
    assert!(tree.znodes.contains(&path::group(&id())), "its record goes last");
    let at = tree.stage.wall();
    tree.stage.records.insert(job.clone(), over_again(at, None));
    tree.stage.after(MINUTE / 2);
    tree.round();
    assert!(tree.stage.records.contains_key(&job), "S1: it is kept for its own time");
    tree.stage.after(MINUTE / 2);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.znodes.len()), (0, 0));
}

/// S1: as theirs waits for its end, which would be gone.
#[test]
fn a_member_that_was_retried_and_has_sub_jobs_goes_with_them() {
    let mut tree = Tree::new(ENDS);
    let job = JobId::member(&tree.group.kind, &id(), 1).unwrap();
    let nested = GroupId::new("of-its-sub-jobs").unwrap();
    tree.stage.records.insert(job.clone(), over_again(tree.stage.wall(), Some(nested.clone())));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert_eq!(tree.stage.records.keys().collect::<Vec<_>>(), [&job]);
    assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
    let outer = Membership { group: id(), role: Role::Member(1), counted: false };
    let parent = Parent {
        job: job.clone(),
        kind: tree.group.kind.clone(),
        generation: 2,
        finish: false,
        membership: Some(outer),
        depth: 1,
    };
    let mut tree = Tree::new(ENDS);
    tree.group.parent = Some(parent);
    tree.stage.records.insert(job.clone(), over_again(tree.stage.wall(), Some(id())));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(!tree.stage.records.contains_key(&job), "theirs takes it");
}

#[test]
fn a_record_that_was_purged_does_not_keep_its_group() {
    let mut tree = Tree::new(ENDS);
    tree.stage.records.clear();
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
}

#[test]
fn a_group_that_is_not_due_is_not_looked_at_in_every_round() {
    let mut tree = Tree::new(ENDS);
    for _ in 0..5 {
        tree.stage.after(ROUND);
        tree.round();
    }
    assert_eq!(tree.read, 1);
}
