//! Tells ZooKeeper of attempts: how they fare, by the [`Beats`] machine, and how they ended, by the [`Reporter`] machine.
//!
//! Both write the same assignment, so both are here: an attempt's close goes out with what its last beat left.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_core::job::Assignment;
use bellwether_core::machine::worker::beats::{self, Beats, Begun};
use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::reporter::{Close, Effect, Event, Reporter, Settled};
use bellwether_core::machine::worker::{Finished, Found, Look};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_zk::Zk;
use metrics::counter;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Span;

use super::executor_pool::ExecutorMsg;
use super::handler::{Pulse, Said, Word};
use super::meters::Meters;
use super::pulses::Pulses;
use super::{Term, WorkerMsg};
use crate::clock;
use crate::spawn::actor;
use crate::task::{Owned, Timers, report, tell};
use crate::trace;
use bellwether_actors::worker::inbox_watcher::{found, paths};

/// Most words of handlers in one message.
const WORDS: usize = 256;

pub(super) struct StatusReporter;

pub(super) struct Args {
    pub(super) zk: Zk,
    pub(super) worker: WorkerId,
    pub(super) term: Term,
    pub(super) wing: ActorRef<WorkerMsg>,
    /// From the handlers: they have something to say.
    pub(super) words: UnboundedReceiver<Word>,
}

pub(super) enum ReporterMsg {
    /// From the executor: these are its own now.
    Begun(Vec<(Begun, Arc<Pulse>)>, ActorRef<ExecutorMsg>),
    /// From handlers.
    Said(Vec<Word>),
    /// From the executor, which wants to hear when they are closed.
    Report(Vec<Finished>, ActorRef<ExecutorMsg>),
    Tell(Event),
    Beat(beats::Event),
}

actor!(StatusReporter, "status_reporter", ReporterMsg {
    Begun,
    Said,
    Report,
    Tell => Event,
    Beat => beats::Event,
});

pub(super) struct State {
    zk: Zk,
    worker: WorkerId,
    term: Term,
    wing: ActorRef<WorkerMsg>,
    beats: Beats,
    pulses: Pulses,
    /// Of attempts that were reported and are not closed yet.
    spans: HashMap<Word, Span>,
    machine: Reporter,
    meters: Meters,
    timers: Timers,
    executor: Option<ActorRef<ExecutorMsg>>,
    _pump: Owned,
}

impl Actor for StatusReporter {
    type Msg = ReporterMsg;
    type State = State;
    type Arguments = Args;

    async fn pre_start(&self, me: ActorRef<ReporterMsg>, args: Args) -> Result<State, ActorProcessingErr> {
        let Args { zk, worker, term, wing, words } = args;
        Ok(State {
            zk,
            worker,
            term,
            wing,
            beats: Beats::new(worker),
            pulses: Pulses::default(),
            spans: HashMap::new(),
            machine: Reporter::new(worker),
            meters: Meters::default(),
            timers: Timers::default(),
            executor: None,
            _pump: Owned::spawn(pump(words, me)),
        })
    }

    async fn handle(
        &self,
        me: ActorRef<ReporterMsg>,
        message: ReporterMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ReporterMsg::Begun(begun, executor) => {
                state.executor = Some(executor);
                let begin = |(begun, pulse): (Begun, Arc<Pulse>)| {
                    state.pulses.begin((begun.job.clone(), begun.assignment.attempt), pulse);
                    begun
                };
                let begun = begun.into_iter().map(begin).collect();
                state.beat(&me, beats::Event::Begun(begun));
            }
            ReporterMsg::Said(words) => words.into_iter().for_each(|word| state.said(&me, word)),
            ReporterMsg::Report(finished, executor) => {
                state.executor = Some(executor);
                state.report(&me, finished);
            }
            ReporterMsg::Tell(event) => {
                match event {
                    Event::Hold => state.beat(&me, beats::Event::Hold),
                    Event::Resume => state.beat(&me, beats::Event::Resume),
                    Event::Report(..)
                    | Event::Committed(..)
                    | Event::Read(_)
                    | Event::ReadFailed(_)
                    | Event::MinuteMade(..)
                    | Event::Wake => {}
                }
                state.feed(&me, event);
            }
            ReporterMsg::Beat(event) => {
                if let beats::Event::Over(job, attempt) = &event {
                    state.pulses.end(&(job.clone(), *attempt));
                }
                state.beat(&me, event);
            }
        }
        Ok(())
    }
}

impl State {
    /// What a handler said, if its attempt is not over.
    fn said(&mut self, me: &ActorRef<ReporterMsg>, word: Word) {
        let Some(Said { renew, progress }) = self.pulses.get(&word).map(Pulse::take) else { return };
        let (job, attempt) = word;
        if renew.is_some() || progress.is_some() {
            self.beat(me, beats::Event::Asked { job, attempt, renew, progress });
        }
    }

