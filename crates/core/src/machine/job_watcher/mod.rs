//! Tracks the waiting jobs of the queue for the leader.
//!
//! The actor feeds this machine hints (a watch reported a creation or a deletion under `/queue`) and facts (a bucket
//! was listed, entries were read). The machine decides which entries to read and what to report to the assigner. Hints
//! arrive in the server's order, but reads, lists and hints can overtake each other. Therefore:
//!
//! * A read carries a ticket. Its answer counts only while the ticket is that of the job's latest read: a job that was
//!   deleted, or deleted and queued again, in the meantime does not return with its old entry.
//! * A list carries the round in which it was requested, and forgets only jobs known before that: a job created after
//!   the list was made is not forgotten because the list lacks it.
//!
//! | state \ event | created | deleted | listed | not listed | read: entry | read: absent, unreadable | read failed |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | unknown | read it | – | read it | – | stale, drop | stale, drop | – |
//! | reading | read again | forget | keep | keep, the read decides | report queued | forget | read again |
//! | queued | read again | report unqueued, forget | keep; after a new watch, report unqueued and read again | report unqueued, forget | stale, drop | stale, drop | – |
//!
//! Recovery: after a reconnection everything is listed again in a new round, and jobs that were queued before and are
//! listed are read again. While the watch was lost, such a job may have left the queue (assigned by a write whose reply
//! was lost) and returned (failed and promoted), and then the assigner has forgotten it. A sweep lists as well, and
//! keeps the known jobs. Limits: [`READ_WINDOW`] reads in flight of [`MAX_READ_BATCH`] entries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::by_job::ByJob;
use crate::budget::MAX_READ_BATCH;
use crate::job::QueueEntry;
use crate::name::JobId;
use crate::path::Bucket;

/// Reads in flight: two keep the server busy while one is handled here; more would only wait there.
pub const READ_WINDOW: usize = 4;

