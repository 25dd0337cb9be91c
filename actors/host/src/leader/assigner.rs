//! The assigner: carries out what [`bellwether_core::machine::assigner`] decides.
//!
//! It hears of changed inboxes by one recursive watch on their parent. A one-shot watch on each would be fewer
//! events, but a node that is a worker too watches its own inbox recursively in the same session, and the server
//! keeps one mode per path: the one-shot watch would be lost (ZOOKEEPER-4466). Another recursive watch, on the lanes,
//! tells whose turn has gone; a job without a lane makes no event there. A third, on the pauses, only makes it list them:
//! they are few.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::{QueueEntry, Turn, TurnIndex};
use bellwether_core::machine::assigner::{self, Effect, Event, Job, Order, Spot, Strategy};
use bellwether_core::metric;
use bellwether_core::name::{JobId, Kind, Lane, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place};
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{Change, ChangeKind, Node, ReadError, Zk};
use metrics::{counter, gauge, histogram};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::expirer::ExpirerMsg;
use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::feed::{self, Feed};
use crate::spawn::actor;
use crate::task::{Owned, after, report, sweep, tell};
use crate::trace::Assigning;
use crate::unreadable::Unreadable;

/// The longest sleep until a job expires: a wall clock that was set is noticed within it.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(super) struct Assigner;

pub(super) enum AssignerMsg {
    Event(Event),
    Pause,
    Resume,
    Sweep,
    Tick,
    Committed(Batch<Job>, Outcome<()>),
    Inbox(WorkerId, Result<Option<Vec<String>>, ReadError>),
    Feed(Feed),
    Lanes(Feed),
    LanesListed(u64, Vec<Lane>, Result<Vec<Option<Vec<String>>>, ReadError>),
    TurnsRead(u64, Vec<(Lane, Spot)>, Result<Vec<Option<Node>>, ReadError>),
    Resolved(Result<Vec<(JobId, Option<QueueEntry>)>, ReadError>),
    Pauses(Feed),
    PausesListed(Result<Option<Vec<String>>, ReadError>),
}

actor!(Assigner, "assigner", AssignerMsg {
    Event => Event,
    Pause,
    Resume,
    Sweep,
    Tick,
    Committed,
    Inbox,
    Feed => Feed,
    Lanes => Feed,
    LanesListed,
    TurnsRead,
    Resolved,
    Pauses => Feed,
    PausesListed,
});

pub(super) struct State {
    zk: Zk,
    fenced: Fenced,
    expirer: ActorRef<ExpirerMsg>,
    machine: assigner::Assigner,
    epoch: i32,
    unreadable: Unreadable,
    _feed: Owned,
    _lanes: Owned,
    _pauses: Owned,
    _sweep: Owned,
    timer: Option<Owned>,
    paused: bool,
}

