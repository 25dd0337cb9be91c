//! Tests of groups: one group of three members, in the only bucket that has groups, with its records.

use uuid::Uuid;

use super::super::*;
use super::stage::{MINUTE, Stage};
use crate::budget::MEMBERS_PER_CHUNK;
use crate::group::{End, FirstGroup, GroupRecord, Mark, Parent, Stage as GroupStage};
use crate::job::{Membership, Role, Verdict};
use crate::name::{GroupId, JobId, Kind};
use crate::path::Bucket;
use crate::txn::Op;
use crate::zookeeper::ZooKeeper;

fn id() -> GroupId {
    GroupId::new("batch").unwrap()
}

fn done(at: WallMillis) -> GroupRecord {
    let record = GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), at);
    GroupRecord { total: Some(3), stage: GroupStage::Done { at }, ..record }
}

/// The group in a ZooKeeper model. The contents of its records are in the harness.
struct Tree {
    stage: Stage,
    group: GroupRecord,
    zookeeper: ZooKeeper,
    read: usize,
}

impl Tree {
    /// A group of three members, with their records.
    fn new(ends: [End; 3]) -> Self {
        let stage = Stage::new();
        let group = done(stage.wall());
        let mut tree = Self { stage, group, zookeeper: ZooKeeper::new(), read: 0 };
        let wall = tree.stage.wall();
        tree.zookeeper.put(path::EPOCH, Vec::new(), 7);
        tree.zookeeper.put(&path::group(&id()), Vec::new(), 4);
        tree.zookeeper.put(&path::place_chunk(&id(), 0), Vec::new(), 0);
        tree.zookeeper.put(&path::mark(&id(), Mark::Join, End::Succeeded), Vec::new(), 0);
        for (number, end) in (0..).zip(ends) {
            tree.zookeeper.put(&path::mark(&id(), Mark::Member(number), end), Vec::new(), 0);
            let job = JobId::member(&tree.group.kind, &id(), number).unwrap();
            tree.write(&job, over(wall));
        }
        tree.write(&tree.group.join_id(&id()).unwrap(), over(wall));
        tree
    }

    fn write(&mut self, job: &JobId, found: Found) {
        let version = if let Found::Over { version, .. } = found { version } else { 0 };
        self.zookeeper.put(&path::record(job), Vec::new(), version);
        self.stage.records.insert(job.clone(), found);
    }

    /// The znodes of the group.
    fn znodes(&self) -> Vec<&String> {
        let roots = [path::group(&id()), path::members(&id())];
        let of_group = |path: &&String| roots.iter().any(|root| path.starts_with(root));
        self.zookeeper.znodes().keys().filter(of_group).collect()
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
                    Effect::Count(BucketKind::Groups, buckets) => {
                        let there = self.zookeeper.get(&path::group(&id())).is_some();
                        let count = |of: &Bucket| usize::from(there && *of == Bucket::of_group(&id()));
                        let counts = buckets.iter().map(count).collect();
                        Event::Counted(BucketKind::Groups, buckets, Ok(counts))
                    }
                    Effect::List(BucketKind::Groups, bucket) => {
                        self.read += 1;
                        Event::Listed(BucketKind::Groups, bucket, Ok((0, vec![id().to_string()])))
                    }
                    Effect::Groups(groups) => {
                        let found = (self.group.clone(), 4, self.stage.wall());
                        let GroupStage::Done { at } = found.0.stage else { panic!("{found:?}") };
                        Event::Groups(groups, Ok(vec![Some((found.0, found.1, at))]))
                    }
                    Effect::Names(parents) => {
                        let there = |parent: &String| !self.zookeeper.children(parent).is_empty();
                        let names = parents.iter().map(|parent| {
                            let there = there(parent) || self.zookeeper.get(parent).is_some();
                            there.then(|| self.zookeeper.children(parent))
                        });
                        Event::Names(Ok(names.collect()))
                    }
                    Effect::Commit(batch) => {
                        let outcome = self.commit(&batch);
                        Event::Committed(batch, outcome)
                    }
                    other => self.stage.answer(other),
                };
                assert_eq!(next.replace(answer), None, "one request at a time");
            }
            event = next.expect("the janitor rests, sends a request, or is idle");
        }
    }

    fn commit(&mut self, batch: &Batch<String>) -> Outcome<()> {
        let ops: Vec<_> = batch.ops().cloned().collect();
        assert_eq!(ops[0], txn::fence(7), "the batch checks the epoch");
        for op in &ops[1..] {
            assert!(matches!(op, Op::Delete { .. }), "{op:?}");
            assert!(!op.path().starts_with(path::JOBS) || op.version().is_some(), "{op:?}");
        }
        let Self { zookeeper, stage, .. } = self;
        let outcome = zookeeper.commit(zookeeper.operator, &ops);
        stage.records.retain(|job, _| zookeeper.get(&path::record(job)).is_some());
        outcome
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
        turn: None,
    }
}

