//! The paths of all znodes under the root of a namespace. No other module builds a path.

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::budget::{BUCKETS, SUB_BUCKETS};
use crate::job::{Delay, Turn};
use crate::name::{JobId, Kind, Lane, ScheduleId, WorkerId};
use crate::ready::{ClassName, ReadyEntry, Shard, Slot};
use crate::segment::{ChunkName, SegmentId};

mod group;

pub use group::{
    GROUPS, GroupPlace, MEMBERS, chunk, group, mark, mark_chunk, members, parse_chunk, parse_mark,
    parse_member_mark, parse_place, place, place_chunk,
};

/// The layout version of a namespace.
pub const LAYOUT: &str = "/layout";
/// Parent of the candidates of the strategy `queue`.
pub const ELECTION: &str = "/election";
/// The leader's ephemeral of the strategy `single`.
pub const LEADER: &str = "/leader";
/// The record of the leader. Its version is the epoch.
pub const EPOCH: &str = "/epoch";
/// Set by the leader at every beat. A new version shows that the leader lives.
pub const LEADING: &str = "/leading";
/// Parent of the live workers.
pub const WORKERS: &str = "/workers";
/// Parent of the buckets of job records.
pub const JOBS: &str = "/jobs";
/// Parent of the shards of jobs that wait for a worker.
pub const READY: &str = "/ready";
/// Parent of the minutes of delayed jobs.
pub const DELAYED: &str = "/delayed";
/// Parent of the workers' inboxes.
pub const ASSIGNMENTS: &str = "/assignments";
/// Parent of the buckets of lanes.
pub const LANES: &str = "/lanes";
/// Parent of the settings of a namespace.
pub const CONFIG: &str = "/config";
/// How long records of terminal jobs are kept.
pub const RETENTION: &str = "/config/retention";
/// The times of a leader's beats.
pub const FAILOVER: &str = "/config/failover";
/// The placement strategy. Absent until one is set.
pub const PLACEMENT: &str = "/config/placement";
/// Parent of the paused kinds.
pub const PAUSES: &str = "/pauses";
/// Parent of the schedules. Its version grows with every removal, so that the version of a removed schedule cannot be
/// mistaken for the version of a later schedule with the same name.
pub const SCHEDULES: &str = "/schedules";
/// Parent of jobs whose stored bytes could not be read.
pub const QUARANTINE: &str = "/quarantine";

/// Parent of the reports of processes whose wall clock is wrong.
pub const CLOCKS: &str = "/clocks";

/// The parents that every namespace has, in addition to the buckets.
pub const PARENTS: [&str; 14] = [
    ELECTION,
    WORKERS,
    JOBS,
    READY,
    DELAYED,
    LANES,
    ASSIGNMENTS,
    PAUSES,
    QUARANTINE,
    CONFIG,
    SCHEDULES,
    GROUPS,
    MEMBERS,
    CLOCKS,
];

/// A hash bucket, which keeps the reply to a list of children far below `jute.maxbuffer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u8);

impl Bucket {
    /// The bucket of a job. It never changes, because it is part of the job's path.
    #[must_use]
    pub fn of(job: &JobId) -> Self {
        Self::of_name(job.as_str())
    }

    /// The bucket of a lane. It never changes either.
    #[must_use]
    pub fn of_lane(lane: &Lane) -> Self {
        Self::of_name(lane.as_str())
    }

    fn of_name(name: &str) -> Self {
        let hash = xxh3_64(name.as_bytes());
        Self(u8::try_from(hash % u64::from(BUCKETS)).expect("256 buckets fit a byte"))
    }

    /// The parents of its records, in order.
    pub fn sub_buckets(self) -> impl Iterator<Item = SubBucket> {
        (0..SUB_BUCKETS).map(move |n| SubBucket(u16::from(self.0) * SUB_BUCKETS + n))
    }

    /// All buckets in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// The index of the bucket, 0 to 255.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its znode under `/jobs`, whose version counts the removals of records.
    #[must_use]
    pub fn jobs(self) -> String {
        format!("{JOBS}/{:02x}", self.0)
    }

    /// Its znode under `/lanes`.
    #[must_use]
    pub fn lanes(self) -> String {
        format!("{LANES}/{:02x}", self.0)
    }
}

/// A part of a bucket of jobs: the parent of records. A client that lists the children of one parent gets at most
/// [`MAX_BUCKET_ENTRIES`](crate::budget::MAX_BUCKET_ENTRIES) names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubBucket(u16);

