//! A worker's incarnation: inbox, executor, beats and reporter, wired as the wing wires them.
//!
//! Its requests are served in the order in which they were sent, and their replies and the watch's hints are heard in
//! the order in which they were made, each in its own time.
//!
//! Where an operator may have it drain, its incarnation is there, too: it looks for the mark, and
//! retires. Else that is registered all the time, and is left out.

use std::collections::VecDeque;
use std::time::Duration;

use bellwether_core::budget::DEFAULT_LEASE;
use bellwether_core::machine::worker::beats::{self, Beat, Beats, Begun};
use bellwether_core::machine::worker::executor::{self, Ended, Executor, Run};
use bellwether_core::machine::worker::inbox::{self, Inbox, Requeue};
use bellwether_core::machine::worker::incarnation::{self, Ephemeral, Incarnation, Stage};
use bellwether_core::machine::worker::reporter::{self, Close, Reporter, Settled};
use bellwether_core::machine::worker::{Found, Look, Start};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::{self, Batch, Op};
use bellwether_core::wire;
use bellwether_core::worker::WorkerInfo;

use super::law::Life;
use super::stage::WALL;
use crate::kit;
use crate::zookeeper::ZooKeeper;

/// On its way to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sent {
    List,
    Read(Vec<JobId>),
    Close(Batch<Close>),
    ReadBack(Vec<Close>),
    Beat(Batch<Beat>),
    ReadAssignments(Vec<JobId>),
    MakeMinute(u64),
    HandBack(Box<Requeue>, Vec<Op>),
    /// A write that nobody waits for: the next listing tells what became of it.
    Write(Vec<Op>),
    /// A look at its registration.
    Look,
    /// What it offers, said anew.
    Say(Vec<Op>),
    Retire(Vec<Op>),
}

impl Sent {
    /// What it changes, if anything.
    pub(crate) fn ops(&self) -> Vec<Op> {
        match self {
            Self::Close(batch) => batch.ops().cloned().collect(),
            Self::Beat(batch) => batch.ops().cloned().collect(),
            Self::HandBack(_, ops) | Self::Write(ops) | Self::Say(ops) | Self::Retire(ops) => ops.clone(),
            // A container is made by a write of its own, which nothing depends on.
            Self::List
            | Self::Read(_)
            | Self::ReadBack(_)
            | Self::ReadAssignments(_)
            | Self::Look
            | Self::MakeMinute(_) => Vec::new(),
        }
    }

