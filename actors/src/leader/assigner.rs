//! The assigner: carries out what [`bellwether_core::machine::assigner`] decides.

use std::collections::HashMap;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::QueueEntry;
use bellwether_core::machine::assigner::{self, Effect, Event, Job, Strategy};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{Glance, ReadError, Zk};
use metrics::{counter, gauge, histogram};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Fenced, Term};
use crate::clock;
use crate::task::{Owned, report, tell};

pub(super) struct Assigner;

pub(super) enum AssignerMsg {
    Event(Event),
    Pause,
    Resume,
    Sweep,
    Committed(Batch<Job>, Outcome<()>),
    Inbox(WorkerId, Result<Option<(Vec<String>, Glance)>, ReadError>),
    Resolved(Result<Vec<(JobId, Option<QueueEntry>)>, ReadError>),
}

pub(super) struct State {
    zk: Zk,
    fenced: Fenced,
    machine: assigner::Assigner,
    glances: HashMap<WorkerId, Owned>,
    paused: bool,
}

impl Actor for Assigner {
    type Msg = AssignerMsg;
    type State = State;
    type Arguments = (Term, Strategy, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<AssignerMsg>,
        (term, strategy, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let machine = assigner::Assigner::new(term.epoch, strategy, fastrand::u64(..));
        super::sweep(&myself, || AssignerMsg::Sweep);
        Ok(State { zk: term.zk, fenced, machine, glances: HashMap::new(), paused: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<AssignerMsg>,
        message: AssignerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            AssignerMsg::Event(event) => {
                if let Event::WorkerGone(worker) = &event {
                    state.glances.remove(worker);
                }
                event
            }
            AssignerMsg::Pause => {
                state.paused = true;
                Event::Pause
            }
            AssignerMsg::Resume => {
                state.paused = false;
                Event::Resume
            }
            AssignerMsg::Sweep => {
                super::sweep(&myself, || AssignerMsg::Sweep);
                if state.paused {
                    return Ok(());
                }
                Event::Resume
            }
            AssignerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            AssignerMsg::Inbox(worker, Ok(Some((jobs, glance)))) => {
                let to = myself.clone();
                let changed = Owned::spawn(async move {
                    glance.changed().await;
                    tell(&to, AssignerMsg::Event(Event::InboxChanged(worker)));
                });
                state.glances.insert(worker, changed);
                Event::Inbox(worker, Some(jobs.len()))
            }
            // Without an inbox it takes nothing. The registry hears of its end.
            AssignerMsg::Inbox(worker, Ok(None)) => Event::WorkerGone(worker),
            AssignerMsg::Inbox(worker, Err(_)) => Event::Inbox(worker, None),
            AssignerMsg::Resolved(entries) => {
                let entries = entries.ok();
                for (_, entry) in entries.iter().flatten() {
                    let resolved = if entry.is_some() { "not_applied" } else { "applied" };
                    counter!(metric::UNKNOWN_RESOLVED, "as" => resolved).increment(1);
                }
                Event::Resolved(entries)
            }
        };
        state.feed(&myself, event);
        Ok(())
    }
}

impl State {
    fn feed(&mut self, myself: &ActorRef<AssignerMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), clock::wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    let committed = self.zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| AssignerMsg::Committed(batch, outcome));
                }
                Effect::ListInbox(worker) => {
                    let listed = self.zk.children_and_glance(path::inbox(worker));
                    report(myself, listed, move |listed| AssignerMsg::Inbox(worker, listed));
                }
                Effect::Resolve(jobs) => {
                    report(myself, resolve(self.zk.clone(), jobs), AssignerMsg::Resolved)
                }
                Effect::FencedOut => self.fenced.tell(),
                Effect::Assigned { kind, since } => {
                    counter!(metric::JOBS_ASSIGNED, "kind" => kind.to_string()).increment(1);
                    histogram!(metric::ASSIGN_SECONDS).record(clock::now().since(since));
                }
            }
        }
        let (slots, used) = self.machine.slots();
        set_gauges(self.machine.waiting(), self.machine.workers(), slots, used);
    }
}

/// An entry that cannot be read counts as gone: what is not known is not assigned.
async fn resolve(zk: Zk, jobs: Vec<JobId>) -> Result<Vec<(JobId, Option<QueueEntry>)>, ReadError> {
    let mut resolved = Vec::with_capacity(jobs.len());
    for jobs in jobs.chunks(MAX_READ_BATCH) {
        let nodes = zk.get_many(jobs.iter().map(path::queue_entry).collect()).await?;
        let entries = nodes.into_iter().map(|node| wire::decode(&node?.data).ok());
        resolved.extend(jobs.iter().cloned().zip(entries));
    }
    Ok(resolved)
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats, and no count comes near 2^53")]
fn set_gauges(waiting: usize, workers: usize, slots: usize, used: usize) {
    gauge!(metric::QUEUE_DEPTH).set(waiting as f64);
    gauge!(metric::WORKERS).set(workers as f64);
    gauge!(metric::SLOTS).set(slots as f64);
    gauge!(metric::SLOTS_USED).set(used as f64);
}

/// A node that does not lead sees nothing.
pub(super) fn clear_gauges() {
    gauge!(metric::DELAYED).set(0.0);
    set_gauges(0, 0, 0, 0);
}
