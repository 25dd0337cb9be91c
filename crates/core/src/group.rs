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

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use crate::budget::{MAX_DEPTH, MAX_MEMBERS};
use crate::job::{JobRecord, JobState, Membership, Payload, Role, Verdict};
use crate::name::{GroupId, JobId, Kind, NameError};
use crate::time::WallMillis;
use crate::trace::TraceContext;

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

/// How a job of a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// With a result.
    Succeeded,
    /// By somebody's wish.
    Cancelled,
    /// By its failures or losses.
    Dead,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Succeeded, Self::Cancelled, Self::Dead];

    /// How a job ended; `None` while it is open.
    #[must_use]
    pub fn of(state: &JobState) -> Option<Self> {
        match state {
            JobState::Open { .. } => None,
            JobState::Terminal { verdict: Verdict::Succeeded(_), .. } => Some(Self::Succeeded),
            JobState::Terminal { verdict: Verdict::Cancelled, .. } => Some(Self::Cancelled),
            JobState::Terminal { verdict: Verdict::Dead, .. } => Some(Self::Dead),
        }
    }

    /// Its letter in the name of a mark.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Succeeded => 's',
            Self::Cancelled => 'c',
            Self::Dead => 'd',
        }
    }

    /// As people read it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    /// Reads the letter back.
    #[must_use]
    pub fn from_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| letter.len() == 1 && letter.starts_with(end.letter()))
    }
}

/// Whose end a mark tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// A member's.
    Member(u32),
    /// The parent's.
    Parent,
    /// The join's.
    Join,
    /// The parent's finished job's.
    Finish,
}

impl From<Role> for Mark {
    fn from(role: Role) -> Self {
        match role {
            Role::Member(number) => Self::Member(number),
            Role::Join => Self::Join,
            Role::Finish => Self::Finish,
        }
    }
}

/// Why something cannot be part of a group. The text names the field, the bound and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The group, or its kind, has no name.
    #[error(transparent)]
    Word(#[from] NameError),
    /// An id that is composed with the group's is none, which only its length can bring about.
    #[error("group {group} with its kind: {source}")]
    Name {
        /// Which group.
        group: String,
        /// What is wrong.
        #[source]
        source: NameError,
    },
    /// The total is over the bound.
    #[error("total of group {group} is {total}: at most {MAX_MEMBERS} are allowed; nest groups for more")]
    Total {
        /// Which group.
        group: GroupId,
        /// What was given.
        total: u32,
    },
    /// The total was said before, and was another.
    #[error("group {group} was sealed with a total of {sealed}, not {given}: a total is said once")]
    Sealed {
        /// Which group.
        group: GroupId,
        /// The total that stands.
        sealed: u32,
        /// The other one.
        given: u32,
    },
    /// There are members whose numbers are not below the total.
    #[error("group {group} has member {number} already: its total cannot be {total}")]
    Below {
        /// Which group.
        group: GroupId,
        /// Its highest member.
        number: u32,
        /// The total that was given.
        total: u32,
    },
    /// The number is not below the total.
    #[error(
        "member {number} of group {group} is not below its total of {total}: members are numbered from 0"
    )]
    Number {
        /// Which group.
        group: GroupId,
        /// The member's number.
        number: u32,
        /// The total, or the bound on it.
        total: u32,
    },
    /// No member is accepted any more.
    #[error("group {group} takes no more members: {why}")]
    Closed {
        /// Which group.
        group: GroupId,
        /// Why.
        why: &'static str,
    },
    /// The group is one of another kind, or with other rules.
    #[error("group {group} was made with {field} {there}, not {given}: use another name for another group")]
    Other {
        /// Which group.
        group: GroupId,
        /// What differs.
        field: &'static str,
        /// As it stands.
        there: String,
        /// As it was given.
        given: String,
    },
    /// The member is a job of another kind.
    #[error("group {group} has members of kind {there}, not {given}: give each kind a group of its own")]
    Kind {
        /// Which group.
        group: GroupId,
        /// The group's kind.
        there: Kind,
        /// The job's kind.
        given: Kind,
    },
    /// It was deleted, or never made.
    #[error("there is no group {group}")]
    Absent {
        /// Which group.
        group: GroupId,
    },
    /// A member belongs to what the group counts: it is not opened again by a submission.
    #[error("a member of group {group} is not opened again by submitting it: retry it instead")]
    Again {
        /// Which group.
        group: GroupId,
    },
    /// The attempt that would have sub-jobs was closed.
    #[error("the attempt of job {job} is over: it can have no sub-jobs any more")]
    AttemptOver {
        /// Which job.
        job: JobId,
    },
    /// A retry would come before the end of what the job's last generation left behind.
    #[error("job {job} cannot be retried while group {group} of its sub-jobs is not done: wait for it")]
    Spawned {
        /// Which job.
        job: JobId,
        /// The group of its sub-jobs.
        group: GroupId,
    },
    /// A member's id is made of the group and its number.
    #[error("a member of group {group} has no id of its own: it is named by its kind, group and number")]
    OwnId {
        /// Which group.
        group: GroupId,
    },
    /// A job would be nested in itself.
    #[error("job {job} cannot be its own parent")]
    OwnParent {
        /// Which job.
        job: JobId,
    },
    /// Groups are nested too deep.
    #[error(
        "group {group} would be nested {depth} deep: at most {MAX_DEPTH} are allowed; does its kind submit itself?"
    )]
    Depth {
        /// Which group.
        group: GroupId,
        /// How deep.
        depth: u32,
    },
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
mod tests {
    use super::*;

    fn id(name: &str) -> GroupId {
        GroupId::new(name).unwrap()
    }

