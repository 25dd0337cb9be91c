//! Schedules and their ticks.
//!
//! A tick is one multi: the schedule's cursor moves over its instant, and its job is made. So whichever leader makes it,
//! nobody makes it again (S8): the cursor has moved, the version with it, and the job's id is taken. A schedule's version
//! fences its spec, too: what was paused, replaced or removed meanwhile does not tick.
//!
//! A schedule that is removed and added again begins with version 0, which a leader may know from before. So each removal
//! also sets [`path::SCHEDULES`], and each tick checks it at the version that the leader knew *before* it read the schedule.

use super::{Op, submit};
use crate::job::JobRecord;
use crate::name::{JobId, ScheduleId};
use crate::path;
use crate::schedule::ScheduleRecord;
use crate::trace::TraceContext;
use crate::wire::{decode, encode};

/// Whatever version it has. For what is only counted.
const ANY: i32 = -1;

/// Makes a schedule exist.
#[must_use]
pub fn add_schedule(schedule: &ScheduleId, record: &ScheduleRecord) -> Vec<Op> {
    vec![Op::create(path::schedule(schedule), encode(record))]
}

/// Changes a schedule: a pause, its end, another spec, a cursor that moves over ticks that get no job.
#[must_use]
pub fn set_schedule(schedule: &ScheduleId, version: i32, record: &ScheduleRecord) -> Vec<Op> {
    vec![Op::Set { path: path::schedule(schedule), data: encode(record), version }]
}

/// Makes a schedule go. Its jobs stay.
#[must_use]
pub fn remove_schedule(schedule: &ScheduleId, version: i32) -> Vec<Op> {
    vec![
        Op::Delete { path: path::schedule(schedule), version: Some(version) },
        Op::Set { path: path::SCHEDULES.to_owned(), data: Vec::new(), version: ANY },
    ]
}

/// Stands before ticks: no schedule was removed since this version was read.
#[must_use]
pub fn check_removals(version: i32) -> Op {
    Op::Check { path: path::SCHEDULES.to_owned(), version }
}

/// Makes the job of a tick, and moves the schedule's cursor over it: `record` is the schedule after it. `over` is the
/// last tick's job, at the version in which it is over, where no two may be open.
///
/// Rejected with [`Reason::NoNode`](crate::outcome::Reason::NoNode) at the job's turn while the schedule's lane is not
/// there, as [`submit`] is.
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

/// The job that a [`tick`] makes; none of a transaction that makes none.
#[must_use]
pub fn job_of_tick(ops: &[Op]) -> Option<(JobId, JobRecord)> {
    ops.iter().find_map(|op| {
        let Op::Create { path, data, .. } = op else { return None };
        let (_, name) = path.strip_prefix(path::JOBS)?.rsplit_once('/')?;
        // Both were written by this build a moment ago.
        Some((JobId::new(name).ok()?, decode(data).ok()?))
    })
}

/// Makes the job of a [`tick`] part of a trace. Nothing else of the transaction changes, in number and order neither, so
/// that what is said of an operation of the one is said of the other's.
pub fn trace_tick(ops: &mut Vec<Op>, trace: TraceContext) {
    let Some((job, made)) = job_of_tick(ops) else { return };
    let made = submit(&job, &JobRecord { trace: Some(trace), ..made }, 0);
    ops.truncate(ops.len() - made.len());
    ops.extend(made);
}

/// Makes the job of a trigger, of this schedule at this version.
#[must_use]
pub fn trigger(schedule: &ScheduleId, version: i32, job: &JobId, made: &JobRecord) -> Vec<Op> {
    let mut ops = vec![Op::Check { path: path::schedule(schedule), version }];
    ops.extend(submit(job, made, 0));
    ops
}
