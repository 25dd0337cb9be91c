//! A job as a client sees it.

use std::fmt;
use std::time::{Duration, SystemTime};

use bellwether_core::job::{JobRecord, JobState, Payload, Progress, Verdict};
use bellwether_core::name::{GroupId, JobId, Kind, Lane, NodeId, WorkerId};
use bellwether_core::trace::TraceContext;
use bellwether_core::wire::WireError;
use serde::Serialize;

use super::attempts::PastAttemptView;
use super::job::JobOptions;
use crate::client::author::Changed;

/// Bytes of a job as JSON without payloads, errors and attempts: about 1,200 with usual names.
const PLAIN_BYTES: usize = 1_280;

/// Bytes of a closed attempt as JSON without its error.
const ATTEMPT_BYTES: usize = 256;

/// Bytes of a text in JSON: a control character takes six, and bytes that are not text become base64.
fn escaped(bytes: &[u8]) -> usize {
    let as_text = bytes.iter().map(|byte| match byte {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    });
    as_text.sum::<usize>().max(bytes.len().div_ceil(3) * 4)
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for a worker.
    Queued,
    /// Waits for its start time or for the end of a backoff.
    Delayed,
    /// Assigned to a worker.
    Running,
    /// Ended with a result.
    Succeeded,
    /// Cancelled by a client.
    Cancelled,
    /// Ended without success: it reached the limit of failures or losses, expired, or could never succeed.
    Dead,
    /// Its stored record or assignment cannot be read, so it is left alone.
    Quarantined,
}

bellwether_core::impl_deserialize_by_name!(State);

bellwether_core::impl_names!(State {
    Queued = "queued",
    Delayed = "delayed",
    Running = "running",
    Succeeded = "succeeded",
    Cancelled = "cancelled",
    Dead = "dead",
    Quarantined = "quarantined",
});

impl State {
    /// Whether the job has ended: succeeded, cancelled or dead.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Cancelled | Self::Dead)
    }
}

/// Why an open job does not run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum WaitReason {
    /// No live worker has a handler for its kind.
    UnknownKind,
    /// Its kind is paused on each worker that has a handler for it.
    PausedOnWorkers,
    /// Workers of its kind exist, but none has all of its tags.
    Tags,
    /// The workers that could run it are draining.
    Draining,
    /// The workers that could run it have no free slot.
    Busy,
    /// The workers that could run it and have a free slot did not renew a lease in time: the leader gives them no
    /// jobs for a while.
    Shunned,
    /// It has lost workers, so it is isolated from other jobs and waits for a worker that can take it.
    Isolated,
    /// There is no leader to assign it.
    NoLeader,
    /// Its kind is paused.
    Paused,
    /// Its start time has not come yet.
    ///
    /// See [`JobView::not_before`].
    NotBefore,
    /// Its backoff is not over.
    Backoff,
    /// Its worker was lost, and the leader will requeue it.
    WorkerLost,
    /// Another job of its lane comes before it.
    ///
    /// See [`JobView::behind`].
    Lane,
    /// It has a lane but no turn in it, because an operator deleted the turn: cancel and retry it.
    NoTurn,
    /// The leader is about to assign it.
    Assignment,
    /// It was found in no place: it moved during every look, or an operator deleted its entry.
    Nowhere,
}

bellwether_core::impl_names!(@names WaitReason {
    UnknownKind = "unknown_kind",
    PausedOnWorkers = "paused_on_workers",
    Tags = "tags",
    Draining = "draining",
    Busy = "busy",
    Shunned = "shunned",
    Isolated = "isolated",
    NoLeader = "no_leader",
    Paused = "paused",
    NotBefore = "not_before",
    Backoff = "backoff",
    WorkerLost = "worker_lost",
    Lane = "lane",
    NoTurn = "no_turn",
    Assignment = "assignment",
    Nowhere = "nowhere",
});