    fn record() -> GroupRecord {
        GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), WallMillis(1))
    }

    fn parent() -> Parent {
        Parent {
            job: JobId::new("p:x").unwrap(),
            kind: Kind::new("p").unwrap(),
            generation: 1,
            finish: true,
            membership: None,
            depth: 1,
        }
    }

    #[test]
    fn a_groups_name_is_plain_and_that_of_sub_jobs_is_not() {
        assert!(GroupId::plain("nightly-7").is_ok());
        let refused = GroupId::plain("a@1").unwrap_err().to_string();
        assert_eq!(refused, "group has '@' at byte 1: only [A-Za-z0-9._-] are allowed");
        let payload = Payload::json(*b"1").unwrap();
        let job = JobRecord::new(Kind::new("p").unwrap(), payload, Uuid::from_u128(0x7a), WallMillis(1));
        let short = JobId::new("p:x").unwrap();
        assert_eq!(GroupId::of_sub_jobs(&short, &job).as_str(), "p:x@1.0000007a");
        let again = JobRecord { token: Uuid::from_u128(0x7b), ..job.clone() };
        assert_ne!(GroupId::of_sub_jobs(&short, &job), GroupId::of_sub_jobs(&short, &again), "another life");
        let long = JobId::new("x".repeat(128)).unwrap();
        let retried = JobRecord { generation: 2, ..job.clone() };
        let (one, two) = (GroupId::of_sub_jobs(&long, &job), GroupId::of_sub_jobs(&long, &retried));
        assert_eq!((one.as_str().len(), one.as_str().starts_with('@')), (33, true));
        assert_ne!(one, two);
    }

    #[test]
    fn what_is_wrong_is_told_before_anything_is_written() {
        let total = GroupRecord { total: Some(MAX_MEMBERS + 1), ..record() };
        assert_eq!(
            total.check(&id("g")).unwrap_err().to_string(),
            "total of group g is 1000001: at most 1000000 are allowed; nest groups for more"
        );
        let long = "x".repeat(124);
        assert!(matches!(record().check(&id(&long)), Err(GroupError::Name { .. })));
        let outer = Membership { group: id("g"), role: Role::Member(1), counted: true };
        let own = GroupRecord { parent: Some(Parent { membership: Some(outer), ..parent() }), ..record() };
        assert_eq!(own.check(&id("g")).unwrap_err().to_string(), "job p:x cannot be its own parent");
        let deep = GroupRecord { parent: Some(Parent { depth: MAX_DEPTH + 1, ..parent() }), ..record() };
        assert!(matches!(deep.check(&id("g")), Err(GroupError::Depth { .. })));
        let fine = GroupRecord { total: Some(MAX_MEMBERS), parent: Some(parent()), ..record() };
        assert_eq!(fine.check(&id("g")), Ok(()));
    }

    #[test]
    fn a_total_is_said_once_and_may_be_said_again() {
        let sealed = record().sealed(&id("g"), 3).unwrap();
        assert_eq!(sealed.sealed(&id("g"), 3), Ok(sealed.clone()));
        assert_eq!(
            sealed.sealed(&id("g"), 4).unwrap_err().to_string(),
            "group g was sealed with a total of 3, not 4: a total is said once"
        );
        assert_eq!(sealed.admits(&id("g"), 2), Ok(()));
        assert_eq!(
            sealed.admits(&id("g"), 3).unwrap_err().to_string(),
            "member 3 of group g is not below its total of 3: members are numbered from 0"
        );
    }

    #[test]
    fn a_group_that_was_stopped_or_is_over_says_why_it_takes_no_more() {
        let stopped = GroupRecord { stopped: Some(Stop::Member(2)), stage: Stage::Joining, ..record() };
        assert_eq!(
            stopped.admits(&id("g"), 0).unwrap_err().to_string(),
            "group g takes no more members: a member ended without success, and it fails fast"
        );
        let over = GroupRecord { stage: Stage::Joining, ..record() };
        assert!(matches!(over.admits(&id("g"), 0), Err(GroupError::Closed { .. })));
    }

    #[test]
    fn stages_that_a_group_does_not_have_are_passed_over() {
        let at = WallMillis(9);
        let stages = |mut group: GroupRecord| {
            let mut stages = Vec::new();
            while !matches!(group.stage, Stage::Done { .. }) {
                group.stage = group.next_stage(at);
                stages.push(group.stage);
            }
            stages
        };
        let done = Stage::Done { at };
        assert_eq!(stages(record()), [Stage::Joining, done]);
        assert_eq!(stages(GroupRecord { join: false, ..record() }), [done]);
        let nested = GroupRecord { parent: Some(parent()), ..record() };
        assert_eq!(stages(nested.clone()), [Stage::Joining, Stage::Finishing, done]);
        assert_eq!(stages(GroupRecord { join: false, ..nested }), [Stage::Finishing, done]);
    }

    #[test]
    fn the_jobs_of_its_stages_have_ids_of_their_own_and_say_what_it_is() {
        let joining = GroupRecord { stage: Stage::Joining, total: Some(2), ..record() };
        let (job, record) = joining.stage_job(&id("g"), WallMillis(1)).unwrap().unwrap();
        assert_eq!((job.as_str(), record.kind.as_str()), ("sum.join:@g", "sum.join"));
        assert_eq!(
            record.payload.bytes(),
            br#"{"group":"g","kind":"sum","total":2,"parent":null,"stopped":null}"#
        );
        let finishing = GroupRecord { stage: Stage::Finishing, parent: Some(parent()), ..joining };
        let (job, record) = finishing.stage_job(&id("p:x@1"), WallMillis(1)).unwrap().unwrap();
        assert_eq!((job.as_str(), record.kind.as_str()), ("p.finished:@p:x@1", "p.finished"));
    }
}
