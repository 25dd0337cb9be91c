//! Where the entry of a record is.

use super::{Class, ClassName, Rank, RecordEntry, Slot, rank};
use crate::job::{Isolation, JobRecord, Placement, QueueEntry};
use crate::name::JobId;
use crate::time::WallMillis;

/// The place of a record's entry: everything in its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyEntry {
    /// The class of the job.
    pub class: ClassName,
    /// The slot of the class.
    pub slot: Slot,
    /// The name in the slot.
    pub name: RecordEntry,
}

/// A job that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// Where its entry is.
    pub at: ReadyEntry,
    /// What the entry says.
    pub entry: QueueEntry,
}

impl Waiting {
    /// A job with this entry.
    #[must_use]
    pub fn new(job: &JobId, entry: QueueEntry) -> Self {
        Self { at: ReadyEntry::of(job, &entry), entry }
    }
}

impl ReadyEntry {
    /// The place of this entry of a job.
    #[must_use]
    pub fn of(job: &JobId, entry: &QueueEntry) -> Self {
        let QueueEntry { attempt, generation, .. } = *entry;
        let rank = rank(entry.priority, entry.submitted_at);
        Self {
            class: Class::of(&entry.kind, &entry.placement).name(),
            slot: Slot::of(rank, entry.part),
            name: RecordEntry {
                millis: rank.millis(),
                priority: entry.priority,
                job: job.clone(),
                generation,
                attempt,
                has_data: !is_plain(entry),
            },
        }
    }

    /// The place of the entry of an open job that waits without a delay, or whose delay has ended.
    #[must_use]
    pub fn of_record(job: &JobId, record: &JobRecord) -> Self {
        // The version does not matter unless the first attempt waits: then only a release has set the record.
        Self::of(job, &record.entry(i32::from(record.released)))
    }

    /// Its job.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.name.job
    }

    /// Its rank.
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank::at(self.slot, self.name.millis)
    }

    /// Since when the job could run.
    #[must_use]
    pub fn waits_since(&self) -> WallMillis {
        self.rank().waits_since(self.name.priority)
    }

    /// What an entry without data says. `None` if the znode must be read.
    #[must_use]
    pub fn plain(&self) -> Option<QueueEntry> {
        let kind = self.class.kind_alone().filter(|_| !self.name.has_data)?;
        Some(QueueEntry {
            priority: self.name.priority,
            submitted_at: self.waits_since(),
            part: self.slot.part,
            ..QueueEntry::new(kind, self.name.attempt, self.name.generation)
        })
    }
}

/// Whether the path of an entry says everything: the first attempt of a job without special wishes. The record is as it was
/// submitted, so its version is 0.
fn is_plain(entry: &QueueEntry) -> bool {
    let QueueEntry {
        kind: _,
        attempt,
        generation,
        fencing_token,
        placement: Placement { tags, affinity, lane },
        not_before: _,
        priority: _,
        submitted_at: _,
        part: _,
        expires_at,
        lease,
        isolation,
        trace,
    } = entry;
    (*attempt, *generation, *fencing_token, *isolation) == (1, 1, 0, Isolation::Shared)
        && tags.is_empty()
        && affinity.is_none()
        && lane.is_none()
        && expires_at.is_none()
        && lease.is_none()
        && trace.is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::job::{Attempt, Ending, Payload, Priority};
    use crate::name::{AffinityKey, Kind, Lane, Tag, WorkerId};

    fn job() -> JobId {
        JobId::new("a").unwrap()
    }

    fn record() -> JobRecord {
        let kind = Kind::new("sum").unwrap();
        let token = Uuid::from_u128(7);
        JobRecord::new(kind, Payload::json(*b"1").unwrap(), token, WallMillis(1_700_000_000_123))
    }

    #[test]
    fn the_path_of_a_plain_first_attempt_says_everything() {
        let at = ReadyEntry::of_record(&job(), &record());
        assert_eq!(crate::path::ready_entry(&at), "/ready/0/sum/28333033/201235a+1.1");
        assert_eq!(at.plain(), Some(record().entry(0)));
        assert_eq!(at.rank(), rank(record().priority, record().submitted_at));
    }

    #[test]
    fn an_entry_with_more_than_its_path_says_has_data() {
        let plain = record().entry(0);
        let placed = |placement| QueueEntry { placement, ..plain.clone() };
        for entry in [
            QueueEntry { attempt: 2, ..plain.clone() },
            QueueEntry { generation: 2, ..plain.clone() },
            QueueEntry { fencing_token: 1, ..plain.clone() },
            QueueEntry { expires_at: Some(WallMillis(9)), ..plain.clone() },
            QueueEntry { lease: Some(Duration::from_secs(9)), ..plain.clone() },
            QueueEntry { isolation: Isolation::Apart, ..plain.clone() },
            QueueEntry { trace: crate::trace::TraceContext::new([1; 16], [2; 8], 1).ok(), ..plain.clone() },
            placed(Placement { tags: vec![Tag::new("gpu").unwrap()], ..Placement::default() }),
            placed(Placement { affinity: AffinityKey::new("k").ok(), ..Placement::default() }),
            placed(Placement { lane: Lane::new("l").ok(), ..Placement::default() }),
        ] {
            let at = ReadyEntry::of(&job(), &entry);
            assert!(at.name.has_data && at.plain().is_none(), "{entry:?}");
        }
        let urgent = QueueEntry { priority: Priority::HIGHEST, part: 3, ..plain };
        assert_eq!(ReadyEntry::of(&job(), &urgent).plain(), Some(urgent));
    }

    /// Clients find the entry with the record alone, at any version.
    #[test]
    fn the_record_gives_the_place_that_each_transaction_uses() {
        let attempt = Attempt { number: 1, worker: WorkerId::new(Uuid::nil()) };
        let ends = [
            Ending::Failed("no".into()),
            Ending::Lost,
            Ending::Released,
            Ending::Snoozed(Duration::from_secs(5)),
        ];
        let again = ends.map(|end| record().close(attempt, end, WallMillis(1_700_000_009_000), 3).0);
        let released = JobRecord { released: true, ..record() };
        let cancelled = record().cancel(WallMillis(5)).reopen();
        for (record, version) in
            again.into_iter().map(|record| (record, 1)).chain([(released, 1), (cancelled, 2)])
        {
            let at = ReadyEntry::of_record(&job(), &record);
            assert_eq!(at, ReadyEntry::of(&job(), &record.entry(version)));
            assert!(at.name.has_data, "{record:?}");
        }
        assert_eq!(ReadyEntry::of_record(&job(), &record()), ReadyEntry::of(&job(), &record().entry(0)));
    }
}
