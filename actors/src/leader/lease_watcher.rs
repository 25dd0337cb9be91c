//! The lease watcher: takes attempts from live workers that do not renew their leases.

use std::time::Duration;

use bellwether_core::chain::chain;
use bellwether_core::job::Assignment;
use bellwether_core::machine::assigner;
use bellwether_core::machine::lease_watcher::{
    self, AssignmentKey, Case, Effect, Event, Revocation, Revoked, SegmentCase, Stamp,
};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::port::{ChangeKind, Node, ReadResult};
use bellwether_core::time::Millis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;

use super::{SWEEP, kind_metrics, read_segment, stored};
use crate::{Concern, Context, Feed};

/// The watch and the timers of the lease watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the assignments.
    Assignments,
    /// The periodic listing.
    Sweep,
    /// The end of the next lease.
    Due,
}

/// Takes attempts from workers whose leases have ended, in one term.
pub struct LeaseWatcher {
    machine: lease_watcher::LeaseWatcher,
    /// The time that the timer is set to.
    armed: Option<Millis>,
}

/// The result of reading an assignment: its state and its lease, or `None` if it is absent or unreadable.
type ReadAssignment = (AssignmentKey, Option<(Stamp, Duration)>);

/// Messages to the lease watcher.
pub enum LeaseWatcherMsg {
    /// The term is active again.
    Resume,
    /// The next lease may have ended.
    Tick,
    /// From the watch on the assignments.
    Feed(Feed),
    /// The workers that have inboxes.
    Inboxes(ReadResult<Vec<WorkerId>>),
    /// The jobs in a worker's inbox.
    Listed(WorkerId, ReadResult<Vec<JobId>>),
    /// The assignments that were read, or the keys whose read was not answered.
    AssignmentsRead(Result<Vec<ReadAssignment>, Vec<AssignmentKey>>),
    /// The assignments and records that were read, or the keys whose read was not answered.
    CasesRead(Result<Vec<Case>, Vec<AssignmentKey>>),
    /// The assignment of a segment was read, or not.
    SegmentRead(Result<Box<SegmentCase>, AssignmentKey>),
    /// The outcome of a revocation.
    Committed(Batch<Revocation>, Outcome<()>),
    /// The periodic listing is due.
    Sweep,
}

kinds!(LeaseWatcherMsg {
    Resume,
    Tick,
    Feed => Feed,
    Inboxes,
    Listed,
    AssignmentsRead,
    CasesRead,
    SegmentRead,
    Committed,
    Sweep,
});

/// Messages of the lease watcher to its neighbours.
#[expect(clippy::large_enum_variant, reason = "nearly all messages are events of the assigner")]
pub enum Tell {
    /// To the assigner.
    Assigner(assigner::Event),
    /// To the wing: another leader has claimed.
    FencedOut,
}

impl Concern for LeaseWatcher {
    const NAME: &'static str = "lease_watcher";
    type Msg = LeaseWatcherMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, LeaseWatcherMsg::Sweep);
        Self { machine: lease_watcher::LeaseWatcher::new(epoch), armed: None }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: LeaseWatcherMsg) {
        let event = match msg {
            LeaseWatcherMsg::Resume => return watch(cx),
            LeaseWatcherMsg::Sweep => {
                self.feed(cx, Event::Resync);
                return cx.sweep(Key::Sweep, SWEEP, LeaseWatcherMsg::Sweep);
            }
            LeaseWatcherMsg::Tick => {
                self.armed = None;
                Event::Tick
            }
            LeaseWatcherMsg::Feed(Feed::Watching) => Event::Resync,
            LeaseWatcherMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let path::Place::Assignment(worker, job) = change.place else { continue };
                    self.feed(
                        cx,
                        match change.kind {
                            ChangeKind::Created | ChangeKind::DataChanged => Event::Changed((worker, job)),
                            ChangeKind::Deleted => Event::Gone((worker, job)),
                        },
                    );
                }
                return;
            }
            LeaseWatcherMsg::Inboxes(Ok(workers)) => Event::Inboxes(workers),
            LeaseWatcherMsg::Listed(worker, Ok(jobs)) => {
                return jobs.into_iter().for_each(|job| self.feed(cx, Event::Seen((worker, job))));
            }
            // The next reconnect or sweep lists again.
            LeaseWatcherMsg::Inboxes(Err(error)) | LeaseWatcherMsg::Listed(_, Err(error)) => {
                return tracing::debug!(error = %chain(&error), "the leader cannot list the inboxes");
            }
            LeaseWatcherMsg::AssignmentsRead(Ok(read)) => Event::AssignmentsRead(read),
            LeaseWatcherMsg::CasesRead(Ok(cases)) => Event::CasesRead(cases),
            LeaseWatcherMsg::AssignmentsRead(Err(keys)) | LeaseWatcherMsg::CasesRead(Err(keys)) => {
                Event::ReadFailed(keys)
            }
            LeaseWatcherMsg::SegmentRead(Ok(case)) => Event::SegmentRead(case),
            LeaseWatcherMsg::SegmentRead(Err(key)) => Event::ReadFailed(vec![key]),
            LeaseWatcherMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
        };
        self.feed(cx, event);
    }
}

