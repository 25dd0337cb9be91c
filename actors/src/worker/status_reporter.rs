//! The status reporter: writes the lease renewals and the progress of attempts, as the [`Beats`] machine decides, and
//! their results, as the [`Reporter`] machine decides.
//!
//! Both machines write the same assignment, so both are in this concern: the close of an attempt includes the state
//! that its last beat wrote.

use std::collections::HashMap;

use bellwether_core::chain::chain;
use bellwether_core::job::{Assignment, AttemptOutcome, ClosedAttempt};
use bellwether_core::machine::worker::executor_pool::Event as ToExecutor;
use bellwether_core::machine::worker::status_reporter::beats::{self, Beats, StartedAttempt};
use bellwether_core::machine::worker::status_reporter::reporter::{Close, Effect, Event, Reporter, Settled};
use bellwether_core::machine::worker::status_reporter::segments::{self, Segments};
use bellwether_core::machine::worker::{Finished, Start};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::port::{Node, ReadError};
use bellwether_core::segment::{Chunks, MemberId, SegmentId};
use bellwether_core::time::Millis;
use metrics::counter;
use tracing::Span;

use super::inbox_watcher::{found, paths};
use super::meters::Meters;
use super::pulse::{Attended, Closed, Pulse, Said, Word};
use super::pulses::Pulses;
use crate::{Concern, Context, trace};

/// The timers of the status reporter. Each machine may wait for several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A time that the beats' machine waits for.
    Beat(Millis),
    /// A time that the reporter's machine waits for.
    Close(Millis),
    /// A time that the machine of segments waits for.
    Segment(Millis),
}

/// Reports the attempts of one incarnation.
pub struct StatusReporter {
    worker: WorkerId,
    beats: Beats,
    segments: Segments,
    /// The attempts of members of segments, and what their handlers have asked for, until they are extracted.
    packed: HashMap<JobId, (StartedAttempt, Said)>,
    pulses: Pulses,
    /// The pulses of attempts that were reported and are not closed yet.
    reported: HashMap<Word, Attended>,
    /// The spans of attempts that were reported and are not closed yet.
    spans: HashMap<Word, Span>,
    machine: Reporter,
    meters: Meters,
}

/// Messages to the status reporter.
pub enum StatusReporterMsg {
    /// From the executor: these attempts start.
    Started(Vec<(StartedAttempt, Attended)>),
    /// From handlers: the pulses of these attempts are not empty.
    Said(Vec<Word>),
    /// From the executor: these attempts have ended.
    Report(Vec<Finished>),
    /// To the reporter's machine.
    Tell(Event),
    /// To the beats' machine.
    Beat(beats::Event),
    /// To the machine of segments.
    Segment(segments::Event),
}

kinds!(StatusReporterMsg { Started, Said, Report, Tell => Event, Beat => beats::Event, Segment });

/// Messages of the status reporter to its neighbours.
pub enum Tell {
    /// To the executor.
    Executor(ToExecutor),
    /// To the wing: another node closed an attempt of this worker.
    TakenForHung,
}

impl Concern for StatusReporter {
    const NAME: &'static str = "status_reporter";
    type Msg = StatusReporterMsg;
    /// The worker, and the former ids in its registration.
    type Args = (WorkerId, Vec<WorkerId>);
    type Key = Key;
    type Tell = Tell;

    fn start(_: &mut Context<'_, Self>, (worker, former): Self::Args) -> Self {
        Self {
            worker,
            beats: Beats::new(worker),
            segments: Segments::new(worker),
            packed: HashMap::new(),
            pulses: Pulses::default(),
            reported: HashMap::new(),
            spans: HashMap::new(),
            machine: Reporter::new(worker, former),
            meters: Meters::default(),
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: StatusReporterMsg) {
        match msg {
            StatusReporterMsg::Started(begun) => self.begin(cx, begun),
            StatusReporterMsg::Said(words) => words.into_iter().for_each(|word| self.said(cx, word)),
            StatusReporterMsg::Report(finished) => self.report(cx, finished),
            StatusReporterMsg::Tell(event) => {
                match event {
                    Event::Hold => {
                        self.beat(cx, beats::Event::Hold);
                        self.segment(cx, segments::Event::Hold);
                    }
                    Event::Resume => {
                        self.beat(cx, beats::Event::Resume);
                        self.segment(cx, segments::Event::Resume);
                    }
                    Event::Report(..)
                    | Event::Committed(..)
                    | Event::Read(_)
                    | Event::ReadFailed(_)
                    | Event::Wake => {}
                }
                self.feed(cx, event);
            }
            StatusReporterMsg::Beat(event) => {
                if let beats::Event::Over(job, attempt) = &event {
                    self.pulses.fenced(&(job.clone(), *attempt));
                }
                self.beat(cx, event);
            }
            StatusReporterMsg::Segment(event) => self.segment(cx, event),
        }
    }
}

impl StatusReporter {
    /// Registers the pulses of new attempts. A handler may report before this message arrives; its notification is then
    /// about an unknown attempt and is ignored. The cell does not notify again until it is emptied, so it is read here.
    fn begin(&mut self, cx: &mut Context<'_, Self>, begun: Vec<(StartedAttempt, Attended)>) {
        let word = |begun: &StartedAttempt| (begun.job.clone(), begun.assignment.attempt);
        let words: Vec<Word> = begun.iter().map(|(begun, _)| word(begun)).collect();
        let begin = |(begun, pulse): (StartedAttempt, Attended)| {
            self.pulses.begin(word(&begun), pulse);
            begun
        };
        let (packed, begun): (Vec<_>, Vec<_>) =
            begun.into_iter().map(begin).partition(|begun| self.segments.holds(&begun.job));
        self.packed.extend(packed.into_iter().map(|begun| (begun.job.clone(), (begun, Said::default()))));
        self.beat(cx, beats::Event::Started(begun));
        words.into_iter().for_each(|word| self.said(cx, word));
    }