impl Actor for Assigner {
    type Msg = AssignerMsg;
    type State = State;
    type Arguments = (Term, Strategy, ActorRef<ExpirerMsg>, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<AssignerMsg>,
        (term, strategy, expirer, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let machine = assigner::Assigner::new(term.epoch, strategy, fastrand::u64(..));
        let _sweep = sweep(&myself, SWEEP, || AssignerMsg::Sweep);
        let _feed = feed::watch(&term.zk, path::ASSIGNMENTS.into(), &myself, AssignerMsg::Feed);
        let _lanes = feed::watch(&term.zk, path::LANES.into(), &myself, AssignerMsg::Lanes);
        let _pauses = feed::watch(&term.zk, path::PAUSES.into(), &myself, AssignerMsg::Pauses);
        let unreadable = Unreadable::default();
        Ok(State {
            zk: term.zk,
            fenced,
            expirer,
            machine,
            epoch: term.epoch,
            unreadable,
            _feed,
            _lanes,
            _pauses,
            _sweep,
            timer: None,
            paused: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<AssignerMsg>,
        message: AssignerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            AssignerMsg::Event(event) => event,
            // What was listed before the watch was set may have changed since.
            AssignerMsg::Feed(Feed::Watching) if state.paused => return Ok(()),
            AssignerMsg::Feed(Feed::Watching) => Event::Resume,
            AssignerMsg::Feed(Feed::Changes(changes)) => {
                for worker in emptied(changes) {
                    state.feed(&myself, Event::InboxChanged(worker));
                }
                return Ok(());
            }
            AssignerMsg::Lanes(Feed::Watching) => Event::LanesWatched,
            AssignerMsg::Lanes(Feed::Changes(changes)) => {
                for (Turn { lane, generation }, job) in ended(changes) {
                    state.feed(&myself, Event::TurnGone(lane, (generation, job)));
                }
                return Ok(());
            }
            AssignerMsg::LanesListed(ticket, lanes, lists) => {
                let lists = lists.ok().map(|lists| lists.into_iter().map(turns).collect());
                Event::LanesListed { ticket, lanes, lists }
            }
            AssignerMsg::TurnsRead(ticket, turns, nodes) => {
                let found = nodes.ok().map(|nodes| {
                    let nodes = turns.iter().zip(nodes);
                    nodes.map(|(turn, node)| Some(order(turn, &node?, &mut state.unreadable))).collect()
                });
                Event::TurnsRead { ticket, turns, found }
            }
            AssignerMsg::Pause => {
                state.paused = true;
                Event::Pause
            }
            AssignerMsg::Resume => {
                state.paused = false;
                state._feed = feed::watch(&state.zk, path::ASSIGNMENTS.into(), &myself, AssignerMsg::Feed);
                state._lanes = feed::watch(&state.zk, path::LANES.into(), &myself, AssignerMsg::Lanes);
                state._pauses = feed::watch(&state.zk, path::PAUSES.into(), &myself, AssignerMsg::Pauses);
                Event::Resume
            }
            AssignerMsg::Sweep => {
                state._sweep = sweep(&myself, SWEEP, || AssignerMsg::Sweep);
                if state.paused {
                    return Ok(());
                }
                state.feed(&myself, Event::PausesChanged);
                Event::Resume
            }
            AssignerMsg::Pauses(Feed::Watching | Feed::Changes(_)) => Event::PausesChanged,
            // Those of a namespace whose parent an operator deleted are none.
            AssignerMsg::PausesListed(names) => Event::Paused(names.ok().map(paused)),
            AssignerMsg::Tick => Event::Tick,
            AssignerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            AssignerMsg::Inbox(worker, Ok(Some(jobs))) => Event::Inbox(worker, Some(jobs.len())),
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
        let due_before = self.machine.next_overdue();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), clock::wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    let assigning = Assigning::begin(&batch, self.epoch);
                    let committed = self.zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| {
                        assigning.end(&outcome);
                        AssignerMsg::Committed(batch, outcome)
                    });
                }
                Effect::ListInbox(worker) => {
                    let listed = self.zk.children(path::inbox(worker));
                    report(myself, listed, move |listed| AssignerMsg::Inbox(worker, listed));
                }
                Effect::Resolve(jobs) => {
                    report(myself, resolve(self.zk.clone(), jobs), AssignerMsg::Resolved)
                }
                Effect::ListLanes { ticket, lanes } => {
                    let listed = self.zk.children_many(lanes.iter().map(path::lane).collect());
                    report(myself, listed, move |lists| AssignerMsg::LanesListed(ticket, lanes, lists));
                }
                Effect::ReadTurns { ticket, turns } => {
                    let paths = turns.iter().map(|(lane, (generation, job))| {
                        path::turn(&Turn { lane: lane.clone(), generation: *generation }, job)
                    });
                    let read = self.zk.get_many(paths.collect());
                    report(myself, read, move |nodes| AssignerMsg::TurnsRead(ticket, turns, nodes));
                }
                Effect::ListPauses => {
                    report(myself, self.zk.children(path::PAUSES.into()), AssignerMsg::PausesListed);
                }
                Effect::Overdue(jobs) => tell(&self.expirer, ExpirerMsg::Overdue(jobs)),
                Effect::FencedOut => self.fenced.tell(),
                Effect::Assigned { kind, since } => {
                    counter!(metric::JOBS_ASSIGNED, "kind" => kind.to_string()).increment(1);
                    histogram!(metric::ASSIGN_SECONDS).record(clock::now().since(since));
                }
            }
        }
        let due = self.machine.next_overdue();
        if ticked || due != due_before {
            self.timer = due.map(|due| {
                // One more, because it may be started in its last millisecond.
                let wait = due.since(clock::wall()) + Duration::from_millis(1);
                after(myself, wait.min(LONGEST_SLEEP), || AssignerMsg::Tick)
            });
        }
        let (slots, used) = self.machine.slots();
        set_gauges(self.machine.waiting(), self.machine.workers(), slots, used);
    }
}

/// The workers with an assignment less: what was added was added by this leader, and counts already.
fn emptied(changes: Vec<Change>) -> BTreeSet<WorkerId> {
    let deleted = changes.into_iter().filter(|change| change.kind == ChangeKind::Deleted);
    let worker = |change: Change| match change.place {
        Place::Assignment(worker, _) => Some(worker),
        Place::QueueEntry(_)
        | Place::DelayedEntry(..)
        | Place::Worker(_)
        | Place::Inbox(_)
        | Place::Turn(..)
        | Place::Schedule(_)
        | Place::Group(_)
        | Place::Other => None,
    };
    deleted.filter_map(worker).collect()
}

/// The turns that are gone. One that was made comes after all that are known.
fn ended(changes: Vec<Change>) -> impl Iterator<Item = (Turn, JobId)> {
    let deleted = changes.into_iter().filter(|change| change.kind == ChangeKind::Deleted);
    deleted.filter_map(|change| match change.place {
        Place::Turn(turn, job) => Some((turn, job)),
        Place::QueueEntry(_)
        | Place::DelayedEntry(..)
        | Place::Worker(_)
        | Place::Inbox(_)
        | Place::Assignment(..)
        | Place::Schedule(_)
        | Place::Group(_)
        | Place::Other => None,
    })
}

/// A name that is no kind pauses nothing.
fn paused(names: Option<Vec<String>>) -> BTreeSet<Kind> {
    names.iter().flatten().filter_map(|name| Kind::new(name).ok()).collect()
}

/// The turns of a lane; one that is not there has none. A name that is not ours is nobody's turn.
fn turns(names: Option<Vec<String>>) -> Vec<Spot> {
    names.iter().flatten().filter_map(|name| path::parse_turn(name)).collect()
}

/// One whose data cannot be read comes after the others of its transaction.
fn order((lane, (generation, job)): &(Lane, Spot), node: &Node, unreadable: &mut Unreadable) -> Order {
    let TurnIndex(index) = wire::decode(&node.data).unwrap_or_else(|error| {
        let turn = Turn { lane: lane.clone(), generation: *generation };
        unreadable.tell(path::turn(&turn, job), node.version, error);
        TurnIndex(u32::MAX)
    });
    (node.created, index)
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
    gauge!(metric::SCHEDULES).set(0.0);
    gauge!(metric::GROUPS).set(0.0);
    set_gauges(0, 0, 0, 0);
}
