//! The status reporter: feeds core's [`reporter::Reporter`], as `actors/src/worker/status_reporter.rs` does.

use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::reporter::{self, Close, Effect, Event};
use bellwether_core::path;

use super::{ExecutorMsg, Place, found, paths};
use crate::node::context::{Context, Route};
use crate::zk::ask;

pub(crate) enum ReporterMsg {
    /// From the executor.
    Report(Vec<bellwether_core::machine::worker::Finished>),
    Tell(Event),
}

pub(super) struct Reporter {
    place: Place,
    machine: reporter::Reporter,
}

impl Reporter {
    pub(super) fn new(place: Place) -> Self {
        Self { place, machine: reporter::Reporter::new(place.worker) }
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: ReporterMsg) {
        let event = match msg {
            ReporterMsg::Report(finished) => {
                let finished = finished.into_iter().map(|finished| (finished, cx.rng.u64(..))).collect();
                Event::Report(cx.wall(), finished)
            }
            ReporterMsg::Tell(event) => event,
        };
        self.feed(cx, event);
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, place) = (self.place.zk, self.place);
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), event, &mut effects);
        let mut closed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.reporter(ReporterMsg::Tell(Event::Committed(batch, outcome)))
                }),
                Effect::Read(closes) => self.read(cx, closes),
                Effect::MakeMinute(minute) => {
                    let request = ask::create_container(path::delayed_minute(minute));
                    cx.ask(zk, request, move |answer| {
                        place.reporter(ReporterMsg::Tell(Event::MinuteMade(minute, ask::written(answer))))
                    });
                }
                Effect::Settled(close, _) => closed.push(close.job().clone()),
                Effect::Resolved { .. } | Effect::Refused(..) => {}
                Effect::WakeAt(at) => cx.at(at, place.reporter(ReporterMsg::Tell(Event::Wake))),
            }
        }
        if !closed.is_empty() {
            let msg = place.executor(ExecutorMsg::Tell(ToExecutor::Closed(closed)));
            cx.tell(Route::ReporterToExecutor, msg);
        }
    }

    fn read(&self, cx: &mut Context<'_>, closes: Vec<Close>) {
        let place = self.place;
        let paths = paths(place.worker, closes.iter().map(Close::job));
        cx.get_many(place.zk, paths, move |nodes| {
            place.reporter(ReporterMsg::Tell(match nodes {
                Ok(nodes) => {
                    let found: Vec<_> = found(&nodes).collect();
                    Event::Read(closes.into_iter().zip(found).collect())
                }
                Err(_) => Event::ReadFailed(closes),
            }))
        });
    }
}