    /// Takes the reports of a handler, unless its attempt has ended.
    fn said(&mut self, cx: &mut Context<'_, Self>, word: Word) {
        let Some(said) = self.pulses.get(&word).map(Pulse::take).filter(|said| *said != Said::default())
        else {
            return;
        };
        if let (Some((_, asked)), Some(member)) = (self.packed.get_mut(&word.0), MemberId::of_job(&word.0)) {
            *asked = std::mem::take(asked).and(said);
            self.segment(cx, segments::Event::Extract(member));
        } else {
            self.request(cx, word, said);
        }
    }

    fn request(&mut self, cx: &mut Context<'_, Self>, (job, attempt): Word, said: Said) {
        let Said { renew, confirm, progress } = said;
        if renew.is_some() || progress.is_some() {
            self.beat(cx, beats::Event::Requested { job, attempt, renew, confirm, progress });
        }
    }

    fn report(&mut self, cx: &mut Context<'_, Self>, finished: Vec<Finished>) {
        let (mut packed, mut closes) = (Vec::new(), Vec::new());
        for finished in finished {
            let word = (finished.start.job.clone(), finished.start.assignment.attempt);
            self.said(cx, word.clone());
            if let Some(pulse) = self.pulses.report(&word) {
                self.reported.insert(word.clone(), pulse);
            }
            if let Some(span) = trace::report(&finished) {
                self.spans.insert(word, span);
            }
            if finished.start.packed.is_some() {
                packed.push(finished);
            } else {
                closes.extend(self.beats(cx, beats::Event::Finished(Box::new(finished))));
            }
        }
        if !packed.is_empty() {
            self.segment(cx, segments::Event::Finished(packed, cx.wall));
        }
        self.close(cx, closes);
    }

