//! The inputs and outputs of the executor.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::{Finished, Start};
use crate::job::{Assignment, Payload};
use crate::name::{JobId, Kind};
use crate::segment::SegmentId;
use crate::time::{Millis, WallMillis};
use crate::worker::WorkerSettings;

/// Time from the signal to the abort: long enough for an async handler to clean up, short enough that a cancel takes
/// effect quickly.
pub const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These attempts are assigned.
    Start(Vec<Start>),
    /// The requested slot is free, at this wall time.
    SlotGranted(WallMillis),
    /// These handlers have ended.
    Ended(Vec<Ended>),
    /// A client set the cancel flag.
    Cancel {
        /// The job.
        job: JobId,
        /// The attempt number.
        attempt: u32,
        /// The assignment with the flag.
        assignment: Assignment,
        /// Its version.
        version: i32,
    },
    /// A third of this attempt's lease has passed.
    Third(JobId, u32),
    /// This attempt's lease has expired.
    Lapsed(JobId, u32),
    /// These assignments were deleted, by our own report or by another process.
    Vanished(Vec<JobId>),
    /// This attempt was closed by another process.
    Zombie(JobId, u32),
    /// The grace period of this attempt's signal is over.
    GraceOver(JobId, u32),
    /// The reporter has closed these attempts, or found them closed. The id of a segment: all of its members have left it.
    Closed(Vec<JobId>),
    /// Hand back the waiting members of this segment.
    HandBack(SegmentId),
    /// The connection is lost.
    Hold,
    /// The connection is back.
    Resume,
    /// Let running attempts finish until this time, hand back the rest.
    Drain(Millis),
    /// What an operator has set on this worker.
    Settings(WorkerSettings),
    /// The number of abandoned handlers of each kind with a concurrency limit: their runs have ended, in this or an earlier
    /// incarnation, but their code still runs.
    Abandoned(BTreeMap<Kind, u32>),
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// A handler that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ended {
    /// The job.
    pub job: JobId,
    /// The attempt number.
    pub attempt: u32,
    /// The outcome of the handler.
    pub how: Run,
}

/// How a handler ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Run {
    /// With a result.
    Succeeded(Payload),
    /// With an error, a panic, or a timeout.
    Failed(String),
    /// The handler reported that the job can never succeed.
    Invalid(String),
    /// The handler asked to be called again after this time.
    Deferred(Duration),
    /// The handler was aborted.
    Aborted,
    /// The job has a lane, and the handler was aborted when the session was no longer trusted.
    Lapsed,
}

/// Why a running attempt is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stop {
    /// A client cancelled the job.
    Cancelled,
    /// The worker drains, and the grace period of the drain is over: the attempt is handed back without a loss.
    HandedBack,
    /// The lease expired.
    LeaseExpired,
    /// The attempt exceeded the job's timeout.
    TimedOut,
    /// The job has a lane, and the worker's session can no longer be trusted.
    Untrusted,
    /// Another process closed the attempt.
    Closed,
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Grant a slot as soon as one is free.
    WantSlot,
    /// The granted slot is not needed.
    ReturnSlot,
    /// Run this attempt in the granted slot.
    Launch(Box<Start>),
    /// Signal the handler to stop, with the reason, and send [`Event::GraceOver`] after [`CANCEL_GRACE`].
    Signal(JobId, u32, Stop),
    /// Abort the handler: [`Event::Ended`] follows.
    Abort(JobId, u32),
    /// Close this attempt.
    Report(Box<Finished>),
    /// Inform the inbox watcher that the attempt is closed and the job may be read again.
    Closed(JobId),
    /// Ask the inbox watcher whether the assignment still exists.
    Recheck(JobId),
    /// An attempt was handed back because of the settings: read them again, because they may have changed.
    NotServed,
    /// The result of a zombie was dropped.
    DroppedZombie(JobId),
    /// Send [`Event::Wake`] at this time.
    WakeAt(Millis),
    /// The worker drains, and no job is left here.
    Idle,
}
