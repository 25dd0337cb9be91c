//! Explains why a job is not running.
//!
//! It adds to the one-word reason of `job show` the details that an operator needs: the kind or tags that no worker
//! has, who paused the kind, which job comes first in the lane and what that one waits for. The parts are read as
//! close to one moment as possible: a job that moves during the call is explained as it was.

use std::fmt;
use std::time::SystemTime;

use bellwether_core::job::{Assignment, Isolation, JobRecord};
use bellwether_core::name::{GroupId, JobId, Kind, Lane, NodeId, Tag, WorkerId};
use bellwether_core::time::WallMillis;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::cluster::Cluster;
use super::error::Error;
use super::get::view;
use super::kinds::Paused;
use super::locate::{Found, Location};
use super::timestamp::rfc3339;
use super::view::{JobView, State, WaitReason};

/// Why a job is not running, or that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The job.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// The cause.
    pub cause: Cause,
}

/// What keeps a job from running. `Display` renders a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// No live worker has a handler for its kind.
    UnknownKind {
        /// Its kind.
        kind: Kind,
    },
    /// Workers of its kind exist, but none has all of its tags.
    Tags {
        /// Its kind.
        kind: Kind,
        /// The tags that it requires.
        tags: Vec<Tag>,
        /// The required tags that no worker of its kind has. Empty if each tag has a worker, but no worker has all tags.
        missing: Vec<Tag>,
    },
    /// Its kind is paused.
    Paused {
        /// Its kind.
        kind: Kind,
        /// Who paused it, when, and why.
        pause: Paused,
    },
    /// Its kind is paused on each worker that has a handler for it.
    PausedOnWorkers {
        /// Its kind.
        kind: Kind,
        /// The number of these workers.
        workers: usize,
    },
    /// The workers that could run it are draining.
    Draining {
        /// The number of these workers.
        workers: usize,
    },
    /// The workers that could run it have no free slot.
    Busy {
        /// The number of these workers.
        workers: usize,
        /// Their slots.
        slots: usize,
    },
    /// The workers that could run it and have a free slot get no jobs for a while: an attempt with an expired lease
    /// was taken from each of them.
    Shunned {
        /// These workers.
        workers: Vec<Shunned>,
    },
    /// It has lost workers, so it is isolated from other jobs and waits for a worker that can take it.
    Isolated {
        /// How many workers it has lost in this generation.
        losses: u32,
        /// Whether it runs alone and waits for a worker without jobs. Otherwise it waits, for a limited time, for a worker
        /// without other jobs that have lost workers.
        alone: bool,
    },
    /// There is no leader to assign it.
    NoLeader,
    /// It may not start yet.
    NotBefore {
        /// When it may start.
        at: SystemTime,
    },
    /// It waits after an attempt that failed, was lost or was snoozed.
    Backoff {
        /// The end of the wait.
        until: SystemTime,
        /// Attempts of this generation that failed.
        failures: u32,
        /// Attempts of this generation that were lost.
        losses: u32,
        /// The last error.
        error: Option<String>,
    },
    /// It has expired; the leader is about to end it.
    Expired {
        /// When it expired.
        at: SystemTime,
    },
    /// Another job of its lane comes first.
    LaneBusy {
        /// The lane.
        lane: Lane,
        /// The job that comes first.
        job: JobId,
        /// The status of that job.
        status: String,
    },
    /// It has a lane but no turn in it: an operator deleted the turn.
    NoTurn,
    /// The leader is about to assign it.
    Assignment,
    /// It is assigned to a worker.
    Running {
        /// The worker.
        worker: WorkerId,
        /// Its node.
        node: Option<NodeId>,
        /// The number of the attempt.
        attempt: u32,
        /// When it was assigned, by the leader's clock.
        since: Option<SystemTime>,
        /// Whether it was asked to stop.
        cancel_requested: bool,
    },
    /// Its worker was lost, and the leader will requeue it.
    WorkerLost {
        /// The worker.
        worker: WorkerId,
    },
    /// Its stored record or assignment cannot be read.
    Quarantined {
        /// The reason.
        note: String,
    },
    /// It has ended.
    Ended {
        /// When it ended.
        at: Option<SystemTime>,
        /// Its last error, unless it succeeded.
        error: Option<String>,
    },
    /// It was found in no place: it moved during every look, or an operator deleted its entry.
    Nowhere,
}

/// A worker that gets no jobs for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shunned {
    /// The worker.
    pub worker: WorkerId,
    /// Its node.
    pub node: NodeId,
    /// The end of that time by ZooKeeper's clock. The time ends earlier if the worker registers again, and later by up
    /// to 15 s.
    pub until: SystemTime,
}

