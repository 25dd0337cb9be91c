//! Watches a worker's inbox: decides which jobs to read and which to hand to the executor.
//!
//! Watch events and lists are hints: they only cause the machine to *read* a job, and the read decides.
//!
//! | read, not handed out | decision |
//! | --- | --- |
//! | assignment and open record that agree | hand it out, once |
//! | no assignment | nothing; if a watch had reported it, the leader revoked it before it was read |
//! | record terminal or absent | the assignment is stale: discard it |
//! | open record of another attempt | the leader assigned from outdated data: [hand it back](Requeue) without a run |
//! | record or assignment unreadable | quarantine; the record stays unchanged |
//!
//! | read, handed out | decision |
//! | --- | --- |
//! | same attempt, cancel flag | report the cancel to the executor |
//! | no assignment, or another attempt | another process closed it: a zombie, if it still runs |
//!
//! A read is discarded and sent again if a hint arrives or the attempt is closed while it is in flight. So a job never
//! starts from data older than the close of its last attempt. An [old](BELIEVED) answer is discarded, too: while the
//! worker hung, the id may have been reused by another job.
//!
//! **A segment** is handed out as all of its members. A member has no own assignment until it is extracted, so it is not read
//! before a watch has reported one.
//!
//! Limits: [`READ_JOBS`] jobs, or segments of [`MAX_PACKED`] members and [`MAX_TXN_BYTES`], per read; [`READ_WINDOW`] reads in flight;
//! sent immediately when no read is in flight.

mod requeue;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{BELIEVED, Connectivity, Found, Lookup, Packed, Start};
use crate::budget::{MAX_READ_BATCH, MAX_TXN_BYTES};
use crate::job::{Assignment, AttemptKey};
use crate::name::JobId;
use crate::segment::{MAX_PACKED, MemberId, Segment, SegmentId};
use crate::time::Millis;

pub use requeue::Requeue;

/// Jobs per read: an assignment and a record each.
pub const READ_JOBS: usize = MAX_READ_BATCH / 2;

/// Reads in flight: one on the network, one in the server, two queued.
pub const READ_WINDOW: usize = 4;

