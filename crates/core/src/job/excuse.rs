//! Losses that are excused: the process of the lost worker is alive, so no job has killed it.
//!
//! A worker's session may expire while its process lives: after a partition, a freeze or an outage. The leader must close
//! the attempts before the process can register again (L2), so it counts a loss and the record keeps the worker's id. When
//! the record is next written by a process that knows a registration with this former id, the loss is taken back. Only the
//! write that closes an attempt does this: the version of the record is the fencing token of an open attempt, so a write in
//! between would turn the attempt into a zombie.
//!
//! | closed by | knows the former ids of |
//! | --- | --- |
//! | recovery | every process whose registration the leader has read in its term |
//! | worker | its own process |
//! | lease watcher | none |
//!
//! Until then the loss counts for the backoff and the isolation of the job, which is safe and only costs time. The end of a
//! job is final: its losses are not excused any more.
//!
//! A lost reply needs no care: the excuse is a part of the closing transaction.

use super::JobRecord;
use crate::budget::{MAX_EXCUSED_LOSSES, MAX_FORMER_IDS};
use crate::name::WorkerId;

impl JobRecord {
    /// Takes back the losses of workers whose process is alive, at most [`MAX_EXCUSED_LOSSES`] in a generation. Call it
    /// before [`JobRecord::close`].
    #[must_use]
    pub fn excuse(mut self, survived: impl Fn(&WorkerId) -> bool) -> Self {
        self.lost_workers.retain(|worker| {
            let excused = self.excused < MAX_EXCUSED_LOSSES && survived(worker);
            if excused {
                self.excused += 1;
                self.losses -= 1;
            }
            !excused
        });
        self
    }

    /// Records the worker of a loss. The record keeps as many ids as a registration can name.
    pub(super) fn suspect(&mut self, worker: WorkerId) {
        self.lost_workers.push(worker);
        self.lost_workers.drain(..self.lost_workers.len().saturating_sub(MAX_FORMER_IDS));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use crate::budget::{MAX_EXCUSED_LOSSES, MAX_FORMER_IDS};
    use crate::job::{Attempt, Ending, Isolation, JobRecord, Next, Payload, Policy};
    use crate::name::{Kind, WorkerId};
    use crate::time::WallMillis;

    fn worker(n: u32) -> WorkerId {
        WorkerId::new(Uuid::from_u128(n.into()))
    }

    fn job(max_losses: u32) -> JobRecord {
        let (kind, payload) = (Kind::new("sum").unwrap(), Payload::json(*b"{}").unwrap());
        JobRecord {
            policy: Policy { max_losses, ..Policy::default() },
            ..JobRecord::new(kind, payload, Uuid::from_u128(1), WallMillis(0))
        }
    }

    /// Closes the next attempt, on the worker with its number.
    fn end(record: JobRecord, ending: Ending) -> (JobRecord, Next) {
        let number = record.attempts + 1;
        record.close(Attempt { number, worker: worker(number) }, ending, WallMillis(1_000), 0)
    }

    /// S20
    #[test]
    fn losses_of_a_process_that_is_alive_never_end_a_job_and_are_not_shown() {
        let mut record = job(3);
        for n in 1..=MAX_EXCUSED_LOSSES {
            let (lost, next) = end(record.excuse(|_| true), Ending::Lost);
            assert!(matches!(next, Next::Delay(_)), "loss {n}: {lost:?}");
            assert_eq!((lost.losses, lost.excused, lost.isolation()), (1, n - 1, Isolation::Apart));
            record = lost;
        }
        let (over, _) = end(record.excuse(|_| true), Ending::Cancelled);
        assert_eq!((over.losses, over.excused, over.lost_workers), (0, MAX_EXCUSED_LOSSES, vec![]));
    }

    /// S20: a job that freezes its own process.
    #[test]
    fn a_job_whose_losses_are_all_excused_is_dead_after_a_bounded_number() {
        let (mut record, mut losses) = (job(3), 0);
        while !record.is_terminal() {
            record = end(record.excuse(|_| true), Ending::Lost).0;
            losses += 1;
        }
        assert_eq!(losses, MAX_EXCUSED_LOSSES + 3);
    }

    #[test]
    fn only_losses_of_workers_that_survived_are_excused() {
        let (record, _) = end(job(9), Ending::Lost);
        let (record, _) = end(record, Ending::LeaseExpired);
        let (record, _) = end(record, Ending::Lost);
        let excused = record.clone().excuse(|lost| *lost != worker(3));
        assert_eq!((excused.losses, excused.excused, excused.lost_workers), (2, 1, vec![worker(3)]));
        let all = record.excuse(|_| true);
        assert_eq!((all.losses, all.excused), (1, 2), "an expired lease is not excused");
    }

    #[test]
    fn a_new_generation_begins_without_losses_to_excuse() {
        let (record, _) = end(job(9), Ending::Lost);
        let (record, _) = end(record.excuse(|_| true), Ending::Lost);
        let fresh = record.cancel(WallMillis(2_000)).reopen();
        assert_eq!((fresh.losses, fresh.excused, fresh.lost_workers), (0, 0, vec![]));
    }

    proptest! {
        /// S9: the counts explain each attempt, and never exceed the limit.
        #[test]
        fn each_loss_is_counted_or_excused(ends in prop::collection::vec((any::<bool>(), any::<u8>()), 1..60)) {
            let (mut record, mut losses) = (job(20), 0);
            for (lost, survivors) in ends {
                if record.is_terminal() {
                    break;
                }
                let survived = |id: &WorkerId| (id.uuid().as_u128() % 8).count_ones() <= u32::from(survivors) % 4;
                record = end(record.excuse(survived), if lost { Ending::Lost } else { Ending::Released }).0;
                losses += u32::from(lost);
                prop_assert_eq!(record.losses + record.excused, losses);
                prop_assert!(record.losses <= 20 && record.excused <= MAX_EXCUSED_LOSSES);
                prop_assert!(record.lost_workers.len() <= MAX_FORMER_IDS);
                prop_assert!(record.lost_workers.len() <= usize::try_from(record.losses).unwrap());
            }
        }
    }
}
