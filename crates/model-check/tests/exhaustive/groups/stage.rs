//! The names of three settings: a group of two members, a group whose only member has sub-jobs, and the same with the sub-jobs
//! in a further group.

use bellwether_core::group::{FirstGroup, GroupRecord, Parent};
use bellwether_core::job::{Assignment, JobRecord, Membership, Payload, Placement, Role};
use bellwether_core::name::{GroupId, JobId, Kind, Lane, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::{ReadyEntry, Shard};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Op};
use uuid::Uuid;

use super::model::Bounds;
use crate::fixture::{self, WALL, kind};
use crate::zookeeper::ZooKeeper;

pub(crate) const SESSION: i64 = 1;

/// Number of the group's members, and of the parent's sub-jobs.
pub(crate) const MEMBERS: u32 = 2;
pub(crate) const SUB_JOBS: u32 = 1;

/// A job and its possible paths. Computed once, because every state looks them up.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) id: JobId,
    /// Whether it is a member, and not a join or a finished job.
    pub(crate) counts: bool,
    pub(crate) record: String,
    pub(crate) assigned: String,
}

/// All jobs and groups of a setting.
#[derive(Debug)]
pub(crate) struct Cast {
    pub(crate) jobs: Vec<Part>,
    pub(crate) groups: Vec<GroupId>,
    pub(crate) nested: bool,
}

impl Cast {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let nested = bounds.nested;
        let outer = group();
        let members = (0..if nested { 1 } else { MEMBERS }).map(|n| part(member(&outer, n), true));
        let mut jobs: Vec<_> = members.collect();
        jobs.push(part(plain().join_id(&outer).expect("short"), false));
        let mut groups = vec![outer];
        if nested {
            let inner = inner();
            let of_sub_jobs = if bounds.further { further() } else { inner.clone() };
            jobs.extend((0..SUB_JOBS).map(|n| part(member(&of_sub_jobs, n), true)));
            if !bounds.further {
                jobs.push(part(sub_group(bounds).join_id(&inner).expect("short"), false));
            }
            jobs.push(part(parent_of_sub_jobs().finish_id(&inner).expect("short"), false));
            groups.push(inner);
            if bounds.further {
                groups.push(further());
            }
        }
        Self { jobs, groups, nested }
    }

    /// Creates the initial state: the group, its parent znodes and those of its jobs, and one worker. A parent is
    /// already running.
    pub(crate) fn zookeeper(&self, bounds: &Bounds) -> ZooKeeper {
        let jobs = self.jobs.iter().map(|part| SubBucket::of(&part.id));
        let jobs = jobs.map(SubBucket::path).chain(Shard::all().map(path::ready_shard));
        let groups = self.groups.iter().map(Bucket::of_group);
        let groups = groups.flat_map(|bucket| [bucket.groups(), bucket.members()]);
        let own = [path::EPOCH.to_owned(), path::GROUPS.to_owned(), path::MEMBERS.to_owned()];
        let own = own.into_iter().chain([path::lane(&lane())]);
        let parents = path::PARENTS.map(str::to_owned).into_iter();
        let mut zk = ZooKeeper::with(parents.chain(own).chain(jobs).chain(groups));
        let mut commit = |ops: Vec<Op>| assert_eq!(zk.commit(SESSION, &ops), Outcome::Applied(()), "{ops:?}");
        let members = if self.nested { 1 } else { MEMBERS };
        let total = (self.nested || bounds.total).then_some(members);
        let record = GroupRecord { fail_fast: bounds.fail_fast, total, ..plain() };
        commit(txn::register(worker(), &fixture::info(1)));
        commit(txn::make_group(&group(), &record));
        commit(txn::make_chunk(&group(), 0));
        if self.nested {
            let parent = member(&group(), 0);
            let joins = txn::join_group(&group(), 0, 0);
            let placement = Placement { lane: Some(lane()), ..Placement::default() };
            let record = JobRecord { placement, ..job(&group(), 0) };
            commit([txn::submit(&parent, &record, 0), joins.to_vec()].concat());
            let entry = ReadyEntry::of_record(&parent, &record);
            commit(txn::assign(&entry, worker(), &Assignment::new(1, 0, WALL), record.turn().as_ref()));
        }
        zk
    }
}

fn part(id: JobId, counts: bool) -> Part {
    let (record, assigned) = (path::record(&id), path::assignment(worker(), &id));
    Part { id, counts, record, assigned }
}

pub(crate) fn worker() -> WorkerId {
    fixture::worker(0)
}

pub(crate) fn group() -> GroupId {
    GroupId::new("g").expect("a valid name")
}

/// The lane of the parent.
fn lane() -> Lane {
    Lane::new("x").expect("a valid name")
}

fn plain() -> GroupRecord {
    GroupRecord::new(kind(), Uuid::nil(), WallMillis(0))
}

/// The group of the parent's sub-jobs.
pub(crate) fn inner() -> GroupId {
    GroupId::of_sub_jobs(&member(&group(), 0), &job(&group(), 0))
}

fn parent_of_sub_jobs() -> Parent {
    let membership = Some(Membership { group: group(), role: Role::Member(0), counted: true });
    Parent {
        job: member(&group(), 0),
        kind: kind(),
        generation: 1,
        finish: true,
        first: None,
        membership,
        depth: 1,
        lane: Some(lane()),
        outer_lanes: Vec::new(),
    }
}

/// The further group of the parent's sub-jobs.
pub(crate) fn further() -> GroupId {
    inner().further(0)
}

pub(crate) fn further_group() -> GroupRecord {
    let first = Some(FirstGroup { group: inner(), number: 0 });
    let parent = Parent { first, finish: false, ..parent_of_sub_jobs() };
    let kind = Kind::new("more").expect("a valid name");
    GroupRecord { parent: Some(parent), join: false, ..GroupRecord::new(kind, Uuid::nil(), WallMillis(0)) }
}

/// Of two groups, none has a join: the states would be too many.
pub(crate) fn sub_group(bounds: &Bounds) -> GroupRecord {
    GroupRecord { parent: Some(parent_of_sub_jobs()), join: !bounds.further, ..plain() }
}

pub(crate) fn member(group: &GroupId, number: u32) -> JobId {
    JobId::member(&kind(), group, number).expect("short")
}

pub(crate) fn job(group: &GroupId, number: u32) -> JobRecord {
    let membership = Some(Membership { group: group.clone(), role: Role::Member(number), counted: true });
    let payload = Payload::json(*b"1").expect("small");
    let policy = fixture::policy(1);
    JobRecord { membership, policy, ..JobRecord::new(kind(), payload, Uuid::nil(), WallMillis(0)) }
}