/// The record of a job that was retried after its group had advanced.
fn over_again(at: WallMillis, nested: Option<GroupId>) -> Found {
    let Found::Over { version, verdict, modified, grouped, .. } = over(at) else { unreachable!() };
    Found::Over { version, verdict, at, modified, grouped, counted: false, sub_jobs: nested, turn: None }
}

const ENDS: [End; 3] = [End::Succeeded, End::Dead, End::Succeeded];

#[test]
fn a_group_is_removed_with_all_records_after_their_longest_retention() {
    let mut tree = Tree::new(ENDS);
    tree.stage.after(MINUTE + ROUND);
    tree.round();
    assert_eq!(
        (tree.stage.records.len(), tree.znodes().len()),
        (4, 8),
        "the dead member is kept for two minutes"
    );
    tree.stage.after(MINUTE + ROUND);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.stage.removed), (0, 4));
    assert!(tree.znodes().is_empty(), "{:?}", tree.znodes());
}

#[test]
fn a_group_with_an_open_member_is_not_removed() {
    let mut tree = Tree::new(ENDS);
    tree.zookeeper.put(&path::place(&id(), 7), Vec::new(), 0);
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.znodes().len()), (4, 9));
    tree.zookeeper.remove(&path::place(&id(), 7));
    tree.stage.after(MINUTE);
    tree.round();
    assert!(tree.znodes().is_empty(), "{:?}", tree.znodes());
}

#[test]
fn a_member_retried_after_the_join_keeps_its_group_until_it_ends_again() {
    let mut tree = Tree::new(ENDS);
    let job = JobId::member(&tree.group.kind, &id(), 1).unwrap();
    tree.write(&job, Found::Left);
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.stage.records.contains_key(&job));
    assert!(tree.zookeeper.get(&path::group(&id())).is_some(), "the group's record is removed last");
    tree.write(&job, over_again(tree.stage.wall(), None));
    tree.stage.after(MINUTE / 2);
    tree.round();
    assert!(tree.stage.records.contains_key(&job), "S1: the record is kept for its own retention");
    tree.stage.after(MINUTE / 2);
    tree.round();
    assert_eq!((tree.stage.records.len(), tree.znodes().len()), (0, 0));
}

/// S1: the group of its sub-jobs needs the record until that group ends.
#[test]
fn a_retried_member_with_sub_jobs_is_removed_with_their_group() {
    let mut tree = Tree::new(ENDS);
    let job = JobId::member(&tree.group.kind, &id(), 1).unwrap();
    let nested = GroupId::new("of-its-sub-jobs").unwrap();
    tree.write(&job, over_again(tree.stage.wall(), Some(nested.clone())));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert_eq!(tree.stage.records.keys().collect::<Vec<_>>(), [&job]);
    assert!(tree.znodes().is_empty(), "{:?}", tree.znodes());
    let outer = Membership { group: id(), role: Role::Member(1), counted: false };
    let parent = Parent {
        job: job.clone(),
        kind: tree.group.kind.clone(),
        generation: 2,
        finish: false,
        first: None,
        membership: Some(outer),
        depth: 1,
        lane: None,
        outer_lanes: Vec::new(),
    };
    let mut tree = Tree::new(ENDS);
    tree.group.parent = Some(parent);
    tree.write(&job, over_again(tree.stage.wall(), Some(id())));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(!tree.stage.records.contains_key(&job), "the record is removed with the group of its sub-jobs");
}

