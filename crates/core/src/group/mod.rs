//! A group: jobs of one kind, and a join that runs once when all of them are terminal.
//!
//! ```text
//!  Open ──all ended, or stopped──▶ Joining ──join ended──▶ Finishing ──finished job ended──▶ Done
//!    │                                ▲                       ▲  (of a parent's sub-jobs)      ▲
//!    └── a group without a join, or without a finished job, skips that stage ─────────────────┘
//! ```
//!
//! Each arrow is one transaction of the leader. It sets this record by its version and creates the job of the next
//! stage, so a join is created once even if several leaders try (S7).
//!
//! Members are not counted in the record. A member has a *place* from its submission, and the transaction that ends
//! the member replaces the place by a *mark*. The group is complete when its total is known and there are as many
//! marks. While a group is open, marks are only added, except by an operator's retry, which raises the record's
//! version. So a stale list may show an incomplete group, but never a complete one by mistake.
//!
//! A group may wait for a member that is never submitted, because its client has ended. Such a group is *abandoned*: after a
//! day without a new member, or by an operator. It admits no members, its members run on as ordinary jobs, and it is done
//! without a join when they have ended, so its retention begins.
//!
//! A group of *sub-jobs* has a parent and also waits for the end of the parent. That end is a mark in this group. The
//! parent is in progress until this group is done: its mark in its own group, and the end of its turn in its lane,
//! follow with the last stage of this group.
//!
//! A parent may have several groups, one per kind of sub-jobs. The *first* one represents them all: it has the parent's
//! mark, the list of the *further* ones, and the finished job. Each further group reads the parent's mark from the first one
//! and leaves a mark there when it is done. The first one is done after all of them.

mod error;
mod mark;

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use crate::budget::{MAX_DEPTH, MAX_GROUPS_OF_PARENT, MAX_MEMBERS};
use crate::change::Change;
use crate::job::{JobRecord, Membership, Payload, Role, Turn};
use crate::name::{GroupId, JobId, Kind, Lane, NameError};
use crate::time::WallMillis;
use crate::trace::TraceContext;

pub use error::GroupError;
pub use mark::{End, Mark};

/// The longest readable id of a group of sub-jobs, in bytes; a longer id is replaced by a hash. With this bound a
/// kind can have 64 bytes, and the number of a further group and a member's number still fit.
const READABLE: usize = 53;

/// The stored record of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupRecord {
    /// The kind of every member.
    pub kind: Kind,
    /// The number of members; `None` until it is set. It is set once.
    pub total: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    pub fail_fast: bool,
    /// Whether it has a join.
    pub join: bool,
    /// Whether new members are refused regardless of the total.
    pub closed: bool,
    /// The job whose sub-jobs the members are.
    pub parent: Option<Parent>,
    /// The current stage.
    pub stage: Stage,
    /// Why the group did not wait for all of its members.
    pub stopped: Option<Stop>,
    /// Chosen by the call that created the group; identifies that call's group after a lost reply.
    pub token: Uuid,
    /// When it was created, by the clock of its creator.
    pub created_at: WallMillis,
    /// The trace in which it was created. The join is part of it, and so are members without a trace.
    pub trace: Option<TraceContext>,
    /// The leader's last count of a group that waits for its client.
    pub idle: Option<Idle>,
    /// The kinds of the further groups of the parent's sub-jobs, in the order of their numbers. Only the first group of a
    /// parent has any. The list only grows, and only while the parent runs.
    pub further: Vec<Kind>,
    /// Who abandoned it, if a client did.
    pub changed: Option<Change>,
}

/// A count of the members of a group that waits for its client to submit more, or to seal it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Idle {
    /// The number of members.
    pub members: u32,
    /// Since when it is the same, by ZooKeeper's clock; `None` since the record was set with this count.
    pub since: Option<WallMillis>,
}

