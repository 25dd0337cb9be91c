//! A group: jobs of one kind whose join runs once, when all of them are terminal.
//!
//! ```text
//!  Open ──all ended, or stopped──▶ Joining ──join ended──▶ Finishing ──finished job ended──▶ Done
//!    │                                ▲                       ▲  (of a parent's sub-jobs)      ▲
//!    └── a group without a join, or without a finished job, passes over that stage ───────────┘
//! ```
//!
//! Each arrow is one transaction of the leader that sets this record by its version and creates the job of the next
//! stage, so that a join is made once however many leaders try (S7).
//!
//! A member is counted where it stands, not in the record: from its submission it has a *place*, and the transaction
//! that ends it turns the place into a *mark*. The group is complete when its total is known and there are as many
//! marks. Marks only grow while a group is open, but for an operator's retry, which raises the record's version; so a
//! list that is behind says *not yet*, and never says *complete* by mistake.
//!
//! A group of *sub-jobs* has a parent, and waits for its end too. That end is a mark here, in place of the parent's
//! own mark in its own group, which follows with the last stage.

mod error;
mod mark;

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use crate::budget::{MAX_DEPTH, MAX_MEMBERS};
use crate::job::{JobRecord, Membership, Payload, Role};
use crate::name::{GroupId, JobId, Kind, NameError};
use crate::time::WallMillis;
use crate::trace::TraceContext;

pub use error::GroupError;
pub use mark::{End, Mark};

/// The longest id of a group of sub-jobs that says whose they are; a longer one is a hash. It leaves a kind 64 bytes
/// beside the number of a member.
const READABLE: usize = 56;

/// What is stored of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupRecord {
    /// The kind of every member.
    pub kind: Kind,
    /// How many members it has; `None` until somebody says so. Said once.
    pub total: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    pub fail_fast: bool,
    /// Whether it has a join.
    pub join: bool,
    /// No member is accepted any more, whatever the total says.
    pub closed: bool,
    /// Whose sub-jobs its members are.
    pub parent: Option<Parent>,
    /// How far it is.
    pub stage: Stage,
    /// Why it did not wait for all of its members.
    pub stopped: Option<Stop>,
    /// Chosen by the call that made it: tells its own group from another's when the reply was lost.
    pub token: Uuid,
    /// When it was made, by the clock of whoever made it.
    pub created_at: WallMillis,
    /// The trace that it was made in: of its join, and of members that bring none.
    pub trace: Option<TraceContext>,
}

/// The job whose handler submits a group's members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parent {
    /// Which job.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its generation: a retry of it has sub-jobs of its own.
    pub generation: u32,
    /// Whether its finished handler runs after the join.
    pub finish: bool,
    /// Its own group, which hears of its end when this one is done.
    pub membership: Option<Membership>,
    /// How many groups it is nested in.
    pub depth: u32,
}

/// How far a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Members are submitted and run.
    Open,
    /// The join is queued or runs.
    Joining,
    /// The parent's finished job is queued or runs.
    Finishing,
    /// Nothing of it will happen any more.
    Done {
        /// Since when, by the leader's wall clock.
        at: WallMillis,
    },
}

/// Why a group did not wait for all of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// This member ended without success, and the group is one that fails fast.
    Member(u32),
    /// The parent ended without success.
    Parent,
    /// The group that it is nested in was stopped.
    Outer,
}

