//! What the janitor finds in ZooKeeper: two kinds of buckets, and the parts of their records that it needs. Bytes
//! that this build cannot read are never removed.

use crate::budget::SUB_BUCKETS;
use crate::group::GroupRecord;
use crate::job::{JobRecord, JobState, Turn, Verdict};
use crate::name::{GroupId, JobId};
use crate::path::{Bucket, SubBucket};
use crate::segment::{Results, Segment};
use crate::time::WallMillis;
use crate::wire;

/// The result of reading one record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// The record is absent.
    Absent,
    /// The record cannot be read, or its job is open: it stays.
    Left,
    /// The job is terminal.
    Over {
        /// The version that was read.
        version: i32,
        /// The verdict of the job.
        verdict: Verdict,
        /// When the job ended, by the clock of the process that ended it.
        at: WallMillis,
        /// When the record was last modified, by ZooKeeper's clock.
        modified: WallMillis,
        /// Whether the record is removed with a group: the job's own group, or the group of its sub-jobs.
        grouped: bool,
        /// Whether its group counts its end. A job that was retried after its group had advanced is independent of it.
        counted: bool,
        /// The group of the job's sub-jobs, if it has any.
        sub_jobs: Option<GroupId>,
        /// The job's turn in its lane, if it has a lane. A job with sub-jobs keeps its turn until their group is done.
        turn: Option<Turn>,
    },
}

/// The result of reading one group: its record, its version, and its modification time by ZooKeeper's clock. `None`
/// if the group is absent or cannot be read.
pub type FoundGroup = Option<(GroupRecord, i32, WallMillis)>;

/// The result of reading one segment whose members have all left it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FoundSegment {
    /// The segment is absent.
    Absent,
    /// The segment or a chunk cannot be read: it stays.
    Left,
    /// For each chunk, when the last of its members left by the clock of the process that wrote it, and when it was written by
    /// ZooKeeper's clock.
    Over(Vec<(WallMillis, WallMillis)>),
}

impl FoundSegment {
    /// Decodes the data of a segment, and the data and modification times of its chunks. Chunks of extracted members have no
    /// data.
    #[must_use]
    pub fn of<'a>(
        segment: Option<&[u8]>,
        chunks: impl IntoIterator<Item = Option<(&'a [u8], WallMillis)>>,
    ) -> Self {
        let Some(segment) = segment else { return Self::Absent };
        if wire::decode::<Segment>(segment).is_err() {
            return Self::Left;
        }
        let mut ends = Vec::new();
        for chunk in chunks {
            let Some((data, modified)) = chunk else { return Self::Absent };
            if data.is_empty() {
                ends.push((modified, modified));
                continue;
            }
            let Ok(results) = wire::decode::<Results>(data) else { return Self::Left };
            let at = results.results.iter().map(|(_, at, _)| *at).max().unwrap_or(modified);
            ends.push((at, modified));
        }
        Self::Over(ends)
    }
}

/// The two trees that have buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketKind {
    /// Records of jobs.
    Jobs,
    /// Groups.
    Groups,
}

impl BucketKind {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Jobs => Self::Groups,
            Self::Groups => Self::Jobs,
        }
    }

    /// Returns the path of one of its buckets. Its version counts removals.
    #[must_use]
    pub fn path(self, bucket: Bucket) -> String {
        match self {
            Self::Jobs => bucket.jobs(),
            Self::Groups => bucket.groups(),
        }
    }

    /// How many parents a bucket has.
    pub(super) const fn parents_of_each(self) -> usize {
        match self {
            Self::Jobs => SUB_BUCKETS as usize,
            Self::Groups => 1,
        }
    }

    /// Returns the parents of the records in a bucket.
    #[must_use]
    pub fn parents(self, bucket: Bucket) -> Vec<String> {
        match self {
            Self::Jobs => bucket.sub_buckets().map(SubBucket::path).collect(),
            Self::Groups => vec![bucket.groups()],
        }
    }
}

