//! What waits in the queue, as the leader knows it.
//!
//! The job watcher feeds this machine hints (a watch reported a creation or a deletion under `/queue`) and
//! facts (a bucket was listed, entries were read), and gets back which entries to read and what to tell the
//! assigner. Hints arrive in the server's order; reads and lists overtake each other and them, so:
//!
//! * a read carries a ticket, and its answer counts only while the job's latest read has that ticket: a job
//!   that was deleted, or deleted and queued again, meanwhile does not come back with its old entry;
//! * a list carries the round in which it was asked for, and forgets only jobs that were known before: a job
//!   that was created after the list was made is not forgotten because the list lacks it.
//!
//! | state \ event | created | deleted | listed | not listed | read: entry | read: absent, unreadable | read failed |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | unknown | read it | – | read it | – | stale, drop | stale, drop | – |
//! | reading | read again | forget | keep | keep, the read tells | tell queued | forget | read again |
//! | queued | read again | tell unqueued, forget | keep; after a new watch, tell unqueued and read again | tell unqueued, forget | stale, drop | stale, drop | – |
//!
//! Recovery: after a reconnection everything is listed again in a new round, and what was queued before and is listed
//! is read again: it may have gone (assigned by a write whose reply was lost) and come again (failed and promoted) while
//! nobody watched, and the assigner has forgotten it then. A sweep lists, too, and keeps what is known. Limits:
//! [`READ_WINDOW`] reads in flight of [`MAX_READ_BATCH`] entries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::by_job::ByJob;
use crate::budget::MAX_READ_BATCH;
use crate::job::QueueEntry;
use crate::name::JobId;
use crate::path::Bucket;

/// Reads in flight: two keep the server busy while one is handled here; more only queue there.
pub const READ_WINDOW: usize = 4;

/// A job with its entry.
pub type Queued = (JobId, QueueEntry);

/// What the watcher saw.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch reported a new entry.
    Created(JobId),
    /// A watch reported that an entry is gone.
    Deleted(JobId),
    /// The watch was set anew: what went and came before is unknown, so an entry that is listed may be another than the
    /// one that was read. A [`Event::Resync`] follows.
    Watched,
    /// Everything is about to be listed again.
    Resync,
    /// A bucket was listed in the present round.
    Listed {
        /// Which.
        bucket: Bucket,
        /// The round that was current when the list was asked for.
        round: u32,
        /// What it holds.
        jobs: Vec<JobId>,
    },
    /// A read was answered: each of its jobs, in any order; `None` is absent or unreadable.
    Read {
        /// The read's ticket.
        ticket: u64,
        /// The answers.
        entries: Vec<(JobId, Option<QueueEntry>)>,
    },
    /// A read was not answered: these jobs are read again when reads are served again.
    ReadFailed {
        /// The read's ticket.
        ticket: u64,
        /// Its jobs.
        jobs: Vec<JobId>,
    },
}

/// What the watcher shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these entries in one request.
    Read {
        /// To be handed back with the answer.
        ticket: u64,
        /// At most [`MAX_READ_BATCH`].
        jobs: Vec<JobId>,
    },
    /// These jobs wait for a worker.
    Queued(Vec<Queued>),
    /// This job waits no longer: assigned, cancelled, or taken away.
    Unqueued(JobId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum QueueEntryState {
    /// To be read, or being read under the ticket.
    Reading { ticket: Option<u64>, round: u32 },
    /// The assigner knows it.
    Queued { round: u32 },
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct JobWatcher {
    /// By bucket, since buckets are listed one by one. None is empty.
    jobs: BTreeMap<Bucket, ByJob<QueueEntryState>>,
    to_read: VecDeque<JobId>,
    reads: usize,
    halted: bool,
    round: u32,
    /// What is known of before this round may have gone and come again unseen.
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

    /// The round that a list asked for now belongs to.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// How many jobs are known to wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.values().map(ByJob::len).sum()
    }

    /// Whether none is.
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
            // Known since the list was asked for, or its read will tell.
            QueueEntryState::Queued { .. } | QueueEntryState::Reading { .. } => None,
        });
        let mut gone = older.collect::<BTreeSet<_>>();
        let unseen = self.unseen;
        for job in listed {
            gone.remove(&job);
            match self.state(&job) {
                // The assigner may take it for assigned: by the entry that is there now it waits again.
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
                // A later read will tell, or has told.
                QueueEntryState::Reading { .. } | QueueEntryState::Queued { .. } => {}
            }
        }
        if !queued.is_empty() {
            out.push(Effect::Queued(queued));
        }
    }

    /// Asks for what is to be read: at once when nothing is in flight, by full batches while something is.
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
                // Deleted meanwhile, or asked for under an earlier place in the line.
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
