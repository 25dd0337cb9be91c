//! Creates the job of each schedule tick exactly once (S8).
//!
//! The machine knows each schedule with its version and its next tick. When a tick is due, it decides what to do
//! ([`due`](crate::schedule::due)) and commits the decision: one multi moves the cursor and creates the job
//! ([`txn::tick`]). The checks of that multi are authoritative; the state in this machine may be outdated.
//!
//! ```text
//! unread ──read──▶ waiting ──due──▶ ready ──batch──▶ committing ──applied──▶ waiting
//!   ▲                                │ ▲                  │
//!   │      forbid, job id: its job ─┘ └──── other jobs ───┤
//!   └── a hint · rejected · unknown ──────────────────────┘
//! ```
//!
//! | rejected operation | meaning | reaction |
//! | --- | --- | --- |
//! | check epoch | another leader has claimed the epoch | the term is over |
//! | check `/schedules` | a schedule was removed; another one of its name may exist with the known version | list and read all again |
//! | set schedule | it was changed or removed | read it again |
//! | check the last job, or open the job with the schedule's id again | it was retried or submitted, or its record was deleted | read it again |
//! | create the job with the schedule's id | it was submitted | read it |
//! | create another job | the tick already has a job: possible only if a removed schedule was added again and the clock was set back | pass the tick over, as taken |
//! | anything else | – | read it again; after [`MAX_UNEXPLAINED`] times at the next sweep |
//!
//! **Lost reply.** The schedule waits until the session is back and everything was read again: the cursor shows whether
//! the tick was created. If the first write is applied after that read, the second one fails at the schedule's version.
//!
//! **The wall clock** is an argument. If it jumps back, no tick is due until it passes the cursor again. If it jumps
//! forward, the skipped ticks are immediately due or missed: the misfire policy decides, and ticks that are skipped
//! are recorded in the schedule.
//!
//! **Hints.** Each write of this leader returns as a watch event for the schedule. One event per write is expected and
//! causes no read; if the count is wrong, the cost is an extra read, or a read that is delayed to the next sweep.
//!
//! Limits: [`READ_WINDOW`] reads and [`COMMIT_WINDOW`] batches of [`BATCH`] ticks in flight, one write per schedule.
//! However many ticks are due, at most this number is prepared, and one call decides about [`LATE`] schedules that
//! missed ticks.

mod answers;
mod calendars;
mod event;
mod known;
mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use event::{Effect, Event, Found, Key, PriorJob, Stamp};

use self::calendars::Calendars;
use self::known::{Known, Plan, Prior, ScheduleState};
use crate::job::JobRecord;
use crate::name::ScheduleId;
use crate::schedule::{Missed, SkipReason, Skipped, Template};
use crate::time::WallMillis;
use crate::txn;

/// Ticks per batch, each with three to five operations.
pub const BATCH: usize = 100;

/// Batches in flight: one is applied while others are in transit.
pub const COMMIT_WINDOW: usize = 4;

/// Reads in flight, of schedules and of jobs.
pub const READ_WINDOW: usize = 4;

/// Maximum number of schedules with missed ticks per call. Each may search the calendar for
/// [`MAX_CATCH_UP`](crate::schedule::MAX_CATCH_UP) and [`MAX_COUNTED`](crate::schedule::MAX_COUNTED) ticks, which takes some
/// milliseconds. The others follow with the next answers.
pub const LATE: usize = 20;

/// Unexplained rejections of a schedule's write before it waits for the next sweep.
pub const MAX_UNEXPLAINED: u32 = 3;

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScheduleKeeper {
    epoch: i32,
    /// The version of `/schedules`, read before any of the known schedules.
    removals: Option<i32>,
    known: BTreeMap<ScheduleId, Known>,
    calendars: Calendars,
    unread: BTreeSet<ScheduleId>,
    waiting: BTreeSet<(WallMillis, ScheduleId)>,
    to_check: VecDeque<ScheduleId>,
    ready: VecDeque<ScheduleId>,
    listing: bool,
    /// Number of lists so far.
    round: u32,
    reads: usize,
    commits: usize,
    /// Number of schedules whose write is prepared or in flight.
    busy: usize,
    serial: u64,
    acting: bool,
}

