//! The inbox watcher: feeds core's [`inbox::Inbox`], as `actors/src/worker/inbox_watcher.rs` does.

use std::time::Duration;

use bellwether_core::machine::worker::Found;
use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::inbox::{self, Effect, Event, Requeue};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, Place as ZnodePlace};
use bellwether_core::txn;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::{ExecutorMsg, Place, WorkerMsg, found, paths};
use crate::node::Msg;
use crate::node::context::{Context, Route};
use crate::zk::ReadResult;

/// As the actor's: how long a hint that was lost while connected can delay a job.
const RELIST: Duration = Duration::from_secs(30);

pub(crate) enum InboxMsg {
    Hold,
    Resume,
    Relist,
    Closed(Vec<JobId>),
    Recheck(Vec<JobId>),
    Changed(WatchedEvent),
    Listed(ReadResult<Option<Vec<String>>>),
    Read(Vec<(JobId, Found)>),
    Unread(Vec<JobId>),
    Refused(Box<Requeue>),
    Periodic,
}

pub(super) struct Inbox {
    place: Place,
    machine: inbox::Inbox,
    up: bool,
}

impl Inbox {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let inbox = Self { place, machine: inbox::Inbox::new(), up: true };
        inbox.watch(cx);
        inbox.list_later(cx);
        inbox
    }

    fn list_later(&self, cx: &mut Context<'_>) {
        cx.after(RELIST, self.place.inbox(InboxMsg::Periodic));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: InboxMsg) {
        match msg {
            InboxMsg::Hold => {
                self.up = false;
                self.feed(cx, Event::Hold);
            }
            InboxMsg::Resume => {
                self.up = true;
                self.feed(cx, Event::Resume);
                self.watch(cx);
            }
            InboxMsg::Relist => self.list(cx),
            InboxMsg::Closed(jobs) => self.feed(cx, Event::Closed(jobs)),
            InboxMsg::Recheck(jobs) => jobs.into_iter().for_each(|job| self.feed(cx, Event::Recheck(job))),
            InboxMsg::Changed(event) => self.changed(cx, &event),
            InboxMsg::Listed(Ok(None)) => {
                cx.tell(Route::ChildToWorker, Msg::Worker(WorkerMsg::InboxGone(self.place.term)));
            }
            InboxMsg::Listed(Ok(Some(children))) => {
                let jobs = children.iter().filter_map(|child| JobId::new(child).ok()).collect();
                self.feed(cx, Event::Listed(jobs));
            }
            // A Resume follows.
            InboxMsg::Listed(Err(_)) => {}
            InboxMsg::Read(found) => self.feed(cx, Event::Read(found)),
            InboxMsg::Unread(jobs) => self.feed(cx, Event::ReadFailed(jobs)),
            InboxMsg::Refused(requeue) => self.feed(cx, Event::Refused(requeue)),
            InboxMsg::Periodic => {
                self.list(cx);
                self.list_later(cx);
            }
        }
    }

    /// Asks for a watch, then for a listing.
    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.zk,
            &path::inbox(place.worker),
            |_| Msg::Nothing,
            move |event| place.inbox(InboxMsg::Changed(event.clone())),
        );
        self.list(cx);
    }

    fn list(&self, cx: &mut Context<'_>) {
        let place = self.place;
        if self.up {
            cx.children(place.zk, path::inbox(place.worker), move |listed| {
                place.inbox(InboxMsg::Listed(listed))
            });
        }
    }

    fn changed(&mut self, cx: &mut Context<'_>, event: &WatchedEvent) {
        match (path::parse(&event.path), event.kind) {
            // The inbox itself: retired, or taken away.
            (ZnodePlace::Inbox(_), EventKind::NodeDeleted) => self.list(cx),
            (ZnodePlace::Assignment(_, job), EventKind::NodeCreated) => {
                self.feed(cx, Event::Created(vec![job]))
            }
            (ZnodePlace::Assignment(_, job), EventKind::NodeDataChanged) => {
                self.feed(cx, Event::Changed(vec![job]));
            }
            (ZnodePlace::Assignment(_, job), EventKind::NodeDeleted) => {
                self.feed(cx, Event::Deleted(vec![job]))
            }
            (_, _) => {}
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, worker) = (self.place.zk, self.place.worker);
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), event, &mut effects);
        let (mut starts, mut vanished) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Read(jobs) => self.read(cx, jobs),
                Effect::Start(start) => starts.push(*start),
                Effect::Vanished(job) => vanished.push(job),
                Effect::Cancel { job, attempt, assignment, version } => {
                    self.tell(cx, ToExecutor::Cancel { job, attempt, assignment, version });
                }
                Effect::Zombie(job, attempt) => self.tell(cx, ToExecutor::Zombie(job, attempt)),
                Effect::Missed(_) => {
                    let msg = Msg::Worker(WorkerMsg::TakenForHung(self.place.term));
                    cx.tell(Route::ChildToWorker, msg);
                }
                Effect::Quarantine { job, note } => {
                    cx.commit(zk, &txn::quarantine(&job, worker, &note), |_| Msg::Nothing);
                }
                Effect::Requeue(requeue) => self.hand_back(cx, requeue),
                Effect::Discard { job, assignment, record } => {
                    cx.commit(zk, &txn::discard(&job, worker, assignment, record), |_| Msg::Nothing);
                }
            }
        }
        if !starts.is_empty() {
            cx.tell(
                Route::InboxToExecutor,
                self.place.executor(ExecutorMsg::Tell(ToExecutor::Start(starts))),
            );
        }
        if !vanished.is_empty() {
            self.tell(cx, ToExecutor::Vanished(vanished));
        }
    }

    fn hand_back(&self, cx: &mut Context<'_>, requeue: Box<Requeue>) {
        let place = self.place;
        let ops = requeue.ops(place.worker, cx.wall());
        cx.commit(place.zk, &ops.clone(), move |outcome| match requeue.answered(&ops, &outcome) {
            Some(instead) => place.inbox(InboxMsg::Refused(instead)),
            None => Msg::Nothing,
        });
    }

    fn tell(&self, cx: &mut Context<'_>, event: ToExecutor) {
        cx.tell(Route::InboxToExecutor, self.place.executor(ExecutorMsg::Tell(event)));
    }

    fn read(&self, cx: &mut Context<'_>, jobs: Vec<JobId>) {
        let place = self.place;
        let paths = paths(place.worker, jobs.iter());
        cx.get_many(place.zk, paths, move |nodes| {
            place.inbox(match nodes {
                Ok(nodes) => InboxMsg::Read(jobs.into_iter().zip(found(&nodes)).collect()),
                Err(_) => InboxMsg::Unread(jobs),
            })
        });
    }
}
