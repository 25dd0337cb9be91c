//! The promoter: moves delayed jobs to the queue when their time comes.

use bellwether_core::job::QueueEntry;
use bellwether_core::machine::promoter::{self, Effect, Event};
use bellwether_core::metric;
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{ChangeKind, Node, ReadError};
use metrics::gauge;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::alarm::Alarm;
use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::feed::{self, Feed};
use crate::spawn::actor;
use crate::task::{Owned, report, sweep};
use crate::unreadable::Unreadable;

pub(super) struct Promoter;

pub(super) enum PromoterMsg {
    Resume,
    Tick,
    Feed(Feed),
    Minutes(Result<Option<Vec<String>>, ReadError>),
    Listed(u64, Result<Option<Vec<String>>, ReadError>),
    Read(Vec<promoter::Place>, Result<Vec<Option<Node>>, ReadError>),
    Committed(Batch<promoter::Place>, Outcome<()>),
    Sweep,
}

actor!(Promoter, "promoter", PromoterMsg {
    Resume,
    Tick,
    Feed => Feed,
    Minutes,
    Listed,
    Read,
    Committed,
    Sweep,
});

pub(super) struct State {
    term: Term,
    fenced: Fenced,
    machine: promoter::Promoter,
    unreadable: Unreadable,
    _feed: Owned,
    _sweep: Owned,
    alarm: Alarm,
}

impl Actor for Promoter {
    type Msg = PromoterMsg;
    type State = State;
    type Arguments = (Term, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<PromoterMsg>,
        (term, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let _feed = feed::watch(&term.zk, path::DELAYED.into(), &myself, PromoterMsg::Feed);
        let machine = promoter::Promoter::new(term.epoch);
        let _sweep = sweep(&myself, SWEEP, || PromoterMsg::Sweep);
        let alarm = Alarm::start(&myself, || PromoterMsg::Tick);
        Ok(State { term, fenced, machine, unreadable: Unreadable::default(), _feed, _sweep, alarm })
    }

    async fn handle(
        &self,
        myself: ActorRef<PromoterMsg>,
        message: PromoterMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PromoterMsg::Resume => {
                state._feed = feed::watch(&state.term.zk, path::DELAYED.into(), &myself, PromoterMsg::Feed);
            }
            PromoterMsg::Sweep => {
                state.feed(&myself, Event::Resync);
                state._sweep = sweep(&myself, SWEEP, || PromoterMsg::Sweep);
            }
            PromoterMsg::Tick => state.feed(&myself, Event::Tick),
            PromoterMsg::Feed(Feed::Watching) => state.feed(&myself, Event::Anew),
            PromoterMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let path::Place::DelayedEntry(minute, job) = change.place else { continue };
                    let place = (minute, job);
                    let event = match change.kind {
                        ChangeKind::Created | ChangeKind::DataChanged => Event::Created(place),
                        ChangeKind::Deleted => Event::Gone(place),
                    };
                    state.feed(&myself, event);
                }
            }
            PromoterMsg::Minutes(Ok(names)) => {
                let minutes = names.iter().flatten().filter_map(|name| path::parse_minute(name)).collect();
                state.feed(&myself, Event::Minutes(minutes));
            }
            PromoterMsg::Listed(minute, Ok(names)) => {
                for job in names.iter().flatten().filter_map(|name| JobId::new(name).ok()) {
                    state.feed(&myself, Event::Seen((minute, job)));
                }
            }
            // The session's return, or the next sweep, lists again.
            PromoterMsg::Minutes(Err(error)) | PromoterMsg::Listed(_, Err(error)) => {
                tracing::debug!(%error, "the delayed jobs were not listed");
            }
            PromoterMsg::Read(places, Ok(nodes)) => {
                let entries = places.into_iter().zip(nodes).map(|(place, node)| {
                    let entry = node.and_then(|node| decode(&place, &node, &mut state.unreadable));
                    (place, entry)
                });
                let event = Event::Read(entries.collect());
                state.feed(&myself, event);
            }
            PromoterMsg::Read(places, Err(_)) => state.feed(&myself, Event::ReadFailed(places)),
            PromoterMsg::Committed(batch, outcome) => state.feed(&myself, Event::Committed(batch, outcome)),
        }
        Ok(())
    }
}

impl State {
    fn feed(&mut self, myself: &ActorRef<PromoterMsg>, event: Event) {
        let now = clock::wall();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(now, event, &mut effects);
        let zk = &self.term.zk;
        for effect in effects {
            match effect {
                Effect::ListMinutes => {
                    report(myself, zk.children(path::DELAYED.into()), PromoterMsg::Minutes)
                }
                Effect::List(minute) => {
                    let listed = zk.children(path::delayed_minute(minute));
                    report(myself, listed, move |listed| PromoterMsg::Listed(minute, listed));
                }
                Effect::Read(places) => {
                    let paths =
                        places.iter().map(|(minute, job)| path::delayed_entry(*minute, job)).collect();
                    report(myself, zk.get_many(paths), move |nodes| PromoterMsg::Read(places, nodes));
                }
                Effect::Commit(batch) => {
                    let committed = zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| PromoterMsg::Committed(batch, outcome));
                }
                Effect::FencedOut => self.fenced.tell(),
            }
        }
        self.alarm.set(myself, now, self.machine.next_due(), ticked, || PromoterMsg::Tick);
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no count comes near 2^53")]
        gauge!(metric::DELAYED).set(self.machine.len() as f64);
    }
}

fn decode(place: &promoter::Place, node: &Node, unreadable: &mut Unreadable) -> Option<QueueEntry> {
    let (minute, job) = place;
    wire::decode(&node.data)
        .inspect_err(|error| unreadable.tell(path::delayed_entry(*minute, job), node.version, error))
        .ok()
}
