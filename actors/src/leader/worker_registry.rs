//! The worker registry: tracks the live workers and recovers the jobs of lost ones.

use std::collections::BTreeSet;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::chain::chain;
use bellwether_core::machine::assigner;
use bellwether_core::machine::worker_registry::membership::{self, Membership};
use bellwether_core::machine::worker_registry::recovery::{
    self, Item, Orphan, OrphanOutcome, Recovery, Stored,
};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place};
use bellwether_core::port::{ChangeKind, Node, ReadResult};
use bellwether_core::worker::WorkerInfo;
use metrics::{counter, gauge};

use super::kind_metrics::{self, Kinds};
use super::{SWEEP, read_segment, stored};
use crate::unreadable::Unreadable;
use crate::{Concern, Context, Feed};

/// The watch and the timer of the worker registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the registrations.
    Workers,
    /// The periodic listing.
    Sweep,
}

/// Tracks the live workers and recovers the jobs of lost ones, in one term.
pub struct WorkerRegistry {
    membership: Membership,
    recovery: Recovery,
    unreadable: Unreadable,
    kinds: Kinds,
}

/// Messages to the worker registry.
pub enum WorkerRegistryMsg {
    /// The term is active again.
    Resume,
    /// The periodic listing is due.
    Sweep,
    /// From the watch on the registrations.
    Feed(Feed),
    /// The workers that have a registration or an inbox.
    Listed(ReadResult<BTreeSet<WorkerId>>),
    /// The registrations that were read.
    Workers(ReadResult<Vec<(WorkerId, Stored<WorkerInfo>)>>),
    /// The answer to an effect of the recovery.
    Recovery(recovery::Event),
}

kinds!(WorkerRegistryMsg { Resume, Sweep, Feed => Feed, Listed, Workers, Recovery => recovery::Event });

/// Messages of the worker registry to its neighbours.
#[expect(clippy::large_enum_variant, reason = "nearly all messages are events of the assigner")]
pub enum Tell {
    /// To the assigner.
    Assigner(assigner::Event),
    /// To the wing: another leader has claimed.
    FencedOut,
}

impl Concern for WorkerRegistry {
    const NAME: &'static str = "worker_registry";
    type Msg = WorkerRegistryMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, WorkerRegistryMsg::Sweep);
        Self {
            membership: Membership::default(),
            recovery: Recovery::new(epoch),
            unreadable: Unreadable::default(),
            kinds: Kinds::default(),
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: WorkerRegistryMsg) {
        match msg {
            WorkerRegistryMsg::Resume => watch(cx),
            WorkerRegistryMsg::Sweep => {
                self.list(cx);
                cx.sweep(Key::Sweep, SWEEP, WorkerRegistryMsg::Sweep);
            }
            WorkerRegistryMsg::Feed(Feed::Watching) => self.list(cx),
            WorkerRegistryMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let Place::Worker(worker) = change.place else { continue };
                    let event = match change.kind {
                        ChangeKind::Created | ChangeKind::DataChanged => membership::Event::Seen(worker),
                        ChangeKind::Deleted => membership::Event::Deleted(worker),
                    };
                    self.member(cx, event);
                }
            }
            WorkerRegistryMsg::Listed(Ok(listed)) => self.member(cx, membership::Event::Listed(listed)),
            WorkerRegistryMsg::Workers(Ok(workers)) => {
                for (worker, read) in workers {
                    self.member(cx, membership::Event::Read(worker, read));
                }
            }
            // The next reconnect or sweep reads again.
            WorkerRegistryMsg::Listed(Err(error)) | WorkerRegistryMsg::Workers(Err(error)) => {
                tracing::debug!(error = %chain(&error), "the leader cannot read the workers");
            }
            WorkerRegistryMsg::Recovery(event) => self.recover(cx, event),
        }
    }
}

fn watch(cx: &mut Context<'_, WorkerRegistry>) {
    cx.watch(Key::Workers, path::WORKERS.into(), WorkerRegistryMsg::Feed);
}

impl WorkerRegistry {
    fn list(&mut self, cx: &mut Context<'_, Self>) {
        cx.children_many(vec![path::WORKERS.into(), path::ASSIGNMENTS.into()], |lists| {
            WorkerRegistryMsg::Listed(lists.map(|lists| {
                let names = lists.iter().flatten().flatten();
                names.filter_map(|name| WorkerId::parse(name)).collect()
            }))
        });
        self.recover(cx, recovery::Event::Sweep);
    }

