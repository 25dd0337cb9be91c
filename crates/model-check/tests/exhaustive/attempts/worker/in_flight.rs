//! The requests and replies of a worker in flight, and the effect of a lost connection on them.

use std::collections::VecDeque;

use bellwether_core::machine::worker::inbox_watcher::{self, Requeue};
use bellwether_core::machine::worker::status_reporter::beats::{self, Beat};
use bellwether_core::machine::worker::status_reporter::reporter::{self, Close};
use bellwether_core::machine::worker::wing::{self, Ephemeral};
use bellwether_core::machine::worker::{Found, Lookup, executor_pool};
use bellwether_core::name::JobId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::txn::{Batch, Op};
use bellwether_core::worker::WorkerInfo;

use super::{Deed, HOLD, RESUME, Worker};
use crate::zookeeper::ZooKeeper;

/// A request in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sent {
    List,
    Read(Vec<JobId>),
    Close(Batch<Close>),
    ReadBack(Vec<Close>),
    Beat(Batch<Beat>),
    ReadAssignments(Vec<JobId>),
    HandBack(Box<Requeue>, Vec<Op>),
    /// A write whose reply is ignored; the next listing shows its effect.
    Write(Vec<Op>),
    /// A read of its registration.
    Look,
    /// An update of its registration.
    UpdateRegistration(Vec<Op>),
    Retire(Vec<Op>),
}

impl Sent {
    /// Returns the operations of a write.
    pub(crate) fn ops(&self) -> Vec<Op> {
        match self {
            Self::Close(batch) => batch.ops().cloned().collect(),
            Self::Beat(batch) => batch.ops().cloned().collect(),
            Self::HandBack(_, ops) | Self::Write(ops) | Self::UpdateRegistration(ops) | Self::Retire(ops) => {
                ops.clone()
            }
            Self::List | Self::Read(_) | Self::ReadBack(_) | Self::ReadAssignments(_) | Self::Look => {
                Vec::new()
            }
        }
    }

    /// Returns the event of a request without a reply.
    fn unanswered(self, unknown: Outcome<()>) -> Option<Heard> {
        Some(match self {
            Self::Read(jobs) => Heard::InboxWatcher(inbox_watcher::Event::ReadFailed(jobs)),
            Self::Close(batch) => Heard::Reporter(reporter::Event::Committed(batch, unknown)),
            Self::ReadBack(closes) => Heard::Reporter(reporter::Event::ReadFailed(closes)),
            Self::Beat(batch) => Heard::Beats(beats::Event::Committed(batch, unknown)),
            Self::ReadAssignments(jobs) => Heard::Beats(beats::Event::ReadFailed(jobs)),
            Self::Look => Heard::Life(wing::Event::Read(None)),
            Self::UpdateRegistration(_) => Heard::Life(wing::Event::RegistrationUpdated(unknown)),
            Self::Retire(_) => Heard::Life(wing::Event::Committed(unknown)),
            Self::List | Self::HandBack(..) | Self::Write(_) => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Heard {
    InboxWatcher(inbox_watcher::Event),
    ExecutorPool(executor_pool::Event),
    Beats(beats::Event),
    Reporter(reporter::Event),
    Life(wing::Event),
}

impl Worker {
    /// Returns the event of a reply.
    pub(crate) fn answer(&self, zk: &ZooKeeper, sent: Sent, outcome: Outcome<()>) -> Option<Heard> {
        Some(match sent {
            Sent::List => {
                let inbox = path::inbox(self.id);
                let jobs =
                    zk.children(&inbox)?.into_iter().map(|name| JobId::new(name).expect("a valid job id"));
                Heard::InboxWatcher(inbox_watcher::Event::Listed(jobs.collect()))
            }
            Sent::Read(jobs) => {
                let found = jobs.into_iter().map(|job| (job.clone(), self.found(zk, &job)));
                Heard::InboxWatcher(inbox_watcher::Event::Read(found.collect()))
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
            Sent::Look => {
                let found = zk.value::<WorkerInfo>(&path::worker(self.id));
                let found = found.map_or(Ephemeral::Absent, |(info, version)| Ephemeral::Ours {
                    version,
                    draining: info.draining,
                });
                Heard::Life(wing::Event::Read(Some(found)))
            }
            Sent::UpdateRegistration(_) => Heard::Life(wing::Event::RegistrationUpdated(outcome)),
            Sent::Retire(_) => Heard::Life(wing::Event::Committed(outcome)),
            Sent::HandBack(requeue, ops) => {
                Heard::InboxWatcher(inbox_watcher::Event::Refused(requeue.answered(&ops, &outcome)?))
            }
            Sent::Write(_) => return None,
        })
    }

    fn found(&self, zk: &ZooKeeper, job: &JobId) -> Found {
        Found {
            assignment: Lookup::of(zk.get(&path::assignment(self.id, job))),
            record: Lookup::of(zk.get(&path::record(job))),
        }
    }

    /// The connection breaks: requests without a reply become unknown, and the watch is lost.
    pub(crate) fn cut(&mut self, deeds: &mut Vec<Deed>) -> Vec<Op> {
        self.up = false;
        let mut lost = Vec::new();
        for heard in std::mem::take(&mut self.mailbox) {
            lost.extend(match heard {
                Heard::InboxWatcher(inbox_watcher::Event::Read(found)) => {
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
                Heard::Life(wing::Event::Read(_)) => Sent::Look.unanswered(Outcome::Unknown),
                Heard::Life(wing::Event::RegistrationUpdated(_)) => {
                    Sent::UpdateRegistration(Vec::new()).unanswered(Outcome::Unknown)
                }
                Heard::Life(wing::Event::Committed(_)) => {
                    Sent::Retire(Vec::new()).unanswered(Outcome::Unknown)
                }
                _ => None,
            });
        }
        let sent = std::mem::take(&mut self.sent);
        let late = sent.iter().flat_map(Sent::ops).collect();
        lost.extend(sent.into_iter().filter_map(|sent| sent.unanswered(Outcome::Unknown)));
        if self.stage().is_some() {
            self.hear(Heard::Life(wing::Event::Disconnected), deeds);
        } else {
            HOLD.into_iter().for_each(|heard| self.hear(heard, deeds));
        }
        lost.into_iter().for_each(|heard| self.hear(heard, deeds));
        late
    }

    /// The same session is connected again, with a new watch.
    pub(crate) fn resume(&mut self, deeds: &mut Vec<Deed>) {
        self.up = true;
        if self.stage().is_some() {
            return self.hear(Heard::Life(wing::Event::Reconnected), deeds);
        }
        RESUME.into_iter().for_each(|heard| self.hear(heard, deeds));
        self.sent.push_back(Sent::List);
    }

    /// The worker learns that its incarnation has ended: its runs are aborted, uncommitted results are dropped.
    pub(crate) fn stop(&mut self) -> Vec<Op> {
        (self.parts, self.run, self.up) = (None, None, false);
        self.mailbox.clear();
        std::mem::take(&mut self.sent).iter().flat_map(Sent::ops).collect()
    }

    pub(super) fn send(&mut self, sent: Sent, todo: &mut VecDeque<Heard>) {
        if self.up {
            self.sent.push_back(sent);
        } else {
            let not_sent = Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
            todo.extend(sent.unanswered(not_sent));
        }
    }
}
