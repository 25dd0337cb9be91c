//! A worker's incarnation: inbox, executor, beats and reporter, wired as the wing wires them.
//!
//! Its requests are served in the order in which they were sent, and their replies and the watch's hints are heard in
//! the order in which they were made, each in its own time.
//!
//! Where an operator may have it drain, its incarnation is there, too: it looks for the mark, and
//! retires. Else that is registered all the time, and is left out.

mod effects;
mod line;

use std::collections::VecDeque;
use std::time::Duration;

use bellwether_core::budget::DEFAULT_LEASE;
use bellwether_core::machine::worker::executor_pool::{self, Ended, ExecutorPool, Run};
use bellwether_core::machine::worker::inbox_watcher::{self, InboxWatcher};
use bellwether_core::machine::worker::status_reporter::beats::{self, Beats};
use bellwether_core::machine::worker::status_reporter::reporter::{self, Reporter, Settled};
use bellwether_core::machine::worker::wing::{self, Stage, WorkerWing};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::time::{Millis, WallMillis};

use super::law::Life;
use super::stage::WALL;
use effects::begun;

pub(crate) use line::{Heard, Sent};

/// What a worker does that others want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// An attempt begins to run.
    Launched {
        life: Life,
        attempt: u32,
        /// Its job has expired by this worker's clock.
        expired: bool,
        /// The worker has seen that it is to drain.
        drains: bool,
    },
    Settled(Life, u32, Settled),
    Resolved {
        applied: bool,
    },
    Requeued,
    DroppedZombie,
    /// It has drained and is gone.
    Retired,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Parts {
    inbox: InboxWatcher,
    executor: ExecutorPool,
    beats: Beats,
    reporter: Reporter,
    /// Where an operator may have it drain.
    life: Option<WorkerWing>,
}

/// The grace of a drain. Its end is a step of its own.
const GRACE: Duration = Duration::from_millis(1);

/// A handler at work. It holds the only slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Running {
    pub(crate) job: JobId,
    pub(crate) life: Life,
    pub(crate) attempt: u32,
    pub(crate) signalled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    /// Until it learns that its session is over.
    pub(crate) parts: Option<Parts>,
    /// Its session lives on the server.
    pub(crate) alive: bool,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) mailbox: VecDeque<Heard>,
    pub(crate) run: Option<Running>,
    wants_slot: bool,
    /// Slots are held by others: when one is free is a step of its own.
    busy: bool,
    now: Millis,
    /// The grace of its drain is over.
    grace_over: bool,
    pub(crate) wall: WallMillis,
}

impl Worker {
    pub(crate) fn new(id: WorkerId, busy: bool, drains: bool) -> Self {
        let parts = Parts {
            life: drains.then(registered),
            inbox: InboxWatcher::new(),
            executor: ExecutorPool::new(),
            beats: Beats::new(id),
            reporter: Reporter::new(id),
        };
        Self {
            id,
            parts: Some(parts),
            alive: true,
            up: true,
            sent: VecDeque::new(),
            mailbox: VecDeque::new(),
            run: None,
            wants_slot: false,
            busy,
            now: Millis(0),
            grace_over: false,
            wall: WALL,
        }
    }

    /// Only who watches is told.
    pub(crate) fn hint(&mut self, event: inbox_watcher::Event) {
        if self.parts.is_some() && self.up && self.alive {
            self.mailbox.push_back(Heard::InboxWatcher(event));
        }
    }

    /// Its registration has changed.
    pub(crate) fn hint_life(&mut self) {
        let drains = self.parts.as_ref().is_some_and(|parts| parts.life.is_some());
        if drains && self.up && self.alive {
            self.mailbox.push_back(Heard::Life(wing::Event::Look));
        }
    }

    fn stage(&self) -> Option<Stage> {
        Some(self.parts.as_ref()?.life.as_ref()?.stage())
    }

    /// Whether what runs still has the grace of a drain.
    pub(crate) fn has_grace(&self) -> bool {
        self.stage() == Some(Stage::Draining) && !self.grace_over && self.run.is_some()
    }

    pub(crate) fn end_grace(&mut self, deeds: &mut Vec<Deed>) {
        self.grace_over = true;
        self.hear(Heard::ExecutorPool(executor_pool::Event::Wake), deeds);
    }

    pub(crate) fn hear_next(&mut self, deeds: &mut Vec<Deed>) {
        let heard = self.mailbox.pop_front().expect("something came");
        self.hear(heard, deeds);
    }

