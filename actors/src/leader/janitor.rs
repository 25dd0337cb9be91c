//! The janitor: carries out what [`bellwether_core::machine::janitor`] decides.
//!
//! It watches nothing: every round asks for the settings and the counts of all buckets. While the session does not serve,
//! its requests are not sent, and the next round tries again.

use bellwether_core::machine::janitor::{self, Effect, Event, Found, ROUND};
use bellwether_core::metric;
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket};
use bellwether_core::retention::Retention;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{Node, ReadError};
use metrics::counter;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Fenced, Term};
use crate::clock;
use crate::spawn::actor;
use crate::task::{Owned, after, report, sweep};
use crate::unreadable::Unreadable;

pub(super) struct Janitor;

pub(super) enum JanitorMsg {
    Resume,
    /// A rest is over.
    Tick,
    /// A round begins.
    Sweep,
    Settings(Result<Option<Node>, ReadError>),
    Counted(Vec<Bucket>, Result<Vec<Option<Node>>, ReadError>),
    Listed(Bucket, Result<Option<Vec<String>>, ReadError>),
    Read(Vec<JobId>, Result<Vec<Option<Node>>, ReadError>),
    Committed(Batch<JobId>, Outcome<()>),
}

actor!(Janitor, "janitor", JanitorMsg { Resume, Tick, Sweep, Settings, Counted, Listed, Read, Committed });

pub(super) struct State {
    term: Term,
    fenced: Fenced,
    machine: janitor::Janitor,
    unreadable: Unreadable,
    _timer: Owned,
}

impl Actor for Janitor {
    type Msg = JanitorMsg;
    type State = State;
    type Arguments = (Term, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<JanitorMsg>,
        (term, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let machine = janitor::Janitor::new(term.epoch);
        // A new leader has more urgent things to do.
        let _timer = sweep(&myself, ROUND, || JanitorMsg::Sweep);
        Ok(State { term, fenced, machine, unreadable: Unreadable::default(), _timer })
    }

    async fn handle(
        &self,
        myself: ActorRef<JanitorMsg>,
        message: JanitorMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            JanitorMsg::Resume | JanitorMsg::Tick | JanitorMsg::Sweep => Event::Go,
            JanitorMsg::Settings(read) => Event::Settings(state.settings(read)),
            JanitorMsg::Counted(buckets, read) => {
                let count = |node: Option<Node>| node.map_or(0, |node| node.children);
                let counts = read.map(|nodes| nodes.into_iter().map(count).collect());
                Event::Counted(buckets, counts.map_err(note))
            }
            JanitorMsg::Listed(bucket, listed) => {
                // A name that is not an id is not a job's.
                let jobs = |names: Option<Vec<String>>| {
                    names.iter().flatten().filter_map(|name| JobId::new(name).ok()).collect()
                };
                Event::Listed(bucket, listed.map(jobs).map_err(note))
            }
            JanitorMsg::Read(jobs, read) => {
                let found = |node: Option<Node>| {
                    node.map_or(Found::Left, |node| Found::of(&node.data, node.version, node.modified))
                };
                let found = read.map(|nodes| nodes.into_iter().map(found).collect());
                Event::Read(jobs, found.map_err(note))
            }
            JanitorMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
        };
        state.feed(&myself, event);
        Ok(())
    }
}

impl State {
    fn feed(&mut self, myself: &ActorRef<JanitorMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), clock::wall(), event, &mut effects);
        let zk = &self.term.zk;
        for effect in effects {
            match effect {
                Effect::Rest(wait) => self._timer = after(myself, wait, || JanitorMsg::Tick),
                Effect::Idle => self._timer = sweep(myself, ROUND, || JanitorMsg::Sweep),
                Effect::Settings => report(myself, zk.get(path::RETENTION.into()), JanitorMsg::Settings),
                Effect::Count(buckets) => {
                    let counted = zk.get_many(buckets.iter().copied().map(Bucket::jobs).collect());
                    report(myself, counted, move |nodes| JanitorMsg::Counted(buckets, nodes));
                }
                Effect::List(bucket) => {
                    let listed = zk.children(bucket.jobs());
                    report(myself, listed, move |names| JanitorMsg::Listed(bucket, names));
                }
                Effect::Read(jobs) => {
                    let read = zk.get_many(jobs.iter().map(path::record).collect());
                    report(myself, read, move |nodes| JanitorMsg::Read(jobs, nodes));
                }
                Effect::Commit(batch) => {
                    let committed = zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| JanitorMsg::Committed(batch, outcome));
                }
                Effect::Removed(count) => {
                    tracing::debug!(count, "records of jobs that are over were removed");
                    counter!(metric::RECORDS_REMOVED).increment(count as u64);
                }
                Effect::FencedOut => self.fenced.tell(),
            }
        }
    }

    /// What cannot be read counts as absent: nothing is removed that nobody said how long to keep.
    fn settings(&mut self, read: Result<Option<Node>, ReadError>) -> Result<Option<Retention>, ()> {
        let Some(node) = read.map_err(note)? else { return Ok(None) };
        let decoded = wire::decode(&node.data);
        Ok(decoded
            .inspect_err(|error| self.unreadable.tell(path::RETENTION.into(), node.version, error))
            .ok())
    }
}

/// The next round asks again.
fn note(error: ReadError) {
    tracing::debug!(%error, "the janitor had no answer");
}
