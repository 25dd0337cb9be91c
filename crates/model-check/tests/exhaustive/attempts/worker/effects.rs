//! Carries out the effects of a worker's machines as the actors do.

use std::collections::VecDeque;

use bellwether_core::machine::worker::executor_pool::{self, Ended, Run};
use bellwether_core::machine::worker::status_reporter::beats::{self, StartedAttempt};
use bellwether_core::machine::worker::status_reporter::reporter;
use bellwether_core::machine::worker::wing::{self, Stage};
use bellwether_core::machine::worker::{Start, inbox_watcher};
use bellwether_core::path;
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;

use super::{Deed, HOLD, Heard, RESUME, Running, Sent, Worker};
use crate::attempts::invariants::Life;
use crate::fixture;

impl Worker {
    pub(super) fn life(&mut self, effect: wing::Effect, deeds: &mut Vec<Deed>, todo: &mut VecDeque<Heard>) {
        use wing::Effect;
        match effect {
            Effect::Read => self.send(Sent::Look, todo),
            Effect::UpdateRegistration(version) => {
                let (path, data) = (path::worker(self.id), wire::encode(&fixture::info(1)));
                self.send(Sent::UpdateRegistration(vec![Op::Set { path, data, version }]), todo);
            }
            Effect::Hold => todo.extend(HOLD),
            Effect::Resume => {
                todo.extend(RESUME);
                self.sent.push_back(Sent::List);
            }
            Effect::Drain(until) => todo.push_back(Heard::ExecutorPool(executor_pool::Event::Drain(until))),
            Effect::Relist => self.send(Sent::List, todo),
            Effect::Retire => self.send(Sent::Retire(txn::retire(self.id)), todo),
            Effect::Stop => {
                (self.parts, self.run) = (None, None);
                self.mailbox.clear();
            }
            Effect::Drained(_) => deeds.push(Deed::Retired),
            // A timer, which fires at any time. In a drain it is the timer that gives up, which never fires here.
            Effect::WakeAt(_) if self.stage() == Some(Stage::Serving) => {
                self.mailbox.push_back(Heard::Life(wing::Event::Wake));
            }
            Effect::WakeAt(_) => {}
            Effect::Renew
            | Effect::Register
            | Effect::MakeParents
            | Effect::TakeOver
            | Effect::Start
            | Effect::MarkDraining(_)
            | Effect::Leave
            | Effect::Restarted
            | Effect::Fail => unreachable!("the worker registers once, and drains only because of its mark"),
        }
    }

    pub(super) fn inbox(&mut self, effect: inbox_watcher::Effect, todo: &mut VecDeque<Heard>) {
        use inbox_watcher::Effect;
        let executor = |event| Heard::ExecutorPool(event);
        match effect {
            Effect::ReadSegments(_) | Effect::StartSegment(_) => unreachable!("this model has no segments"),
            Effect::Read(jobs) => self.send(Sent::Read(jobs), todo),
            Effect::Start(start) => todo.push_back(executor(executor_pool::Event::Start(vec![*start]))),
            Effect::Cancel { job, attempt, assignment, version } => {
                todo.push_back(executor(executor_pool::Event::Cancel { job, attempt, assignment, version }));
            }
            Effect::Vanished(job) => todo.push_back(executor(executor_pool::Event::Vanished(vec![job]))),
            Effect::Zombie(job, attempt) => {
                todo.push_back(executor(executor_pool::Event::Zombie(job, attempt)))
            }
            Effect::Requeue(requeue) => {
                let ops = requeue.ops(self.id, self.wall);
                self.send(Sent::HandBack(requeue, ops), todo);
            }
            Effect::Discard { job, assignment, record } => {
                self.send(Sent::Write(txn::discard(&job, self.id, assignment, record)), todo);
            }
            // The registration is not updated in this model.
            Effect::Missed(_) => {}
            Effect::Quarantine { .. } => unreachable!("every value is readable"),
        }
    }