    pub(crate) fn end(&mut self, how: Run, deeds: &mut Vec<Deed>) {
        let Running { job, attempt, .. } = self.run.take().expect("something runs");
        let ended = Ended { job, attempt, how, ran: Duration::ZERO };
        self.hear(Heard::ExecutorPool(executor_pool::Event::Ended(vec![ended])), deeds);
        if self.run.is_none() && !self.busy && self.wants_slot {
            self.grant(deeds);
        }
    }

    /// Whether a slot is to be granted by a step.
    pub(crate) fn waits_for_slot(&self) -> bool {
        self.busy && self.wants_slot && self.run.is_none() && self.parts.is_some()
    }

    pub(crate) fn grant(&mut self, deeds: &mut Vec<Deed>) {
        self.wants_slot = false;
        self.hear(Heard::ExecutorPool(executor_pool::Event::SlotGranted(self.wall)), deeds);
    }

    /// Time passes, of which it hears with whatever it hears next.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// A third of the lease passes, and the handler asks for another.
    pub(crate) fn renew(&mut self, deeds: &mut Vec<Deed>) {
        let Running { job, attempt, .. } = self.run.clone().expect("something runs");
        self.now = self.now + DEFAULT_LEASE / 3;
        let asked = beats::Event::Asked { job, attempt, renew: Some(DEFAULT_LEASE), progress: None };
        self.hear(Heard::Beats(asked), deeds);
    }

    pub(crate) fn hear(&mut self, first: Heard, deeds: &mut Vec<Deed>) {
        let mut todo = VecDeque::from([first]);
        while let Some(heard) = todo.pop_front() {
            let Some(parts) = &mut self.parts else { return };
            match heard {
                Heard::InboxWatcher(event) => {
                    let mut effects = Vec::new();
                    parts.inbox.handle(self.now, event, &mut effects);
                    effects.into_iter().for_each(|effect| self.inbox(effect, deeds, &mut todo));
                }
                Heard::ExecutorPool(event) => {
                    let mut effects = Vec::new();
                    match &event {
                        executor_pool::Event::Start(starts) => {
                            todo.push_back(Heard::Beats(beats::Event::Begun(
                                starts.iter().map(begun).collect(),
                            )));
                        }
                        executor_pool::Event::Zombie(job, attempt) => {
                            todo.push_back(Heard::Beats(beats::Event::Over(job.clone(), *attempt)));
                        }
                        _ => {}
                    }
                    parts.executor.handle(Millis(u64::from(self.grace_over)), event, &mut effects);
                    effects.into_iter().for_each(|effect| self.executor(effect, deeds, &mut todo));
                }
                Heard::Beats(event) => {
                    let mut effects = Vec::new();
                    parts.beats.handle(self.now, event, &mut effects);
                    effects.into_iter().for_each(|effect| self.beats(effect, &mut todo));
                }
                Heard::Reporter(event) => {
                    let mut effects = Vec::new();
                    parts.reporter.handle(self.now, event, &mut effects);
                    effects.into_iter().for_each(|effect| self.reporter(effect, deeds, &mut todo));
                }
                Heard::Life(event) => {
                    let Some(life) = &mut parts.life else { continue };
                    let mut effects = Vec::new();
                    life.handle(Millis(0), event, &mut effects);
                    effects.into_iter().for_each(|effect| self.life(effect, deeds, &mut todo));
                }
            }
        }
    }
}

const HOLD: [Heard; 4] = [
    Heard::Beats(beats::Event::Hold),
    Heard::Reporter(reporter::Event::Hold),
    Heard::ExecutorPool(executor_pool::Event::Hold),
    Heard::InboxWatcher(inbox_watcher::Event::Hold),
];

const RESUME: [Heard; 4] = [
    Heard::Beats(beats::Event::Resume),
    Heard::Reporter(reporter::Event::Resume),
    Heard::ExecutorPool(executor_pool::Event::Resume),
    Heard::InboxWatcher(inbox_watcher::Event::Resume),
];

/// The machine of an incarnation that has registered.
fn registered() -> WorkerWing {
    let mut life = WorkerWing::new(GRACE);
    let events = [wing::Event::Connected, wing::Event::Committed(Outcome::Applied(()))];
    events.into_iter().for_each(|event| life.handle(Millis(0), event, &mut Vec::new()));
    life
}
