//! The rules for submitting an id that exists.
//!
//! | existing job | [`IfExists::Same`] | [`IfExists::Ignore`] | [`IfExists::Again`] |
//! | --- | --- | --- | --- |
//! | none | new | new | new |
//! | the same kind and payload, open | the same job | the same job | the same job |
//! | the same kind and payload, terminal | the same job | the same job | opened again |
//! | another kind or payload | a conflict | accepted without effect | a conflict |
//!
//! So with a well-known id and [`IfExists::Again`] at most one job of this id is open in the whole cluster,
//! regardless of the number of submitters.
//!
//! A job that is opened again is queued immediately, never delayed. A delayed entry is identified only by its minute
//! and job, and a leader that is about to promote it must not find the entry of a later generation in its place.
//! Every other path from a terminal state to a delayed entry contains an assignment by that leader.
//!
//! **If the reply is lost:** a reopening carries the token of this submission, as a new record does, and is fenced
//! by the record's version. The client reads the record again. Our token ⇒ done. The version that we would have
//! replaced ⇒ send again. Our generation or a later one with another token ⇒ another submitter opened the job after
//! this call had seen it terminal, which is all that was asked for, so nothing is sent. If several submitters open a
//! job at the same time, one of them succeeds and the others find its generation, even if that is already terminal.

use serde::Serialize;

use crate::change::Change;
use crate::job::{JobRecord, JobState};

/// What a submission does if its id exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum IfExists {
    /// The same job if kind and payload are the same, otherwise a conflict.
    #[default]
    Same,
    /// The submission is accepted and nothing is done, whatever the existing job is.
    ///
    /// If the id belongs to another job ([`Accepted::Other`]), later calls with this id, such as a wait, refer to that job.
    Ignore,
    /// As `same`, but a job that has ended is opened again. Over HTTP that needs the role `operate`.
    ///
    /// The job is a new generation, with the policy, placement, priority and expiry of this submission.
    Again,
}

crate::impl_deserialize_by_name!(IfExists);

crate::impl_names!(IfExists { Same = "same", Ignore = "ignore", Again = "again" });

/// How a submission was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accepted {
    /// The job was created.
    New,
    /// The job exists from an earlier submission of the same kind and payload.
    Same,
    /// Another job has the id, which [`IfExists::Ignore`] accepts.
    Other,
    /// The job was terminal and is open again, as this generation.
    Again(u32),
}

impl Accepted {
    /// Its name in JSON: `new`, `same`, `other`, `again`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Other => "other",
            Self::Again(_) => "again",
        }
    }

    /// Whether nothing was created, because a job with this id exists.
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        match self {
            Self::Same | Self::Other => true,
            Self::New | Self::Again(_) => false,
        }
    }
}

/// The result of comparing a submission with the existing record of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The submission is accepted.
    Accepted(Accepted),
    /// Another job has the id.
    Conflict,
    /// The job is terminal and must be opened again.
    Ended,
}

/// Compares `ours` with the existing record. `ours.generation` is greater than 1 once this call has seen the job
/// terminal.
#[must_use]
pub fn compare(there: &JobRecord, ours: &JobRecord, if_exists: IfExists) -> Comparison {
    if there.token == ours.token {
        return Comparison::Accepted(match ours.generation {
            1 => Accepted::New,
            generation => Accepted::Again(generation),
        });
    }
    match if_exists {
        IfExists::Ignore if !there.is_same_submission(ours) => Comparison::Accepted(Accepted::Other),
        IfExists::Same | IfExists::Again if !there.is_same_submission(ours) => Comparison::Conflict,
        IfExists::Again if there.is_terminal() => {
            let opened_since = ours.generation > 1 && there.generation >= ours.generation;
            if opened_since { Comparison::Accepted(Accepted::Same) } else { Comparison::Ended }
        }
        IfExists::Same | IfExists::Ignore | IfExists::Again => Comparison::Accepted(Accepted::Same),
    }
}

/// The record that opens `there` again as `ours`, with the note of this change.
#[must_use]
pub fn reopened(ours: JobRecord, there: JobRecord, changed: Option<Change>) -> JobRecord {
    debug_assert!(matches!(there.state, JobState::Terminal { .. }), "only a terminal job is opened again");
    JobRecord {
        generation: there.generation + 1,
        last: there.last,
        last_error: there.last_error,
        assigned_at: there.assigned_at,
        history: there.history,
        changed,
        ..ours
    }
}