impl ScheduleKeeper {
    /// Creates the machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self {
            epoch,
            removals: None,
            known: BTreeMap::new(),
            calendars: Calendars::default(),
            unread: BTreeSet::new(),
            waiting: BTreeSet::new(),
            to_check: VecDeque::new(),
            ready: VecDeque::new(),
            listing: false,
            round: 0,
            reads: 0,
            commits: 0,
            busy: 0,
            serial: 0,
            acting: false,
        }
    }

    /// Handles one event at the wall time `now`.
    pub fn handle(&mut self, now: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Resync => {
                self.acting = true;
                self.list(out);
            }
            Event::Listed { removals, schedules } => {
                self.listing = false;
                self.listed(removals, schedules);
            }
            Event::ListFailed => {
                self.listing = false;
                self.acting = false;
            }
            Event::Changed(schedule) => self.changed(schedule),
            Event::Gone(schedule) => self.forget(&schedule),
            Event::Read(found) => {
                self.reads -= 1;
                for (schedule, found) in found {
                    self.read(schedule, found);
                }
            }
            Event::ReadFailed(schedules) => {
                self.reads -= 1;
                self.acting = false;
                for schedule in schedules {
                    if self.known.get(&schedule).is_some_and(|known| known.state == ScheduleState::Reading) {
                        self.reread(&schedule);
                    }
                }
            }
            Event::JobsRead(jobs) => {
                self.reads -= 1;
                for (key, last) in jobs {
                    self.job_read(&key, last);
                }
            }
            Event::JobsReadFailed(keys) => {
                self.reads -= 1;
                self.acting = false;
                for key in keys {
                    if self.has_at(&key, |state| matches!(state, ScheduleState::Checking(_))) {
                        self.reread(&key.schedule);
                    }
                }
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, out),
            Event::Tick => {}
        }
        self.advance(now, out);
    }

    /// Returns when the next known schedule is due; `None` if none waits for a time.
    #[must_use]
    pub fn next_due(&self) -> Option<WallMillis> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Returns whether a schedule is known at this stamp.
    #[must_use]
    pub fn knows(&self, schedule: &ScheduleId, stamp: Stamp) -> bool {
        self.known.get(schedule).is_some_and(|known| known.stamp == Some(stamp))
    }

    /// Returns the number of known schedules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns whether no schedule is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn list(&mut self, out: &mut Vec<Effect>) {
        if !self.listing {
            self.listing = true;
            self.round += 1;
            out.push(Effect::List);
        }
    }

    fn listed(&mut self, removals: i32, schedules: Vec<ScheduleId>) {
        let fresh = self.removals == Some(removals);
        self.removals = Some(removals);
        let listed = schedules.into_iter().collect::<BTreeSet<_>>();
        // A schedule first seen after the list was requested may have been added after the list was made.
        let gone = self.known.iter().filter(|(id, known)| known.round < self.round && !listed.contains(*id));
        let gone = gone.map(|(id, _)| id.clone()).collect::<Vec<_>>();
        gone.iter().for_each(|schedule| self.forget(schedule));
        for schedule in listed {
            match self.known.get_mut(&schedule) {
                // The answer in flight decides; its batch checks a version of the parent that may be outdated by now.
                Some(known) if matches!(known.state, ScheduleState::Committing(_)) && fresh => {}
                Some(known) => {
                    known.echoes = 0;
                    if !fresh {
                        // Another schedule of this id may have the same version.
                        known.stamp = None;
                    }
                    self.reread(&schedule);
                }
                None => self.reread(&schedule),
            }
        }
    }

    fn changed(&mut self, schedule: ScheduleId) {
        match self.known.get_mut(&schedule) {
            Some(known) => match known.state {
                ScheduleState::Committing(_) => known.hints += 1,
                ScheduleState::Reading => known.hints = 1,
                ScheduleState::Unread => {}
                ScheduleState::Waiting(_)
                | ScheduleState::ToCheck(_)
                | ScheduleState::Checking(_)
                | ScheduleState::Ready(_)
                | ScheduleState::Unexplained => {
                    if known.echoes > 0 {
                        known.echoes -= 1;
                    } else {
                        self.reread(&schedule);
                    }
                }
            },
            None => self.reread(&schedule),
        }
    }

    /// Takes a schedule out of its current queue and queues it for a read.
    fn reread(&mut self, schedule: &ScheduleId) {
        self.leave(schedule);
        let round = self.round;
        let known = self.known.entry(schedule.clone()).or_insert_with(|| Known { round, ..Known::default() });
        known.state = ScheduleState::Unread;
        self.unread.insert(schedule.clone());
    }

    fn forget(&mut self, schedule: &ScheduleId) {
        self.leave(schedule);
        self.known.remove(schedule);
    }

    /// Removes a schedule from its current queue, if any.
    fn leave(&mut self, schedule: &ScheduleId) {
        let Some(known) = self.known.get(schedule) else { return };
        match &known.state {
            ScheduleState::Unread => {
                self.unread.remove(schedule);
            }
            ScheduleState::Waiting(next) => {
                if let Some(next) = next {
                    self.waiting.remove(&(*next, schedule.clone()));
                }
            }
            ScheduleState::ToCheck(_) => self.to_check.retain(|other| other != schedule),
            ScheduleState::Ready(_) => self.ready.retain(|other| other != schedule),
            ScheduleState::Reading
            | ScheduleState::Checking(_)
            | ScheduleState::Committing(_)
            | ScheduleState::Unexplained => {}
        }
        if known.state.is_busy() {
            self.busy -= 1;
        }
    }

    fn read(&mut self, schedule: ScheduleId, found: Found) {
        let Some(known) = self.known.get_mut(&schedule) else { return };
        if known.state != ScheduleState::Reading {
            return;
        }
        let hinted = std::mem::take(&mut known.hints) > 0;
        match found {
            Found::Nothing => {
                // A watch event or the next list adds it again.
                self.forget(&schedule);
                if hinted {
                    self.reread(&schedule);
                }
                return;
            }
            Found::Same => {}
            Found::Record(stamp, record) => {
                let Ok(calendar) = self.calendars.of(&record.spec.when) else {
                    // Written by another build: decoding rejects it before this point.
                    self.forget(&schedule);
                    return;
                };
                known.stamp = Some(stamp);
                known.record = Some(record);
                known.calendar = Some(calendar);
            }
        }
        if hinted {
            self.reread(&schedule);
        } else {
            self.wait(&schedule);
        }
    }

    /// Makes a schedule wait for its next tick.
    fn wait(&mut self, schedule: &ScheduleId) {
        let Some(known) = self.known.get_mut(schedule) else { return };
        let next = known.next();
        known.state = ScheduleState::Waiting(next);
        if let Some(next) = next {
            self.waiting.insert((next, schedule.clone()));
        }
    }

    fn job_read(&mut self, key: &Key, job: PriorJob) {
        if !self.has_at(key, |state| matches!(state, ScheduleState::Checking(_))) {
            return;
        }
        let Some(known) = self.known.get_mut(&key.schedule) else { return };
        let ScheduleState::Checking(write) = &known.state else { return };
        let mut write = write.clone();
        if let (Plan::Tick { at, before, prior }, Some(record)) = (&mut write.plan, &known.record) {
            match depends(&record.spec.template, job) {
                Ok(ended) => *prior = ended,
                Err(reason) => {
                    // One reason per write: first the ticks missed before this one, then this one.
                    let skipped = match before {
                        Some(ticks) => Skipped { reason: SkipReason::Misfire, ticks: *ticks },
                        None => Skipped { reason, ticks: single(*at) },
                    };
                    write.plan = Plan::Skip(skipped);
                }
            }
        }
        known.state = ScheduleState::Ready(write);
        self.ready.push_back(key.schedule.clone());
    }

    fn has_at(&self, key: &Key, at: impl Fn(&ScheduleState) -> bool) -> bool {
        self.known.get(&key.schedule).is_some_and(|known| {
            at(&known.state) && known.state.write().is_some_and(|write| write.serial == key.serial)
        })
    }

    fn advance(&mut self, now: WallMillis, out: &mut Vec<Effect>) {
        if !self.acting {
            return;
        }
        self.read_some(out);
        let Some(removals) = self.removals else { return };
        self.prepare(now);
        self.check_some(out);
        while self.commits < COMMIT_WINDOW && (self.commits == 0 || self.ready.len() >= BATCH) {
            let fence = vec![txn::fence(self.epoch), txn::check_removals(removals)];
            let Some(batch) = self.batch(now, fence) else { break };
            self.commits += 1;
            out.push(Effect::Commit(batch));
        }
    }
}

/// Decides whether a tick gets its job, from the job on which it depends. Otherwise returns the reason.
fn depends(template: &Template, job: PriorJob) -> Result<Prior, SkipReason> {
    let other = |there: &JobRecord| there.kind != template.kind || there.payload != template.payload;
    match (job, &template.job_id) {
        (PriorJob::Absent, _) => Ok(Prior::None),
        (PriorJob::Over(version, _), None) => Ok(Prior::Last(version)),
        (PriorJob::Open(_) | PriorJob::Unreadable, None) => Err(SkipReason::Overlap),
        (PriorJob::Over(_, there) | PriorJob::Open(there), Some(_)) if other(&there) => {
            Err(SkipReason::Conflict)
        }
        (PriorJob::Over(version, there), Some(_)) => Ok(Prior::Reopened(version, there)),
        (PriorJob::Open(_) | PriorJob::Unreadable, Some(_)) => Err(SkipReason::JobOpen),
    }
}

fn single(at: WallMillis) -> Missed {
    Missed { from: at, through: at, count: 1 }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