impl SubBucket {
    /// The sub-bucket of a job. It never changes, because it is part of the job's path.
    #[must_use]
    pub fn of(job: &JobId) -> Self {
        let hash = xxh3_64(job.as_str().as_bytes());
        let bucket = hash % u64::from(BUCKETS);
        // Other digits than those that select the bucket.
        let part = hash / u64::from(BUCKETS) % u64::from(SUB_BUCKETS);
        Self(u16::try_from(bucket * u64::from(SUB_BUCKETS) + part).expect("4,096 sub-buckets fit"))
    }

    /// All sub-buckets in order.
    pub fn all() -> impl Iterator<Item = Self> {
        Bucket::all().flat_map(Bucket::sub_buckets)
    }

    /// The index of the sub-bucket, 0 to 4,095.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its name, three digits.
    #[must_use]
    pub fn name(self) -> String {
        format!("{:03x}", self.0)
    }

    /// The sub-bucket of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = u16::from_str_radix(name, 16).ok().filter(|n| *n < BUCKETS * SUB_BUCKETS).map(Self);
        named.filter(|named| named.name() == name)
    }

    /// Its znode.
    #[must_use]
    pub fn path(self) -> String {
        format!("{JOBS}/{:02x}/{:x}", self.0 / SUB_BUCKETS, self.0 % SUB_BUCKETS)
    }
}

/// A job's record.
#[must_use]
pub fn record(job: &JobId) -> String {
    format!("{}/{job}", SubBucket::of(job).path())
}

/// A segment. Its path is that of the record of the id `@{segment}`.
#[must_use]
pub fn segment(segment: SegmentId) -> String {
    record(&segment.job())
}

/// A chunk of a segment.
#[must_use]
pub fn segment_chunk(id: SegmentId, chunk: ChunkName) -> String {
    format!("{}/{chunk}", segment(id))
}

/// A parent of classes of waiting jobs.
#[must_use]
pub fn ready_shard(shard: Shard) -> String {
    format!("{READY}/{shard}")
}

/// The parent of the slots of a class.
#[must_use]
pub fn ready_class(class: &ClassName) -> String {
    format!("{READY}/{}/{class}", class.shard())
}

/// The parent of the entries of a slot.
#[must_use]
pub fn ready_slot(class: &ClassName, slot: Slot) -> String {
    format!("{READY}/{}/{class}/{slot}", class.shard())
}

/// The entry of a job that waits for a worker.
#[must_use]
pub fn ready_entry(entry: &ReadyEntry) -> String {
    let ReadyEntry { class, slot, name } = entry;
    format!("{READY}/{}/{class}/{slot}/{name}", class.shard())
}

/// The parent of the jobs that are delayed to a minute.
#[must_use]
pub fn delayed_minute(minute: u64) -> String {
    format!("{DELAYED}/{minute}")
}

/// A delayed job's entry. Generation and attempt are part of the name, so that a name always denotes the same attempt.
#[must_use]
pub fn delayed_entry(delay: Delay, job: &JobId) -> String {
    let Delay { minute, generation, attempt } = delay;
    format!("{DELAYED}/{minute}/{generation}.{attempt}-{job}")
}

/// Parses the name of a delayed entry in a minute. `None` for a foreign name.
#[must_use]
pub fn parse_delayed(minute: u64, name: &str) -> Option<(Delay, JobId)> {
    let (attempt, job) = name.split_once('-')?;
    let (generation, attempt) = attempt.split_once('.')?;
    let delay = Delay { minute, generation: number(generation)?, attempt: number(attempt)? };
    Some((delay, JobId::new(job).ok()?))
}

/// The job of an entry with this name in some minute. `None` for a foreign name.
#[must_use]
pub fn parse_delayed_job(name: &str) -> Option<JobId> {
    parse_delayed(0, name).map(|(_, job)| job)
}

/// The parent of the turns of a lane.
#[must_use]
pub fn lane(lane: &Lane) -> String {
    format!("{LANES}/{:02x}/{lane}", Bucket::of_lane(lane).0)
}

/// A job's turn in its lane. The generation is part of the name, so that a name always denotes the same position in the
/// lane: a retried job gets another name.
#[must_use]
pub fn turn(turn: &Turn, job: &JobId) -> String {
    let Turn { lane, generation } = turn;
    format!("{LANES}/{:02x}/{lane}/{generation}-{job}", Bucket::of_lane(lane).0)
}

/// Parses the name of a turn: generation and job. `None` for a foreign name.
#[must_use]
pub fn parse_turn(name: &str) -> Option<(u32, JobId)> {
    let (generation, job) = name.split_once('-')?;
    Some((number(generation)?, JobId::new(job).ok()?))
}