/// The job whose handler submits a group's members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parent {
    /// The id of the job.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its generation: a retried job has separate groups of sub-jobs.
    pub generation: u32,
    /// Whether its finished handler runs after the joins. A further group has none: it belongs to the first one.
    pub finish: bool,
    /// The first group of the parent, if this is a further one.
    pub first: Option<FirstGroup>,
    /// Its own group, which is informed of its end when this one is done.
    pub membership: Option<Membership>,
    /// The nesting depth of its sub-jobs.
    pub depth: u32,
    /// Its lane. It keeps its turn there until this group is done.
    pub lane: Option<Lane>,
    /// The lanes in which the jobs around it keep their turns until it has ended: those whose sub-job it is.
    pub outer_lanes: Vec<Lane>,
}

/// The first group of a parent, as a further group of the same parent refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FirstGroup {
    /// The first group. It represents all groups of the parent.
    pub group: GroupId,
    /// The number of the further group: the position of its kind in the first group's list.
    pub number: u32,
}

/// The stage of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Members are submitted and run.
    Open,
    /// The join is queued or runs.
    Joining,
    /// The parent's finished job is queued or runs.
    Finishing,
    /// All jobs of the group are terminal.
    Done {
        /// When it was reached, by the leader's wall clock.
        at: WallMillis,
    },
}

/// Why a group did not wait for all of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// This member ended without success, and the group is `fail_fast`.
    Member(u32),
    /// The parent ended without success.
    Parent,
    /// The group that it is nested in was stopped.
    Outer,
    /// Its client submitted no more members and did not seal it. The members run on, and there is no join.
    Abandoned,
}

impl GroupId {
    /// The first group of the sub-jobs of a job. There is one per generation and per submission: an id that is used again
    /// after its record was removed has another submission token. The id contains the parent's id and generation, or
    /// is a hash of them.
    #[doc(hidden)]
    #[must_use]
    pub fn of_sub_jobs(parent: &JobId, record: &JobRecord) -> Self {
        // The last bits of a UUIDv7 are random; 32 of them distinguish the submissions of one id.
        let life = record.token.as_u128() & 0xffff_ffff;
        let whose = format!("{parent}@{}.{life:08x}", record.generation);
        let id =
            if whose.len() <= READABLE { whose } else { format!("@{:032x}", xxh3_128(whose.as_bytes())) };
        Self::new(id).expect("the id is short and uses the composed alphabet")
    }

    /// The further group with this number of a parent whose first group this is. The id of a first group ends with a token,
    /// so no two parents have a group in common.
    #[doc(hidden)]
    #[must_use]
    pub fn further(&self, number: u32) -> Self {
        Self::new(format!("{self}.{number}")).expect("the id of a first group leaves room for the number")
    }
}

/// The kind of the joins of groups of this kind.
///
/// # Errors
/// When it is too long.
pub fn join_kind(kind: &Kind) -> Result<Kind, NameError> {
    Kind::new(format!("{kind}.join"))
}

/// The kind of the finished jobs of parents of this kind.
///
/// # Errors
/// When it is too long.
pub fn finished_kind(kind: &Kind) -> Result<Kind, NameError> {
    Kind::new(format!("{kind}.finished"))
}

impl GroupRecord {
    /// Creates the record of a group without members.
    #[must_use]
    pub fn new(kind: Kind, token: Uuid, created_at: WallMillis) -> Self {
        Self {
            kind,
            total: None,
            fail_fast: false,
            join: true,
            closed: false,
            parent: None,
            stage: Stage::Open,
            stopped: None,
            token,
            created_at,
            trace: None,
            idle: None,
            further: Vec::new(),
            changed: None,
        }
    }

    /// The further groups of the parent, if this is its first one; `id` is the id of this group.
    pub fn further_groups(&self, id: &GroupId) -> impl Iterator<Item = GroupId> {
        (0..).zip(&self.further).map(|(number, _)| id.further(number))
    }

    /// The number of the parent's further group of this kind; `None` if this first group has this kind itself, or if no
    /// such group exists yet.
    #[must_use]
    pub fn number_of(&self, kind: &Kind) -> Option<u32> {
        (0..).zip(&self.further).find(|(_, further)| *further == kind).map(|(number, _)| number)
    }