/// How late the event of a watch may come.
const LATE_EVENTS: Duration = Duration::from_secs(10);

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The complete list of the inbox.
    Listed(Vec<JobId>),
    /// Assignments of these jobs were created.
    Created(Vec<JobId>),
    /// Assignments of these jobs were set.
    Changed(Vec<JobId>),
    /// Assignments of these jobs were deleted.
    Deleted(Vec<JobId>),
    /// A read was answered.
    Read(Vec<(JobId, Found)>),
    /// Segments were read: the assignment and the data of each.
    SegmentsRead(Vec<(JobId, Lookup<Assignment>, Lookup<Segment>)>),
    /// A read was not answered: the next list causes another read.
    ReadFailed(Vec<JobId>),
    /// The executor no longer holds these jobs: their attempts are closed.
    Closed(Vec<JobId>),
    /// The executor asks whether its attempt of this job is still assigned.
    Recheck(JobId),
    /// A hand-back was rejected; this one replaces it.
    Refused(Box<Requeue>),
    /// The connection is lost: send nothing.
    Hold,
    /// The connection is back; a list follows.
    Resume,
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these jobs in one request.
    Read(Vec<JobId>),
    /// Read the assignments and the data of these segments in one request.
    ReadSegments(Vec<JobId>),
    /// Hand the members of this segment to the executor.
    StartSegment(Box<Packed>),
    /// Hand this attempt to the executor.
    Start(Box<Start>),
    /// Report a client's cancel to the executor.
    Cancel {
        /// The job.
        job: JobId,
        /// The attempt number.
        attempt: u32,
        /// The assignment with the flag.
        assignment: Assignment,
        /// Its version.
        version: i32,
    },
    /// Report to the executor that this assignment was deleted; expected if the executor has reported the job.
    Vanished(JobId),
    /// Report to the executor that this attempt was closed by another process.
    Zombie(JobId, u32),
    /// The job was assigned and removed before it was handed out: the leader may consider this worker hung.
    Missed(JobId),
    /// Move the job to quarantine.
    Quarantine {
        /// The job.
        job: JobId,
        /// The reason.
        note: String,
    },
    /// Close the record's current attempt without a run, and requeue the job.
    Requeue(Box<Requeue>),
    /// Remove a stale assignment.
    Discard {
        /// The job.
        job: JobId,
        /// The assignment's version.
        assignment: i32,
        /// The record's version; `None` if the record is absent.
        record: Option<i32>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Entry {
    handed: Option<Handed>,
    reading: Reading,
    /// When the read in flight was sent.
    asked: Millis,
    /// A watch reported its creation, by another process.
    came: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Handed {
    attempt: AttemptKey,
    /// Whether the job was assigned again in the meantime, and must be read again after the close.
    assigned_again: bool,
    /// Whether it is a member of a segment that is not known to be extracted.
    is_packed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Reading {
    #[default]
    No,
    Queued,
    InFlight,
    /// The read in flight may be outdated.
    InFlightOutdated,
}

/// State machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InboxWatcher {
    entries: BTreeMap<JobId, Entry>,
    queue: VecDeque<JobId>,
    in_flight: usize,
    connectivity: Connectivity,
    begun: Begun,
}

/// The segments that were handed out in the last [`LATE_EVENTS`]. Watch events and replies to writes come through different tasks: this
/// worker may have extracted and closed a member before the event of the extraction comes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Begun(VecDeque<(Millis, SegmentId)>);

impl Begun {
    fn add(&mut self, now: Millis, segment: SegmentId) {
        let late = self.0.iter().take_while(|(at, _)| now.since(*at) >= LATE_EVENTS).count();
        self.0.drain(..late);
        self.0.push_back((now, segment));
    }

    fn is_of(&self, now: Millis, job: &JobId) -> bool {
        let is_it = |of: SegmentId| self.0.iter().any(|(at, id)| *id == of && now.since(*at) < LATE_EVENTS);
        MemberId::of_job(job).is_some_and(|member| is_it(member.segment))
    }
}

impl Default for InboxWatcher {
    fn default() -> Self {
        Self::new()
    }
}

impl InboxWatcher {
    /// Creates the machine without jobs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            queue: VecDeque::new(),
            in_flight: 0,
            connectivity: Connectivity::Up,
            begun: Begun::default(),
        }
    }

    /// Returns the number of jobs held by the executor.
    #[must_use]
    pub fn handed(&self) -> usize {
        self.entries.values().filter(|entry| entry.handed.is_some()).count()
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Listed(jobs) => self.listed(jobs),
            Event::Created(jobs) => jobs.into_iter().for_each(|job| self.created(now, job)),
            Event::Changed(jobs) => jobs.into_iter().for_each(|job| self.want(job)),
            Event::Deleted(jobs) => {
                // A job that is not handed out was never read, or its read will find it absent.
                let handed = |job: &JobId| self.entries.get(job).is_some_and(|entry| entry.handed.is_some());
                out.extend(jobs.into_iter().filter(handed).map(Effect::Vanished));
            }
            Event::Read(found) => {
                self.in_flight -= 1;
                for (job, found) in found {
                    self.read(now, job, found, out);
                }
            }
            Event::SegmentsRead(found) => {
                self.in_flight -= 1;
                for (job, assignment, segment) in found {
                    self.segment_read(now, job, assignment, segment, out);
                }
            }
            Event::ReadFailed(jobs) => {
                self.in_flight -= 1;
                jobs.into_iter().for_each(|job| self.unread(job));
            }
            Event::Closed(jobs) => jobs.into_iter().for_each(|job| self.closed(job)),
            Event::Recheck(job) => self.want(job),
            Event::Refused(requeue) => self.again(now, requeue, out),
            Event::Hold => self.connectivity = Connectivity::Down,
            Event::Resume => self.connectivity = Connectivity::Up,
        }
        self.send(now, out);
    }

    /// Reads all listed and all known jobs, because watch events may have been lost.
    fn listed(&mut self, jobs: Vec<JobId>) {
        let known = self.entries.iter().filter(|(job, entry)| {
            entry.handed.is_none_or(|handed| !handed.is_packed && SegmentId::of_job(job).is_none())
        });
        let known: Vec<JobId> = known.map(|(job, _)| job.clone()).collect();
        jobs.into_iter().chain(known).for_each(|job| self.want(job));
    }

    fn created(&mut self, now: Millis, job: JobId) {
        match self.entries.get_mut(&job) {
            // For a member, its extraction: the attempt continues. But if it was handed back instead, this may be a later
            // assignment, which has the same attempt.
            Some(Entry { handed: Some(handed), .. }) => {
                (handed.is_packed, handed.assigned_again) = (false, true);
            }
            Some(Entry { handed: None, .. }) | None => {
                self.want(job.clone());
                if let Some(entry) = self.entries.get_mut(&job) {
                    entry.came = !self.begun.is_of(now, &job);
                }
            }
        }
    }

    fn want(&mut self, job: JobId) {
        let entry = self.entries.entry(job.clone()).or_default();
        entry.reading = match entry.reading {
            Reading::No => {
                self.queue.push_back(job);
                Reading::Queued
            }
            Reading::Queued => Reading::Queued,
            Reading::InFlight | Reading::InFlightOutdated => Reading::InFlightOutdated,
        };
    }

    fn closed(&mut self, job: JobId) {
        let Some(entry) = self.entries.get_mut(&job) else { return };
        let again = entry.handed.take().is_some_and(|handed| handed.assigned_again);
        match entry.reading {
            Reading::No if again => self.want(job),
            Reading::No => {
                self.entries.remove(&job);
            }
            // The read is not sent yet, so it will see the state after the close.
            Reading::Queued => {}
            Reading::InFlight | Reading::InFlightOutdated => entry.reading = Reading::InFlightOutdated,
        }
    }

    fn unread(&mut self, job: JobId) {
        let Some(entry) = self.entries.get_mut(&job) else { return };
        entry.reading = Reading::No;
        if entry.handed.is_none() {
            self.entries.remove(&job);
        }
    }

    fn read(&mut self, now: Millis, job: JobId, found: Found, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(&job) else { return };
        let asked = entry.asked;
        let outdated = entry.reading == Reading::InFlightOutdated || now.since(asked) >= BELIEVED;
        entry.reading = Reading::No;
        if outdated {
            return self.want(job);
        }
        match &mut entry.handed {
            Some(handed) => recheck(&job, handed, &found, out),
            None => match decide(&job, found, asked) {
                Some(Effect::Start(start)) => {
                    let attempt = start.assignment.key();
                    (entry.handed, entry.came) = (Some(Handed::new(attempt)), false);
                    out.push(Effect::Start(start));
                }
                None if entry.came => {
                    self.entries.remove(&job);
                    out.push(Effect::Missed(job));
                }
                decision => {
                    self.entries.remove(&job);
                    out.extend(decision);
                }
            },
        }
    }

    fn segment_read(
        &mut self,
        now: Millis,
        job: JobId,
        assignment: Lookup<Assignment>,
        segment: Lookup<Segment>,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.entries.get_mut(&job) else { return };
        let outdated = entry.reading == Reading::InFlightOutdated;
        entry.reading = Reading::No;
        // An id of a segment is never used twice, so an old answer is not about another one.
        if outdated {
            return self.want(job);
        }
        if entry.handed.is_some() {
            // If another process has taken it, the reporter finds out with its next write.
            return;
        }
        let asked = entry.asked;
        let decision = decide_segment(&job, assignment, segment, asked);
        let Some(Effect::StartSegment(packed)) = decision else {
            self.entries.remove(&job);
            return out.extend(decision);
        };
        let attempt = packed.assignment.key();
        entry.handed = Some(Handed::new(attempt));
        self.begun.add(now, packed.id);
        for number in packed.id.members().iter() {
            let member = self.entries.entry(MemberId { segment: packed.id, number }.job()).or_default();
            member.handed = Some(Handed { is_packed: true, ..Handed::new(attempt) });
        }
        out.push(Effect::StartSegment(packed));
    }

    fn again(&mut self, now: Millis, requeue: Box<Requeue>, out: &mut Vec<Effect>) {
        match self.connectivity {
            Connectivity::Up if requeue.is_old(now) => self.want(requeue.job().clone()),
            Connectivity::Up => out.push(Effect::Requeue(requeue)),
            // A list follows after the reconnection.
            Connectivity::Down => {}
        }
    }

    /// The number of jobs in the next read: records or segments from the front of the queue. Also whether it is sent although another
    /// is in flight: if it is large, or if the queue is long.
    fn next_read(&self) -> (usize, bool) {
        let is_segment = |job: &JobId| SegmentId::of_job(job).is_some();
        let many = self.queue.len() >= READ_JOBS;
        if !self.queue.front().is_some_and(is_segment) {
            let records = self.queue.iter().take(READ_JOBS).take_while(|job| !is_segment(job));
            return (records.count(), many);
        }
        let (mut members, mut bytes) = (0, 0);
        let fits = |job: &&JobId| {
            let Some(segment) = SegmentId::of_job(job) else { return false };
            members += usize::from(segment.count());
            bytes += segment.bytes_below();
            members <= usize::from(MAX_PACKED) && bytes <= MAX_TXN_BYTES
        };
        // The first segment always fits.
        let segments = self.queue.iter().take_while(fits).count().max(1);
        let is_full = self.queue.get(segments).is_some_and(is_segment);
        (segments, many || is_full || members >= READ_JOBS)
    }

    fn send(&mut self, now: Millis, out: &mut Vec<Effect>) {
        while self.connectivity == Connectivity::Up && self.in_flight < READ_WINDOW {
            let (jobs, is_large) = self.next_read();
            if jobs == 0 || (self.in_flight > 0 && !is_large) {
                return;
            }
            let jobs = self.queue.drain(..jobs).collect::<Vec<_>>();
            let are_segments = jobs.first().is_some_and(|job| SegmentId::of_job(job).is_some());
            for job in &jobs {
                if let Some(entry) = self.entries.get_mut(job) {
                    (entry.reading, entry.asked) = (Reading::InFlight, now);
                }
            }
            self.in_flight += 1;
            out.push(if are_segments { Effect::ReadSegments(jobs) } else { Effect::Read(jobs) });
        }
    }
}

