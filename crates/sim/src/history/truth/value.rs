//! The meaning of a path, and the decoded data of a znode.

use std::rc::Rc;

use bellwether_core::change::Noted;
use bellwether_core::group::GroupRecord;
use bellwether_core::job::{Assignment, JobRecord, QueueEntry, TurnIndex};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, GroupPlace, Place};
use bellwether_core::retention::Retention;
use bellwether_core::schedule::ScheduleRecord;
use bellwether_core::wire;
use bellwether_core::worker::{EpochRecord, WorkerInfo};

/// The meaning of a path: core's [`Place`], and the paths that core's state machines do not need to parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// A job's record.
    Record(JobId),
    /// The note of a quarantined job.
    Quarantine(JobId),
    /// The epoch.
    Epoch,
    /// A candidate.
    Candidate,
    /// The retention setting.
    Retention,
    /// A path that core parses.
    Place(Place),
}

impl Spot {
    pub(crate) fn of(name: &str) -> Self {
        let job = || JobId::new(name.rsplit('/').next()?).ok();
        if name == path::EPOCH {
            return Self::Epoch;
        }
        if name == path::LEADER || name.starts_with("/election/") {
            return Self::Candidate;
        }
        if name == path::RETENTION {
            return Self::Retention;
        }
        let record = || job().filter(|job| path::record(job) == name).map(Self::Record);
        let note = || job().filter(|job| path::quarantine(job) == name).map(Self::Quarantine);
        record().or_else(note).unwrap_or_else(|| Self::Place(path::parse(name)))
    }
}

/// The decoded data of a znode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A job's record.
    Record(JobRecord),
    /// An entry, ready or delayed.
    Entry(QueueEntry),
    /// An assignment.
    Assignment(Assignment),
    /// A worker's registration.
    Worker(WorkerInfo),
    /// The claim of the epoch.
    Epoch(EpochRecord),
    /// A turn's index.
    Turn(TurnIndex),
    /// A schedule.
    Schedule(ScheduleRecord),
    /// The retention setting.
    Retention(Retention),
    /// A group's record.
    Group(GroupRecord),
    /// Bytes that cannot be decoded as the value of their path.
    Unreadable(String),
    /// Data that is not decoded.
    Opaque,
}

impl Value {
    pub(crate) fn decode(spot: &Spot, data: &[u8]) -> Rc<Self> {
        fn of<T: wire::Stored>(data: &[u8], value: impl FnOnce(T) -> Value) -> Value {
            wire::decode(data).map_or_else(|error| Value::Unreadable(error.to_string()), value)
        }
        Rc::new(match spot {
            Spot::Record(_) => of(data, Self::Record),
            Spot::Epoch => of(data, Self::Epoch),
            Spot::Retention => of(data, |noted: Noted<Retention>| Self::Retention(noted.value)),
            Spot::Quarantine(_) | Spot::Candidate => Self::Opaque,
            Spot::Place(place) => match place {
                Place::Ready(at) => match at.plain() {
                    Some(entry) if data.is_empty() => Self::Entry(entry),
                    Some(_) => Self::Unreadable("it has data, which its name denies".to_owned()),
                    None => of(data, Self::Entry),
                },
                Place::DelayedEntry(..) => of(data, Self::Entry),
                Place::Worker(_) => of(data, Self::Worker),
                Place::Assignment(..) => of(data, Self::Assignment),
                Place::Turn(..) => of(data, Self::Turn),
                Place::Schedule(_) => of(data, Self::Schedule),
                Place::Group(GroupPlace::Record(_)) => of(data, Self::Group),
                Place::ReadyClass(_)
                | Place::ReadySlot(..)
                | Place::Inbox(_)
                | Place::Group(_)
                | Place::SegmentChunk(..)
                | Place::Other => Self::Opaque,
            },
        })
    }
}

/// A znode.
#[derive(Debug, Clone)]
pub struct Znode {
    /// Its decoded data.
    pub value: Rc<Value>,
    /// Its version.
    pub version: i32,
    /// The transaction that created it.
    pub czxid: i64,
    /// The session that owns it, if it is ephemeral; otherwise 0.
    pub owner: i64,
}

impl Znode {
    /// Returns the record in it.
    #[must_use]
    pub fn record(&self) -> Option<&JobRecord> {
        match &*self.value {
            Value::Record(record) => Some(record),
            _ => None,
        }
    }

    /// Returns the assignment in it.
    #[must_use]
    pub fn assignment(&self) -> Option<&Assignment> {
        match &*self.value {
            Value::Assignment(assignment) => Some(assignment),
            _ => None,
        }
    }

    /// Returns the schedule in it.
    #[must_use]
    pub fn schedule(&self) -> Option<&ScheduleRecord> {
        match &*self.value {
            Value::Schedule(schedule) => Some(schedule),
            _ => None,
        }
    }

    /// Returns the group record in it.
    #[must_use]
    pub fn group(&self) -> Option<&GroupRecord> {
        match &*self.value {
            Value::Group(group) => Some(group),
            _ => None,
        }
    }

    /// Returns the claim in it.
    #[must_use]
    pub fn epoch(&self) -> Option<&EpochRecord> {
        match &*self.value {
            Value::Epoch(epoch) => Some(epoch),
            _ => None,
        }
    }

    /// Returns the retention setting in it.
    #[must_use]
    pub fn retention(&self) -> Option<&Retention> {
        match &*self.value {
            Value::Retention(retention) => Some(retention),
            _ => None,
        }
    }

    /// Returns the registration in it.
    #[must_use]
    pub fn worker(&self) -> Option<&WorkerInfo> {
        match &*self.value {
            Value::Worker(info) => Some(info),
            _ => None,
        }
    }
}