    /// The first group of a parent that also has a group of this kind, and a finished job if `finish` is set. It is the
    /// same record if both are the case already, so that a repeated call writes nothing.
    ///
    /// # Errors
    /// When the parent would have too many groups.
    pub fn extended(&self, kind: &Kind, finish: bool) -> Result<Self, GroupError> {
        let mut extended = self.clone();
        if *kind != self.kind && self.number_of(kind).is_none() {
            if self.further.len() + 1 >= MAX_GROUPS_OF_PARENT {
                let job = self.parent.as_ref().map_or_else(String::new, |parent| parent.job.to_string());
                return Err(GroupError::TooManyGroups { job, kind: kind.clone() });
            }
            extended.further.push(kind.clone());
        }
        if let Some(parent) = &mut extended.parent {
            parent.finish |= finish;
        }
        Ok(extended)
    }

    /// Whether the group is advanced to a join.
    #[must_use]
    pub fn has_join(&self) -> bool {
        self.join && self.stopped != Some(Stop::Abandoned)
    }

    /// The same group, abandoned by its client.
    #[must_use]
    pub fn abandoned(&self) -> Self {
        Self { stopped: Some(Stop::Abandoned), closed: true, ..self.clone() }
    }

    /// Checks every bound before anything is written. Afterwards every id that the group needs is valid.
    ///
    /// # Errors
    /// The first violated bound, as a [`GroupError`].
    pub fn check(&self, id: &GroupId) -> Result<(), GroupError> {
        let named = |source| GroupError::IdTooLong { group: id.to_string(), source };
        JobId::member(&self.kind, id, MAX_MEMBERS - 1).map_err(named)?;
        if self.join {
            self.join_id(id).map_err(named)?;
        }
        if let Some(total) = self.total.filter(|total| *total > MAX_MEMBERS) {
            return Err(GroupError::TotalTooLarge { group: id.clone(), total });
        }
        let Some(parent) = &self.parent else { return Ok(()) };
        if parent.finish {
            parent.finish_id(id).map_err(named)?;
        }
        if parent.membership.as_ref().is_some_and(|outer| outer.group == *id) {
            return Err(GroupError::OwnParent { job: parent.job.clone() });
        }
        if parent.depth > MAX_DEPTH {
            return Err(GroupError::Depth { group: id.clone(), depth: parent.depth });
        }
        Ok(())
    }

    /// Checks whether a new member with this number and this lane is accepted. A sub-job in the lane of its parent would
    /// wait for the parent, which waits for its sub-jobs.
    ///
    /// # Errors
    /// The reason for the refusal. The submission of an existing member is accepted regardless of this.
    pub fn admits(&self, id: &GroupId, number: u32, lane: Option<&Lane>) -> Result<(), GroupError> {
        let is_held = |lane: &&Lane| {
            self.parent.as_ref().is_some_and(|parent| parent.lanes().any(|held| held == *lane))
        };
        if let Some(lane) = lane.filter(is_held) {
            return Err(GroupError::Lane { group: id.clone(), lane: lane.clone() });
        }
        let total = self.total.unwrap_or(MAX_MEMBERS);
        if number >= total {
            return Err(GroupError::NumberTooLarge { group: id.clone(), number, total });
        }
        self.refuses_new().map_or(Ok(()), |reason| Err(GroupError::Closed { group: id.clone(), reason }))
    }