    pub(super) fn executor(
        &mut self,
        effect: executor_pool::Effect,
        deeds: &mut Vec<Deed>,
        todo: &mut VecDeque<Heard>,
    ) {
        use executor_pool::{Effect, Event};
        match effect {
            Effect::WantSlot if self.run.is_none() && !self.busy => {
                todo.push_back(Heard::ExecutorPool(Event::SlotGranted(self.wall)))
            }
            Effect::WantSlot => self.wants_slot = true,
            Effect::Launch(start) => {
                let (life, attempt) = (Life::of(&start.record), start.assignment.attempt);
                let begins = start.assignment.moved_from.is_none();
                let expired = begins && start.record.is_overdue(self.wall);
                let drains = self.stage() == Some(Stage::Draining);
                deeds.push(Deed::Launched { life, attempt, expired, drains });
                self.run = Some(Running { job: start.job, life, attempt, signalled: false });
            }
            Effect::Signal(_, attempt, _) => {
                if let Some(run) = self.run.as_mut().filter(|run| run.attempt == attempt) {
                    run.signalled = true;
                }
            }
            Effect::Abort(job, attempt) => {
                if self.run.take_if(|run| run.attempt == attempt).is_some() {
                    let ended = Ended { job, attempt, how: Run::Aborted };
                    todo.push_back(Heard::ExecutorPool(Event::Ended(vec![ended])));
                    if !self.busy && std::mem::take(&mut self.wants_slot) {
                        todo.push_back(Heard::ExecutorPool(Event::SlotGranted(self.wall)));
                    }
                }
            }
            Effect::Report(finished) => {
                todo.push_back(Heard::Beats(beats::Event::Finished(finished)));
            }
            Effect::Closed(job) => {
                todo.push_back(Heard::InboxWatcher(inbox_watcher::Event::Closed(vec![job])))
            }
            Effect::Recheck(job) => todo.push_back(Heard::InboxWatcher(inbox_watcher::Event::Recheck(job))),
            Effect::NotServed => unreachable!("the settings do not change"),
            Effect::DroppedZombie(_) => deeds.push(Deed::DroppedZombie),
            Effect::Idle => todo.push_back(Heard::Life(wing::Event::Idle)),
            Effect::ReturnSlot | Effect::WakeAt(_) => {}
        }
    }

    pub(super) fn beats(&mut self, effect: beats::Effect, todo: &mut VecDeque<Heard>) {
        use beats::Effect;
        match effect {
            Effect::Commit(batch) => self.send(Sent::Beat(batch), todo),
            Effect::Read(jobs) => self.send(Sent::ReadAssignments(jobs), todo),
            Effect::Cancel { job, attempt, assignment, version } => {
                let cancel = executor_pool::Event::Cancel { job, attempt, assignment, version };
                todo.push_back(Heard::ExecutorPool(cancel));
            }
            Effect::Zombie(job, attempt) => {
                todo.push_back(Heard::ExecutorPool(executor_pool::Event::Zombie(job, attempt)));
            }
            Effect::Close(finished) => {
                let report = reporter::Event::Report(self.wall, vec![(*finished, 0)]);
                todo.push_back(Heard::Reporter(report));
            }
            Effect::Third(job, attempt) => {
                todo.push_back(Heard::ExecutorPool(executor_pool::Event::Third(job, attempt)));
            }
            Effect::Lapsed(job, attempt) => {
                todo.push_back(Heard::ExecutorPool(executor_pool::Event::Lapsed(job, attempt)));
            }
            Effect::Until(..) | Effect::Confirmed(..) | Effect::WakeAt(_) => {}
        }
    }

    pub(super) fn reporter(
        &mut self,
        effect: reporter::Effect,
        deeds: &mut Vec<Deed>,
        todo: &mut VecDeque<Heard>,
    ) {
        use reporter::Effect;
        match effect {
            Effect::Commit(batch) => self.send(Sent::Close(batch), todo),
            Effect::Read(closes) => self.send(Sent::ReadBack(closes), todo),
            Effect::Settled(close, settled) => {
                deeds.push(Deed::Settled(Life::of(close.record()), close.attempt().number, settled));
                todo.push_back(Heard::ExecutorPool(executor_pool::Event::Closed(vec![close.job().clone()])));
            }
            Effect::Resolved { applied } => deeds.push(Deed::Resolved { applied }),
            // Requests that could not be sent are sent again after the reconnection.
            Effect::Refused(..) | Effect::WakeAt(_) => {}
        }
    }
}

pub(super) fn begun(start: &Start) -> StartedAttempt {
    StartedAttempt {
        job: start.job.clone(),
        assignment: start.assignment.clone(),
        version: start.assignment_version,
        auto: false,
    }
}