    fn member(&mut self, cx: &mut Context<'_, Self>, event: membership::Event) {
        let mut effects = Vec::new();
        self.membership.handle(event, &mut effects);
        for effect in effects {
            match effect {
                membership::Effect::Read(workers) => {
                    for workers in workers.chunks(MAX_READ_BATCH) {
                        let workers = workers.to_vec();
                        cx.get_many(workers.iter().map(|id| path::worker(*id)).collect(), |nodes| {
                            let read = |nodes: Vec<_>| nodes.into_iter().map(stored);
                            WorkerRegistryMsg::Workers(
                                nodes.map(|nodes| workers.into_iter().zip(read(nodes)).collect()),
                            )
                        });
                    }
                }
                membership::Effect::Lives(worker, info, version) => {
                    self.kinds.met(&info.kinds);
                    for former in &info.former {
                        self.recover(cx, recovery::Event::Survived(*former));
                    }
                    cx.tell(Tell::Assigner(assigner::Event::Worker(worker, *info, version)));
                }
                membership::Effect::Dead(worker) => {
                    tracing::info!(%worker, "a worker is no longer registered");
                    cx.tell(Tell::Assigner(assigner::Event::WorkerGone(worker)));
                    self.recover(cx, recovery::Event::Lost(worker));
                }
                membership::Effect::Unreadable(worker, error) => {
                    // It gets no jobs. It is reported once, whatever version its registration has.
                    self.unreadable.tell(path::worker(worker), 0, error);
                    cx.tell(Tell::Assigner(assigner::Event::WorkerGone(worker)));
                }
            }
        }
    }

    fn recover(&mut self, cx: &mut Context<'_, Self>, event: recovery::Event) {
        use recovery::{Effect, Event};
        let mut effects = Vec::new();
        if let Event::Removed(_, Outcome::Applied(())) = &event {
            counter!(metric::WORKERS_LOST).increment(1);
        }
        self.recovery.handle(cx.wall, event, &mut effects);
        show_orphaned(self.recovery.inboxes());
        let answer = WorkerRegistryMsg::Recovery;
        for effect in effects {
            match effect {
                Effect::List(worker) => cx.children(path::inbox(worker), move |names| {
                    let job = |name: &String| JobId::new(name).ok();
                    let jobs = names.map(|names| names.map(|names| names.iter().filter_map(job).collect()));
                    answer(Event::Listed(worker, jobs.map_err(|_| ())))
                }),
                Effect::Read(worker, jobs) => {
                    let of = |job: &JobId| [path::assignment(worker, job), path::record(job)];
                    cx.get_many(jobs.iter().flat_map(of).collect(), move |nodes| {
                        answer(Event::Read(worker, nodes.map(|nodes| orphans(jobs, nodes)).map_err(|_| ())))
                    });
                }
                Effect::ReadSegment(worker, id) => cx.task(move |zk| async move {
                    let found = read_segment(zk, worker, id).await.map(|(_, found)| Box::new(found));
                    answer(Event::SegmentRead(worker, id, found.map_err(|_| ())))
                }),
                Effect::Commit(worker, batch) => cx.commit_batch(batch, move |batch, outcome| {
                    answer(Event::Committed(worker, batch, note_unknown(worker, outcome)))
                }),
                Effect::Remove(worker, ops) => {
                    cx.commit(ops, move |_, outcome| Some(answer(Event::Removed(worker, outcome))));
                }
                Effect::FencedOut => cx.tell(Tell::FencedOut),
                Effect::Closed(item) => note(&item),
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats, and no count comes near 2^53")]
fn show_orphaned(inboxes: usize) {
    gauge!(metric::ORPHANED_INBOXES).set(inboxes as f64);
}

/// Sets the registry's gauges to 0, for a node that is not the leader.
pub fn clear_gauges() {
    show_orphaned(0);
}

/// Pairs each job with its two nodes, which are in the order of the request.
fn orphans(jobs: Vec<JobId>, nodes: Vec<Option<Node>>) -> Vec<Orphan> {
    let mut nodes = nodes.into_iter();
    let orphans = jobs.into_iter().map(|job| {
        let (assignment, record) = (nodes.next().flatten(), nodes.next().flatten());
        Orphan { job, assignment: stored(assignment), record: stored(record) }
    });
    orphans.collect()
}

fn note_unknown(worker: WorkerId, outcome: Outcome<()>) -> Outcome<()> {
    if outcome == Outcome::Unknown {
        tracing::info!(%worker, "the outcome of a recovery is unknown: the leader lists the inbox again");
    }
    outcome
}

fn note(item: &Item) {
    match &item.outcome {
        OrphanOutcome::Closed { kind, closed } => {
            let (outcome, dead) = (closed.how.as_str(), closed.dead);
            tracing::info!(job = %item.job, %kind, outcome, dead, "the leader recovered a job of a lost worker");
            counter!(metric::ORPHANED_ATTEMPTS_RECOVERED).increment(1);
            kind_metrics::count_closed(kind, *closed);
        }
        OrphanOutcome::Quarantined(why) => {
            tracing::error!(job = %item.job, reason = why, "the job is quarantined: its record or assignment cannot be read");
            counter!(metric::ZNODES_QUARANTINED).increment(1);
        }
        OrphanOutcome::Extracted(members) => {
            tracing::debug!(segment = %item.job, members, "the leader extracted the members of a lost worker's segment");
        }
        OrphanOutcome::Stale => {
            tracing::debug!(job = %item.job, "the leader removed a stale assignment of a lost worker")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{Stage, watched};

    #[test]
    fn the_workers_are_watched_again_after_a_reconnect() {
        let (mut stage, started) = Stage::<WorkerRegistry>::start(1);
        assert_eq!(watched(&started), [path::WORKERS]);
        assert_eq!(watched(&stage.handle(WorkerRegistryMsg::Resume)), [path::WORKERS]);
    }
}
