//! One scan of a bucket of jobs: decides which records to remove.

use std::collections::VecDeque;

use crate::group::End;
use crate::name::JobId;
use crate::path::{self, Bucket};
use crate::retention::{Retention, ended};
use crate::segment::{Chunks, MemberId, SegmentId};
use crate::time::WallMillis;
use crate::txn::{self, Op};

use super::bucket::{Facts, Size};
use super::group::Removals;
use super::segment_scan::{self, SegmentScan};
use super::{Found, FoundSegment, READ, RECORDS, Stat};

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BucketScan {
    bucket: Bucket,
    /// The version of the bucket: read before the list, and raised by each of our own removals.
    removals: i32,
    left: Size,
    unread: VecDeque<JobId>,
    segments: SegmentScan,
    /// When the first of the records and segments that were not read can be due.
    young: Option<WallMillis>,
    over: Vec<Over>,
    /// Jobs that stay because they are open, or because they cannot be read.
    open: usize,
    /// Parents with a lane whose groups were not looked for yet.
    parents: VecDeque<Parent>,
    /// Those that are looked for now.
    sought: Vec<Parent>,
    /// What to remove, the oldest last; `None` until all is read.
    going: Option<Vec<Over>>,
    removed: bool,
}

/// Jobs that have ended and are removed together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Over {
    ended: WallMillis,
    due: WallMillis,
    jobs: usize,
    removal: Removal,
}

/// Znodes that are removed together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Removal {
    /// The record of a job, at a version.
    Record(JobId, i32),
    /// A segment with these chunks.
    Segment(SegmentId, Chunks),
}

impl Removal {
    pub(super) fn path(&self) -> String {
        match self {
            Self::Record(job, _) => path::record(job),
            Self::Segment(id, _) => path::segment(*id),
        }
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        match self {
            Self::Record(job, version) => vec![txn::remove_record(job, *version)],
            Self::Segment(id, chunks) => txn::segment::remove(*id, chunks),
        }
    }

    /// The number of its operations.
    fn len(&self) -> usize {
        match self {
            Self::Record(..) => 1,
            Self::Segment(_, chunks) => chunks.names().len() + 1,
        }
    }

    /// How many jobs it removes.
    fn jobs(&self) -> usize {
        match self {
            Self::Record(..) => 1,
            Self::Segment(_, chunks) => segment_scan::succeeded(chunks),
        }
    }
}

/// A terminal job with sub-jobs and a lane. Its turn ends with the group of the sub-jobs; if an operator has deleted the
/// group, nothing else ends the turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Parent {
    record: String,
    version: i32,
    group: String,
    turn: String,
}

/// The next step of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Read these records.
    Read(Vec<JobId>),
    /// Stat these znodes.
    Stat(Vec<String>),
    /// List the children of these znodes.
    Names(Vec<String>),
    /// Read these segments.
    Segments(Vec<(SegmentId, Chunks)>),
    /// Remove these, with [`RECORDS`] operations at most.
    Remove(Vec<Removal>),
    /// The scan is finished: `left` remains, it found `open` open jobs, and the first terminal one is due at `due`.
    Done { bucket: Bucket, left: Size, open: usize, due: Option<WallMillis>, removed: bool },
}

