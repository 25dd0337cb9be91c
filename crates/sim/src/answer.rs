//! Converts the client's answers to the history's, in the simulator and in chaos runs.

use bellwether::client::{Accepted, Cancelled, Error, Retried, SubmitError, WaitError};
use bellwether::{JobHandle, JobView, State};

use crate::history::{Answer, JobSight, Seen};

/// Converts the result of a submission.
#[must_use]
pub fn submitted<K>(done: &Result<JobHandle<K>, SubmitError>) -> Answer {
    match done {
        Ok(job) if job.accepted() == Accepted::Other => Answer::Ignored,
        Ok(_) => Answer::Accepted,
        Err(SubmitError::Conflict { .. }) => Answer::Conflict,
        Err(
            error @ (SubmitError::Invalid(_)
            | SubmitError::Group(_)
            | SubmitError::Client(_)
            | SubmitError::Overloaded { .. }
            | SubmitError::MinuteFull { .. }
            | SubmitError::TooManyMinutes { .. }
            | SubmitError::NotSent { .. }
            | SubmitError::Refused { .. }
            | SubmitError::Unreadable { .. }
            | SubmitError::Encode { .. }
            | SubmitError::Undecodable { .. }),
        ) => Answer::Failed { why: error.to_string() },
        // A lost reply, or an error of which nothing is known.
        Err(error) => Answer::Unknown { why: error.to_string() },
    }
}

/// Returns the generation that a submission is accepted as, at least.
pub(crate) fn generation(accepted: Accepted) -> Option<u32> {
    match accepted {
        Accepted::New | Accepted::Same => Some(1),
        Accepted::Again(generation) => Some(generation),
        Accepted::Other => None,
    }
}

/// Converts the result of a cancel. The client does not report the generation of an end that it found.
#[must_use]
pub fn cancelled(done: Result<Cancelled, Error>) -> Answer {
    match done {
        Ok(Cancelled::Cancelled) => Answer::Cancelled,
        Ok(Cancelled::Requested(_)) => Answer::CancelRequested,
        Ok(Cancelled::AlreadyTerminal(state)) => Answer::Failed { why: format!("it is {state}") },
        Err(error) => not_done(&error),
    }
}

/// Converts the result of a retry.
#[must_use]
pub fn retried(done: Result<Retried, Error>) -> Answer {
    match done {
        Ok(Retried::Reopened(generation)) => Answer::Reopened { generation },
        Ok(done @ (Retried::Released | Retried::StillOpen | Retried::Succeeded)) => {
            Answer::Failed { why: format!("{done:?}") }
        }
        Err(error) => not_done(&error),
    }
}

/// Converts the result of a wait. If it timed out, the last view counts.
#[must_use]
pub fn waited(done: Result<JobView, WaitError>) -> Answer {
    match done {
        Ok(view) => seen(&view),
        Err(WaitError::TimedOut { last: Some(view), .. }) => seen(&view),
        Err(WaitError::Client(Error::NotFound(_))) => Answer::Seen { job: JobSight::Absent },
        Err(error) => Answer::Unknown { why: error.to_string() },
    }
}

/// Converts the result of a read.
#[must_use]
pub fn read(done: Result<Option<JobView>, Error>) -> Answer {
    match done {
        Ok(Some(view)) => seen(&view),
        Ok(None) => Answer::Seen { job: JobSight::Absent },
        Err(error) => Answer::Unknown { why: error.to_string() },
    }
}

/// Converts the error of a change that was not confirmed.
pub(crate) fn not_done(error: &Error) -> Answer {
    let why = error.to_string();
    match error {
        Error::NotFound(_) => Answer::Seen { job: JobSight::Absent },
        Error::Unreadable { .. }
        | Error::Quarantined(_)
        | Error::Refused(_)
        | Error::WorkerUnreadable { .. }
        | Error::Settings { .. }
        | Error::Group(_)
        | Error::GroupUnreadable { .. }
        | Error::Invalid { .. } => Answer::Failed { why },
        // No session, other writers, or an error of which nothing is known.
        _ => Answer::Unknown { why },
    }
}

fn seen(view: &JobView) -> Answer {
    let is = match view.state {
        State::Queued | State::Delayed | State::Running => Seen::Open,
        State::Succeeded => Seen::Succeeded,
        State::Cancelled => Seen::Cancelled,
        State::Dead => Seen::Dead,
        State::Quarantined => return Answer::Seen { job: JobSight::Quarantined },
    };
    Answer::Seen { job: JobSight::There { generation: view.generation, is } }
}