/// The container that holds this znode: the minute of a delayed entry, the lane of a turn, the slot of an entry, or the class
/// of a slot. `None` for all others.
#[must_use]
pub fn container_of(path: &str) -> Option<&str> {
    let depths = match below_parent(path).0 {
        DELAYED => 2..=2,
        LANES => 3..=3,
        READY => 3..=4,
        _ => return None,
    };
    let (parent, _) = path.rsplit_once('/')?;
    depths.contains(&parent.matches('/').count()).then_some(parent)
}

/// Parses a number in a name. It has no sign and no leading zeros.
fn number(digits: &str) -> Option<u32> {
    digits.parse::<u32>().ok().filter(|number| number.to_string() == digits)
}

/// Parses the name of a minute under `/delayed`. `None` for a foreign name.
#[must_use]
pub fn parse_minute(name: &str) -> Option<u64> {
    name.parse::<u64>().ok().filter(|minute| minute.to_string() == name)
}

/// A live worker.
#[must_use]
pub fn worker(worker: WorkerId) -> String {
    format!("{WORKERS}/{worker}")
}

/// The parent of a worker's assignments.
#[must_use]
pub fn inbox(worker: WorkerId) -> String {
    format!("{ASSIGNMENTS}/{worker}")
}

/// One assignment.
#[must_use]
pub fn assignment(worker: WorkerId, job: &JobId) -> String {
    format!("{ASSIGNMENTS}/{worker}/{job}")
}

/// The pause of a kind.
#[must_use]
pub fn pause(kind: &Kind) -> String {
    format!("{PAUSES}/{kind}")
}

/// A schedule.
#[must_use]
pub fn schedule(schedule: &ScheduleId) -> String {
    format!("{SCHEDULES}/{schedule}")
}

/// The note about a job whose stored bytes could not be read.
#[must_use]
pub fn quarantine(job: &JobId) -> String {
    format!("{QUARANTINE}/{job}")
}

/// The report of the process with this session about its wall clock.
#[must_use]
pub fn clock_report(session: i64) -> String {
    format!("{CLOCKS}/{session:016x}")
}

/// The path of a candidate of the strategy `queue`, without the sequence number that ZooKeeper appends.
#[must_use]
pub fn candidate_prefix(campaign: Uuid) -> String {
    format!("{ELECTION}/{}-n-", campaign.hyphenated())
}

/// The path of a candidate of the strategy `queue` with this name.
#[must_use]
pub fn candidate(name: &str) -> String {
    format!("{ELECTION}/{name}")
}

/// Splits a path into the znode at the top of the namespace and the number of names below it: `/jobs/1f/a` is two below
/// `/jobs`. The root is `/`, 0.
#[must_use]
pub fn below_parent(path: &str) -> (&str, usize) {
    let below_root = path.get(1..).unwrap_or_default();
    let end = below_root.find('/').map_or(path.len(), |at| at + 1);
    (&path[..end], path[end..].matches('/').count())
}

/// The meaning of a path that a watch reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The entry of a job that waits for a worker.
    Ready(ReadyEntry),
    /// A class of waiting jobs.
    ReadyClass(ClassName),
    /// A slot of a class.
    ReadySlot(ClassName, Slot),
    /// A delayed entry.
    DelayedEntry(Delay, JobId),
    /// A live worker.
    Worker(WorkerId),
    /// A worker's inbox.
    Inbox(WorkerId),
    /// An assignment.
    Assignment(WorkerId, JobId),
    /// A job's turn in its lane.
    Turn(Turn, JobId),
    /// A schedule.
    Schedule(ScheduleId),
    /// A znode of a group.
    Group(GroupPlace),
    /// A chunk of a segment.
    SegmentChunk(SegmentId, ChunkName),
    /// Any other znode, or a foreign name.
    Other,
}