impl BucketScan {
    pub(super) fn new(
        bucket: Bucket,
        removals: i32,
        names: &[String],
        retention: &Retention,
        wall: WallMillis,
    ) -> Self {
        let left = size(names);
        // Above the share of the bucket, a record can be removed before its retention is over.
        let overfull = left.jobs > retention.per_bucket();
        let kept = if overfull { retention.at_least() } else { retention.shortest() };
        let (mut unread, mut segments, mut young) = (VecDeque::new(), SegmentScan::default(), None);
        // A name that is not an id is not a job.
        for job in names.iter().filter_map(|name| JobId::new(name).ok()) {
            let segment = SegmentId::of_job(&job);
            let member = MemberId::of_job(&job).map(|member| member.segment);
            let generated = match segment.or(member) {
                Some(of) => of.generated_at(),
                None => job.generated_at(),
            };
            // A job cannot end before its id is generated. A time in the future is wrong: the record is read.
            let generated = generated.filter(|at| *at <= wall && *at + kept > wall);
            match (generated, segment) {
                (Some(at), _) => young = Some(young.map_or(at, |first: WallMillis| first.min(at))),
                (None, Some(segment)) => segments.push(segment),
                (None, None) => unread.push_back(job),
            }
        }
        let young = young.map(|at| at + retention.shortest());
        let (over, parents, sought) = (Vec::new(), VecDeque::new(), Vec::new());
        Self {
            bucket,
            removals,
            left,
            unread,
            segments,
            young,
            over,
            open: 0,
            parents,
            sought,
            going: None,
            removed: false,
        }
    }

    pub(super) fn read(&mut self, job: JobId, found: Found, retention: &Retention, wall: WallMillis) {
        if let Found::Over { version, sub_jobs: Some(group), turn: Some(turn), .. } = &found {
            let (record, group, turn) = (path::record(&job), path::group(group), path::turn(turn, &job));
            self.parents.push_back(Parent { record, version: *version, group, turn });
        }
        match found {
            // A group keeps the records of its jobs; they are removed with the group.
            Found::Left => self.open += 1,
            Found::Absent | Found::Over { grouped: true, .. } => {}
            Found::Over { version, verdict, at, modified, grouped: false, .. } => {
                let ended = ended(at, modified, wall);
                self.push(ended, ended + retention.of(&verdict), Removal::Record(job, version));
            }
        }
    }

    /// The children of segments were listed.
    pub(super) fn names(&mut self, lists: Vec<Option<Vec<String>>>) {
        let listed = self.segments.listed(lists);
        self.open += listed.open;
        // Their records were listed, too.
        self.left.jobs = self.left.jobs.saturating_sub(listed.extracted);
    }

    /// A finished segment was read.
    pub(super) fn read_segment(
        &mut self,
        (id, chunks): (SegmentId, Chunks),
        found: &FoundSegment,
        retention: &Retention,
        wall: WallMillis,
    ) {
        match found {
            FoundSegment::Left => self.open += usize::from(id.count()),
            FoundSegment::Absent => {}
            FoundSegment::Over(ends) => {
                let end = |(at, modified): &(WallMillis, WallMillis)| ended(*at, *modified, wall);
                let ended = ends.iter().map(end).max().unwrap_or(wall);
                let removal = Removal::Segment(id, chunks);
                // If all members have records, only a client that lost the reply to its submission looks for the segment.
                let kept = match removal.jobs() {
                    0 => retention.at_least(),
                    _ => retention.of_end(End::Succeeded),
                };
                self.push(ended, ended + kept, removal);
            }
        }
    }

    fn push(&mut self, ended: WallMillis, due: WallMillis, removal: Removal) {
        self.over.push(Over { ended, due, jobs: removal.jobs(), removal });
    }

    /// Handles the stats of the last [`Next::Stat`]: returns the removal of each turn whose group is absent. The record's
    /// version shows that the job was not opened again.
    pub(super) fn seen(&mut self, stats: &[Option<Stat>]) -> Removals {
        let pairs = std::mem::take(&mut self.sought).into_iter().zip(stats.chunks(2));
        let removal = |(parent, pair): (Parent, &[Option<Stat>])| {
            let Parent { record: path, version, turn, .. } = parent;
            let ops = || vec![Op::Check { path, version }, Op::Delete { path: turn.clone(), version: None }];
            matches!(pair, [None, Some(_)]).then(|| (turn.clone(), ops()))
        };
        pairs.filter_map(removal).collect()
    }