impl GroupId {
    /// The group of the sub-jobs of a job: one for each generation, and for each life of an id that is used again after
    /// its record is gone, which the submission's token tells. The id says whose it is, or is a hash of that.
    #[must_use]
    pub fn of_sub_jobs(parent: &JobId, record: &JobRecord) -> Self {
        // The last bits of a UUIDv7 are random: enough for the lives of one id.
        let life = record.token.as_u128() & 0xffff_ffff;
        let whose = format!("{parent}@{}.{life:08x}", record.generation);
        let id =
            if whose.len() <= READABLE { whose } else { format!("@{:032x}", xxh3_128(whose.as_bytes())) };
        Self::new(id).expect("a job's id with numbers, or 33 bytes, of the composed alphabet")
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
    /// One that has no member yet.
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
        }
    }

    /// Checks every bound before anything is written: afterwards every id that the group will need can be made.
    ///
    /// # Errors
    /// [`GroupError`] names the first that is broken.
    pub fn check(&self, id: &GroupId) -> Result<(), GroupError> {
        let named = |source| GroupError::Name { group: id.to_string(), source };
        JobId::member(&self.kind, id, MAX_MEMBERS - 1).map_err(named)?;
        if self.join {
            self.join_id(id).map_err(named)?;
        }
        if let Some(total) = self.total.filter(|total| *total > MAX_MEMBERS) {
            return Err(GroupError::Total { group: id.clone(), total });
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

    /// Whether a new member of this number is welcome.
    ///
    /// # Errors
    /// Why it is not. A member that exists already is the same member all the same.
    pub fn admits(&self, id: &GroupId, number: u32) -> Result<(), GroupError> {
        let total = self.total.unwrap_or(MAX_MEMBERS);
        if number >= total {
            return Err(GroupError::Number { group: id.clone(), number, total });
        }
        self.refuses_new().map_or(Ok(()), |why| Err(GroupError::Closed { group: id.clone(), why }))
    }

    /// Why it takes no new members; `None` while it does.
    #[must_use]
    pub fn refuses_new(&self) -> Option<&'static str> {
        match (self.stopped, self.stage) {
            (Some(Stop::Member(_)), _) => Some("a member ended without success, and it fails fast"),
            (Some(Stop::Parent), _) => Some("its parent ended without success"),
            (Some(Stop::Outer), _) => Some("the group that it is nested in was stopped"),
            (None, Stage::Joining | Stage::Finishing | Stage::Done { .. }) => {
                Some("all of its members have ended")
            }
            (None, Stage::Open) => self.closed.then_some("its parent has ended"),
        }
    }

    /// The same group with its total.
    ///
    /// # Errors
    /// When another total was said before, or it is over the bound.
    pub fn sealed(&self, id: &GroupId, total: u32) -> Result<Self, GroupError> {
        if total > MAX_MEMBERS {
            return Err(GroupError::Total { group: id.clone(), total });
        }
        match self.total {
            Some(sealed) if sealed != total => {
                Err(GroupError::Sealed { group: id.clone(), sealed, given: total })
            }
            Some(_) | None => Ok(Self { total: Some(total), ..self.clone() }),
        }
    }

    /// The stage after this one: those that it does not have are passed over.
    #[must_use]
    pub fn next_stage(&self, at: WallMillis) -> Stage {
        let finish = self.parent.as_ref().is_some_and(|parent| parent.finish);
        match self.stage {
            Stage::Open if self.join => Stage::Joining,
            Stage::Open | Stage::Joining if finish => Stage::Finishing,
            Stage::Open | Stage::Joining | Stage::Finishing => Stage::Done { at },
            Stage::Done { at } => Stage::Done { at },
        }
    }

    /// The id of its join: of a form that no name that a person gives has.
    ///
    /// # Errors
    /// When it is too long, which [`GroupRecord::check`] has told before.
    pub fn join_id(&self, id: &GroupId) -> Result<JobId, NameError> {
        JobId::new(format!("{}:@{id}", join_kind(&self.kind)?))
    }

    /// The job of the stage that it is in: its join, or its parent's finished job.
    ///
    /// # Errors
    /// When its id is too long, which [`GroupRecord::check`] has told before.
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
        // Nobody else makes a job of this id, so that it needs no token to be told by.
        let record = JobRecord::new(kind, payload, Uuid::nil(), at);
        let membership = Some(Membership { group: id.clone(), role, counted: true });
        Ok(Some((job, JobRecord { membership, trace: self.trace, ..record })))
    }

    /// What a join is given: names and numbers need no escapes.
    fn summary(&self, id: &GroupId) -> String {
        let total = self.total.map_or("null".to_owned(), |total| total.to_string());
        let parent = self.parent.as_ref().map_or("null".to_owned(), |parent| format!("\"{}\"", parent.job));
        let stopped = match self.stopped {
            None => "null".to_owned(),
            Some(Stop::Member(number)) => format!("\"member {number}\""),
            Some(Stop::Parent) => "\"parent\"".to_owned(),
            Some(Stop::Outer) => "\"outer\"".to_owned(),
        };
        let kind = &self.kind;
        format!(r#"{{"group":"{id}","kind":"{kind}","total":{total},"parent":{parent},"stopped":{stopped}}}"#)
    }
}

impl Parent {
    /// The id of its finished job.
    ///
    /// # Errors
    /// When it is too long, which [`GroupRecord::check`] has told before.
    pub fn finish_id(&self, id: &GroupId) -> Result<JobId, NameError> {
        JobId::new(format!("{}:@{id}", finished_kind(&self.kind)?))
    }
}

#[cfg(test)]
mod tests;
