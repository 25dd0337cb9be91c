//! The status reporter: feeds core's [`beats::Beats`] and [`reporter::Reporter`], as `actors/host/src/worker/status_reporter.rs`
//! does.

use bellwether_core::job::{Assignment, Progress};
use bellwether_core::machine::worker::beats::{self, Beats, Begun};
use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::reporter::{self, Close, Effect, Event, Settled};
use bellwether_core::machine::worker::{Finished, Look};
use bellwether_core::name::JobId;
use bellwether_core::path;

use bellwether_actors::worker::inbox_watcher::{found, paths};

use super::{ExecutorMsg, Place, WorkerMsg};
use crate::node::Msg;
use crate::node::context::{Context, Route};
use crate::zk::ask;

pub(crate) enum ReporterMsg {
    /// From the executor: these are its own now.
    Begun(Vec<Begun>),
    /// From a run: its progress.
    Said(JobId, u32, Progress),
    /// From the executor.
    Report(Vec<Finished>),
    Tell(Event),
    Beat(beats::Event),
}

pub(super) struct Reporter {
    place: Place,
    beats: Beats,
    machine: reporter::Reporter,
}

impl Reporter {
    pub(super) fn new(place: Place) -> Self {
        let beats = Beats::new(place.worker);
        Self { place, beats, machine: reporter::Reporter::new(place.worker) }
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: ReporterMsg) {
        match msg {
            ReporterMsg::Begun(begun) => self.beat(cx, beats::Event::Begun(begun)),
            ReporterMsg::Said(job, attempt, progress) => {
                self.beat(cx, beats::Event::Asked { job, attempt, renew: None, progress: Some(progress) });
            }
            ReporterMsg::Report(finished) => {
                for finished in finished {
                    self.beat(cx, beats::Event::Finished(Box::new(finished)));
                }
            }
            ReporterMsg::Tell(event) => {
                match event {
                    Event::Hold => self.beat(cx, beats::Event::Hold),
                    Event::Resume => self.beat(cx, beats::Event::Resume),
                    Event::Report(..)
                    | Event::Committed(..)
                    | Event::Read(_)
                    | Event::ReadFailed(_)
                    | Event::MinuteMade(..)
                    | Event::Wake => {}
                }
                self.feed(cx, event);
            }
            ReporterMsg::Beat(event) => self.beat(cx, event),
        }
    }

    fn beat(&mut self, cx: &mut Context<'_>, event: beats::Event) {
        use beats::{Effect, Event};
        let (zk, place) = (self.place.zk, self.place);
        let mut effects = Vec::new();
        self.beats.handle(cx.now(), event, &mut effects);
        let mut closes = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.reporter(ReporterMsg::Beat(Event::Committed(batch, outcome)))
                }),
                Effect::Read(jobs) => self.read_assignments(cx, jobs),
                Effect::Until(..) => {}
                Effect::Third(job, attempt) => self.tell(cx, ToExecutor::Third(job, attempt)),
                Effect::Lapsed(job, attempt) => self.tell(cx, ToExecutor::Lapsed(job, attempt)),
                Effect::Cancel { job, attempt, assignment, version } => {
                    self.tell(cx, ToExecutor::Cancel { job, attempt, assignment, version });
                }
                Effect::Zombie(job, attempt) => self.tell(cx, ToExecutor::Zombie(job, attempt)),
                Effect::Close(finished) => closes.push((*finished, cx.rng.u64(..))),
                Effect::WakeAt(at) => cx.at(at, place.reporter(ReporterMsg::Beat(Event::Wake))),
            }
        }
        if !closes.is_empty() {
            let wall = cx.wall();
            self.feed(cx, reporter::Event::Report(wall, closes));
        }
    }

    fn tell(&self, cx: &mut Context<'_>, event: ToExecutor) {
        cx.tell(Route::ReporterToExecutor, self.place.executor(ExecutorMsg::Tell(event)));
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
                Effect::Settled(close, settled) => {
                    if settled == Settled::Zombie {
                        let hung = Msg::Worker(WorkerMsg::TakenForHung(place.term));
                        cx.tell(Route::ChildToWorker, hung);
                    }
                    closed.push(close.job().clone());
                }
                Effect::Resolved { .. } | Effect::Refused(..) => {}
                Effect::WakeAt(at) => cx.at(at, place.reporter(ReporterMsg::Tell(Event::Wake))),
            }
        }
        if !closed.is_empty() {
            self.tell(cx, ToExecutor::Closed(closed));
        }
    }

    fn read_assignments(&self, cx: &mut Context<'_>, jobs: Vec<JobId>) {
        let place = self.place;
        let paths: Vec<_> = jobs.iter().map(|job| path::assignment(place.worker, job)).collect();
        cx.get_many(place.zk, paths, move |nodes| {
            place.reporter(ReporterMsg::Beat(match nodes {
                Ok(nodes) => {
                    let found = nodes.iter().map(|node| {
                        let znode = node.as_ref().map(|node| (node.data.as_slice(), node.version));
                        Look::<Assignment>::of(znode)
                    });
                    beats::Event::Read(jobs.into_iter().zip(found).collect())
                }
                Err(_) => beats::Event::ReadFailed(jobs),
            }))
        });
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