    fn segment(&mut self, cx: &mut Context<'_, Self>, event: segments::Event) {
        use segments::{Effect, Event};
        let mut effects = Vec::new();
        self.segments.handle(cx.now, event, &mut effects);
        let mut closed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => cx.commit_batch(batch, |batch, outcome| {
                    StatusReporterMsg::Segment(Event::Committed(batch, outcome))
                }),
                Effect::Read(ids) => self.read_segments(cx, ids),
                Effect::HandBack(id) => cx.tell(Tell::Executor(ToExecutor::HandBack(id))),
                Effect::Succeeded(finished, at) => {
                    let Start { job, assignment, record, .. } = finished.start;
                    self.packed.remove(&job);
                    let settled =
                        Settled::Closed(ClosedAttempt { how: AttemptOutcome::Succeeded, dead: false });
                    self.meters.settled(&record.kind, at.since(record.submitted_at), settled);
                    closed.push(self.settled(cx, (job, assignment.attempt), settled));
                }
                Effect::Returned(job) => {
                    let attempt = self.packed.remove(&job).map_or(1, |(begun, _)| begun.assignment.attempt);
                    let word = (job, attempt);
                    if let Some(pulse) = self.reported.remove(&word) {
                        pulse.close(Closed::Written);
                    }
                    if let Some(span) = self.spans.remove(&word) {
                        span.record("outcome", "closed");
                    }
                    closed.push(word.0);
                }
                Effect::Extracted(job) => self.extracted(cx, &job),
                Effect::Close(finished) => {
                    self.extracted(cx, &finished.start.job);
                    self.beat(cx, beats::Event::Finished(finished));
                }
                Effect::Over(id) => closed.push(id.job()),
                Effect::Refused(ids, reason) => {
                    let segments = ids.len();
                    tracing::error!(segments, first = ?ids.first(), %reason, "ZooKeeper refused to write results or to extract members: the worker retries");
                }
                Effect::WakeAt(at) => {
                    cx.after(Key::Segment(at), at.since(cx.now), StatusReporterMsg::Segment(Event::Wake));
                }
            }
        }
        if !closed.is_empty() {
            cx.tell(Tell::Executor(ToExecutor::Closed(closed)));
        }
    }

    /// Starts the lease of a member that has a record now, and writes what its handler has asked for.
    fn extracted(&mut self, cx: &mut Context<'_, Self>, job: &JobId) {
        if let Some((begun, asked)) = self.packed.remove(job) {
            let word = (job.clone(), begun.assignment.attempt);
            self.beat(cx, beats::Event::Started(vec![begun]));
            self.request(cx, word.clone(), asked);
        }
    }

    fn read_segments(&self, cx: &mut Context<'_, Self>, ids: Vec<SegmentId>) {
        use segments::Event;
        let worker = self.worker;
        cx.task(move |zk| async move {
            let read = async {
                let assignments = ids.iter().map(|id| path::assignment(worker, &id.job())).collect();
                let assignments = zk.get_many(assignments).await?;
                let names = zk.children_many(ids.iter().copied().map(path::segment).collect()).await?;
                Ok::<_, ReadError>((assignments, names))
            };
            StatusReporterMsg::Segment(match read.await {
                Ok((assignments, names)) => {
                    let chunks = |names: Option<Vec<String>>| {
                        Chunks::of_names(names.iter().flatten().map(String::as_str))
                    };
                    let found = ids.into_iter().zip(assignments).zip(names);
                    let found =
                        found.map(|((id, assignment), names)| (id, Node::look(&assignment), chunks(names)));
                    Event::Read(found.collect())
                }
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the worker cannot read segments back yet");
                    Event::ReadFailed(ids)
                }
            })
        });
    }

    fn close(&mut self, cx: &mut Context<'_, Self>, closes: Vec<Finished>) {
        let closes: Vec<_> = closes.into_iter().map(|finished| (finished, cx.rng.u64(..))).collect();
        if !closes.is_empty() {
            self.feed(cx, Event::Report(cx.wall, closes));
        }
    }

    fn beat(&mut self, cx: &mut Context<'_, Self>, event: beats::Event) {
        let closes = self.beats(cx, event);
        self.close(cx, closes);
    }

    /// Feeds the beats' machine. Returns the attempts to close.
    fn beats(&mut self, cx: &mut Context<'_, Self>, event: beats::Event) -> Vec<Finished> {
        use beats::{Effect, Event};
        let mut effects = Vec::new();
        self.beats.handle(cx.now, event, &mut effects);
        let mut closes = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => cx.commit_batch(batch, |batch, outcome| {
                    StatusReporterMsg::Beat(Event::Committed(batch, outcome))
                }),
                Effect::Read(jobs) => self.read_assignments(cx, jobs),
                Effect::Until(job, attempt, until) => {
                    if let Some(pulse) = self.pulses.get(&(job, attempt)) {
                        pulse.set_until(until);
                    }
                }
                Effect::Confirmed(job, attempt, ticket) => {
                    if let Some(pulse) = self.pulses.get(&(job, attempt)) {
                        pulse.confirm(ticket);
                    }
                }
                Effect::Third(job, attempt) => cx.tell(Tell::Executor(ToExecutor::Third(job, attempt))),
                Effect::Lapsed(job, attempt) => {
                    tracing::warn!(%job, attempt, "the attempt's lease expired: the worker asks its handler to stop");
                    cx.tell(Tell::Executor(ToExecutor::Lapsed(job, attempt)));
                }
                Effect::Cancel { job, attempt, assignment, version } => {
                    cx.tell(Tell::Executor(ToExecutor::Cancel { job, attempt, assignment, version }));
                }
                Effect::Zombie(job, attempt) => {
                    self.pulses.fenced(&(job.clone(), attempt));
                    cx.tell(Tell::Executor(ToExecutor::Zombie(job, attempt)));
                }
                Effect::Close(finished) => closes.push(*finished),
                Effect::WakeAt(at) => {
                    cx.after(Key::Beat(at), at.since(cx.now), StatusReporterMsg::Beat(Event::Wake));
                }
            }
        }
        closes
    }

    fn read_assignments(&self, cx: &mut Context<'_, Self>, jobs: Vec<JobId>) {
        let paths = jobs.iter().map(|job| path::assignment(self.worker, job)).collect();
        cx.get_many(paths, move |nodes| {
            StatusReporterMsg::Beat(match nodes {
                Ok(nodes) => {
                    let found = nodes.iter().map(Node::look::<Assignment>);
                    beats::Event::Read(jobs.into_iter().zip(found).collect())
                }
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the worker cannot read assignments back yet");
                    beats::Event::ReadFailed(jobs)
                }
            })
        });
    }

    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.now, event, &mut effects);
        let mut closed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Commit(batch) => cx.commit_batch(batch, |batch, outcome| {
                    StatusReporterMsg::Tell(Event::Committed(batch, outcome))
                }),
                Effect::Read(closes) => self.read(cx, closes),
                Effect::Settled(close, settled) => {
                    self.meters.settled(&close.record().kind, close.since_submission(), settled);
                    let word = (close.job().clone(), close.attempt().number);
                    closed.push(self.settled(cx, word, settled));
                }
                Effect::Resolved { applied } => {
                    let outcome = if applied { "applied" } else { "not_applied" };
                    counter!(metric::UNKNOWN_OUTCOMES_RESOLVED, "outcome" => outcome).increment(1);
                }
                Effect::Refused(close, reason) => {
                    tracing::error!(job = %close.job(), %reason, "ZooKeeper refused to close the attempt: the worker retries");
                }
                Effect::WakeAt(at) => {
                    cx.after(Key::Close(at), at.since(cx.now), StatusReporterMsg::Tell(Event::Wake));
                }
            }
        }
        if !closed.is_empty() {
            cx.tell(Tell::Executor(ToExecutor::Closed(closed)));
        }
    }

    /// An attempt is closed. Returns its job.
    fn settled(&mut self, cx: &mut Context<'_, Self>, word: Word, settled: Settled) -> JobId {
        if settled == Settled::Zombie {
            cx.tell(Tell::TakenForHung);
            tracing::warn!(job = %word.0, attempt = word.1, "another node closed the attempt: the worker drops its result");
        }
        if let Some(pulse) = self.reported.remove(&word) {
            pulse.close(match settled {
                Settled::Closed(_) => Closed::Written,
                Settled::Zombie => Closed::Fenced,
            });
        }
        if let Some(span) = self.spans.remove(&word) {
            let outcome = match settled {
                Settled::Closed(_) => "closed",
                Settled::Zombie => "zombie",
            };
            span.record("outcome", outcome);
        }
        word.0
    }

    fn read(&self, cx: &mut Context<'_, Self>, closes: Vec<Close>) {
        cx.get_many(paths(self.worker, closes.iter().map(Close::job)), move |nodes| {
            StatusReporterMsg::Tell(match nodes {
                Ok(nodes) => Event::Read(closes.into_iter().zip(found(&nodes)).collect()),
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the worker cannot read records back yet");
                    Event::ReadFailed(closes)
                }
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bellwether_core::job::Progress;
    use bellwether_core::time::WallMillis;

    use super::*;
    use crate::Out;
    use crate::stage::Stage;

    /// The times at which the beats' machine wakes.
    fn wakes(out: Vec<Out<StatusReporter>>) -> Vec<Millis> {
        let at = |out| match out {
            Out::After(Key::Beat(at), ..) => Some(at),
            _ => None,
        };
        out.into_iter().filter_map(at).collect()
    }

    fn word() -> Word {
        (JobId::new("a").unwrap(), 1)
    }

    fn begun(pulse: &Arc<Pulse>) -> StatusReporterMsg {
        let assignment = Assignment::new(1, 0, WallMillis(0));
        let begun = StartedAttempt { job: word().0, assignment, version: 0, auto: false };
        StatusReporterMsg::Started(vec![(begun, Attended::new(Arc::clone(pulse)))])
    }

    /// The executor's message and the handler's notification come from different threads.
    #[test]
    fn a_report_is_written_whether_it_arrives_before_or_after_the_start_of_its_attempt() {
        for is_first in [true, false] {
            let (mut stage, _) =
                Stage::<StatusReporter>::start((WorkerId::new(uuid::Uuid::from_u128(7)), vec![]));
            let pulse = Arc::new(Pulse::new(word(), None, Millis(0), Progress::default()));
            pulse.progress(|progress| progress.with_message(Some(40), "on it")).unwrap();
            let (begun, said) = (begun(&pulse), StatusReporterMsg::Said(vec![word()]));
            let messages = if is_first { [said, begun] } else { [begun, said] };
            let wakes: Vec<_> = messages.into_iter().flat_map(|msg| wakes(stage.handle(msg))).collect();
            assert_eq!(pulse.take(), Said::default(), "the cell is empty, so the next report notifies");
            assert!(wakes.contains(&Millis(2_000)), "the report is written after one second: {wakes:?}");
        }
    }
}