/// The finished handler of the first group reads the members of all groups.
#[test]
fn a_further_group_stays_until_the_first_one_is_removed() {
    let first = GroupId::new("first").unwrap();
    let mut tree = Tree::new(ENDS);
    tree.group.parent = Some(Parent {
        job: JobId::new("p").unwrap(),
        kind: tree.group.kind.clone(),
        generation: 1,
        finish: false,
        first: Some(FirstGroup { group: first.clone(), number: 0 }),
        membership: None,
        depth: 0,
        lane: None,
        outer_lanes: Vec::new(),
    });
    tree.zookeeper.put(&path::group(&first), Vec::new(), 0);
    let before = tree.znodes().len();
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert_eq!(tree.znodes().len(), before);
    tree.zookeeper.remove(&path::group(&first));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.znodes().is_empty(), "{:?}", tree.znodes());
}

#[test]
fn a_purged_record_does_not_keep_its_group() {
    let mut tree = Tree::new(ENDS);
    std::mem::take(&mut tree.stage.records).keys().for_each(|job| tree.zookeeper.remove(&path::record(job)));
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.znodes().is_empty(), "{:?}", tree.znodes());
}

#[test]
fn a_group_that_is_not_due_is_not_scanned_in_every_round() {
    let mut tree = Tree::new(ENDS);
    for _ in 0..5 {
        tree.stage.after(ROUND);
        tree.round();
    }
    assert_eq!(tree.read, 1);
}

/// A parent of the group that no other group counts, with this record.
fn with_parent(found: Found) -> (Tree, JobId) {
    let job = JobId::new("p").unwrap();
    let mut tree = Tree::new(ENDS);
    tree.group.parent = Some(Parent {
        job: job.clone(),
        kind: tree.group.kind.clone(),
        generation: 1,
        finish: false,
        first: None,
        membership: None,
        depth: 0,
        lane: None,
        outer_lanes: Vec::new(),
    });
    tree.write(&job, found);
    (tree, job)
}

/// S1: its record belongs to the group of its current sub-jobs, or is open.
#[test]
fn a_parent_that_was_retried_since_keeps_its_record_and_not_the_group() {
    let other = Some(GroupId::new("of-its-later-sub-jobs").unwrap());
    for found in [over_again(Stage::new().wall(), other), over_again(Stage::new().wall(), None), Found::Left]
    {
        let (mut tree, parent) = with_parent(found.clone());
        tree.stage.after(100 * MINUTE);
        tree.round();
        assert!(tree.znodes().is_empty(), "{found:?}: {:?}", tree.znodes());
        assert_eq!(tree.stage.records.keys().collect::<Vec<_>>(), [&parent], "{found:?}");
    }
}

#[test]
fn the_record_of_a_parent_is_removed_with_the_group_however_recent_it_is() {
    let (mut tree, parent) = with_parent(Found::Left);
    tree.stage.after(100 * MINUTE);
    let recent = over_again(tree.stage.wall(), Some(id()));
    tree.write(&parent, recent);
    tree.round();
    assert!(tree.stage.records.is_empty() && tree.znodes().is_empty(), "{:?}", tree.znodes());
}

#[test]
fn a_retried_join_keeps_its_group_until_it_ends_again() {
    let mut tree = Tree::new(ENDS);
    let join = tree.group.join_id(&id()).unwrap();
    tree.write(&join, Found::Left);
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.zookeeper.get(&path::group(&id())).is_some(), "it runs");
    let recent = over_again(tree.stage.wall(), None);
    tree.write(&join, recent);
    tree.stage.after(MINUTE / 2);
    tree.round();
    assert!(tree.zookeeper.get(&path::group(&id())).is_some(), "S1: it is kept for its own retention");
    tree.stage.after(MINUTE);
    tree.round();
    assert!(tree.stage.records.is_empty() && tree.znodes().is_empty(), "{:?}", tree.znodes());
}

#[test]
fn all_chunks_of_a_group_are_removed() {
    let mut tree = Tree::new(ENDS);
    for number in [MEMBERS_PER_CHUNK, 2 * MEMBERS_PER_CHUNK] {
        tree.zookeeper.put(&path::place_chunk(&id(), number / MEMBERS_PER_CHUNK), Vec::new(), 0);
        tree.zookeeper.put(&path::mark(&id(), Mark::Member(number), End::Succeeded), Vec::new(), 0);
        let job = JobId::member(&tree.group.kind, &id(), number).unwrap();
        let wall = tree.stage.wall();
        tree.write(&job, over(wall));
    }
    tree.stage.after(100 * MINUTE);
    tree.round();
    assert!(tree.stage.records.is_empty() && tree.znodes().is_empty(), "{:?}", tree.znodes());
}
