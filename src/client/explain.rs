//! Why a job is not running.
//!
//! What `job show` says in a word, with what somebody needs who wants to change it: which kind or tags nobody has, who
//! paused it, whom it waits behind and what that one waits for. It is read of one moment, as well as that can be: a job
//! that moves meanwhile is told as it was.

use std::fmt;

use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::{JobId, Kind, Lane, NodeId, Tag, WorkerId};
use bellwether_core::time::WallMillis;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::Client;
use super::cluster::Cluster;
use super::error::Error;
use super::get::view;
use super::kinds::Paused;
use super::locate::{Found, Location, locate};
use super::timestamp::rfc3339;
use super::view::{JobView, State, WaitReason};

/// Why a job is not running, or that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Which job.
    pub id: JobId,
    /// Where it is in its life.
    pub state: State,
    /// Why.
    pub why: Why,
}

/// What keeps a job from running. `Display` makes a sentence of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// No live worker has a handler for its kind.
    UnknownKind {
        /// Its kind.
        kind: Kind,
    },
    /// Workers of its kind are there, and none has all of its tags.
    Tags {
        /// Its kind.
        kind: Kind,
        /// What it asks for.
        tags: Vec<Tag>,
        /// Those of them that no worker of its kind has. Empty when each has some and none has all.
        missing: Vec<Tag>,
    },
    /// Its kind is paused.
    Paused {
        /// Its kind.
        kind: Kind,
        /// By whom and since when.
        pause: Paused,
    },
    /// The workers that could take it are draining.
    Draining {
        /// How many these are.
        workers: usize,
    },
    /// The workers that could take it have no free slot.
    Busy {
        /// How many these are.
        workers: usize,
        /// Their slots.
        slots: usize,
    },
    /// Of the workers that could take it, those with a free slot get nothing for a while, because an attempt was taken from
    /// each: it gave no sign of life within its lease.
    Shunned {
        /// Which, with its node, and until when unless it registers anew before: by ZooKeeper's clock, and up to 15 s late.
        workers: Vec<(WorkerId, NodeId, WallMillis)>,
    },
    /// Nobody leads, so nobody assigns.
    NoLeader,
    /// It may not start before this.
    NotBefore {
        /// From when it may.
        at: WallMillis,
    },
    /// It waits after an attempt that failed, or that asked to be called later.
    Backoff {
        /// Until when.
        until: WallMillis,
        /// Attempts of this generation that failed.
        failures: u32,
        /// What the last error was.
        error: Option<String>,
    },
    /// Its time to start has passed; the leader is about to end it.
    Overdue {
        /// When that was.
        at: WallMillis,
    },
    /// Another job of its lane comes first.
    Behind {
        /// The lane.
        lane: Lane,
        /// The job.
        job: JobId,
        /// What that one does or waits for.
        status: String,
    },
    /// It has a lane and no turn in it, which only an operator's hand can bring about.
    NoTurn,
    /// The leader is about to assign it.
    Assignment,
    /// A worker has it.
    Running {
        /// Which.
        worker: WorkerId,
        /// Its node.
        node: Option<NodeId>,
        /// The attempt.
        attempt: u32,
        /// Since when, by the leader's clock.
        since: Option<WallMillis>,
        /// Whether it was asked to stop.
        cancel_requested: bool,
    },
    /// Its worker is gone, and the leader will queue it again.
    WorkerLost {
        /// Which.
        worker: WorkerId,
    },
    /// Its stored bytes cannot be read.
    Quarantined {
        /// What is wrong.
        note: String,
    },
    /// It is over.
    Over {
        /// When it ended.
        at: Option<WallMillis>,
        /// Its last error, when it did not succeed.
        error: Option<String>,
    },
    /// It was seen in no place: it moved whenever it was looked for, or an operator deleted its entry.
    Nowhere,
}

impl Client {
    /// Why a job is not running.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when ZooKeeper does not answer within the client's deadline.
    pub async fn explain(&self, id: &JobId) -> Result<Explanation, Error> {
        let by = self.by();
        let found = locate(&self.0.link, by, std::slice::from_ref(id)).await?.pop().flatten();
        let found = found.ok_or_else(|| Error::NotFound(id.clone()))?;
        let cluster = self.cluster(by).await?;
        let mut view = view(id.clone(), found.clone(), Some(&cluster));
        self.tell_turn(by, &mut view).await;
        let behind = match &view.behind {
            Some(job) => self.get_by(job, by).await?,
            None => None,
        };
        let why = why(&view, found.ok(), &cluster, behind.as_ref(), self.0.link.wall());
        Ok(Explanation { id: id.clone(), state: view.state, why })
    }
}