/// A job with its entry.
pub type Queued = (JobId, QueueEntry);

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch reported a new entry.
    Created(JobId),
    /// A watch reported that an entry was deleted.
    Deleted(JobId),
    /// The watch was set again: earlier changes are unknown, so a listed entry may differ from the one that was read.
    /// An [`Event::Resync`] follows.
    Watched,
    /// All buckets will be listed again.
    Resync,
    /// A bucket was listed in the current round.
    Listed {
        /// The bucket.
        bucket: Bucket,
        /// The round in which the list was requested.
        round: u32,
        /// The jobs in the bucket.
        jobs: Vec<JobId>,
    },
    /// A read was answered, with its jobs in any order; `None` is absent or unreadable.
    Read {
        /// The read's ticket.
        ticket: u64,
        /// The answers.
        entries: Vec<(JobId, Option<QueueEntry>)>,
    },
    /// A read was not answered: these jobs are read again after the next resync.
    ReadFailed {
        /// The read's ticket.
        ticket: u64,
        /// Its jobs.
        jobs: Vec<JobId>,
    },
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these entries in one request.
    Read {
        /// Returned with the answer.
        ticket: u64,
        /// At most [`MAX_READ_BATCH`].
        jobs: Vec<JobId>,
    },
    /// These jobs wait for a worker.
    Queued(Vec<Queued>),
    /// This job no longer waits: assigned, cancelled, or deleted.
    Unqueued(JobId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum QueueEntryState {
    /// Waiting for a read, or being read under the ticket.
    Reading { ticket: Option<u64>, round: u32 },
    /// Reported to the assigner.
    Queued { round: u32 },
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct JobWatcher {
    /// By bucket, because buckets are listed one by one. No bucket is empty.
    jobs: BTreeMap<Bucket, ByJob<QueueEntryState>>,
    to_read: VecDeque<JobId>,
    reads: usize,
    halted: bool,
    round: u32,
    /// Entries known before this round may have been deleted and created again without being seen.
    unseen: u32,
    last_ticket: u64,
}

impl JobWatcher {
    /// Handles one event.
    pub fn handle(&mut self, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Created(job) => self.want(job),
            Event::Deleted(job) => {
                if let Some(QueueEntryState::Queued { .. }) = self.remove(&job) {
                    out.push(Effect::Unqueued(job));
                }
            }
            Event::Watched => self.unseen = self.round + 1,
            Event::Resync => {
                self.round += 1;
                self.halted = false;
            }
            Event::Listed { bucket, round, jobs } => self.listed(bucket, round, jobs, out),
            Event::Read { ticket, entries } => {
                self.reads -= 1;
                self.read(ticket, entries, out);
            }
            Event::ReadFailed { ticket, jobs } => {
                self.reads -= 1;
                self.halted = true;
                for job in jobs {
                    if let Some(QueueEntryState::Reading { ticket: Some(latest), .. }) = self.state(&job)
                        && *latest == ticket
                    {
                        self.want(job);
                    }
                }
            }
        }
        self.ask(out);
    }

    /// Returns the round of a list that is requested now.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the number of known jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.values().map(ByJob::len).sum()
    }

    /// Returns whether no job is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn state(&mut self, job: &JobId) -> Option<&mut QueueEntryState> {
        self.jobs.get_mut(&Bucket::of(job))?.get_mut(job)
    }

    fn remove(&mut self, job: &JobId) -> Option<QueueEntryState> {
        let bucket = Bucket::of(job);
        let jobs = self.jobs.get_mut(&bucket)?;
        let state = jobs.remove(job);
        if jobs.is_empty() {
            self.jobs.remove(&bucket);
        }
        state
    }

    fn want(&mut self, job: JobId) {
        let state = QueueEntryState::Reading { ticket: None, round: self.round };
        let before = self.jobs.entry(Bucket::of(&job)).or_default().insert(job.clone(), state);
        if before != Some(state) {
            self.to_read.push_back(job);
        }
    }

    fn listed(&mut self, bucket: Bucket, round: u32, listed: Vec<JobId>, out: &mut Vec<Effect>) {
        let known = self.jobs.get(&bucket).into_iter().flat_map(ByJob::iter);
        let older = known.filter_map(|(job, state)| match state {
            QueueEntryState::Queued { round: since } if *since < round => Some(job.clone()),
            // Known since the list was requested, or its read decides.
            QueueEntryState::Queued { .. } | QueueEntryState::Reading { .. } => None,
        });
        let mut gone = older.collect::<BTreeSet<_>>();
        let unseen = self.unseen;
        for job in listed {
            gone.remove(&job);
            match self.state(&job) {
                // The assigner may consider the job assigned; report it again with its current entry.
                Some(QueueEntryState::Queued { round: since }) if *since < unseen && *since < round => {
                    out.push(Effect::Unqueued(job.clone()));
                    self.want(job);
                }
                Some(
                    QueueEntryState::Queued { round: since } | QueueEntryState::Reading { round: since, .. },
                ) => {
                    *since = round;
                }
                None => self.want(job),
            }
        }
        for job in gone {
            self.remove(&job);
            out.push(Effect::Unqueued(job));
        }
    }

    fn read(&mut self, ticket: u64, entries: Vec<(JobId, Option<QueueEntry>)>, out: &mut Vec<Effect>) {
        let mut queued = Vec::with_capacity(entries.len());
        for (job, entry) in entries {
            let Some(state) = self.state(&job) else { continue };
            match *state {
                QueueEntryState::Reading { ticket: Some(latest), round } if latest == ticket => match entry {
                    Some(entry) => {
                        *state = QueueEntryState::Queued { round };
                        queued.push((job, entry));
                    }
                    None => {
                        self.remove(&job);
                    }
                },
                // A later read decides, or has decided.
                QueueEntryState::Reading { .. } | QueueEntryState::Queued { .. } => {}
            }
        }
        if !queued.is_empty() {
            out.push(Effect::Queued(queued));
        }
    }

    /// Sends reads: immediately when no other is in flight, otherwise only full batches.
    fn ask(&mut self, out: &mut Vec<Effect>) {
        while !self.halted
            && !self.to_read.is_empty()
            && (self.reads == 0 || (self.reads < READ_WINDOW && self.to_read.len() >= MAX_READ_BATCH))
        {
            self.last_ticket += 1;
            let ticket = self.last_ticket;
            let mut jobs = Vec::with_capacity(self.to_read.len().min(MAX_READ_BATCH));
            while jobs.len() < MAX_READ_BATCH
                && let Some(job) = self.to_read.pop_front()
            {
                // Skip a job that was deleted, or read from an earlier queue position.
                if let Some(QueueEntryState::Reading { ticket: mine @ None, .. }) = self.state(&job) {
                    *mine = Some(ticket);
                    jobs.push(job);
                }
            }
            if !jobs.is_empty() {
                self.reads += 1;
                out.push(Effect::Read { ticket, jobs });
            }
        }
    }
}

#[cfg(test)]
mod tests;
