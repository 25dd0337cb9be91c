//! The assigner actor: feeds core's [`assigner`], as `actors/host/src/leader/assigner.rs` does.

use std::time::Duration;

use bellwether_core::job::{QueueEntry, Turn, TurnIndex};
use bellwether_core::machine::assigner::{self, Effect, Event, Job, Order, Spot, Strategy};
use bellwether_core::name::{JobId, Kind, Lane, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place as ZnodePlace};
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::expirer::ExpirerMsg;
use super::{Place, SWEEP};
use crate::node::context::{Context, Route};
use crate::zk::{ReadResult, Znode};

pub(crate) enum AssignerMsg {
    Event(Event),
    Pause,
    Resume,
    Sweep,
    /// The timer with this number.
    Tick(u64),
    Committed(Batch<Job>, Outcome<()>),
    Inbox(WorkerId, ReadResult<Option<Vec<String>>>),
    Watching(bool),
    Changed(WatchedEvent),
    LanesWatching(bool),
    LanesChanged(WatchedEvent),
    LanesListed(u64, Vec<Lane>, ReadResult<Vec<Option<Vec<String>>>>),
    TurnsRead(u64, Vec<(Lane, Spot)>, ReadResult<Vec<Option<Znode>>>),
    Resolved(ReadResult<Vec<(JobId, Option<QueueEntry>)>>),
    /// Of the pauses: a watch is set, or heard something.
    Pauses(bool),
    PausesListed(ReadResult<Option<Vec<String>>>),
}

/// As the actor's: a wall clock that was set is noticed within it.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(super) struct Assigner {
    place: Place,
    machine: assigner::Assigner,
    paused: bool,
    timers: u64,
}