impl Client {
    /// Explains why a job is not running.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when ZooKeeper does not answer within the client's deadline.
    pub fn explain<'a>(&'a self, id: &'a JobId) -> BoxFuture<'a, Result<Explanation, Error>> {
        async move {
            let by = self.by();
            let found = self.locate(by, std::slice::from_ref(id)).await?.pop().flatten();
            let found = found.ok_or_else(|| Error::NotFound(id.clone()))?;
            let cluster = self.cluster(by).await?;
            let mut view = view(id.clone(), found.clone(), Some(&cluster));
            self.tell_turn(by, &mut view).await;
            let behind = match &view.behind {
                Some(job) => self.get_by(job, by).await?,
                None => None,
            };
            let cause = cause(&view, found.ok(), &cluster, behind.as_ref(), self.0.session.wall());
            Ok(Explanation { id: id.clone(), state: view.state, cause })
        }
        .boxed()
    }
}

fn cause(
    view: &JobView,
    found: Option<Found>,
    cluster: &Cluster,
    behind: Option<&JobView>,
    now: WallMillis,
) -> Cause {
    let error = || view.error.clone();
    let Some(Found { record, place, .. }) = found else {
        return Cause::Quarantined { note: error().unwrap_or_default() };
    };
    match place {
        Location::Terminal => {
            let error = error().filter(|_| view.state != State::Succeeded);
            Cause::Ended { at: view.finished_at, error }
        }
        Location::Quarantined { note } => Cause::Quarantined { note },
        Location::Nowhere => Cause::Nowhere,
        Location::Assigned { worker, .. } if !cluster.lives(worker) => Cause::WorkerLost { worker },
        Location::Assigned { worker, assignment, .. } => {
            let assigned =
                |assigned: Assignment| (assigned.attempt, Some(assigned.assigned_at.into()), assigned.cancel);
            let (attempt, since, cancel_requested) =
                assignment.map_or((record.attempts + 1, None, false), assigned);
            Cause::Running { worker, node: view.node.clone(), attempt, since, cancel_requested }
        }
        Location::Delayed(_) => match (view.waiting, view.not_before) {
            (Some(WaitReason::NotBefore), Some(at)) => Cause::NotBefore { at },
            (_, until) => Cause::Backoff {
                until: until.unwrap_or(SystemTime::UNIX_EPOCH),
                failures: view.failures,
                losses: view.losses,
                error: error(),
            },
        },
        Location::Queued(_) => match record.expires_at.filter(|_| record.is_overdue(now)) {
            Some(at) => Cause::Expired { at: at.into() },
            None => cause_queued(view, &record, cluster, behind),
        },
    }
}

fn cause_queued(view: &JobView, record: &JobRecord, cluster: &Cluster, behind: Option<&JobView>) -> Cause {
    let kind = || record.kind.clone();
    match view.waiting {
        Some(WaitReason::UnknownKind) => Cause::UnknownKind { kind: kind() },
        Some(WaitReason::Tags) => {
            let missing = cluster.missing_tags(&record.kind, &record.placement.tags);
            Cause::Tags { kind: kind(), tags: record.placement.tags.clone(), missing }
        }
        Some(WaitReason::Paused) => {
            let pause = cluster.paused(&record.kind).cloned().unwrap_or_default();
            Cause::Paused { kind: kind(), pause }
        }
        Some(WaitReason::PausedOnWorkers) => {
            Cause::PausedOnWorkers { kind: kind(), workers: cluster.handlers(&kind()) }
        }
        Some(WaitReason::Draining) => Cause::Draining { workers: cluster.room(record).0 },
        Some(WaitReason::Busy) => {
            let (workers, slots) = cluster.room(record);
            Cause::Busy { workers, slots }
        }
        Some(WaitReason::Shunned) => Cause::Shunned { workers: cluster.shunned(record) },
        Some(WaitReason::Isolated) => {
            Cause::Isolated { losses: record.losses, alone: record.isolation() == Isolation::Alone }
        }
        Some(WaitReason::NoLeader) => Cause::NoLeader,
        Some(WaitReason::NoTurn) => Cause::NoTurn,
        Some(WaitReason::Lane) => match (&view.lane, &view.behind) {
            (Some(lane), Some(job)) => {
                let status = behind.map_or_else(|| "no longer stored".to_owned(), status_of_first);
                Cause::LaneBusy { lane: lane.clone(), job: job.clone(), status }
            }
            (_, _) => Cause::Assignment,
        },
        Some(WaitReason::Nowhere) => Cause::Nowhere,
        Some(
            WaitReason::Assignment | WaitReason::Backoff | WaitReason::NotBefore | WaitReason::WorkerLost,
        )
        | None => Cause::Assignment,
    }
}