/// The record as a first submission of its id, after the record that it was to open again was deleted.
#[must_use]
pub fn as_first(ours: JobRecord) -> JobRecord {
    JobRecord {
        generation: 1,
        last: None,
        last_error: None,
        assigned_at: None,
        history: Vec::new(),
        changed: None,
        ..ours
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::change::{Author, ChangeKind};
    use crate::job::{Attempt, Ending, Payload, Verdict};
    use crate::name::{Kind, WorkerId};
    use crate::time::WallMillis;

    #[test]
    fn each_way_to_be_accepted_has_its_name_in_json() {
        let all = [Accepted::New, Accepted::Same, Accepted::Other, Accepted::Again(2)];
        assert_eq!(all.map(Accepted::as_str), ["new", "same", "other", "again"]);
    }

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
    fn each_mode_treats_an_existing_record_as_the_table_states() {
        use IfExists::{Again, Ignore, Same};
        let ours = record(1, "1");
        let (open, over, other) = (record(2, "1"), over(record(2, "1")), record(2, "2"));
        let same = Comparison::Accepted(Accepted::Same);
        for (there, expected) in [
            (&open, [same, same, same]),
            (&over, [same, same, Comparison::Ended]),
            (&other, [Comparison::Conflict, Comparison::Accepted(Accepted::Other), Comparison::Conflict]),
            (&ours, [Comparison::Accepted(Accepted::New); 3]),
        ] {
            assert_eq!([Same, Ignore, Again].map(|mode| compare(there, &ours, mode)), expected);
        }
    }

    /// S2, S11: the reply of a reopening is lost.
    #[test]
    fn a_reopening_with_a_lost_reply_is_found_by_its_token_and_not_repeated() {
        let mut there = over(record(2, "1"));
        let ours = reopened(record(1, "1"), there.clone(), None);
        assert_eq!((ours.generation, ours.is_terminal()), (2, false));
        let compared = |there: &JobRecord| compare(there, &ours, IfExists::Again);
        assert_eq!(compared(&there), Comparison::Ended, "not applied: sent again");
        let applied = over(ours.clone());
        assert_eq!(
            compared(&applied),
            Comparison::Accepted(Accepted::Again(2)),
            "applied, and terminal since"
        );
        for generation in [2, 3] {
            there.generation = generation;
            assert_eq!(
                compared(&there),
                Comparison::Accepted(Accepted::Same),
                "another submitter was first, and its generation is terminal"
            );
        }
    }

    /// A lost first try does not change what an older record means.
    #[test]
    fn a_job_of_any_generation_that_is_terminal_at_the_start_of_the_call_is_opened() {
        let there = JobRecord { generation: 7, ..over(record(2, "1")) };
        assert_eq!(compare(&there, &record(1, "1"), IfExists::Again), Comparison::Ended);
        assert_eq!(reopened(record(1, "1"), there, None).generation, 8);
    }

    #[test]
    fn only_an_existing_job_makes_a_submission_a_duplicate() {
        for (accepted, duplicate) in [
            (Accepted::New, false),
            (Accepted::Again(2), false),
            (Accepted::Same, true),
            (Accepted::Other, true),
        ] {
            assert_eq!(accepted.is_duplicate(), duplicate, "{accepted:?}");
        }
    }

    #[test]
    fn a_reopened_job_keeps_its_closed_attempts_and_a_first_submission_has_none() {
        let attempt = Attempt { number: 1, worker: WorkerId::new(Uuid::from_u128(7)) };
        let assigned = JobRecord { assigned_at: Some(WallMillis(1)), ..record(2, "1") };
        let (failed, _) = assigned.close(attempt, Ending::Failed("full".to_owned()), WallMillis(2), 0);
        let there = failed.cancel(WallMillis(3));
        let ours = reopened(record(1, "1"), there.clone(), None);
        assert_eq!((ours.generation, ours.past().len()), (2, 1));
        let kept =
            |record: &JobRecord| (record.last, record.last_error.clone(), record.assigned_at, record.past());
        assert_eq!(kept(&ours), kept(&there));
        let first = as_first(ours);
        assert_eq!((first.generation, kept(&first)), (1, (None, None, None, Vec::new())));
    }

    #[test]
    fn only_a_reopened_job_has_the_note_of_the_change() {
        let by = Change { what: ChangeKind::Reopened, by: Author::new("ada").unwrap(), at: WallMillis(3) };
        let ours = reopened(record(1, "1"), over(record(2, "1")), Some(by.clone()));
        assert_eq!(ours.changed, Some(by));
        assert_eq!(as_first(ours).changed, None);
    }
}