impl Assigner {
    pub(super) fn start(cx: &mut Context<'_>, place: Place, strategy: Strategy) -> Self {
        let machine = assigner::Assigner::new(place.term.epoch, strategy, cx.rng.u64(..));
        let assigner = Self { place, machine, paused: false, timers: 0 };
        assigner.sweep(cx);
        assigner.watch(cx);
        assigner
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.assigner(AssignerMsg::Sweep));
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let (zk, place) = (self.place.term.zk, self.place);
        cx.watch(
            zk,
            path::ASSIGNMENTS,
            move |set| place.assigner(AssignerMsg::Watching(set)),
            move |event| place.assigner(AssignerMsg::Changed(event.clone())),
        );
        cx.watch(
            zk,
            path::LANES,
            move |set| place.assigner(AssignerMsg::LanesWatching(set)),
            move |event| place.assigner(AssignerMsg::LanesChanged(event.clone())),
        );
        cx.watch(
            zk,
            path::PAUSES,
            move |set| place.assigner(AssignerMsg::Pauses(set)),
            move |_| place.assigner(AssignerMsg::Pauses(true)),
        );
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: AssignerMsg) {
        let event = match msg {
            AssignerMsg::Event(event) => event,
            AssignerMsg::Watching(false) | AssignerMsg::LanesWatching(false) => return,
            // What was listed before the watch was set may have changed since.
            AssignerMsg::Watching(true) if self.paused => return,
            AssignerMsg::Watching(true) => Event::Resume,
            AssignerMsg::Changed(event) => match (event.kind, path::parse(&event.path)) {
                (EventKind::NodeDeleted, ZnodePlace::Assignment(worker, _)) => Event::InboxChanged(worker),
                (_, _) => return,
            },
            AssignerMsg::LanesWatching(true) => Event::LanesWatched,
            AssignerMsg::LanesChanged(event) => match (event.kind, path::parse(&event.path)) {
                (EventKind::NodeDeleted, ZnodePlace::Turn(Turn { lane, generation }, job)) => {
                    Event::TurnGone(lane, (generation, job))
                }
                (_, _) => return,
            },
            AssignerMsg::LanesListed(ticket, lanes, lists) => {
                let lists = lists.ok().map(|lists| lists.into_iter().map(turns).collect());
                Event::LanesListed { ticket, lanes, lists }
            }
            AssignerMsg::TurnsRead(ticket, turns, nodes) => {
                let found =
                    nodes.ok().map(|nodes| nodes.into_iter().map(|node| Some(order(&node?))).collect());
                Event::TurnsRead { ticket, turns, found }
            }
            AssignerMsg::Pause => {
                self.paused = true;
                Event::Pause
            }
            AssignerMsg::Resume => {
                self.paused = false;
                self.watch(cx);
                Event::Resume
            }
            AssignerMsg::Sweep => {
                self.sweep(cx);
                if self.paused {
                    return;
                }
                self.feed(cx, Event::PausesChanged);
                Event::Resume
            }
            AssignerMsg::Pauses(true) => Event::PausesChanged,
            AssignerMsg::PausesListed(names) => {
                let kind = |name: &String| Kind::new(name).ok();
                Event::Paused(names.ok().map(|names| names.iter().flatten().filter_map(kind).collect()))
            }
            AssignerMsg::Pauses(false) => return,
            AssignerMsg::Tick(number) if number == self.timers => Event::Tick,
            // One that was replaced.
            AssignerMsg::Tick(_) => return,
            AssignerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            AssignerMsg::Inbox(worker, Ok(Some(jobs))) => Event::Inbox(worker, Some(jobs.len())),
            // Without an inbox it takes nothing. The registry hears of its end.
            AssignerMsg::Inbox(worker, Ok(None)) => Event::WorkerGone(worker),
            AssignerMsg::Inbox(worker, Err(_)) => Event::Inbox(worker, None),
            AssignerMsg::Resolved(entries) => Event::Resolved(entries.ok()),
        };
        self.feed(cx, event);
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, place) = (self.place.term.zk, self.place);
        let due_before = self.machine.next_overdue();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), cx.wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.assigner(AssignerMsg::Committed(batch, outcome))
                }),
                Effect::ListInbox(worker) => cx.children(zk, path::inbox(worker), move |listed| {
                    place.assigner(AssignerMsg::Inbox(worker, listed))
                }),
                Effect::Resolve(jobs) => {
                    let paths: Vec<_> = jobs.iter().map(path::queue_entry).collect();
                    cx.get_many(zk, paths, move |nodes| {
                        let entry = |node: Option<Znode>| wire::decode(&node?.data).ok();
                        let entries = nodes.map(|nodes| {
                            jobs.into_iter().zip(nodes).map(|(job, node)| (job, entry(node))).collect()
                        });
                        place.assigner(AssignerMsg::Resolved(entries))
                    });
                }
                Effect::ListLanes { ticket, lanes } => {
                    let paths: Vec<_> = lanes.iter().map(path::lane).collect();
                    cx.children_many(zk, paths, move |lists| {
                        place.assigner(AssignerMsg::LanesListed(ticket, lanes, lists))
                    });
                }
                Effect::ReadTurns { ticket, turns } => {
                    let path = |(lane, (generation, job)): &(Lane, Spot)| {
                        path::turn(&Turn { lane: lane.clone(), generation: *generation }, job)
                    };
                    let paths: Vec<_> = turns.iter().map(path).collect();
                    cx.get_many(zk, paths, move |nodes| {
                        place.assigner(AssignerMsg::TurnsRead(ticket, turns, nodes))
                    });
                }
                Effect::ListPauses => cx.children(zk, path::PAUSES.to_owned(), move |listed| {
                    place.assigner(AssignerMsg::PausesListed(listed))
                }),
                Effect::Overdue(jobs) => {
                    cx.tell(Route::AssignerToExpirer, place.expirer(ExpirerMsg::Overdue(jobs)));
                }
                Effect::FencedOut => place.fenced_out(cx),
                Effect::Assigned { .. } => {}
            }
        }
        let due = self.machine.next_overdue();
        if ticked || due != due_before {
            self.timers += 1;
            if let Some(due) = due {
                // One more, because it may be started in its last millisecond.
                let wait = due.since(cx.wall()) + Duration::from_millis(1);
                cx.after(wait.min(LONGEST_SLEEP), place.assigner(AssignerMsg::Tick(self.timers)));
            }
        }
    }
}

fn turns(names: Option<Vec<String>>) -> Vec<Spot> {
    names.iter().flatten().filter_map(|name| path::parse_turn(name)).collect()
}

fn order(node: &Znode) -> Order {
    let TurnIndex(index) = wire::decode(&node.data).unwrap_or(TurnIndex(u32::MAX));
    (node.created, index)
}
