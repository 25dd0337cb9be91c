//! The promoter: feeds core's [`promoter`], as `actors/src/leader/promoter.rs` does.

use std::time::Duration;

use bellwether_core::machine::promoter::{self, Effect, Event};
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place as ZnodePlace};
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::{Place, SWEEP};
use crate::node::context::Context;
use crate::zk::{ReadResult, Znode};

/// As the actor's: a wall clock that was set is noticed within it, and so is a new minute.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(crate) enum PromoterMsg {
    Resume,
    Sweep,
    /// The timer with this number.
    Tick(u64),
    Watching(bool),
    Changed(WatchedEvent),
    Minutes(ReadResult<Option<Vec<String>>>),
    Listed(u64, ReadResult<Option<Vec<String>>>),
    Read(Vec<promoter::Place>, ReadResult<Vec<Option<Znode>>>),
    Committed(Batch<promoter::Place>, Outcome<()>),
}

pub(super) struct Promoter {
    place: Place,
    machine: promoter::Promoter,
    timers: u64,
}

impl Promoter {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let machine = promoter::Promoter::new(place.term.epoch);
        let mut promoter = Self { place, machine, timers: 0 };
        promoter.watch(cx);
        promoter.sweep(cx);
        promoter.timer(cx, LONGEST_SLEEP);
        promoter
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.term.zk,
            path::DELAYED,
            move |set| place.promoter(PromoterMsg::Watching(set)),
            move |event| place.promoter(PromoterMsg::Changed(event.clone())),
        );
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.promoter(PromoterMsg::Sweep));
    }

    fn timer(&mut self, cx: &mut Context<'_>, wait: Duration) {
        self.timers += 1;
        cx.after(wait, self.place.promoter(PromoterMsg::Tick(self.timers)));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: PromoterMsg) {
        match msg {
            PromoterMsg::Resume => self.watch(cx),
            PromoterMsg::Sweep => {
                self.feed(cx, Event::Resync);
                self.sweep(cx);
            }
            PromoterMsg::Tick(number) if number == self.timers => self.feed(cx, Event::Tick),
            // One that was replaced.
            PromoterMsg::Tick(_) => {}
            PromoterMsg::Watching(false) => {}
            PromoterMsg::Watching(true) => self.feed(cx, Event::Anew),
            PromoterMsg::Changed(event) => {
                let ZnodePlace::DelayedEntry(minute, job) = path::parse(&event.path) else { return };
                match event.kind {
                    EventKind::NodeCreated | EventKind::NodeDataChanged => {
                        self.feed(cx, Event::Created((minute, job)));
                    }
                    EventKind::NodeDeleted => self.feed(cx, Event::Gone((minute, job))),
                    EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved => {}
                }
            }
            PromoterMsg::Minutes(Ok(names)) => {
                let minutes = names.iter().flatten().filter_map(|name| name.parse().ok()).collect();
                self.feed(cx, Event::Minutes(minutes));
            }
            PromoterMsg::Listed(minute, Ok(names)) => {
                for job in names.iter().flatten().filter_map(|name| JobId::new(name).ok()) {
                    self.feed(cx, Event::Seen((minute, job)));
                }
            }
            // The session's return, or the next sweep, lists again.
            PromoterMsg::Minutes(Err(_)) | PromoterMsg::Listed(_, Err(_)) => {}
            PromoterMsg::Read(places, Ok(nodes)) => {
                let entry = |node: Option<Znode>| wire::decode(&node?.data).ok();
                let entries = places.into_iter().zip(nodes).map(|(place, node)| (place, entry(node)));
                let event = Event::Read(entries.collect());
                self.feed(cx, event);
            }
            PromoterMsg::Read(places, Err(_)) => self.feed(cx, Event::ReadFailed(places)),
            PromoterMsg::Committed(batch, outcome) => self.feed(cx, Event::Committed(batch, outcome)),
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (now, zk, place) = (cx.wall(), self.place.term.zk, self.place);
        let due_before = self.machine.next_due();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(now, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::ListMinutes => cx.children(zk, path::DELAYED.to_owned(), move |listed| {
                    place.promoter(PromoterMsg::Minutes(listed))
                }),
                Effect::List(minute) => cx.children(zk, path::delayed_minute(minute), move |listed| {
                    place.promoter(PromoterMsg::Listed(minute, listed))
                }),
                Effect::Read(places) => {
                    let path = |(minute, job): &promoter::Place| path::delayed_entry(*minute, job);
                    let paths: Vec<_> = places.iter().map(path).collect();
                    cx.get_many(zk, paths, move |nodes| place.promoter(PromoterMsg::Read(places, nodes)));
                }
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.promoter(PromoterMsg::Committed(batch, outcome))
                }),
                Effect::FencedOut => place.fenced_out(cx),
            }
        }
        let due = self.machine.next_due();
        if ticked || due != due_before {
            // What is due already waits for an answer, not for the time.
            let ahead = due.map(|due| due.since(now)).filter(|ahead| !ahead.is_zero());
            let wait = ahead.map_or(LONGEST_SLEEP, |ahead| ahead.min(LONGEST_SLEEP));
            self.timer(cx, wait);
        }
    }
}
