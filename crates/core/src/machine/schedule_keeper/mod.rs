//! Making each tick's job, once (S8).
//!
//! The machine knows every schedule with its version, and when each ticks next. When one is due it says what becomes of
//! it ([`due`](crate::schedule::due)) and commits that: the cursor moves and the job is made, in one multi
//! ([`txn::tick`]). All that decides is in that multi's fences; what is known here may be old.
//!
//! ```text
//! unread ──read──▶ waiting ──due──▶ ready ──batch──▶ committing ──applied──▶ waiting
//!   ▲                                │ ▲                  │
//!   │              forbid: last job ─┘ └─ queue: lane ────┤
//!   └── a hint · rejected · unknown ──────────────────────┘
//! ```
//!
//! | an operation was rejected | what it means | what follows |
//! | --- | --- | --- |
//! | check epoch | another leader has claimed | the term is over |
//! | check `/schedules` | a schedule was removed; one of its name may have come with the version that is known | list, and read all again |
//! | set schedule | it changed, or is gone | read it again |
//! | check the last job | it was retried, or its record was deleted | look at it again |
//! | create the job | it has its job: this happens only when a removed schedule came again under a clock that was set back | pass the tick over, as taken |
//! | create the turn | the lane is not there | make it, and commit again; after [`PUZZLES`] times at the next sweep |
//! | anything else | – | read it again; after [`PUZZLES`] times at the next sweep |
//!
//! **What if the reply is lost?** Nothing is done until the session is back and everything was read again: the cursor
//! tells whether the tick was made. A copy that is applied after that read makes the next one of the same tick fail at
//! the schedule's version.
//!
//! **The wall clock** is passed in. When it jumps back, nothing is due until it is past the cursor again. When it jumps
//! forward, what was jumped over is due at once, or was missed: the misfire policy decides, and what is passed over is
//! written into the schedule.
//!
//! **Hints.** Each write of ours comes back as a hint about the schedule. One is expected for each, and no read follows;
//! a count that is off costs a read, or a read that comes with the next sweep.
//!
//! Limits: [`READ_WINDOW`] reads and [`COMMIT_WINDOW`] batches of [`BATCH`] in flight, one write of each schedule. No
//! more is prepared than these hold, however many are due, and a call decides about [`LATE`] that missed ticks.

mod answers;
mod calendars;
mod event;
mod known;
mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use event::{Effect, Event, Found, Key, LastJob, Stamp};

use self::calendars::Calendars;
use self::known::{Known, Plan, ScheduleState};
use crate::name::ScheduleId;
use crate::schedule::{Missed, Passed, PassedOver};
use crate::time::WallMillis;
use crate::txn;

/// Ticks a batch, each three to five operations.
pub const BATCH: usize = 100;

/// Batches in flight: one is applied while others are on their way.
pub const COMMIT_WINDOW: usize = 4;

/// Reads in flight, of schedules and of jobs.
pub const READ_WINDOW: usize = 4;

/// Schedules that missed ticks and are decided about in one call: each may take
/// [`MAX_SEARCHES`](crate::schedule::MAX_SEARCHES), some milliseconds. The others follow with the answers to these.
pub const LATE: usize = 20;

/// How often a write of a schedule is refused for no reason that is known, before the next sweep is waited for.
pub const PUZZLES: u32 = 3;

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScheduleKeeper {
    epoch: i32,
    /// The parent's version, from before anything that is known was read.
    removals: Option<i32>,
    known: BTreeMap<ScheduleId, Known>,
    calendars: Calendars,
    unread: BTreeSet<ScheduleId>,
    waiting: BTreeSet<(WallMillis, ScheduleId)>,
    to_check: VecDeque<ScheduleId>,
    ready: VecDeque<ScheduleId>,
    listing: bool,
    /// Counts the lists.
    round: u32,
    reads: usize,
    commits: usize,
    /// How many are between due and answered.
    busy: usize,
    serial: u64,
    acting: bool,
}

impl ScheduleKeeper {
    /// A machine for the term of `epoch`.
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
            Event::LaneMade(key) => {
                if let Some(Known { state, .. }) = self.known.get_mut(&key.schedule)
                    && let ScheduleState::MakingLane(write) = state
                    && write.serial == key.serial
                {
                    *state = ScheduleState::Ready(write.clone());
                    self.ready.push_back(key.schedule);
                }
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, out),
            Event::Tick => {}
        }
        self.advance(now, out);
    }

    /// When the next known schedule is due, unless something else is waited for.
    #[must_use]
    pub fn next_due(&self) -> Option<WallMillis> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Whether a schedule is known as it was read at this stamp.
    #[must_use]
    pub fn knows(&self, schedule: &ScheduleId, stamp: Stamp) -> bool {
        self.known.get(schedule).is_some_and(|known| known.stamp == Some(stamp))
    }

    /// How many schedules are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
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
        // One that was heard of after the list was asked for may have been added after it was made.
        let gone = self.known.iter().filter(|(id, known)| known.round < self.round && !listed.contains(*id));
        let gone = gone.map(|(id, _)| id.clone()).collect::<Vec<_>>();
        gone.iter().for_each(|schedule| self.forget(schedule));
        for schedule in listed {
            match self.known.get_mut(&schedule) {
                // Its answer tells; it was asked for with a parent's version that may be old by now.
                Some(known) if matches!(known.state, ScheduleState::Committing(_)) && fresh => {}
                Some(known) => {
                    known.echoes = 0;
                    if !fresh {
                        // Another one of this name may have this version.
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
                | ScheduleState::MakingLane(_)
                | ScheduleState::Puzzling => {
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

    /// Takes it from wherever it stands, to be read.
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

    /// Out of the queue in which it stands, if it stands in one.
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
            | ScheduleState::MakingLane(_)
            | ScheduleState::Committing(_)
            | ScheduleState::Puzzling => {}
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
                // Its hint, or the next list, brings it back.
                self.forget(&schedule);
                if hinted {
                    self.reread(&schedule);
                }
                return;
            }
            Found::Same => {}
            Found::Record(stamp, record) => {
                let Ok(calendar) = self.calendars.of(&record.spec.when) else {
                    // Of another build: decoding refuses it before it comes here.
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

    /// Until its next tick.
    fn wait(&mut self, schedule: &ScheduleId) {
        let Some(known) = self.known.get_mut(schedule) else { return };
        let next = known.next();
        known.state = ScheduleState::Waiting(next);
        if let Some(next) = next {
            self.waiting.insert((next, schedule.clone()));
        }
    }

    fn job_read(&mut self, key: &Key, last: LastJob) {
        if !self.has_at(key, |state| matches!(state, ScheduleState::Checking(_))) {
            return;
        }
        let Some(known) = self.known.get_mut(&key.schedule) else { return };
        let ScheduleState::Checking(write) = &known.state else { return };
        let mut write = write.clone();
        if let Plan::Tick { at, before, over } = &mut write.plan {
            match last {
                LastJob::Over(version) => *over = version,
                LastJob::Open => {
                    // One reason at a time: what was missed before it first, and then this one.
                    let passed = match before {
                        Some(ticks) => Passed { why: PassedOver::Misfire, ticks: *ticks },
                        None => Passed { why: PassedOver::Overlap, ticks: single(*at) },
                    };
                    write.plan = Plan::PassOver(passed);
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

fn single(at: WallMillis) -> Missed {
    Missed { from: at, through: at, count: 1 }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