impl WaitReason {
    /// Returns it as a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::UnknownKind => "no live worker has a handler for its kind",
            Self::PausedOnWorkers => "its kind is paused on each worker that has a handler for it",
            Self::Tags => "no live worker of its kind has all of its tags",
            Self::Draining => "the workers that could run it are draining",
            Self::Busy => "the workers that could run it have no free slot",
            Self::Shunned => "the workers that could run it did not renew a lease in time",
            Self::Isolated => "it has lost workers and waits for one where it is isolated",
            Self::NoLeader => "there is no leader to assign it",
            Self::Paused => "its kind is paused",
            Self::NotBefore => "it may not start yet",
            Self::Backoff => "it waits after a failed, lost or snoozed attempt",
            Self::WorkerLost => "its worker was lost; the leader will requeue it",
            Self::Lane => "another job of its lane comes first",
            Self::NoTurn => "its turn in its lane was deleted: cancel and retry it",
            Self::Assignment => "the leader is about to assign it",
            Self::Nowhere => "it is in no queue and no inbox",
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

/// A job as read at one moment. `worker` and `waiting` describe that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// The trace that it was submitted in.
    pub traceparent: Option<TraceContext>,
    /// The kind, which selects its handler; `None` if its record cannot be read.
    pub kind: Option<Kind>,
    /// Its state.
    pub state: State,
    /// The running attempt, or the last one that was closed; 0 before the first.
    pub attempt: u32,
    /// The worker that it is assigned to, or that had the last attempt.
    pub worker: Option<WorkerId>,
    /// That worker's node, while the worker is alive. Not looked up for an ended job that is read alone ([`Client::get`],
    /// [`Client::wait`]).
    ///
    /// [`Client::get`]: super::Client::get
    /// [`Client::wait`]: super::Client::wait
    pub node: Option<NodeId>,
    /// Whether a client asked to cancel the running attempt.
    pub cancel_requested: bool,
    /// Why it does not run now.
    pub waiting: Option<WaitReason>,
    /// The group that it belongs to: as a member, as the join or as the finished job.
    pub group: Option<GroupId>,
    /// The groups of its sub-jobs, one per kind; the first one is done after all of them. Views of waits and events have only
    /// the first one.
    pub sub_jobs: Vec<GroupId>,
    /// Its lane.
    pub lane: Option<Lane>,
    /// The job that comes first in that lane, while this one waits for [`WaitReason::Lane`].
    pub behind: Option<JobId>,
    /// The submitted payload; `None` if its record cannot be read.
    pub payload: Option<Payload>,
    /// The result of its handler.
    pub result: Option<Payload>,
    /// The last error, even if a later attempt succeeded.
    pub error: Option<String>,
    /// The newest stored progress of its attempts, with the checkpoint.
    pub progress: Option<Progress>,
    /// The lease of the running attempt.
    pub lease: Option<Duration>,
    /// The generation: 1, plus one for each time that it was opened again.
    pub generation: u32,
    /// Closed attempts of this and earlier generations, oldest first: the newest eight that did not succeed, and the one that
    /// succeeded.
    pub attempts: Vec<PastAttemptView>,
    /// When the running attempt was assigned, by the leader's clock.
    pub assigned_at: Option<SystemTime>,
    /// Attempts of this generation that failed.
    pub failures: u32,
    /// Attempts of this generation that lost their worker.
    pub losses: u32,
    /// Its options; an option that was not set has its default. `None` if its record cannot be read. Without a lease
    /// or a setting of its renewal, the values of its kind apply.
    pub options: Option<JobOptions>,
    /// No attempt begins after this.
    pub expires_at: Option<SystemTime>,
    /// When it was submitted, by the client's clock.
    pub submitted_at: Option<SystemTime>,
    /// Its earliest start, or the end of its backoff, while it is delayed.
    pub not_before: Option<SystemTime>,
    /// When it ended, by the clock of the process that ended it.
    pub finished_at: Option<SystemTime>,
    /// Who cancelled it, opened it again or released it last. `None` if only the cluster did.
    pub changed: Option<Changed>,
}

