//! A worker's incarnation: inbox, executor, beats and reporter, connected as in the worker wing.
//!
//! Its requests are served in the order in which they were sent. Replies and hints are handled in the order in which
//! they were created, each at any later time.
//!
//! If an operator may drain it, the model includes the machine of the incarnation, which reads the registration and
//! retires. Otherwise the worker is always registered and this machine is left out.

mod effects;
mod in_flight;

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

use super::invariants::Life;
use super::stage::WALL;
use effects::begun;

pub(crate) use in_flight::{Heard, Sent};

/// An act of a worker that the invariants or milestones need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// An attempt starts to run.
    Launched {
        life: Life,
        attempt: u32,
        /// Whether its job has expired by this worker's clock.
        expired: bool,
        /// Whether the worker has seen its draining mark.
        drains: bool,
    },
    Settled(Life, u32, Settled),
    Resolved {
        applied: bool,
    },
    DroppedZombie,
    /// The worker has drained and left.
    Retired,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Parts {
    inbox: InboxWatcher,
    executor: ExecutorPool,
    beats: Beats,
    reporter: Reporter,
    /// Present if an operator may drain the worker.
    life: Option<WorkerWing>,
}

/// The grace of a drain. Its end is a separate step.
const GRACE: Duration = Duration::from_millis(1);

/// A running handler. It uses the only slot.
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
    /// Present until the worker learns that its session has ended.
    pub(crate) parts: Option<Parts>,
    /// Whether its session is alive on the server.
    pub(crate) alive: bool,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) mailbox: VecDeque<Heard>,
    pub(crate) run: Option<Running>,
    wants_slot: bool,
    /// Whether the slots are used by others: granting one is a separate step.
    busy: bool,
    now: Millis,
    /// Whether the grace of its drain is over.
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
            reporter: Reporter::new(id, vec![]),
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

    /// Delivers a hint, if the worker has a watch.
    pub(crate) fn hint(&mut self, event: inbox_watcher::Event) {
        if self.parts.is_some() && self.up && self.alive {
            self.mailbox.push_back(Heard::InboxWatcher(event));
        }
    }

    /// Delivers a hint that its registration has changed.
    pub(crate) fn hint_life(&mut self) {
        let drains = self.parts.as_ref().is_some_and(|parts| parts.life.is_some());
        if drains && self.up && self.alive {
            self.mailbox.push_back(Heard::Life(wing::Event::Look));
        }
    }

    fn stage(&self) -> Option<Stage> {
        Some(self.parts.as_ref()?.life.as_ref()?.stage())
    }

    /// Returns whether its runs are within the grace of a drain.
    pub(crate) fn has_grace(&self) -> bool {
        self.stage() == Some(Stage::Draining) && !self.grace_over && self.run.is_some()
    }

    pub(crate) fn end_grace(&mut self, deeds: &mut Vec<Deed>) {
        self.grace_over = true;
        self.hear(Heard::ExecutorPool(executor_pool::Event::Wake), deeds);
    }

    pub(crate) fn hear_next(&mut self, deeds: &mut Vec<Deed>) {
        let heard = self.mailbox.pop_front().expect("the mailbox is not empty");
        self.hear(heard, deeds);
    }

    pub(crate) fn end(&mut self, how: Run, deeds: &mut Vec<Deed>) {
        let Running { job, attempt, .. } = self.run.take().expect("a handler runs");
        let ended = Ended { job, attempt, how };
        self.hear(Heard::ExecutorPool(executor_pool::Event::Ended(vec![ended])), deeds);
        if self.run.is_none() && !self.busy && self.wants_slot {
            self.grant(deeds);
        }
    }

    /// Returns whether the worker waits for a slot, which a step grants.
    pub(crate) fn waits_for_slot(&self) -> bool {
        self.busy && self.wants_slot && self.run.is_none() && self.parts.is_some()
    }

    pub(crate) fn grant(&mut self, deeds: &mut Vec<Deed>) {
        self.wants_slot = false;
        self.hear(Heard::ExecutorPool(executor_pool::Event::SlotGranted(self.wall)), deeds);
    }

    /// Advances its clock. The machines see it with the next event.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// A third of the lease passes, and the handler renews it.
    pub(crate) fn renew(&mut self, deeds: &mut Vec<Deed>) {
        let Running { job, attempt, .. } = self.run.clone().expect("a handler runs");
        self.now = self.now + DEFAULT_LEASE / 3;
        let asked = beats::Event::Requested {
            job,
            attempt,
            renew: Some(DEFAULT_LEASE),
            confirm: None,
            progress: None,
        };
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
                    effects.into_iter().for_each(|effect| self.inbox(effect, &mut todo));
                }
                Heard::ExecutorPool(event) => {
                    let mut effects = Vec::new();
                    match &event {
                        executor_pool::Event::Start(starts) => {
                            todo.push_back(Heard::Beats(beats::Event::Started(
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

/// Creates the machine of an incarnation that has registered.
fn registered() -> WorkerWing {
    let mut life = WorkerWing::new(GRACE);
    let events = [wing::Event::Connected, wing::Event::Committed(Outcome::Applied(()))];
    events.into_iter().for_each(|event| life.handle(Millis(0), event, &mut Vec::new()));
    life
}