fn why(
    view: &JobView,
    found: Option<Found>,
    cluster: &Cluster,
    behind: Option<&JobView>,
    now: WallMillis,
) -> Why {
    let error = || view.error.clone();
    let Some(Found { record, place, .. }) = found else {
        return Why::Quarantined { note: error().unwrap_or_default() };
    };
    match place {
        Location::Terminal => {
            let error = error().filter(|_| view.state != State::Succeeded);
            Why::Over { at: view.finished_at, error }
        }
        Location::Quarantined { note } => Why::Quarantined { note },
        Location::Nowhere => Why::Nowhere,
        Location::Assigned { worker, .. } if !cluster.lives(worker) => Why::WorkerLost { worker },
        Location::Assigned { worker, assignment, .. } => {
            let assigned =
                |assigned: Assignment| (assigned.attempt, Some(assigned.assigned_at), assigned.cancel);
            let (attempt, since, cancel_requested) =
                assignment.map_or((record.attempts + 1, None, false), assigned);
            Why::Running { worker, node: view.node.clone(), attempt, since, cancel_requested }
        }
        Location::Delayed { .. } => match (view.waiting, view.not_before) {
            (Some(WaitReason::NotBefore), Some(at)) => Why::NotBefore { at },
            (_, until) => {
                Why::Backoff { until: until.unwrap_or_default(), failures: view.failures, error: error() }
            }
        },
        Location::Queued => match record.expires_at.filter(|_| record.is_overdue(now)) {
            Some(at) => Why::Overdue { at },
            None => why_queued(view, &record, cluster, behind),
        },
    }
}

fn why_queued(view: &JobView, record: &JobRecord, cluster: &Cluster, behind: Option<&JobView>) -> Why {
    let kind = || record.kind.clone();
    match view.waiting {
        Some(WaitReason::UnknownKind) => Why::UnknownKind { kind: kind() },
        Some(WaitReason::Tags) => {
            let missing = cluster.missing_tags(&record.kind, &record.placement.tags);
            Why::Tags { kind: kind(), tags: record.placement.tags.clone(), missing }
        }
        Some(WaitReason::Paused) => {
            let pause = cluster.paused(&record.kind).cloned().unwrap_or_default();
            Why::Paused { kind: kind(), pause }
        }
        Some(WaitReason::Draining) => Why::Draining { workers: cluster.room(record).0 },
        Some(WaitReason::Busy) => {
            let (workers, slots) = cluster.room(record);
            Why::Busy { workers, slots }
        }
        Some(WaitReason::Shunned) => Why::Shunned { workers: cluster.shunned(record) },
        Some(WaitReason::NoLeader) => Why::NoLeader,
        Some(WaitReason::NoTurn) => Why::NoTurn,
        Some(WaitReason::Lane) => match (&view.lane, &view.behind) {
            (Some(lane), Some(job)) => {
                let status = behind.map_or_else(|| "not there any more".to_owned(), JobView::status);
                Why::Behind { lane: lane.clone(), job: job.clone(), status }
            }
            (_, _) => Why::Assignment,
        },
        Some(WaitReason::Nowhere) => Why::Nowhere,
        Some(
            WaitReason::Assignment | WaitReason::Backoff | WaitReason::NotBefore | WaitReason::WorkerLost,
        )
        | None => Why::Assignment,
    }
}