    /// Why the group accepts no new members; `None` while it accepts them.
    #[must_use]
    pub fn refuses_new(&self) -> Option<&'static str> {
        match (self.stopped, self.stage) {
            (Some(Stop::Member(_)), _) => Some("a member of the fail-fast group ended without success"),
            (Some(Stop::Parent), _) => Some("its parent ended without success"),
            (Some(Stop::Outer), _) => Some("the group that it is nested in was stopped"),
            (Some(Stop::Abandoned), _) => Some("it was abandoned"),
            (None, Stage::Joining | Stage::Finishing | Stage::Done { .. }) => {
                Some("all of its members have ended")
            }
            (None, Stage::Open) => self.closed.then_some("its parent has ended"),
        }
    }

    /// The same group with this total.
    ///
    /// # Errors
    /// When another total was set before, or the total is over the bound.
    pub fn sealed(&self, id: &GroupId, total: u32) -> Result<Self, GroupError> {
        if total > MAX_MEMBERS {
            return Err(GroupError::TotalTooLarge { group: id.clone(), total });
        }
        match self.total {
            Some(sealed) if sealed != total => {
                Err(GroupError::Sealed { group: id.clone(), sealed, given: total })
            }
            None if self.stopped == Some(Stop::Abandoned) => {
                Err(GroupError::Closed { group: id.clone(), reason: "it was abandoned" })
            }
            Some(_) | None => Ok(Self { total: Some(total), ..self.clone() }),
        }
    }

    /// Whether all of its jobs have ended. This is final.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done { .. })
    }

    /// The stage after this one. Stages that the group does not have are skipped.
    #[must_use]
    pub fn next_stage(&self, at: WallMillis) -> Stage {
        let finish = self.parent.as_ref().is_some_and(|parent| parent.finish);
        match self.stage {
            Stage::Open if self.has_join() => Stage::Joining,
            Stage::Open | Stage::Joining if finish => Stage::Finishing,
            Stage::Open | Stage::Joining | Stage::Finishing => Stage::Done { at },
            Stage::Done { at } => Stage::Done { at },
        }
    }

    /// The id of its join. User-given names cannot have this form.
    ///
    /// # Errors
    /// When it is too long, which [`GroupRecord::check`] has excluded.
    pub fn join_id(&self, id: &GroupId) -> Result<JobId, NameError> {
        JobId::new(format!("{}:@{id}", join_kind(&self.kind)?))
    }

    /// The job of the current stage: its join, or its parent's finished job.
    ///
    /// # Errors
    /// When its id is too long, which [`GroupRecord::check`] has excluded.
    pub fn stage_job(&self, id: &GroupId, at: WallMillis) -> Result<Option<(JobId, JobRecord)>, NameError> {
        let (kind, job, role) = match (self.stage, &self.parent) {
            (Stage::Joining, _) => (join_kind(&self.kind)?, self.join_id(id)?, Role::Join),
            (Stage::Finishing, Some(parent)) => {
                (finished_kind(&parent.kind)?, parent.finish_id(id)?, Role::Finish)
            }
            (Stage::Open | Stage::Finishing | Stage::Done { .. }, _) => return Ok(None),
        };
        let payload =
            Payload::json(self.summary(id).into_bytes()).expect("a few names are far below the bound");
        // Only the leader creates jobs with this id, so no token is needed to identify the submission.
        let record = JobRecord::new(kind, payload, Uuid::nil(), at);
        let membership = Some(Membership { group: id.clone(), role, counted: true });
        Ok(Some((job, JobRecord { membership, trace: self.trace, ..record })))
    }

    /// The payload of a join, as JSON. Names and numbers need no escapes.
    fn summary(&self, id: &GroupId) -> String {
        let total = self.total.map_or("null".to_owned(), |total| total.to_string());
        let parent = self.parent.as_ref().map_or("null".to_owned(), |parent| format!("\"{}\"", parent.job));
        let stopped = match self.stopped {
            None => "null".to_owned(),
            Some(Stop::Member(number)) => format!("\"member {number}\""),
            Some(Stop::Parent) => "\"parent\"".to_owned(),
            Some(Stop::Outer) => "\"outer\"".to_owned(),
            Some(Stop::Abandoned) => "\"abandoned\"".to_owned(),
        };
        let kind = &self.kind;
        format!(r#"{{"group":"{id}","kind":"{kind}","total":{total},"parent":{parent},"stopped":{stopped}}}"#)
    }
}

impl Parent {
    /// The turn that it keeps until its sub-jobs have ended.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        Some(Turn { lane: self.lane.clone()?, generation: self.generation })
    }

    /// The lanes that its sub-jobs cannot use, because their turns are kept until the sub-jobs have ended.
    pub fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lane.iter().chain(&self.outer_lanes)
    }

    /// The id of the parent's finished job.
    ///
    /// # Errors
    /// When it is too long, which [`GroupRecord::check`] has excluded.
    pub fn finish_id(&self, id: &GroupId) -> Result<JobId, NameError> {
        JobId::new(format!("{}:@{id}", finished_kind(&self.kind)?))
    }
}

#[cfg(test)]
mod tests;
