//! Closes attempts: feeds the [`Reporter`] machine and carries out its effects.

use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::reporter::{Close, Effect, Event, Reporter, Settled};
use bellwether_core::machine::worker::{Finished, Found};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_zk::Zk;
use metrics::counter;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::executor_pool::ExecutorMsg;
use super::inbox_watcher::{found, paths};
use super::meters::Meters;
use crate::clock;
use crate::spawn::actor;
use crate::task::{Timers, report, tell};

pub(super) struct StatusReporter;

pub(super) struct Args {
    pub(super) zk: Zk,
    pub(super) worker: WorkerId,
}

pub(super) enum ReporterMsg {
    /// From the executor, which wants to hear when they are closed.
    Report(Vec<Finished>, ActorRef<ExecutorMsg>),
    Tell(Event),
}

actor!(StatusReporter, "status_reporter", ReporterMsg { Report, Tell => Event });

pub(super) struct State {
    args: Args,
    machine: Reporter,
    meters: Meters,
    timers: Timers,
    executor: Option<ActorRef<ExecutorMsg>>,
}

impl Actor for StatusReporter {
    type Msg = ReporterMsg;
    type State = State;
    type Arguments = Args;

    async fn pre_start(&self, _: ActorRef<ReporterMsg>, args: Args) -> Result<State, ActorProcessingErr> {
        let machine = Reporter::new(args.worker);
        let (meters, timers) = (Meters::default(), Timers::default());
        Ok(State { args, machine, meters, timers, executor: None })
    }

    async fn handle(
        &self,
        me: ActorRef<ReporterMsg>,
        message: ReporterMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            ReporterMsg::Report(finished, executor) => {
                state.executor = Some(executor);
                let finished = finished.into_iter().map(|finished| (finished, fastrand::u64(..)));
                Event::Report(clock::wall(), finished.collect())
            }
            ReporterMsg::Tell(event) => event,
        };
        state.feed(&me, event);
        Ok(())
    }
}

impl State {
    fn feed(&mut self, me: &ActorRef<ReporterMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), event, &mut effects);
        let mut closed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    let committed = self.args.zk.commit_batch(batch);
                    report(me, committed, |(batch, outcome)| {
                        ReporterMsg::Tell(Event::Committed(batch, outcome))
                    });
                }
                Effect::Read(closes) => self.read(me, closes),
                Effect::MakeMinute(minute) => {
                    let made = self.args.zk.create_container(path::delayed_minute(minute));
                    report(me, made, move |outcome| ReporterMsg::Tell(Event::MinuteMade(minute, outcome)));
                }
                Effect::Settled(close, settled) => closed.push(self.settled(&close, settled)),
                Effect::Resolved { applied } => {
                    let label = if applied { "applied" } else { "not_applied" };
                    counter!(metric::UNKNOWN_RESOLVED, "as" => label).increment(1);
                }
                Effect::Refused(close, reason) => {
                    tracing::error!(job = %close.job(), %reason, "its attempt cannot be closed yet");
                }
                Effect::WakeAt(at) => {
                    self.timers.after(me, at.since(clock::now()), || ReporterMsg::Tell(Event::Wake));
                }
            }
        }
        if let Some(executor) = &self.executor
            && !closed.is_empty()
        {
            tell(executor, ExecutorMsg::Tell(ToExecutor::Closed(closed)));
        }
    }

    fn settled(&mut self, close: &Close, settled: Settled) -> JobId {
        if settled == Settled::Zombie {
            let attempt = close.attempt().number;
            tracing::warn!(job = %close.job(), attempt, "closed by somebody else: the result is dropped");
        }
        self.meters.settled(close, settled);
        close.job().clone()
    }

    fn read(&self, me: &ActorRef<ReporterMsg>, closes: Vec<Close>) {
        let read = self.args.zk.get_many(paths(self.args.worker, closes.iter().map(Close::job)));
        let read = async move {
            match read.await {
                Ok(nodes) => {
                    let found: Vec<(Close, Found)> = closes.into_iter().zip(found(&nodes)).collect();
                    Event::Read(found)
                }
                Err(error) => {
                    tracing::debug!(%error, "records could not be read back yet");
                    Event::ReadFailed(closes)
                }
            }
        };
        report(me, read, ReporterMsg::Tell);
    }
}
