//! `/v1/remote-workers/{key}`: processes that run jobs through this gateway.
//!
//! | call | if its answer is lost |
//! | --- | --- |
//! | register | the same key and settings are the same worker |
//! | poll | attempts that the next poll does not list are delivered again |
//! | heartbeat | repeated anyway; stops are instructions as long as an attempt is listed |
//! | finish | a repeated finish reports how the attempt was closed |
//! | drain, delete | repeating them changes nothing |

pub(super) mod finish;
pub(super) mod heartbeat;
pub(super) mod leave;
pub(super) mod poll;
pub(super) mod register;

use std::collections::BTreeSet;

use bellwether::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::remote::{Id, Instructions, Reason};

/// An attempt that a remote worker has.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttemptRef {
    /// The job's id.
    #[schema(value_type = JobId)]
    job: JobId,
    /// The number of the attempt.
    attempt: u32,
    /// The fencing token of the attempt.
    fencing_token: i32,
    /// The generation of the job. Ignored: the token determines it.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted, so that an attempt can be listed as it was received")]
    generation: Option<u32>,
    /// The submission of the job. Ignored, too.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted, so that an attempt can be listed as it was received")]
    submission: Option<String>,
}

impl From<AttemptRef> for Id {
    fn from(AttemptRef { job, attempt, fencing_token, generation: _, submission: _ }: AttemptRef) -> Self {
        Self { job, attempt, fencing_token }
    }
}

fn ids(running: Vec<AttemptRef>) -> BTreeSet<Id> {
    running.into_iter().map(Id::from).collect()
}

/// An attempt that the worker must stop.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StopDocument {
    /// The job's id.
    job: String,
    /// The number of the attempt.
    attempt: u32,
    /// The fencing token of the attempt.
    fencing_token: i32,
    /// Why: `cancelled` (a client cancelled the job), `closed` (the lease expired, the timeout passed, or the gateway does
    /// not know the attempt) or `handed_back` (the worker drains).
    reason: &'static str,
}

fn stops(instructions: &Instructions) -> Vec<StopDocument> {
    let stop = instructions.stop.iter().map(|(Id { job, attempt, fencing_token }, reason)| StopDocument {
        job: job.to_string(),
        attempt: *attempt,
        fencing_token: *fencing_token,
        reason: match reason {
            Reason::Cancelled => "cancelled",
            Reason::Closed => "closed",
            Reason::HandedBack => "handed_back",
        },
    });
    stop.collect()
}

/// Adds the position of a list to a problem.
fn at(list: &str, position: usize, problem: Problem) -> Problem {
    problem.within(&format!("{list}[{position}]"))
}