    /// The operation that precedes a removal.
    pub(super) fn fence(&self) -> Op {
        txn::count_removal(self.bucket, self.removals, None)
    }

    /// A removal was applied.
    pub(super) fn applied(&mut self) {
        self.removals = self.removals.wrapping_add(1);
    }

    pub(super) fn next(&mut self, retention: &Retention, wall: WallMillis) -> Next {
        if !self.unread.is_empty() {
            let few = self.unread.len().min(RECORDS);
            return Next::Read(self.unread.drain(..few).collect());
        }
        match self.segments.next() {
            Some(segment_scan::Next::List(ids)) => {
                return Next::Names(ids.into_iter().map(path::segment).collect());
            }
            Some(segment_scan::Next::Read(finished)) => return Next::Segments(finished),
            None => {}
        }
        if !self.parents.is_empty() {
            let few = self.parents.len().min(READ / 2);
            self.sought = self.parents.drain(..few).collect();
            let pair = |parent: &Parent| [parent.group.clone(), parent.turn.clone()];
            return Next::Stat(self.sought.iter().flat_map(pair).collect());
        }
        let over = &mut self.over;
        let going = self.going.get_or_insert_with(|| split(over, retention, wall));
        if going.is_empty() {
            let due = over.iter().map(|over| over.due).chain(self.young).min();
            let (left, open, removed) = (self.left, self.open, self.removed);
            return Next::Done { bucket: self.bucket, left, open, due, removed };
        }
        self.removed = true;
        let (mut few, mut ops) = (Vec::new(), 0);
        while let Some(over) = going.pop_if(|over| ops + over.removal.len() <= RECORDS) {
            ops += over.removal.len();
            self.left.names -= 1;
            self.left.jobs = self.left.jobs.saturating_sub(over.jobs);
            few.push(over.removal);
        }
        Next::Remove(few)
    }
}

/// The size of a bucket with these names. Members of a segment that have records are counted twice.
pub(super) fn size(names: &[String]) -> Size {
    let segment = |name: &String| JobId::new(name).ok().as_ref().and_then(SegmentId::of_job);
    let jobs = names.iter().map(|name| segment(name).map_or(1, |segment| usize::from(segment.count())));
    Size { names: names.len(), jobs: jobs.sum() }
}

