//! The janitor: carries out what [`bellwether_core::machine::janitor`] decides.
//!
//! It watches nothing: every round asks for the settings and the counts of all buckets. While the session does not serve,
//! its requests are not sent, and the next round tries again.

use bellwether_core::machine::janitor::{self, Effect, Event, Found, FoundGroup, ROUND, Shelf};
use bellwether_core::metric;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket};
use bellwether_core::retention::Retention;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{Node, ReadError, Zk};
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
    Settings(Result<Vec<Option<Node>>, ReadError>),
    Counted(Shelf, Vec<Bucket>, Result<Vec<Option<Node>>, ReadError>),
    Listed(Shelf, Bucket, Result<Option<Vec<String>>, ReadError>),
    Read(Vec<JobId>, Result<Vec<Option<Node>>, ReadError>),
    Groups(Vec<GroupId>, Result<Vec<Option<Node>>, ReadError>),
    Names(Result<Vec<Option<Vec<String>>>, ReadError>),
    Stats(Result<Vec<Option<Node>>, ReadError>),
    Committed(Batch<String>, Outcome<()>),
}

actor!(
    Janitor,
    "janitor",
    JanitorMsg { Resume, Tick, Sweep, Settings, Counted, Listed, Read, Groups, Names, Stats, Committed }
);

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
            JanitorMsg::Counted(shelf, buckets, read) => {
                let count = |node: Option<Node>| node.map_or(0, |node| node.children);
                let counts = read.map(|nodes| nodes.into_iter().map(count).collect());
                Event::Counted(shelf, buckets, counts.map_err(note))
            }
            JanitorMsg::Listed(shelf, bucket, listed) => {
                let names = listed.map(Option::unwrap_or_default);
                Event::Listed(shelf, bucket, names.map_err(note))
            }
            JanitorMsg::Read(jobs, read) => {
                let found = |(job, node): (&JobId, Option<Node>)| {
                    let Some(node) = node else { return Found::Absent };
                    Found::of(job, &node.data, node.version, node.modified)
                };
                let found = read.map(|nodes| jobs.iter().zip(nodes).map(found).collect());
                Event::Read(jobs, found.map_err(note))
            }
            JanitorMsg::Groups(groups, read) => {
                let group = |(id, node): (&GroupId, Option<Node>)| state.group(id, &node?);
                let found = read.map(|nodes| groups.iter().zip(nodes).map(group).collect());
                Event::Groups(groups, found.map_err(note))
            }
            JanitorMsg::Names(names) => Event::Names(names.map_err(note)),
            JanitorMsg::Stats(read) => {
                let stat = |node: Option<Node>| node.map(|node| (node.modified, node.children));
                Event::Stats(read.map(|nodes| nodes.into_iter().map(stat).collect()).map_err(note))
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
                Effect::Settings => report(myself, settings(zk.clone()), JanitorMsg::Settings),
                Effect::Count(shelf, buckets) => {
                    let counted = zk.get_many(buckets.iter().map(|bucket| shelf.path(*bucket)).collect());
                    report(myself, counted, move |nodes| JanitorMsg::Counted(shelf, buckets, nodes));
                }
                Effect::List(shelf, bucket) => {
                    let listed = zk.children(shelf.path(bucket));
                    report(myself, listed, move |names| JanitorMsg::Listed(shelf, bucket, names));
                }
                Effect::Groups(groups) => {
                    let read = zk.get_many(groups.iter().map(path::group).collect());
                    report(myself, read, move |nodes| JanitorMsg::Groups(groups, nodes));
                }
                Effect::Names(parents) => report(myself, zk.children_many(parents), JanitorMsg::Names),
                Effect::Stat(paths) => report(myself, zk.get_many(paths), JanitorMsg::Stats),
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

    fn group(&mut self, id: &GroupId, node: &Node) -> FoundGroup {
        let record = wire::decode(&node.data);
        let record =
            record.inspect_err(|error| self.unreadable.tell(path::group(id), node.version, error)).ok()?;
        Some((record, node.version, node.modified))
    }

    /// What cannot be read counts as absent: nothing is removed that nobody said how long to keep.
    fn settings(
        &mut self,
        read: Result<Vec<Option<Node>>, ReadError>,
    ) -> Result<(Option<Retention>, Option<WallMillis>), ()> {
        let mut nodes = read.map_err(note)?.into_iter();
        let (setting, epoch) = (nodes.next().flatten(), nodes.next().flatten());
        let decode = |node: Node| {
            let decoded = wire::decode(&node.data);
            decoded
                .inspect_err(|error| self.unreadable.tell(path::RETENTION.into(), node.version, error))
                .ok()
        };
        Ok((setting.and_then(decode), epoch.map(|node| node.modified)))
    }
}

/// The setting and the epoch, as of now: a server that lags might show a record of an earlier job of its id.
async fn settings(zk: Zk) -> Result<Vec<Option<Node>>, ReadError> {
    let synced = zk.sync(path::JOBS.into());
    let read = zk.get_many(vec![path::RETENTION.into(), path::EPOCH.into()]);
    synced.await?;
    read.await
}

/// The next round asks again.
fn note(error: ReadError) {
    tracing::debug!(%error, "the janitor had no answer");
}