impl Why {
    /// Its name in documents: `unknown_kind`, `tags`, …
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::UnknownKind { .. } => "unknown_kind",
            Self::Tags { .. } => "tags",
            Self::Paused { .. } => "paused",
            Self::Draining { .. } => "draining",
            Self::Busy { .. } => "busy",
            Self::Shunned { .. } => "shunned",
            Self::NoLeader => "no_leader",
            Self::NotBefore { .. } => "not_before",
            Self::Backoff { .. } => "backoff",
            Self::Overdue { .. } => "overdue",
            Self::Behind { .. } => "lane",
            Self::NoTurn => "no_turn",
            Self::Assignment => "assignment",
            Self::Running { .. } => "running",
            Self::WorkerLost { .. } => "worker_lost",
            Self::Quarantined { .. } => "quarantined",
            Self::Over { .. } => "over",
            Self::Nowhere => "nowhere",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { kind } => write!(f, "no live worker has a handler for kind {kind}"),
            Self::Tags { kind, tags, missing } if missing.is_empty() => {
                write!(f, "no live worker of kind {kind} has all of the tags {}", names(tags))
            }
            Self::Tags { kind, missing, .. } => {
                write!(f, "no live worker of kind {kind} has the tag {}", names(missing))
            }
            Self::Paused { kind, pause: Paused { by, since } } => {
                write!(f, "kind {kind} is paused")?;
                if let Some(since) = since {
                    write!(f, " since {}", rfc3339(*since))?;
                }
                by.as_ref().map_or(Ok(()), |by| write!(f, " by {by}"))
            }
            Self::Draining { workers } => write!(f, "the {workers} workers that could take it are draining"),
            Self::Busy { workers, slots } => {
                write!(f, "all {slots} slots of the {workers} workers that could take it are busy")
            }
            Self::Shunned { workers } => {
                f.write_str(
                    "workers that could take it gave no sign of life within a lease and get nothing: ",
                )?;
                for (n, (worker, node, until)) in workers.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    write!(f, "{comma}{worker} of {node} until {}", rfc3339(*until))?;
                }
                f.write_str(", unless they register anew before")
            }
            Self::NoLeader => f.write_str("nobody leads, so nobody assigns it"),
            Self::NotBefore { at } => write!(f, "it may not start before {}", rfc3339(*at)),
            Self::Backoff { until, failures, error } => {
                write!(f, "it waits until {} after {failures} failures", rfc3339(*until))?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ", the last: {error}"))
            }
            Self::Overdue { at } => {
                write!(f, "it expired at {}, and the leader is about to end it", rfc3339(*at))
            }
            Self::Behind { lane, job, status } => {
                write!(f, "{job} comes first in lane {lane}, and is {status}")
            }
            Self::NoTurn => f.write_str("its turn in its lane was deleted: cancel and retry it"),
            Self::Assignment => f.write_str("the leader is about to assign it"),
            Self::Running { worker, node, attempt, since, cancel_requested } => {
                write!(f, "attempt {attempt} is with worker {worker}")?;
                if let Some(node) = node {
                    write!(f, " of {node}")?;
                }
                if let Some(since) = since {
                    write!(f, " since {}", rfc3339(*since))?;
                }
                if *cancel_requested { f.write_str(", and was asked to stop") } else { Ok(()) }
            }
            Self::WorkerLost { worker } => {
                write!(f, "its worker {worker} is gone, and the leader will queue it again")
            }
            Self::Quarantined { note } => write!(f, "it was set aside: {note}"),
            Self::Over { at, error } => {
                f.write_str("it is over")?;
                if let Some(at) = at {
                    write!(f, " since {}", rfc3339(*at))?;
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

/// `id`, `state`, `why`, `sentence`, and what the sentence is made of.
impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let at = |at: &WallMillis| rfc3339(*at);
        let details = match &self.why {
            Why::UnknownKind { kind } => json!({ "kind": kind }),
            Why::Tags { kind, tags, missing } => json!({ "kind": kind, "tags": tags, "missing": missing }),
            Why::Paused { kind, pause } => {
                json!({ "kind": kind, "by": pause.by, "since": pause.since.as_ref().map(at) })
            }
            Why::Draining { workers } => json!({ "workers": workers }),
            Why::Busy { workers, slots } => json!({ "workers": workers, "slots": slots }),
            Why::Shunned { workers } => {
                let shunned = workers.iter().map(
                    |(worker, node, until)| json!({ "worker": worker, "node": node, "until": at(until) }),
                );
                json!({ "workers": shunned.collect::<Vec<_>>() })
            }
            Why::NotBefore { at: not_before } => json!({ "not_before": at(not_before) }),
            Why::Backoff { until, failures, error } => {
                json!({ "until": at(until), "failures": failures, "error": error })
            }
            Why::Overdue { at: expired } => json!({ "expired_at": at(expired) }),
            Why::Behind { lane, job, status } => json!({ "lane": lane, "behind": job, "status": status }),
            Why::Running { worker, node, attempt, since, cancel_requested } => json!({
                "worker": worker, "node": node, "attempt": attempt, "since": since.as_ref().map(at),
                "cancel_requested": cancel_requested,
            }),
            Why::WorkerLost { worker } => json!({ "worker": worker }),
            Why::Quarantined { note } => json!({ "note": note }),
            Why::Over { at: ended, error } => {
                json!({ "finished_at": ended.as_ref().map(at), "error": error })
            }
            Why::NoLeader | Why::NoTurn | Why::Assignment | Why::Nowhere => json!({}),
        };
        let mut document = serializer.serialize_map(None)?;
        document.serialize_entry("id", &self.id)?;
        document.serialize_entry("state", &self.state)?;
        document.serialize_entry("why", self.why.as_str())?;
        document.serialize_entry("sentence", &self.why.to_string())?;
        for (name, value) in details.as_object().into_iter().flatten() {
            document.serialize_entry(name, value)?;
        }
        document.end()
    }
}