/// Parses a path. Foreign names are [`Place::Other`], because an operator may create any znode.
#[must_use]
pub fn parse(path: &str) -> Place {
    let Some(path) = path.strip_prefix('/') else { return Place::Other };
    let mut parts = path.split('/');
    if path.starts_with("groups/") || path.starts_with("members/") {
        // These paths are the deepest, and a watch may report 100,000 ends of members: split once, into a few parts.
        let parts = path.splitn(6, '/').collect::<Vec<_>>();
        return group::parse(&parts).map_or(Place::Other, Place::Group);
    }
    let place = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("ready"), Some(shard), Some(class), slot) => parse_ready(shard, class, slot, &mut parts),
        (Some("delayed"), Some(minute), Some(name), None) => parse_minute(minute)
            .and_then(|minute| parse_delayed(minute, name))
            .map(|(delay, job)| Place::DelayedEntry(delay, job)),
        (Some("workers"), Some(worker), None, None) => WorkerId::parse(worker).map(Place::Worker),
        (Some("assignments"), Some(worker), None, None) => WorkerId::parse(worker).map(Place::Inbox),
        (Some("assignments"), Some(worker), Some(job), None) => WorkerId::parse(worker)
            .zip(JobId::new(job).ok())
            .map(|(worker, job)| Place::Assignment(worker, job)),
        (Some("lanes"), Some(bucket), Some(lane), Some(name)) if parts.next().is_none() => Lane::new(lane)
            .ok()
            .filter(|lane| format!("{:02x}", Bucket::of_lane(lane).0) == bucket)
            .zip(parse_turn(name))
            .map(|(lane, (generation, job))| Place::Turn(Turn { lane, generation }, job)),
        (Some("schedules"), Some(schedule), None, None) => {
            ScheduleId::new(schedule).ok().map(Place::Schedule)
        }
        (Some("jobs"), Some(_), Some(_), Some(segment)) => parse_segment_chunk(path, segment, &mut parts),
        (_, _, _, _) => None,
    };
    place.unwrap_or(Place::Other)
}

fn parse_segment_chunk<'a>(
    path: &str,
    segment: &str,
    parts: &mut impl Iterator<Item = &'a str>,
) -> Option<Place> {
    let chunk = parts.next()?.parse().ok()?;
    let segment = SegmentId::of_job(&JobId::new(segment).ok()?)?;
    segment_chunk(segment, chunk).strip_prefix('/').filter(|right| *right == path)?;
    Some(Place::SegmentChunk(segment, chunk))
}

