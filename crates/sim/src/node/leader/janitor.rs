//! The janitor: feeds core's [`janitor`], as `actors/host/src/leader/janitor.rs` does.

use bellwether_core::machine::janitor::{self, Effect, Event, Found, ROUND, Shelf};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket};
use bellwether_core::txn::Batch;
use bellwether_core::wire;

use super::Place;
use crate::node::context::Context;
use crate::zk::{ReadResult, Znode};

pub(crate) enum JanitorMsg {
    Resume,
    /// The timer with this number.
    Go(u64),
    Settings(ReadResult<Vec<Option<Znode>>>),
    Counted(Shelf, Vec<Bucket>, ReadResult<Vec<Option<Znode>>>),
    Listed(Shelf, Bucket, ReadResult<Option<Vec<String>>>),
    Read(Vec<JobId>, ReadResult<Vec<Option<Znode>>>),
    Groups(Vec<GroupId>, ReadResult<Vec<Option<Znode>>>),
    Names(ReadResult<Vec<Option<Vec<String>>>>),
    Stats(ReadResult<Vec<Option<Znode>>>),
    Committed(Batch<String>, Outcome<()>),
}

pub(super) struct Janitor {
    place: Place,
    machine: janitor::Janitor,
    timers: u64,
}

impl Janitor {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let mut janitor = Self { place, machine: janitor::Janitor::new(place.term.epoch), timers: 0 };
        janitor.timer(cx, ROUND);
        janitor
    }

    fn timer(&mut self, cx: &mut Context<'_>, wait: std::time::Duration) {
        self.timers += 1;
        cx.after(wait, self.place.janitor(JanitorMsg::Go(self.timers)));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: JanitorMsg) {
        let event = match msg {
            JanitorMsg::Resume => Event::Go,
            JanitorMsg::Go(number) if number == self.timers => Event::Go,
            // One that was replaced.
            JanitorMsg::Go(_) => return,
            JanitorMsg::Settings(read) => {
                let settings = |nodes: Vec<Option<Znode>>| {
                    let mut nodes = nodes.into_iter();
                    let (setting, epoch) = (nodes.next().flatten(), nodes.next().flatten());
                    let setting = setting.and_then(|node| wire::decode(&node.data).ok());
                    (setting, epoch.map(|node| node.modified))
                };
                Event::Settings(read.map(settings).map_err(drop))
            }
            JanitorMsg::Counted(shelf, buckets, read) => {
                let count = |node: Option<Znode>| node.map_or(0, |node| node.children);
                let counts = read.map(|nodes| nodes.into_iter().map(count).collect());
                Event::Counted(shelf, buckets, counts.map_err(drop))
            }
            JanitorMsg::Listed(shelf, bucket, listed) => {
                let names = listed.map(Option::unwrap_or_default);
                Event::Listed(shelf, bucket, names.map_err(drop))
            }
            JanitorMsg::Read(jobs, read) => {
                let found = |(job, node): (&JobId, Option<Znode>)| {
                    let Some(node) = node else { return Found::Absent };
                    Found::of(job, &node.data, node.version, node.modified)
                };
                let found = read.map(|nodes| jobs.iter().zip(nodes).map(found).collect());
                Event::Read(jobs, found.map_err(drop))
            }
            JanitorMsg::Groups(groups, read) => {
                let group = |node: Option<Znode>| {
                    let node = node?;
                    Some((wire::decode(&node.data).ok()?, node.version, node.modified))
                };
                let found = read.map(|nodes| nodes.into_iter().map(group).collect());
                Event::Groups(groups, found.map_err(drop))
            }
            JanitorMsg::Names(names) => Event::Names(names.map_err(drop)),
            JanitorMsg::Stats(read) => {
                let stat = |node: Option<Znode>| node.map(|node| (node.modified, node.children));
                Event::Stats(read.map(|nodes| nodes.into_iter().map(stat).collect()).map_err(drop))
            }
            JanitorMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
        };
        self.feed(cx, event);
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, place) = (self.place.term.zk, self.place);
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), cx.wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Rest(wait) => self.timer(cx, wait),
                Effect::Idle => self.timer(cx, ROUND),
                Effect::Settings => {
                    let paths = [path::RETENTION, path::EPOCH].map(str::to_owned);
                    cx.get_many(zk, paths, move |nodes| place.janitor(JanitorMsg::Settings(nodes)));
                }
                Effect::Count(shelf, buckets) => {
                    let paths: Vec<_> = buckets.iter().map(|bucket| shelf.path(*bucket)).collect();
                    cx.get_many(zk, paths, move |nodes| {
                        place.janitor(JanitorMsg::Counted(shelf, buckets, nodes))
                    });
                }
                Effect::List(shelf, bucket) => cx.children(zk, shelf.path(bucket), move |names| {
                    place.janitor(JanitorMsg::Listed(shelf, bucket, names))
                }),
                Effect::Groups(groups) => {
                    let paths: Vec<_> = groups.iter().map(path::group).collect();
                    cx.get_many(zk, paths, move |nodes| place.janitor(JanitorMsg::Groups(groups, nodes)));
                }
                Effect::Names(parents) => {
                    cx.children_many(zk, parents, move |names| place.janitor(JanitorMsg::Names(names)));
                }
                Effect::Stat(paths) => {
                    cx.get_many(zk, paths, move |nodes| place.janitor(JanitorMsg::Stats(nodes)));
                }
                Effect::Read(jobs) => {
                    let paths: Vec<_> = jobs.iter().map(path::record).collect();
                    cx.get_many(zk, paths, move |nodes| place.janitor(JanitorMsg::Read(jobs, nodes)));
                }
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.janitor(JanitorMsg::Committed(batch, outcome))
                }),
                Effect::Removed(_) => {}
                Effect::FencedOut => place.fenced_out(cx),
            }
        }
    }
}