fn decide_segment(
    job: &JobId,
    assignment: Lookup<Assignment>,
    segment: Lookup<Segment>,
    asked: Millis,
) -> Option<Effect> {
    let quarantine = |note| Some(Effect::Quarantine { job: job.clone(), note });
    let id = SegmentId::of_job(job)?;
    let (assignment, version) = match assignment {
        Lookup::Absent => return None,
        Lookup::Unreadable { why, .. } => return quarantine(format!("assignment unreadable: {why}")),
        Lookup::Found(assignment, version) => (assignment, version),
    };
    match segment {
        Lookup::Absent => Some(Effect::Discard { job: job.clone(), assignment: version, record: None }),
        Lookup::Unreadable { why, .. } => quarantine(format!("segment unreadable: {why}")),
        Lookup::Found(segment, _) if !segment.is_of(id) => {
            quarantine("the segment has another number of members than its name says".to_owned())
        }
        Lookup::Found(segment, _) => {
            Some(Effect::StartSegment(Box::new(Packed { id, segment, assignment, version, asked })))
        }
    }
}

impl Handed {
    fn new(attempt: AttemptKey) -> Self {
        Self { attempt, assigned_again: false, is_packed: false }
    }
}

fn decide(job: &JobId, found: Found, asked: Millis) -> Option<Effect> {
    let quarantine = |note| Some(Effect::Quarantine { job: job.clone(), note });
    let (assignment, assignment_version) = match found.assignment {
        Lookup::Absent => return None,
        Lookup::Unreadable { why, .. } => return quarantine(format!("assignment unreadable: {why}")),
        Lookup::Found(assignment, version) => (assignment, version),
    };
    let discard = |record| Some(Effect::Discard { job: job.clone(), assignment: assignment_version, record });
    match found.record {
        Lookup::Absent => discard(None),
        Lookup::Unreadable { why, .. } => quarantine(format!("record unreadable: {why}")),
        Lookup::Found(record, version) if record.is_terminal() => discard(Some(version)),
        Lookup::Found(record, version) => {
            let agree = assignment.agrees(&record);
            let (job, record) = (job.clone(), Box::new(record));
            let start = Start { job, assignment, assignment_version, record, version, asked, packed: None };
            // The inbox is the only place of this job: whatever the assignment contains, the job must not get lost.
            Some(if agree {
                Effect::Start(Box::new(start))
            } else {
                Effect::Requeue(Box::new(Requeue::new(start)))
            })
        }
    }
}

fn recheck(job: &JobId, handed: &mut Handed, found: &Found, out: &mut Vec<Effect>) {
    let attempt = handed.attempt.number;
    match &found.assignment {
        Lookup::Found(assignment, version) if assignment.key() == handed.attempt => {
            if assignment.cancel {
                let (job, assignment) = (job.clone(), assignment.clone());
                out.push(Effect::Cancel { job, attempt, assignment, version: *version });
            }
        }
        Lookup::Found(..) => {
            handed.assigned_again = true;
            out.push(Effect::Zombie(job.clone(), attempt));
        }
        Lookup::Absent => out.push(Effect::Zombie(job.clone(), attempt)),
        // Overwritten by another process. The attempt itself stays valid and is closed by the record's version.
        Lookup::Unreadable { .. } => {}
    }
}

#[cfg(test)]
#[path = "inbox_watcher_tests.rs"]
mod tests;
