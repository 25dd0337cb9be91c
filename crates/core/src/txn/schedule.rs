//! Schedules and their ticks.
//!
//! A tick is one multi: it moves the schedule's cursor past the instant and creates the job. No leader creates the same
//! tick twice (S8), because the cursor and with it the version have moved, and the job's id is taken. The version also
//! fences the spec: a schedule that was paused, replaced or removed in the meantime does not tick.
//!
//! If the schedule names the job's id, the multi creates the record, or sets it at the version at which the job had
//! ended. So of several ticks, and submissions of clients, that start the job at the same time one commits.
//!
//! A schedule that is removed and added again starts at version 0, which a leader may have read earlier. So each
//! removal also sets [`path::SCHEDULES`], and each tick checks the version of it that the leader read *before* the
//! schedule.

use super::{ANY_VERSION, Op, note, reopen, submit};
use crate::change::Change;
use crate::job::JobRecord;
use crate::name::{JobId, ScheduleId};
use crate::path;
use crate::schedule::ScheduleRecord;
use crate::trace::TraceContext;
use crate::wire::{decode, encode};

/// Creates a schedule.
#[must_use]
pub fn add_schedule(schedule: &ScheduleId, record: &ScheduleRecord) -> Vec<Op> {
    vec![Op::create(path::schedule(schedule), encode(record))]
}

/// Changes a schedule: a pause, a resume, another spec, or a cursor that moves past skipped ticks.
#[must_use]
pub fn set_schedule(schedule: &ScheduleId, version: i32, record: &ScheduleRecord) -> Vec<Op> {
    vec![Op::Set { path: path::schedule(schedule), data: encode(record), version }]
}

/// Removes a schedule, and writes the author to the parent. Its jobs stay.
#[must_use]
pub fn remove_schedule(schedule: &ScheduleId, version: i32, change: Option<&Change>) -> Vec<Op> {
    vec![
        Op::Delete { path: path::schedule(schedule), version: Some(version) },
        note(path::SCHEDULES.to_owned(), change, ANY_VERSION),
    ]
}

/// Precedes ticks: rejected if a schedule was removed after this version was read.
#[must_use]
pub fn check_removals(version: i32) -> Op {
    Op::Check { path: path::SCHEDULES.to_owned(), version }
}

/// The ended job on which a tick depends, with the version at which it and its sub-jobs had ended. A group of sub-jobs
/// that is done stays done, so this version proves until the record is set again that no part of the job is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prior<'a> {
    /// The tick depends on no job, or the record of that job is absent.
    None,
    /// The job of the last tick, if the schedule forbids overlap.
    Last(&'a JobId, i32),
    /// The job with the schedule's job id, which the tick opens again.
    Reopened(i32),
}

/// Creates the job of a tick, or opens it again, and moves the schedule's cursor past it. `record` is the schedule after
/// the tick.
#[must_use]
pub fn tick(
    schedule: &ScheduleId,
    version: i32,
    record: &ScheduleRecord,
    (job, made): (&JobId, &JobRecord),
    prior: Prior<'_>,
) -> Vec<Op> {
    let mut ops = set_schedule(schedule, version, record);
    match prior {
        Prior::None => ops.extend(submit(job, made, 0)),
        Prior::Last(last, version) => {
            ops.push(Op::Check { path: path::record(last), version });
            ops.extend(submit(job, made, 0));
        }
        Prior::Reopened(version) => ops.extend(reopen(job, version, made, 0)),
    }
    ops
}

/// The job that a [`tick`] creates or opens again; `None` for a transaction that does neither.
#[must_use]
pub fn job_of_tick(ops: &[Op]) -> Option<(JobId, JobRecord)> {
    written(ops).map(|(job, record, _)| (job, record))
}

/// The job that is written, with its record, and the version that is replaced.
fn written(ops: &[Op]) -> Option<(JobId, JobRecord, Option<i32>)> {
    ops.iter().find_map(|op| {
        let (path, data, version) = match op {
            Op::Create { path, data, .. } => (path, data, None),
            Op::Set { path, data, version } => (path, data, Some(*version)),
            Op::Check { .. } | Op::Delete { .. } => return None,
        };
        let (_, name) = path.strip_prefix(path::JOBS)?.rsplit_once('/')?;
        // This build encoded both, so decoding cannot fail.
        Some((JobId::new(name).ok()?, decode(data).ok()?, version))
    })
}

/// Adds the job of a [`tick`] to a trace. The number and order of the operations do not change, so a position in one
/// transaction refers to the same operation in the other.
pub fn trace_tick(ops: &mut Vec<Op>, trace: TraceContext) {
    let Some((job, made, replaced)) = written(ops) else { return };
    let made = JobRecord { trace: Some(trace), ..made };
    let made = match replaced {
        None => submit(&job, &made, 0),
        Some(version) => reopen(&job, version, &made, 0),
    };
    ops.truncate(ops.len() - made.len());
    ops.extend(made);
}

/// Creates the job of a manual trigger. The schedule must have this version.
#[must_use]
pub fn trigger(schedule: &ScheduleId, version: i32, job: &JobId, made: &JobRecord) -> Vec<Op> {
    let mut ops = vec![Op::Check { path: path::schedule(schedule), version }];
    ops.extend(submit(job, made, 0));
    ops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_deletes_the_read_version_and_moves_the_version_of_the_parent() {
        let schedule = ScheduleId::new("nightly").unwrap();
        let expected = [
            Op::Delete { path: path::schedule(&schedule), version: Some(7) },
            Op::Set { path: path::SCHEDULES.to_owned(), data: Vec::new(), version: -1 },
        ];
        assert_eq!(remove_schedule(&schedule, 7, None), expected);
    }

    #[test]
    fn a_trigger_checks_the_schedule_and_submits_the_job() {
        let (schedule, job) = (ScheduleId::new("nightly").unwrap(), JobId::new("nightly@1").unwrap());
        let payload = crate::job::Payload::json(*b"1").unwrap();
        let made = JobRecord::new(
            crate::name::Kind::new("sum").unwrap(),
            payload,
            uuid::Uuid::nil(),
            crate::time::WallMillis(1),
        );
        let ops = trigger(&schedule, 4, &job, &made);
        assert_eq!(ops[0], Op::Check { path: path::schedule(&schedule), version: 4 });
        assert_eq!(ops[1..], submit(&job, &made, 0));
    }
}