    fn report(&mut self, me: &ActorRef<ReporterMsg>, finished: Vec<Finished>) {
        let mut closes = Vec::new();
        for finished in finished {
            let word = (finished.start.job.clone(), finished.start.assignment.attempt);
            self.said(me, word.clone());
            self.pulses.end(&word);
            if let Some(span) = trace::report(&finished) {
                self.spans.insert(word, span);
            }
            closes.extend(self.beats(me, beats::Event::Finished(Box::new(finished))));
        }
        self.close(me, closes);
    }

    fn close(&mut self, me: &ActorRef<ReporterMsg>, closes: Vec<Finished>) {
        let closes: Vec<_> = closes.into_iter().map(|finished| (finished, fastrand::u64(..))).collect();
        if !closes.is_empty() {
            self.feed(me, Event::Report(clock::wall(), closes));
        }
    }

    fn beat(&mut self, me: &ActorRef<ReporterMsg>, event: beats::Event) {
        let closes = self.beats(me, event);
        self.close(me, closes);
    }

    /// Gives back what is to be closed.
    fn beats(&mut self, me: &ActorRef<ReporterMsg>, event: beats::Event) -> Vec<Finished> {
        use beats::{Effect, Event};
        let mut effects = Vec::new();
        self.beats.handle(clock::now(), event, &mut effects);
        let mut closes = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    report(me, self.zk.commit_batch(batch), |(batch, outcome)| {
                        ReporterMsg::Beat(Event::Committed(batch, outcome))
                    });
                }
                Effect::Read(jobs) => self.read_assignments(me, jobs),
                Effect::Until(job, attempt, until) => {
                    if let Some(pulse) = self.pulses.get(&(job, attempt)) {
                        pulse.set_until(clock::instant(until));
                    }
                }
                Effect::Third(job, attempt) => self.tell(ToExecutor::Third(job, attempt)),
                Effect::Lapsed(job, attempt) => {
                    tracing::warn!(%job, attempt, "its lease is over: told to stop");
                    self.tell(ToExecutor::Lapsed(job, attempt));
                }
                Effect::Cancel { job, attempt, assignment, version } => {
                    self.tell(ToExecutor::Cancel { job, attempt, assignment, version });
                }
                Effect::Zombie(job, attempt) => {
                    self.pulses.end(&(job.clone(), attempt));
                    self.tell(ToExecutor::Zombie(job, attempt));
                }
                Effect::Close(finished) => closes.push(*finished),
                Effect::WakeAt(at) => {
                    let wait = at.since(clock::now());
                    self.timers.after(me, wait, || ReporterMsg::Beat(Event::Wake));
                }
            }
        }
        closes
    }

    fn read_assignments(&self, me: &ActorRef<ReporterMsg>, jobs: Vec<JobId>) {
        let read = self.zk.get_many(jobs.iter().map(|job| path::assignment(self.worker, job)).collect());
        let read = async move {
            match read.await {
                Ok(nodes) => {
                    let found = nodes.iter().map(|node| {
                        Look::<Assignment>::of(node.as_ref().map(|node| (node.data.as_slice(), node.version)))
                    });
                    beats::Event::Read(jobs.into_iter().zip(found).collect())
                }
                Err(error) => {
                    tracing::debug!(%error, "assignments could not be read back yet");
                    beats::Event::ReadFailed(jobs)
                }
            }
        };
        report(me, read, ReporterMsg::Beat);
    }

    fn feed(&mut self, me: &ActorRef<ReporterMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), event, &mut effects);
        let mut closed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    let committed = self.zk.commit_batch(batch);
                    report(me, committed, |(batch, outcome)| {
                        ReporterMsg::Tell(Event::Committed(batch, outcome))
                    });
                }
                Effect::Read(closes) => self.read(me, closes),
                Effect::MakeMinute(minute) => {
                    let made = self.zk.create_container(path::delayed_minute(minute));
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
        if !closed.is_empty() {
            self.tell(ToExecutor::Closed(closed));
        }
    }

    fn tell(&self, event: ToExecutor) {
        if let Some(executor) = &self.executor {
            tell(executor, ExecutorMsg::Tell(event));
        }
    }

    fn settled(&mut self, close: &Close, settled: Settled) -> JobId {
        if settled == Settled::Zombie {
            tell(&self.wing, WorkerMsg::TakenForHung(self.term));
            let attempt = close.attempt().number;
            tracing::warn!(job = %close.job(), attempt, "closed by somebody else: the result is dropped");
        }
        if let Some(span) = self.spans.remove(&(close.job().clone(), close.attempt().number)) {
            let outcome = match settled {
                Settled::Closed { .. } => "closed",
                Settled::Zombie => "zombie",
            };
            span.record("outcome", outcome);
        }
        self.meters.settled(close, settled);
        close.job().clone()
    }

    fn read(&self, me: &ActorRef<ReporterMsg>, closes: Vec<Close>) {
        let read = self.zk.get_many(paths(self.worker, closes.iter().map(Close::job)));
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

async fn pump(mut words: UnboundedReceiver<Word>, me: ActorRef<ReporterMsg>) {
    loop {
        let mut said = Vec::new();
        if words.recv_many(&mut said, WORDS).await == 0 {
            return;
        }
        tell(&me, ReporterMsg::Said(said));
    }
}