fn parse_ready<'a>(
    shard: &str,
    class: &str,
    slot: Option<&str>,
    parts: &mut impl Iterator<Item = &'a str>,
) -> Option<Place> {
    let class = class.parse::<ClassName>().ok().filter(|class| class.shard().has_name(shard))?;
    let Some(slot) = slot else { return Some(Place::ReadyClass(class)) };
    let slot = slot.parse::<Slot>().ok()?;
    match (parts.next(), parts.next()) {
        (None, _) => Some(Place::ReadySlot(class, slot)),
        (Some(name), None) => Some(Place::Ready(ReadyEntry { class, slot, name: name.parse().ok()? })),
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ready::{Class, RecordEntry};

    #[test]
    fn every_path_is_parsed_to_its_place() {
        let job = JobId::new("nightly.2026-11-21").unwrap();
        let id = WorkerId::new(Uuid::from_u128(9));
        let class = Class { kind: Kind::new("sum").unwrap(), tags: vec![], laned: true }.name();
        let name = "000075nightly.2026-11-21+1.2~".parse::<RecordEntry>().unwrap();
        let entry = ReadyEntry { class: class.clone(), slot: Slot { minute: 29, part: 1 }, name };
        assert_eq!(parse(&ready_class(&class)), Place::ReadyClass(class.clone()));
        assert_eq!(parse(&ready_slot(&class, entry.slot)), Place::ReadySlot(class, entry.slot));
        assert_eq!(parse(&ready_entry(&entry)), Place::Ready(entry));
        let second = Delay { minute: 29, generation: 1, attempt: 2 };
        assert_eq!(delayed_entry(second, &job), "/delayed/29/1.2-nightly.2026-11-21");
        assert_eq!(parse(&delayed_entry(second, &job)), Place::DelayedEntry(second, job.clone()));
        assert_eq!(parse(&worker(id)), Place::Worker(id));
        assert_eq!(parse(&inbox(id)), Place::Inbox(id));
        assert_eq!(parse(&assignment(id, &job)), Place::Assignment(id, job.clone()));
        let second = Turn { lane: Lane::new("account-7").unwrap(), generation: 2 };
        assert_eq!(parse(&turn(&second, &job)), Place::Turn(second, job));
        let segment = SegmentId::new(Uuid::from_u128(7), 4, 1_000).unwrap();
        let chunk = "s3".parse().unwrap();
        assert_eq!(parse(&segment_chunk(segment, chunk)), Place::SegmentChunk(segment, chunk));
        assert_eq!(parse(&super::segment(segment)), Place::Other);
        let misplaced = format!("/jobs/00/0/{}/s3", segment.job());
        assert_eq!(parse(&misplaced), Place::Other);
        assert_eq!(parse(&format!("{}/1", segment_chunk(segment, chunk))), Place::Other);
        let nightly = ScheduleId::new("nightly").unwrap();
        assert_eq!(parse(&schedule(&nightly)), Place::Schedule(nightly));
    }

    #[test]
    fn a_path_is_split_at_its_parent_at_the_top() {
        let bucket = Bucket::all().next().unwrap().jobs();
        assert_eq!(below_parent("/"), ("/", 0));
        assert_eq!(below_parent(EPOCH), (EPOCH, 0));
        assert_eq!(below_parent(&bucket), (JOBS, 1));
        assert_eq!(below_parent("/jobs/1f/e/a"), (JOBS, 3));
        assert_eq!(below_parent("/lanes/00/l/1-a"), (LANES, 3));
        assert_eq!(below_parent(""), ("", 0));
    }

    #[test]
    fn entries_turns_and_slots_are_in_a_container() {
        let job = JobId::new("a").unwrap();
        let ready = ["/ready/0/sum/29.1/000075a+1.1", "/ready/0/sum/29.1", "/ready/0/sum"];
        assert_eq!(ready.map(container_of), [Some(ready[1]), Some(ready[2]), None]);
        let entry = delayed_entry(Delay { minute: 29, generation: 1, attempt: 2 }, &job);
        assert_eq!(container_of(&entry), Some(delayed_minute(29).as_str()));
        let of = Turn { lane: Lane::new("account-7").unwrap(), generation: 2 };
        assert_eq!(container_of(&turn(&of, &job)), Some(lane(&of.lane).as_str()));
        for other in
            [record(&job), "/ready/0".to_owned(), delayed_minute(29), lane(&of.lane), DELAYED.to_owned()]
        {
            assert_eq!(container_of(&other), None, "{other}");
        }
    }

    #[test]
    fn foreign_paths_are_other_and_never_panic() {
        for path in
            ["", "/", "/ready", "/ready/1/sum", "/workers/web-1", "/delayed/x/1.1-a", "/ready/1/sum/29", "//"]
                .into_iter()
                .chain([
                    "/lanes/5b/a",
                    "/lanes/00/a/1-b",
                    "/lanes/1f/a/01-b",
                    "/lanes/1f/a/b",
                    "/lanes/1f/a/1-b/c",
                    "/delayed/029/1.1-a",
                    "/delayed/+29/1.1-a",
                    "/delayed/29/a",
                    "/delayed/29/1-a",
                    "/delayed/29/01.1-a",
                    "/delayed/29/1.1-a/b",
                    "/ready/0/sum/29.0",
                    "/ready/1/sum/29/000075a+1.1",
                    "/ready/0/sum/29/000075a",
                    "/ready/0/sum/29/000075a+1.1/b",
                    "/ready/0/s@m/29/000075a+1.1",
                    "x/ready/0/sum/29",
                ])
        {
            assert_eq!(parse(path), Place::Other, "{path}");
        }
    }

    /// The bucket is part of stored paths: another hash would make every stored job unreachable.
    #[test]
    fn the_bucket_of_an_id_is_fixed() {
        let buckets = ["a", "order-1", "nightly.2026-11-21"].map(|id| record(&JobId::new(id).unwrap()));
        assert_eq!(
            buckets,
            ["/jobs/1f/e/a", "/jobs/76/8/order-1", "/jobs/85/4/nightly.2026-11-21"].map(String::from)
        );
        assert_eq!(lane(&Lane::new("order-1").unwrap()), "/lanes/76/order-1");
    }

    #[test]
    fn each_bucket_has_one_znode_per_tree() {
        let bucket = Bucket::all().last().unwrap();
        assert_eq!([bucket.jobs(), bucket.lanes()], ["/jobs/ff", "/lanes/ff"]);
        let last = SubBucket::all().last().unwrap();
        assert_eq!((last.path(), last.name(), last.index()), ("/jobs/ff/f".into(), "fff".into(), 4_095));
        assert_eq!(SubBucket::from_name("0a7").map(SubBucket::path).as_deref(), Some("/jobs/0a/7"));
        assert_eq!(SubBucket::from_name("fff"), Some(last));
        for foreign in ["", "a7", "1000", "0A7", "+a7"] {
            assert_eq!(SubBucket::from_name(foreign), None, "{foreign}");
        }
        assert_eq!(Shard::all().last().map(ready_shard).as_deref(), Some("/ready/f"));
        assert_eq!(pause(&Kind::new("sum").unwrap()), "/pauses/sum");
        assert_eq!(clock_report(0x1_0000_0a7b), "/clocks/0000000100000a7b");
        assert_eq!(parse_delayed_job("1.2-a"), JobId::new("a").ok());
        assert_eq!(parse_delayed_job("1-a"), None);
    }
}