impl JobView {
    /// Builds a view from the record alone. An open job counts as queued until its place is known.
    pub(crate) fn of(id: JobId, record: JobRecord) -> Self {
        let options = JobOptions::effective(&record.policy, &record.placement, record.priority);
        let attempts = record.past().into_iter().map(PastAttemptView::of).collect();
        let sub_jobs = record.spawned.then(|| GroupId::of_sub_jobs(&id, &record)).into_iter().collect();
        let (state, result, finished_at) = match record.state {
            JobState::Open { .. } => (State::Queued, None, None),
            JobState::Terminal { verdict: Verdict::Succeeded(result), at } => {
                (State::Succeeded, Some(result), Some(at.into()))
            }
            JobState::Terminal { verdict: Verdict::Cancelled, at } => {
                (State::Cancelled, None, Some(at.into()))
            }
            JobState::Terminal { verdict: Verdict::Dead, at } => (State::Dead, None, Some(at.into())),
        };
        Self {
            id,
            traceparent: record.trace,
            kind: Some(record.kind),
            state,
            attempt: record.attempts,
            worker: record.last.map(|last| last.attempt.worker),
            node: None,
            cancel_requested: false,
            waiting: None,
            sub_jobs,
            group: record.membership.map(|part| part.group),
            lane: record.placement.lane,
            behind: None,
            payload: Some(record.payload),
            result,
            error: record.last_error,
            progress: record.progress,
            lease: None,
            generation: record.generation,
            attempts,
            assigned_at: None,
            failures: record.failures,
            losses: record.losses,
            options: Some(options),
            expires_at: record.expires_at.map(Into::into),
            submitted_at: Some(record.submitted_at.into()),
            not_before: None,
            finished_at,
            changed: record.changed.map(Changed::of),
        }
    }

    /// Returns about how many bytes the job has in memory or as JSON, whichever is more. The texts and bytes of callers and
    /// handlers are never estimated too low.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let payloads = [&self.payload, &self.result].into_iter().flatten().map(|payload| payload.bytes());
        let errors = self.attempts.iter().filter_map(|attempt| attempt.error.as_ref()).chain(&self.error);
        let progress = self.progress.as_ref();
        let message = progress.map_or(0, |progress| escaped(progress.message().as_bytes()));
        let checkpoint = progress.map_or(0, |progress| progress.checkpoint().len());
        PLAIN_BYTES
            + self.attempts.len() * ATTEMPT_BYTES
            + payloads.map(escaped).sum::<usize>()
            + errors.map(|error| escaped(error.as_bytes())).sum::<usize>()
            + self.sub_jobs.iter().map(|group| group.as_str().len() + 3).sum::<usize>()
            + self.changed.as_ref().map_or(0, |changed| escaped(changed.by.as_bytes()))
            + message
            + checkpoint
    }

    /// Builds the view of a job whose record cannot be read.
    pub(crate) fn unreadable(id: JobId, reason: &WireError) -> Self {
        Self {
            id,
            traceparent: None,
            kind: None,
            state: State::Quarantined,
            attempt: 0,
            worker: None,
            node: None,
            cancel_requested: false,
            waiting: None,
            group: None,
            sub_jobs: Vec::new(),
            lane: None,
            behind: None,
            payload: None,
            result: None,
            error: Some(format!("its stored record cannot be read: {reason}")),
            progress: None,
            lease: None,
            generation: 0,
            attempts: Vec::new(),
            assigned_at: None,
            failures: 0,
            losses: 0,
            options: None,
            expires_at: None,
            submitted_at: None,
            not_before: None,
            finished_at: None,
            changed: None,
        }
    }

    /// Returns why it does not run now, as a sentence.
    #[must_use]
    pub fn waiting_for(&self) -> Option<String> {
        match (self.waiting?, &self.behind) {
            (WaitReason::Lane, Some(job)) => Some(format!("{job} comes first in its lane")),
            (waiting, _) => Some(waiting.to_string()),
        }
    }

    /// Returns its progress in one line: `40 %: loading`; `None` without progress.
    #[must_use]
    pub fn progress_text(&self) -> Option<String> {
        let progress = self.progress.as_ref()?;
        match (progress.percent(), progress.message()) {
            (Some(percent), "") => Some(format!("{percent} %")),
            (Some(percent), message) => Some(format!("{percent} %: {message}")),
            (None, "") => None,
            (None, message) => Some(message.to_owned()),
        }
    }

    /// Returns its state in one line, with the reason why it waits, its progress or its error.
    #[must_use]
    pub fn status(&self) -> String {
        let state = self.state;
        if let (State::Running, None, Some(progress_text)) = (state, self.waiting, self.progress_text()) {
            return format!("{state}: {progress_text}");
        }
        match (self.waiting_for(), &self.error) {
            (Some(waiting), _) => format!("{state}: {waiting}"),
            (None, Some(error)) if state != State::Succeeded => format!("{state}: {error}"),
            (None, _) => state.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
