//! What it means to submit an id again.
//!
//! | there is | [`IfExists::Same`] | [`IfExists::Ignore`] | [`IfExists::Again`] |
//! | --- | --- | --- | --- |
//! | nothing | new | new | new |
//! | the same kind and payload, open | the same job | the same job | the same job |
//! | the same kind and payload, over | the same job | the same job | opened again |
//! | another kind or payload | a conflict | accepted, and nothing is done | a conflict |
//!
//! So with a well-known id and [`IfExists::Again`] at most one of a thing is open in the whole cluster, however many
//! submit it.
//!
//! What is opened again is queued at once, never delayed. A delayed entry is told by its minute and its job, and a leader
//! that is about to promote one must not meet that of a later generation in its place: no other way leads from an end
//! to a delayed entry past that leader's own assignment.
//!
//! **What if the reply is lost?** A reopening carries this submission's token, as a new record does, and is fenced by the
//! record's version. The record is read back: our token ⇒ done; the version that we would have set ⇒ it is sent again. A
//! generation that is ours, or later, and not by our token: whoever opened it did so after this call had seen the job over,
//! which is all that was asked for, and nothing is sent. Of many that open a job at once one does, and the others find
//! its generation, even when that is over by then.

use crate::job::{JobRecord, JobState};

/// What a submission does when its id exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IfExists {
    /// It is the same job if kind and payload are the same, and a conflict otherwise.
    #[default]
    Same,
    /// It is accepted in any case, and nothing is done. When another job has the id ([`Accepted::Other`]), what follows it,
    /// such as a wait or a result, is of that job.
    Ignore,
    /// As [`IfExists::Same`] while the job is open. One that is over, however it ended, is opened again as a new
    /// generation, with the policy, placement, priority and expiry of this submission.
    Again,
}

/// How a submission was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accepted {
    /// The job was made.
    New,
    /// The job was there, from an earlier submission of the same kind and payload.
    Same,
    /// Another job has the id, and [`IfExists::Ignore`] lets it be.
    Other,
    /// The job was over and is open again, as this generation.
    Again(u32),
}

impl Accepted {
    /// Its name in documents: `new`, `same`, `other`, `again`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Other => "other",
            Self::Again(_) => "again",
        }
    }

    /// Whether nothing was made, because there was a job with this id.
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        match self {
            Self::Same | Self::Other => true,
            Self::New | Self::Again(_) => false,
        }
    }
}

/// What a record under the id of a submission means for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It is accepted, so.
    Accepted(Accepted),
    /// Another job has the id.
    Conflict,
    /// It is over and is to be opened again.
    Over,
}

/// What is there under the id of `ours`, which is of a later generation than the first once this call has seen the job over.
#[must_use]
pub fn look(there: &JobRecord, ours: &JobRecord, if_exists: IfExists) -> Sight {
    if there.token == ours.token {
        return Sight::Accepted(match ours.generation {
            1 => Accepted::New,
            generation => Accepted::Again(generation),
        });
    }
    match if_exists {
        IfExists::Ignore if !there.is_same_submission(ours) => Sight::Accepted(Accepted::Other),
        IfExists::Same | IfExists::Again if !there.is_same_submission(ours) => Sight::Conflict,
        IfExists::Again if there.is_terminal() => {
            let opened_since = ours.generation > 1 && there.generation >= ours.generation;
            if opened_since { Sight::Accepted(Accepted::Same) } else { Sight::Over }
        }
        IfExists::Same | IfExists::Ignore | IfExists::Again => Sight::Accepted(Accepted::Same),
    }
}

/// The record that opens `there` again as `ours`.
#[must_use]
pub fn again(ours: JobRecord, there: JobRecord) -> JobRecord {
    debug_assert!(matches!(there.state, JobState::Terminal { .. }), "only what is over is opened again");
    JobRecord { generation: there.generation + 1, last: there.last, last_error: there.last_error, ..ours }
}

/// The record as if it were the first of its id: what it was to open again has been deleted.
#[must_use]
pub fn anew(ours: JobRecord) -> JobRecord {
    JobRecord { generation: 1, last: None, last_error: None, ..ours }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::job::{Payload, Verdict};
    use crate::name::Kind;
    use crate::time::WallMillis;

    fn record(token: u128, payload: &str) -> JobRecord {
        let payload = Payload::json(payload.as_bytes()).unwrap();
        JobRecord::new(Kind::new("sum").unwrap(), payload, Uuid::from_u128(token), WallMillis(1))
    }

    fn over(record: JobRecord) -> JobRecord {
        let state = JobState::Terminal { verdict: Verdict::Dead, at: WallMillis(2) };
        JobRecord { state, ..record }
    }

    /// S11
    #[test]
    fn each_mode_takes_what_is_there_as_its_table_says() {
        use IfExists::{Again, Ignore, Same};
        let ours = record(1, "1");
        let (open, over, other) = (record(2, "1"), over(record(2, "1")), record(2, "2"));
        let same = Sight::Accepted(Accepted::Same);
        for (there, sights) in [
            (&open, [same, same, same]),
            (&over, [same, same, Sight::Over]),
            (&other, [Sight::Conflict, Sight::Accepted(Accepted::Other), Sight::Conflict]),
            (&ours, [Sight::Accepted(Accepted::New); 3]),
        ] {
            assert_eq!([Same, Ignore, Again].map(|mode| look(there, &ours, mode)), sights);
        }
    }

    /// S2, S11: what if the reply is lost?
    #[test]
    fn a_reopening_whose_reply_was_lost_is_found_by_its_token_and_never_done_twice() {
        let mut there = over(record(2, "1"));
        let ours = again(record(1, "1"), there.clone());
        assert_eq!((ours.generation, ours.is_terminal()), (2, false));
        let sight = |there: &JobRecord| look(there, &ours, IfExists::Again);
        assert_eq!(sight(&there), Sight::Over, "not applied: sent again");
        let applied = over(ours.clone());
        assert_eq!(sight(&applied), Sight::Accepted(Accepted::Again(2)), "applied, and over since");
        for generation in [2, 3] {
            there.generation = generation;
            assert_eq!(
                sight(&there),
                Sight::Accepted(Accepted::Same),
                "another was first, and it is over since"
            );
        }
    }

    /// A first try that was lost says nothing of a record that was there before.
    #[test]
    fn a_job_of_any_generation_that_is_over_when_the_call_begins_is_opened() {
        let there = JobRecord { generation: 7, ..over(record(2, "1")) };
        assert_eq!(look(&there, &record(1, "1"), IfExists::Again), Sight::Over);
        assert_eq!(again(record(1, "1"), there).generation, 8);
    }
}
