//! Schedules and their ticks.
//!
//! A tick is one multi: it moves the schedule's cursor past the instant and creates the job. No leader creates the same
//! tick twice (S8), because the cursor and with it the version have moved, and the job's id is taken. The version also
//! fences the spec: a schedule that was paused, replaced or removed in the meantime does not tick.
//!
//! A schedule that is removed and added again starts at version 0, which a leader may have read earlier. So each
//! removal also sets [`path::SCHEDULES`], and each tick checks the version of it that the leader read *before* the
//! schedule.

use super::{Op, submit};
use crate::job::JobRecord;
use crate::name::{JobId, ScheduleId};
use crate::path;
use crate::schedule::ScheduleRecord;
use crate::trace::TraceContext;
use crate::wire::{decode, encode};

/// Any version: the version of this znode is only a counter.
const ANY: i32 = -1;

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

/// Removes a schedule. Its jobs stay.
#[must_use]
pub fn remove_schedule(schedule: &ScheduleId, version: i32) -> Vec<Op> {
    vec![
        Op::Delete { path: path::schedule(schedule), version: Some(version) },
        Op::Set { path: path::SCHEDULES.to_owned(), data: Vec::new(), version: ANY },
    ]
}

/// Precedes ticks: rejected if a schedule was removed after this version was read.
#[must_use]
pub fn check_removals(version: i32) -> Op {
    Op::Check { path: path::SCHEDULES.to_owned(), version }
}

/// Creates the job of a tick and moves the schedule's cursor past it. `record` is the schedule after the tick.
/// `over` is the job of the last tick with the version at which it was terminal; it is given if the schedule forbids
/// overlap.
///
/// Rejected with [`Reason::NoNode`](crate::outcome::Reason::NoNode) at the job's turn if the schedule's lane does not
/// exist, as [`submit`] is.
#[must_use]
pub fn tick(
    schedule: &ScheduleId,
    version: i32,
    record: &ScheduleRecord,
    (job, made): (&JobId, &JobRecord),
    over: Option<(&JobId, i32)>,
) -> Vec<Op> {
    let mut ops = set_schedule(schedule, version, record);
    ops.extend(over.map(|(job, version)| Op::Check { path: path::record(job), version }));
    ops.extend(submit(job, made, 0));
    ops
}

/// The job that a [`tick`] creates; `None` for a transaction that creates none.
#[must_use]
pub fn job_of_tick(ops: &[Op]) -> Option<(JobId, JobRecord)> {
    ops.iter().find_map(|op| {
        let Op::Create { path, data, .. } = op else { return None };
        let (_, name) = path.strip_prefix(path::JOBS)?.rsplit_once('/')?;
        // This build encoded both, so decoding cannot fail.
        Some((JobId::new(name).ok()?, decode(data).ok()?))
    })
}

/// Adds the job of a [`tick`] to a trace. The number and order of the operations do not change, so a position in one
/// transaction refers to the same operation in the other.
pub fn trace_tick(ops: &mut Vec<Op>, trace: TraceContext) {
    let Some((job, made)) = job_of_tick(ops) else { return };
    let made = submit(&job, &JobRecord { trace: Some(trace), ..made }, 0);
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
        assert_eq!(remove_schedule(&schedule, 7), expected);
    }
}