/// Returns the status of the first job of a lane, which keeps its turn until its sub-jobs have ended.
fn status_of_first(job: &JobView) -> String {
    match &job.sub_jobs[..] {
        [] => job.status(),
        _ if !job.state.is_terminal() => job.status(),
        [group] => format!("{}, but group {group} of its sub-jobs is not done", job.state),
        groups => {
            let groups = groups.iter().map(GroupId::as_str).collect::<Vec<_>>().join(", ");
            format!("{}, but not all of the groups {groups} of its sub-jobs are done", job.state)
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { kind } => write!(f, "no live worker has a handler for kind {kind}"),
            Self::Tags { kind, tags, missing } if missing.is_empty() => {
                write!(f, "no live worker of kind {kind} has all of the tags {}", names(tags))
            }
            Self::Tags { kind, missing, .. } => {
                let any = if missing.len() == 1 { "the tag" } else { "any of the tags" };
                write!(f, "no live worker of kind {kind} has {any} {}", names(missing))
            }
            Self::PausedOnWorkers { kind, workers } => {
                write!(f, "kind {kind} is paused on each of the {workers} workers that have a handler for it")
            }
            Self::Paused { kind, pause: Paused { by, note, since } } => {
                write!(f, "kind {kind} is paused")?;
                if let Some(since) = since {
                    write!(f, " since {}", rfc3339(*since))?;
                }
                if let Some(by) = by {
                    write!(f, " by {by}")?;
                }
                note.as_ref().map_or(Ok(()), |note| write!(f, ": {note}"))
            }
            Self::Draining { workers } => write!(f, "the {workers} workers that could run it are draining"),
            Self::Busy { workers, slots } => {
                write!(f, "all {slots} slots of the {workers} workers that could run it are busy")
            }
            Self::Shunned { workers } => {
                f.write_str("workers that could run it did not renew a lease in time and get no jobs: ")?;
                for (n, Shunned { worker, node, until }) in workers.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    write!(f, "{comma}{worker} of {node} until {}", rfc3339(*until))?;
                }
                f.write_str(", unless they register again earlier")
            }
            Self::Isolated { losses, alone: true } => {
                write!(
                    f,
                    "it has lost {losses} workers, so it runs alone and waits for a worker without jobs"
                )
            }
            Self::Isolated { alone: false, .. } => f.write_str(
                "it has lost a worker, so it waits for a worker without other jobs that have lost one",
            ),
            Self::NoLeader => f.write_str("there is no leader to assign it"),
            Self::NotBefore { at } => write!(f, "it may not start before {}", rfc3339(*at)),
            Self::Backoff { until, failures, losses, error } => {
                write!(f, "it waits until {} after {failures} failures", rfc3339(*until))?;
                if *losses > 0 {
                    write!(f, " and {losses} losses")?;
                }
                error.as_ref().map_or(Ok(()), |error| write!(f, ", the last: {error}"))
            }
            Self::Expired { at } => {
                write!(f, "it expired at {}, and the leader is about to end it", rfc3339(*at))
            }
            Self::LaneBusy { lane, job, status } => {
                write!(f, "{job} comes first in lane {lane}, and is {status}")
            }
            Self::NoTurn => f.write_str("its turn in its lane was deleted: cancel and retry it"),
            Self::Assignment => f.write_str("the leader is about to assign it"),
            Self::Running { worker, node, attempt, since, cancel_requested } => {
                write!(f, "attempt {attempt} is on worker {worker}")?;
                if let Some(node) = node {
                    write!(f, " of {node}")?;
                }
                if let Some(since) = since {
                    write!(f, " since {}", rfc3339(*since))?;
                }
                if *cancel_requested { f.write_str(", and was asked to stop") } else { Ok(()) }
            }
            Self::WorkerLost { worker } => {
                write!(f, "its worker {worker} was lost, and the leader will requeue it")
            }
            Self::Quarantined { note } => write!(f, "it is quarantined: {note}"),
            Self::Ended { at, error } => {
                f.write_str("it ended")?;
                if let Some(at) = at {
                    write!(f, " at {}", rfc3339(*at))?;
                }
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
            }
            Self::Nowhere => f.write_str("it is in no queue and no inbox: look again"),
        }
    }
}

fn names(tags: &[Tag]) -> String {
    tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