impl Found {
    /// Decodes a znode's data, version and modification time. A record that this build cannot read stays, because a
    /// newer build may read it or an operator may repair it.
    #[must_use]
    pub fn of(job: &JobId, data: &[u8], version: i32, modified: WallMillis) -> Self {
        let Ok(record) = wire::decode::<JobRecord>(data) else { return Self::Left };
        let grouped = record.membership.is_some() || record.spawned;
        let counted = record.membership.as_ref().is_some_and(|part| part.counted);
        let sub_jobs = record.spawned.then(|| GroupId::of_sub_jobs(job, &record));
        let turn = record.turn();
        match record.state {
            JobState::Terminal { verdict, at } => {
                Self::Over { version, verdict, at, modified, grouped, counted, sub_jobs, turn }
            }
            JobState::Open { .. } => Self::Left,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::job::{Payload, Placement, Policy, Priority};
    use crate::name::{Kind, WorkerId};
    use crate::segment::{Head, Member};

    #[test]
    fn a_record_with_sub_jobs_counts_as_grouped_although_it_is_no_member() {
        let (kind, job) = (Kind::new("sum").unwrap(), JobId::new("j").unwrap());
        let record = JobRecord::new(kind, Payload::json(*b"{}").unwrap(), Uuid::nil(), WallMillis(1))
            .cancel(WallMillis(2));
        for spawned in [false, true] {
            let record = JobRecord { spawned, ..record.clone() };
            let found = Found::of(&job, &wire::encode(&record), 3, WallMillis(4));
            let Found::Over { version: 3, grouped, counted: false, sub_jobs, .. } = found else {
                panic!("{found:?}")
            };
            assert_eq!((grouped, sub_jobs.is_some()), (spawned, spawned));
        }
    }

    #[test]
    fn a_bucket_has_one_path_and_its_parents_per_kind_of_record() {
        let bucket = Bucket::all().last().unwrap();
        let kinds = [BucketKind::Jobs, BucketKind::Groups];
        assert_eq!(kinds.map(|kind| kind.path(bucket)), ["/jobs/ff", "/groups/ff"]);
        let parents = kinds.map(|kind| kind.parents(bucket));
        assert_eq!(parents.each_ref().map(Vec::len), kinds.map(BucketKind::parents_of_each));
        assert_eq!(parents.map(|all| all.last().cloned().unwrap()), ["/jobs/ff/f", "/groups/ff"]);
    }

    #[test]
    fn a_finished_segment_has_the_ends_of_its_chunks() {
        let (worker, result) = (WorkerId::new(Uuid::nil()), Payload::json(*b"9").unwrap());
        let results = [(0, WallMillis(7), result.clone()), (1, WallMillis(5), result)];
        let results = Results { worker, assigned_at: WallMillis(3), results: results.to_vec() };
        let head = Head {
            kind: Kind::new("sum").unwrap(),
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::HIGHEST,
            submitted_at: WallMillis(1),
            part: 0,
            token: Uuid::nil(),
        };
        let member = Member { payload: Payload::json(*b"1").unwrap(), trace: None };
        let segment = wire::encode(&Segment { head, members: vec![member; 4] });
        let results = wire::encode(&results);
        let (succeeded, extracted) = ((results.as_slice(), WallMillis(9)), (&[][..], WallMillis(8)));
        let of = |segment, chunks: &[Option<(&[u8], WallMillis)>]| {
            FoundSegment::of(segment, chunks.iter().copied())
        };
        let both = [Some(succeeded), Some(extracted)];
        let ends = vec![(WallMillis(7), WallMillis(9)), (WallMillis(8), WallMillis(8))];
        assert_eq!(of(Some(&segment), &both), FoundSegment::Over(ends));
        assert_eq!(of(Some(&segment), &[Some((&b"?"[..], WallMillis(9)))]), FoundSegment::Left);
        assert_eq!(of(Some(b"?"), &both), FoundSegment::Left);
        assert_eq!(of(Some(&segment), &[None]), FoundSegment::Absent);
        assert_eq!(of(None, &both), FoundSegment::Absent);
    }
}