fn watch(cx: &mut Context<'_, LeaseWatcher>) {
    cx.watch(Key::Assignments, path::ASSIGNMENTS.into(), LeaseWatcherMsg::Feed);
}

impl LeaseWatcher {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.now, cx.wall, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::ListInboxes => cx.children(path::ASSIGNMENTS.into(), |names| {
                    let worker = |name: &String| WorkerId::parse(name);
                    LeaseWatcherMsg::Inboxes(
                        names.map(|names| names.iter().flatten().filter_map(worker).collect()),
                    )
                }),
                Effect::List(worker) => cx.children(path::inbox(worker), move |names| {
                    let job = |name: &String| JobId::new(name).ok();
                    LeaseWatcherMsg::Listed(
                        worker,
                        names.map(|names| names.iter().flatten().filter_map(job).collect()),
                    )
                }),
                Effect::ReadAssignments(keys) => {
                    let paths = keys.iter().map(|(worker, job)| path::assignment(*worker, job));
                    cx.get_many(paths.collect(), |nodes| {
                        LeaseWatcherMsg::AssignmentsRead(match nodes {
                            Ok(nodes) => Ok(keys.into_iter().zip(nodes.iter().map(stamp)).collect()),
                            Err(_) => Err(keys),
                        })
                    });
                }
                Effect::ReadCases(keys) => {
                    let of =
                        |(worker, job): &AssignmentKey| [path::assignment(*worker, job), path::record(job)];
                    cx.get_many(keys.iter().flat_map(of).collect(), |nodes| {
                        LeaseWatcherMsg::CasesRead(match nodes {
                            Ok(nodes) => Ok(cases(keys, nodes)),
                            Err(_) => Err(keys),
                        })
                    });
                }
                Effect::ReadSegment(key, id) => cx.task(move |zk| async move {
                    LeaseWatcherMsg::SegmentRead(match read_segment(zk, key.0, id).await {
                        Ok((created, found)) => Ok(Box::new(SegmentCase { key, id, created, found })),
                        Err(_) => Err(key),
                    })
                }),
                Effect::Commit(batch) => cx.commit_batch(batch, LeaseWatcherMsg::Committed),
                Effect::Revoked(revoked) => {
                    // The members of a segment have leases of their own, which show later whether the worker hangs.
                    if !matches!(revoked.revoked, Revoked::Members(_)) {
                        cx.tell(Tell::Assigner(assigner::Event::Hangs(revoked.worker)));
                    }
                    note(&revoked);
                }
                Effect::FencedOut => cx.tell(Tell::FencedOut),
            }
        }
        self.arm(cx);
    }

    fn arm(&mut self, cx: &mut Context<'_, Self>) {
        let Some(due) = self.machine.next_due() else { return };
        // A lease that has ended waits for an answer, not for the timer.
        if due > cx.now && self.armed.is_none_or(|armed| due < armed) {
            self.armed = Some(due);
            cx.after(Key::Due, due.since(cx.now), LeaseWatcherMsg::Tick);
        }
    }
}

fn stamp(node: &Option<Node>) -> Option<(Stamp, Duration)> {
    let node = node.as_ref()?;
    // The worker quarantines a job whose assignment cannot be read.
    let assignment = wire::decode::<Assignment>(&node.data).ok()?;
    Some((Stamp { created: node.created, version: node.version }, assignment.lease))
}

/// Pairs each key with its two nodes, which are in the order of the request.
fn cases(keys: Vec<AssignmentKey>, nodes: Vec<Option<Node>>) -> Vec<Case> {
    let mut nodes = nodes.into_iter();
    let cases = keys.into_iter().map(|key| {
        let (assignment, record) = (nodes.next().flatten(), nodes.next().flatten());
        let created = assignment.as_ref().map_or(0, |node| node.created);
        Case { key, created, assignment: stored(assignment), record: stored(record) }
    });
    cases.collect()
}

fn note(revoked: &Revocation) {
    let Revocation { worker, job, revoked } = revoked;
    let (kind, attempt, closed) = match revoked {
        Revoked::Attempt { kind, attempt, closed } => (kind, attempt, closed),
        Revoked::Members(members) => {
            return tracing::warn!(segment = %job, %worker, members, "the worker shows no sign of life: the members of its segment are extracted");
        }
    };
    let (outcome, dead) = (closed.how.as_str(), closed.dead);
    tracing::warn!(%job, %kind, %worker, attempt, outcome, dead, "the lease expired without a renewal: the attempt is taken from its worker");
    kind_metrics::count_closed(kind, *closed);
}