    /// What is heard of it when it is not answered.
    fn unanswered(self, unknown: Outcome<()>) -> Option<Heard> {
        Some(match self {
            Self::Read(jobs) => Heard::Inbox(inbox::Event::ReadFailed(jobs)),
            Self::Close(batch) => Heard::Reporter(reporter::Event::Committed(batch, unknown)),
            Self::ReadBack(closes) => Heard::Reporter(reporter::Event::ReadFailed(closes)),
            Self::Beat(batch) => Heard::Beats(beats::Event::Committed(batch, unknown)),
            Self::ReadAssignments(jobs) => Heard::Beats(beats::Event::ReadFailed(jobs)),
            Self::MakeMinute(minute) => Heard::Reporter(reporter::Event::MinuteMade(minute, unknown)),
            Self::Look => Heard::Life(incarnation::Event::Read(None)),
            Self::Say(_) => Heard::Life(incarnation::Event::Said(unknown)),
            Self::Retire(_) => Heard::Life(incarnation::Event::Committed(unknown)),
            Self::List | Self::HandBack(..) | Self::Write(_) => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Heard {
    Inbox(inbox::Event),
    Executor(executor::Event),
    Beats(beats::Event),
    Reporter(reporter::Event),
    Life(incarnation::Event),
}

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
    inbox: Inbox,
    executor: Executor,
    beats: Beats,
    reporter: Reporter,
    /// Where an operator may have it drain.
    life: Option<Incarnation>,
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
            inbox: Inbox::new(),
            executor: Executor::new(),
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
    pub(crate) fn hint(&mut self, event: inbox::Event) {
        if self.parts.is_some() && self.up && self.alive {
            self.mailbox.push_back(Heard::Inbox(event));
        }
    }

    /// Its registration has changed.
    pub(crate) fn hint_life(&mut self) {
        let drains = self.parts.as_ref().is_some_and(|parts| parts.life.is_some());
        if drains && self.up && self.alive {
            self.mailbox.push_back(Heard::Life(incarnation::Event::Look));
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
        self.hear(Heard::Executor(executor::Event::Wake), deeds);
    }

    /// What a read finds.
    pub(crate) fn answer(&self, zk: &ZooKeeper, sent: Sent, outcome: Outcome<()>) -> Option<Heard> {
        Some(match sent {
            Sent::List => {
                let inbox = path::inbox(self.id);
                let jobs =
                    zk.children(&inbox)?.into_iter().map(|name| JobId::new(name).expect("a job's name"));
                Heard::Inbox(inbox::Event::Listed(jobs.collect()))
            }
            Sent::Read(jobs) => {
                let found = jobs.into_iter().map(|job| (job.clone(), self.found(zk, &job)));
                Heard::Inbox(inbox::Event::Read(found.collect()))
            }
            Sent::Close(batch) => Heard::Reporter(reporter::Event::Committed(batch, outcome)),
            Sent::ReadBack(closes) => {
                let found = closes.into_iter().map(|close| (close.clone(), self.found(zk, close.job())));
                Heard::Reporter(reporter::Event::Read(found.collect()))
            }
            Sent::Beat(batch) => Heard::Beats(beats::Event::Committed(batch, outcome)),
            Sent::ReadAssignments(jobs) => {
                let found = jobs.into_iter().map(|job| (job.clone(), self.found(zk, &job).assignment));
                Heard::Beats(beats::Event::Read(found.collect()))
            }
            Sent::MakeMinute(minute) => Heard::Reporter(reporter::Event::MinuteMade(minute, outcome)),
            Sent::Look => {
                let found = zk.value::<WorkerInfo>(&path::worker(self.id));
                let found = found.map_or(Ephemeral::Absent, |(info, version)| Ephemeral::Ours {
                    version,
                    draining: info.draining,
                });
                Heard::Life(incarnation::Event::Read(Some(found)))
            }
            Sent::Say(_) => Heard::Life(incarnation::Event::Said(outcome)),
            Sent::Retire(_) => Heard::Life(incarnation::Event::Committed(outcome)),
            Sent::HandBack(requeue, ops) => {
                Heard::Inbox(inbox::Event::Refused(requeue.answered(&ops, &outcome)?))
            }
            Sent::Write(_) => return None,
        })
    }

    fn found(&self, zk: &ZooKeeper, job: &JobId) -> Found {
        Found {
            assignment: Look::of(zk.get(&path::assignment(self.id, job))),
            record: Look::of(zk.get(&path::record(job))),
        }
    }

    pub(crate) fn hear_next(&mut self, deeds: &mut Vec<Deed>) {
        let heard = self.mailbox.pop_front().expect("something came");
        self.hear(heard, deeds);
    }

    pub(crate) fn end(&mut self, how: Run, deeds: &mut Vec<Deed>) {
        let Running { job, attempt, .. } = self.run.take().expect("something runs");
        let ended = Ended { job, attempt, how, ran: Duration::ZERO };
        self.hear(Heard::Executor(executor::Event::Ended(vec![ended])), deeds);
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
        self.hear(Heard::Executor(executor::Event::SlotGranted(self.wall)), deeds);
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

    /// The connection breaks: what is unanswered is unknown, and the watch is gone.
    pub(crate) fn cut(&mut self, deeds: &mut Vec<Deed>) -> Vec<Op> {
        self.up = false;
        let mut lost = Vec::new();
        for heard in std::mem::take(&mut self.mailbox) {
            lost.extend(match heard {
                Heard::Inbox(inbox::Event::Read(found)) => {
                    Sent::Read(found.into_iter().map(|(job, _)| job).collect()).unanswered(Outcome::Unknown)
                }
                Heard::Reporter(reporter::Event::Committed(batch, _)) => {
                    Sent::Close(batch).unanswered(Outcome::Unknown)
                }
                Heard::Reporter(reporter::Event::Read(found)) => {
                    let closes = found.into_iter().map(|(close, _)| close).collect();
                    Sent::ReadBack(closes).unanswered(Outcome::Unknown)
                }
                Heard::Beats(beats::Event::Committed(batch, _)) => {
                    Sent::Beat(batch).unanswered(Outcome::Unknown)
                }
                Heard::Beats(beats::Event::Read(found)) => {
                    let jobs = found.into_iter().map(|(job, _)| job).collect();
                    Sent::ReadAssignments(jobs).unanswered(Outcome::Unknown)
                }
                Heard::Reporter(reporter::Event::MinuteMade(minute, _)) => {
                    Sent::MakeMinute(minute).unanswered(Outcome::Unknown)
                }
                Heard::Life(incarnation::Event::Read(_)) => Sent::Look.unanswered(Outcome::Unknown),
                Heard::Life(incarnation::Event::Said(_)) => {
                    Sent::Say(Vec::new()).unanswered(Outcome::Unknown)
                }
                Heard::Life(incarnation::Event::Committed(_)) => {
                    Sent::Retire(Vec::new()).unanswered(Outcome::Unknown)
                }
                _ => None,
            });
        }
        let sent = std::mem::take(&mut self.sent);
        let late = sent.iter().flat_map(Sent::ops).collect();
        lost.extend(sent.into_iter().filter_map(|sent| sent.unanswered(Outcome::Unknown)));
        if self.stage().is_some() {
            self.hear(Heard::Life(incarnation::Event::Disconnected), deeds);
        } else {
            HOLD.into_iter().for_each(|heard| self.hear(heard, deeds));
        }
        lost.into_iter().for_each(|heard| self.hear(heard, deeds));
        late
    }

    /// The same session is back, with a new watch.
    pub(crate) fn resume(&mut self, deeds: &mut Vec<Deed>) {
        self.up = true;
        if self.stage().is_some() {
            return self.hear(Heard::Life(incarnation::Event::Reconnected), deeds);
        }
        RESUME.into_iter().for_each(|heard| self.hear(heard, deeds));
        self.sent.push_back(Sent::List);
    }

    /// It learns that its incarnation is over: what runs is aborted, what was not committed is dropped.
    pub(crate) fn stop(&mut self) -> Vec<Op> {
        (self.parts, self.run, self.up) = (None, None, false);
        self.mailbox.clear();
        std::mem::take(&mut self.sent).iter().flat_map(Sent::ops).collect()
    }

    pub(crate) fn hear(&mut self, first: Heard, deeds: &mut Vec<Deed>) {
        let mut todo = VecDeque::from([first]);
        while let Some(heard) = todo.pop_front() {
            let Some(parts) = &mut self.parts else { return };
            match heard {
                Heard::Inbox(event) => {
                    let mut effects = Vec::new();
                    parts.inbox.handle(self.now, event, &mut effects);
                    effects.into_iter().for_each(|effect| self.inbox(effect, deeds, &mut todo));
                }
                Heard::Executor(event) => {
                    let mut effects = Vec::new();
                    match &event {
                        executor::Event::Start(starts) => {
                            todo.push_back(Heard::Beats(beats::Event::Begun(
                                starts.iter().map(begun).collect(),
                            )));
                        }
                        executor::Event::Zombie(job, attempt) => {
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

    fn life(&mut self, effect: incarnation::Effect, deeds: &mut Vec<Deed>, todo: &mut VecDeque<Heard>) {
        use incarnation::Effect;
        match effect {
            Effect::Read => self.send(Sent::Look, todo),
            Effect::Say(version) => {
                let (path, data) = (path::worker(self.id), wire::encode(&kit::info(1)));
                self.send(Sent::Say(vec![Op::Set { path, data, version }]), todo);
            }
            Effect::Hold => todo.extend(HOLD),
            Effect::Resume => {
                todo.extend(RESUME);
                self.sent.push_back(Sent::List);
            }
            Effect::Drain(until) => todo.push_back(Heard::Executor(executor::Event::Drain(until))),
            Effect::Relist => self.send(Sent::List, todo),
            Effect::Retire => self.send(Sent::Retire(txn::retire(self.id)), todo),
            Effect::Stop => {
                (self.parts, self.run) = (None, None);
                self.mailbox.clear();
            }
            Effect::Drained(_) => deeds.push(Deed::Retired),
            // A timer, which it hears of when it likes. In a drain it is that of giving up, which nobody does here.
            Effect::WakeAt(_) if self.stage() == Some(Stage::Serving) => {
                self.mailbox.push_back(Heard::Life(incarnation::Event::Wake));
            }
            Effect::WakeAt(_) => {}
            Effect::Renew
            | Effect::Register
            | Effect::MakeParents
            | Effect::Start
            | Effect::MarkDraining(_)
            | Effect::Leave
            | Effect::Restarted
            | Effect::Fail => unreachable!("it is registered once, and is told to drain by its mark alone"),
        }
    }

    fn send(&mut self, sent: Sent, todo: &mut VecDeque<Heard>) {
        if self.up {
            self.sent.push_back(sent);
        } else {
            let not_sent = Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
            todo.extend(sent.unanswered(not_sent));
        }
    }

    fn inbox(&mut self, effect: inbox::Effect, deeds: &mut Vec<Deed>, todo: &mut VecDeque<Heard>) {
        use inbox::Effect;
        let executor = |event| Heard::Executor(event);
        match effect {
            Effect::Read(jobs) => self.send(Sent::Read(jobs), todo),
            Effect::Start(start) => todo.push_back(executor(executor::Event::Start(vec![*start]))),
            Effect::Cancel { job, attempt, assignment, version } => {
                todo.push_back(executor(executor::Event::Cancel { job, attempt, assignment, version }));
            }
            Effect::Vanished(job) => todo.push_back(executor(executor::Event::Vanished(vec![job]))),
            Effect::Zombie(job, attempt) => todo.push_back(executor(executor::Event::Zombie(job, attempt))),
            Effect::Requeue(requeue) => {
                deeds.push(Deed::Requeued);
                let ops = requeue.ops(self.id, self.wall);
                self.send(Sent::HandBack(requeue, ops), todo);
            }
            Effect::Discard { job, assignment, record } => {
                self.send(Sent::Write(txn::discard(&job, self.id, assignment, record)), todo);
            }
            // What it offers stands, and is not written anew here.
            Effect::Missed(_) => {}
            Effect::Quarantine { .. } => unreachable!("every value is whole"),
        }
    }

    fn executor(&mut self, effect: executor::Effect, deeds: &mut Vec<Deed>, todo: &mut VecDeque<Heard>) {
        use executor::{Effect, Event};
        match effect {
            Effect::WantSlot if self.run.is_none() && !self.busy => {
                todo.push_back(Heard::Executor(Event::SlotGranted(self.wall)))
            }
            Effect::WantSlot => self.wants_slot = true,
            Effect::Launch(start) => {
                let (life, attempt) = (Life::of(&start.record), start.assignment.attempt);
                let expired = start.record.is_overdue(self.wall);
                let drains = self.stage() == Some(Stage::Draining);
                deeds.push(Deed::Launched { life, attempt, expired, drains });
                self.run = Some(Running { job: start.job, life, attempt, signalled: false });
            }
            Effect::Signal(_, attempt) => {
                if let Some(run) = self.run.as_mut().filter(|run| run.attempt == attempt) {
                    run.signalled = true;
                }
            }
            Effect::Abort(job, attempt) => {
                if self.run.take_if(|run| run.attempt == attempt).is_some() {
                    let ended = Ended { job, attempt, how: Run::Aborted, ran: Duration::ZERO };
                    todo.push_back(Heard::Executor(Event::Ended(vec![ended])));
                    if !self.busy && std::mem::take(&mut self.wants_slot) {
                        todo.push_back(Heard::Executor(Event::SlotGranted(self.wall)));
                    }
                }
            }
            Effect::Report(finished) => {
                todo.push_back(Heard::Beats(beats::Event::Finished(finished)));
            }
            Effect::Closed(job) => todo.push_back(Heard::Inbox(inbox::Event::Closed(vec![job]))),
            Effect::Recheck(job) => todo.push_back(Heard::Inbox(inbox::Event::Recheck(job))),
            Effect::DroppedZombie(_) => deeds.push(Deed::DroppedZombie),
            Effect::Idle => todo.push_back(Heard::Life(incarnation::Event::Idle)),
            Effect::ReturnSlot | Effect::WakeAt(_) => {}
        }
    }

    fn beats(&mut self, effect: beats::Effect, todo: &mut VecDeque<Heard>) {
        use beats::Effect;
        match effect {
            Effect::Commit(batch) => self.send(Sent::Beat(batch), todo),
            Effect::Read(jobs) => self.send(Sent::ReadAssignments(jobs), todo),
            Effect::Cancel { job, attempt, assignment, version } => {
                let cancel = executor::Event::Cancel { job, attempt, assignment, version };
                todo.push_back(Heard::Executor(cancel));
            }
            Effect::Zombie(job, attempt) => {
                todo.push_back(Heard::Executor(executor::Event::Zombie(job, attempt)));
            }
            Effect::Close(finished) => {
                let report = reporter::Event::Report(self.wall, vec![(*finished, 0)]);
                todo.push_back(Heard::Reporter(report));
            }
            Effect::Third(job, attempt) => {
                todo.push_back(Heard::Executor(executor::Event::Third(job, attempt)));
            }
            Effect::Lapsed(job, attempt) => {
                todo.push_back(Heard::Executor(executor::Event::Lapsed(job, attempt)));
            }
            Effect::Until(..) | Effect::WakeAt(_) => {}
        }
    }

    fn reporter(&mut self, effect: reporter::Effect, deeds: &mut Vec<Deed>, todo: &mut VecDeque<Heard>) {
        use reporter::Effect;
        match effect {
            Effect::Commit(batch) => self.send(Sent::Close(batch), todo),
            Effect::Read(closes) => self.send(Sent::ReadBack(closes), todo),
            Effect::MakeMinute(minute) => self.send(Sent::MakeMinute(minute), todo),
            Effect::Settled(close, settled) => {
                deeds.push(Deed::Settled(Life::of(close.record()), close.attempt().number, settled));
                todo.push_back(Heard::Executor(executor::Event::Closed(vec![close.job().clone()])));
            }
            Effect::Resolved { applied } => deeds.push(Deed::Resolved { applied }),
            // The reconnection takes up again what could not be sent.
            Effect::Refused(..) | Effect::WakeAt(_) => {}
        }
    }
}

const HOLD: [Heard; 4] = [
    Heard::Beats(beats::Event::Hold),
    Heard::Reporter(reporter::Event::Hold),
    Heard::Executor(executor::Event::Hold),
    Heard::Inbox(inbox::Event::Hold),
];

const RESUME: [Heard; 4] = [
    Heard::Beats(beats::Event::Resume),
    Heard::Reporter(reporter::Event::Resume),
    Heard::Executor(executor::Event::Resume),
    Heard::Inbox(inbox::Event::Resume),
];

/// The machine of an incarnation that has registered.
fn registered() -> Incarnation {
    let mut life = Incarnation::new(GRACE);
    let events = [incarnation::Event::Connected, incarnation::Event::Committed(Outcome::Applied(()))];
    events.into_iter().for_each(|event| life.handle(Millis(0), event, &mut Vec::new()));
    life
}

fn begun(start: &Start) -> Begun {
    Begun {
        job: start.job.clone(),
        assignment: start.assignment.clone(),
        version: start.assignment_version,
        auto: false,
    }
}