/// Takes out what to remove, the oldest last: what is due, and the oldest beyond the bucket's share.
fn split(over: &mut Vec<Over>, retention: &Retention, wall: WallMillis) -> Vec<Over> {
    over.sort_by_key(|over| (over.ended, over.due));
    let share = retention.per_bucket();
    let jobs = over.iter().map(|over| over.jobs).sum::<usize>();
    let excess = if jobs > share { jobs - Facts::target(retention) } else { 0 };
    let mut before = 0;
    let (mut going, kept) = std::mem::take(over).into_iter().partition::<Vec<_>, _>(|over| {
        let is_excess = before < excess;
        before += over.jobs;
        let young = over.ended + retention.at_least() > wall;
        over.due <= wall || (is_excess && !young)
    });
    *over = kept;
    going.reverse();
    going
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::{Turn, Verdict};
    use crate::name::{GroupId, Lane};

    const NOW: WallMillis = WallMillis(1_000_000_000);
    const MINUTE: u64 = 60_000;

    fn retention(records: u32) -> Retention {
        let minute = Duration::from_millis(MINUTE);
        Retention { succeeded: minute, cancelled: minute, dead: 10 * minute, records }
    }

    fn job(n: usize) -> JobId {
        JobId::new(format!("job-{n}")).unwrap()
    }

    fn records(count: usize) -> Size {
        Size { names: count, jobs: count }
    }

    fn bucket() -> Bucket {
        Bucket::all().next().unwrap()
    }

    fn over(verdict: Verdict, ago: u64) -> Found {
        let at = WallMillis(NOW.0 - ago);
        Found::Over {
            version: 3,
            verdict,
            at,
            modified: at,
            grouped: false,
            counted: false,
            sub_jobs: None,
            turn: None,
        }
    }

    fn scan(retention: &Retention, found: Vec<Found>) -> (Vec<usize>, Next) {
        let names = (0..found.len()).map(|n| job(n).to_string()).collect::<Vec<_>>();
        let mut scan = BucketScan::new(bucket(), 0, &names, retention, NOW);
        let mut found = found.into_iter().enumerate();
        let mut gone = Vec::new();
        loop {
            match scan.next(retention, NOW) {
                Next::Read(jobs) => {
                    for id in jobs {
                        let (n, found) = found.next().unwrap();
                        assert_eq!(id, job(n));
                        scan.read(id, found, retention, NOW);
                    }
                }
                Next::Remove(removals) => {
                    gone.extend(removals.iter().map(|removal| match removal {
                        Removal::Record(job, 3) => job.as_str()[4..].parse::<usize>().unwrap(),
                        other => panic!("{other:?}"),
                    }));
                }
                Next::Names(_) | Next::Segments(_) => panic!("there are no segments"),
                done @ Next::Done { .. } => return (gone, done),
                Next::Stat(paths) => panic!("no job has sub-jobs: {paths:?}"),
            }
        }
    }

    #[test]
    fn records_past_their_retention_are_removed() {
        let found = vec![
            Found::Left,
            over(Verdict::Cancelled, MINUTE),
            over(Verdict::Cancelled, MINUTE - 1),
            over(Verdict::Dead, 9 * MINUTE),
            over(Verdict::Dead, 10 * MINUTE),
        ];
        let (mut gone, done) = scan(&retention(256 * 100), found);
        gone.sort_unstable();
        assert_eq!(gone, [1, 4]);
        let due = Some(WallMillis(NOW.0 + 1));
        assert_eq!(done, Next::Done { bucket: bucket(), left: records(3), open: 1, due, removed: true });
    }

    #[test]
    fn above_the_share_the_oldest_records_are_removed_and_recent_ends_stay() {
        // A share of 8, brought down to 7.
        let found = (0..12).map(|n| over(Verdict::Dead, MINUTE + n)).collect();
        let (gone, _) = scan(&retention(256 * 8), found);
        assert_eq!(gone, [11, 10, 9, 8, 7], "the oldest jobs have the highest numbers");
        let young = (0..12).map(|n| over(Verdict::Dead, MINUTE - 1 - n)).collect();
        assert!(scan(&retention(256 * 8), young).0.is_empty());
        let at_the_limit = (0..12).map(|_| over(Verdict::Dead, MINUTE)).collect();
        assert_eq!(scan(&retention(256 * 8), at_the_limit).0.len(), 5);
        let share = (0..8).map(|n| over(Verdict::Dead, MINUTE + n)).collect();
        assert!(scan(&retention(256 * 8), share).0.is_empty(), "the share is full");
    }

    fn lane() -> Lane {
        Lane::new("x").unwrap()
    }

    /// A job with a turn, and with sub-jobs in the group of this number.
    fn parent(n: usize) -> Found {
        let (group, turn) = (GroupId::new(format!("g{n}")).unwrap(), Turn { lane: lane(), generation: 2 });
        let Found::Over { version, verdict, at, modified, .. } = over(Verdict::Dead, 0) else {
            unreachable!()
        };
        let (sub_jobs, turn) = (Some(group), Some(turn));
        Found::Over { version, verdict, at, modified, grouped: true, counted: false, sub_jobs, turn }
    }

    /// S6, S7: an operator has deleted the group of a job's sub-jobs, which would have ended the job's turn.
    #[test]
    fn a_turn_whose_sub_job_group_is_absent_is_deleted() {
        let retention = retention(256 * 100);
        let mut scan = BucketScan::new(bucket(), 0, &[0, 1, 2].map(|n| job(n).to_string()), &retention, NOW);
        let Next::Read(jobs) = scan.next(&retention, NOW) else { panic!("the records are read") };
        for (n, job) in jobs.into_iter().enumerate() {
            scan.read(job, parent(n), &retention, NOW);
        }
        let Next::Stat(paths) = scan.next(&retention, NOW) else { panic!("the groups are looked for") };
        assert_eq!(paths.len(), 6);
        // The group of the first exists; the turn of the last is gone, too.
        let there = Some((NOW, 0));
        let removals = scan.seen(&[there, there, None, there, None, None]);
        let turn = path::turn(&Turn { lane: lane(), generation: 2 }, &job(1));
        let ops = vec![
            Op::Check { path: path::record(&job(1)), version: 3 },
            Op::Delete { path: turn.clone(), version: None },
        ];
        assert_eq!(removals, [(turn, ops)]);
        assert!(matches!(scan.next(&retention, NOW), Next::Done { left: Size { names: 3, jobs: 3 }, .. }));
    }

    #[test]
    fn the_groups_of_many_parents_are_looked_for_in_requests_of_the_usual_size() {
        let retention = retention(256 * 1_000);
        let names = (0..READ).map(|n| job(n).to_string()).collect::<Vec<_>>();
        let mut scan = BucketScan::new(bucket(), 0, &names, &retention, NOW);
        let Next::Read(jobs) = scan.next(&retention, NOW) else { panic!("the records are read") };
        for (n, job) in jobs.into_iter().enumerate() {
            scan.read(job, parent(n), &retention, NOW);
        }
        for _ in 0..2 {
            let Next::Stat(paths) = scan.next(&retention, NOW) else { panic!("the groups are looked for") };
            assert_eq!(paths.len(), READ, "a group and a turn of each parent");
        }
    }

    #[test]
    fn a_large_bucket_is_read_and_emptied_in_steps() {
        let found = (0..2 * RECORDS + 1).map(|_| over(Verdict::Cancelled, 2 * MINUTE)).collect();
        let (gone, done) = scan(&retention(256 * 1_000), found);
        assert_eq!(gone.len(), 2 * RECORDS + 1);
        assert!(matches!(done, Next::Done { left: Size { names: 0, jobs: 0 }, due: None, .. }), "{done:?}");
    }

    /// An id that was generated at this time.
    fn generated(at: WallMillis) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(u128::from(at.0) << 80 | 7 << 76 | 2 << 62))
    }

    /// Returns the ids that a scan of these names reads first.
    fn read(retention: &Retention, jobs: &[JobId]) -> Vec<JobId> {
        let names = jobs.iter().map(ToString::to_string).collect::<Vec<_>>();
        match BucketScan::new(bucket(), 0, &names, retention, NOW).next(retention, NOW) {
            Next::Read(jobs) => jobs,
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_record_whose_id_is_younger_than_its_retention_is_not_read() {
        let retention = retention(256 * 100);
        let (old, young) = (generated(WallMillis(NOW.0 - MINUTE)), generated(WallMillis(NOW.0 - MINUTE + 1)));
        assert_eq!(old.generated_at(), Some(WallMillis(NOW.0 - MINUTE)));
        assert_eq!(read(&retention, &[old.clone(), young.clone(), job(1)]), [old, job(1)]);
        let mut scan = BucketScan::new(bucket(), 0, &[young.to_string()], &retention, NOW);
        let due = Some(WallMillis(NOW.0 + 1));
        assert_eq!(
            scan.next(&retention, NOW),
            Next::Done { bucket: bucket(), left: records(1), open: 0, due, removed: false }
        );
    }

    #[test]
    fn a_record_whose_id_is_of_the_future_is_read() {
        let (present, future) = (generated(NOW), generated(WallMillis(NOW.0 + 1)));
        assert_eq!(read(&retention(256 * 100), &[present, future.clone()]), [future]);
    }

    #[test]
    fn above_the_share_a_record_is_read_a_minute_after_its_id_was_generated() {
        let mut retention = retention(256);
        (retention.succeeded, retention.cancelled) = (Duration::from_secs(3_600), Duration::from_secs(3_600));
        let (old, young) = (generated(WallMillis(NOW.0 - MINUTE)), generated(WallMillis(NOW.0 - MINUTE + 1)));
        assert_eq!(read(&retention, &[old.clone(), young]), std::slice::from_ref(&old));
        assert!(read(&retention, &[old]).is_empty(), "a bucket within its share waits for the retention");
    }

    fn segment(n: u128) -> SegmentId {
        SegmentId::new(uuid::Uuid::from_u128(n), 4, 1_000).unwrap()
    }

    /// The operations of each removal of a scan, and its last step. The segments have these chunks; `None` for a segment that cannot be
    /// read.
    fn removals(jobs: usize, segments: &[Option<&[&str]>]) -> (Vec<usize>, Next) {
        let retention = retention(256 * 1_000);
        let named = (0..).zip(segments).map(|(n, _)| segment(n).job().to_string());
        let names = (0..jobs).map(|n| job(n).to_string()).chain(named).collect::<Vec<_>>();
        let mut scan = BucketScan::new(bucket(), 0, &names, &retention, NOW);
        let (mut sizes, mut listed, long_ago) = (Vec::new(), 0, WallMillis(NOW.0 - 2 * MINUTE));
        loop {
            match scan.next(&retention, NOW) {
                Next::Read(jobs) => {
                    for job in jobs {
                        scan.read(job, over(Verdict::Cancelled, 2 * MINUTE), &retention, NOW);
                    }
                }
                Next::Names(parents) => {
                    let lists = segments.iter().skip(listed).take(parents.len());
                    listed += parents.len();
                    let names = |chunks: &[&str]| chunks.iter().map(ToString::to_string).collect();
                    scan.names(lists.map(|chunks| Some(names(chunks.unwrap_or(&["sf"])))).collect());
                }
                Next::Segments(finished) => {
                    for (id, chunks) in finished {
                        let n = (0..).position(|n| segment(n) == id).unwrap();
                        let found = match segments[n] {
                            Some(_) => FoundSegment::Over(vec![(long_ago, long_ago)]),
                            None => FoundSegment::Left,
                        };
                        scan.read_segment((id, chunks), &found, &retention, NOW);
                    }
                }
                Next::Remove(removals) => {
                    sizes.push(removals.iter().map(|removal| removal.ops().len()).sum())
                }
                done @ Next::Done { .. } => return (sizes, done),
                Next::Stat(paths) => panic!("no job has sub-jobs: {paths:?}"),
            }
        }
    }

    #[test]
    fn a_removal_has_a_limited_number_of_operations() {
        assert_eq!(removals(RECORDS + 1, &[]).0, [RECORDS, 1]);
        // A segment and its four chunks.
        let segments = vec![Some(&["s1", "s2", "s4", "s8"][..]); RECORDS / 5 + 1];
        assert_eq!(removals(0, &segments).0, [RECORDS, 5]);
    }

    #[test]
    fn the_open_members_of_segments_and_all_members_of_unreadable_ones_stay() {
        let (sizes, done) = removals(0, &[Some(&["s3"]), None, Some(&["sf"])]);
        assert_eq!(sizes, [2]);
        assert!(matches!(done, Next::Done { open: 6, .. }), "{done:?}");
    }

    #[test]
    fn each_removal_expects_the_version_that_the_last_one_left() {
        let mut scan = BucketScan::new(bucket(), 4, &[], &retention(256), NOW);
        assert_eq!(scan.fence(), txn::count_removal(bucket(), 4, None));
        scan.applied();
        assert_eq!(scan.fence(), txn::count_removal(bucket(), 5, None));
    }
}
