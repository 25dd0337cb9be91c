//! Prepares requests and commits. This half of the machine uses only the queues and windows, never an answer.

use std::collections::BTreeSet;

use super::known::{Plan, Prior, ScheduleState, Write};
use super::{BATCH, COMMIT_WINDOW, Effect, Key, LATE, READ_WINDOW, ScheduleKeeper};
use crate::budget::MAX_READ_BATCH;
use crate::schedule::{Due, SkipReason, Skipped, due};
use crate::time::WallMillis;
use crate::txn::{Batch, Op};

impl ScheduleKeeper {
    pub(super) fn read_some(&mut self, out: &mut Vec<Effect>) {
        while self.reads < READ_WINDOW && !self.unread.is_empty() {
            let mut schedules = Vec::new();
            while schedules.len() < MAX_READ_BATCH
                && let Some(schedule) = self.unread.pop_first()
            {
                if let Some(known) = self.known.get_mut(&schedule) {
                    known.state = ScheduleState::Reading;
                    known.hints = 0;
                    schedules.push(schedule);
                }
            }
            if !schedules.is_empty() {
                self.reads += 1;
                out.push(Effect::Read(schedules));
            }
        }
    }

    /// Decides about the due schedules, up to the number of free slots.
    pub(super) fn prepare(&mut self, now: WallMillis) {
        let mut late = 0;
        while self.busy < COMMIT_WINDOW * BATCH
            && late < LATE
            && let Some((at, schedule)) = self.waiting.pop_first()
        {
            if at > now {
                self.waiting.insert((at, schedule));
                return;
            }
            let Some(known) = self.known.get_mut(&schedule) else { continue };
            let Some((record, calendar)) = known.record.as_deref().zip(known.calendar.as_deref()) else {
                continue;
            };
            let spec = &record.spec;
            late += usize::from(now.since(at) > spec.grace);
            let plan = match due(calendar, spec.misfire, spec.grace, record.cursor, now) {
                // The clock was set back since the schedule started to wait.
                Due::Later(next) => {
                    known.state = ScheduleState::Waiting(next);
                    self.waiting.extend(next.map(|next| (next, schedule)));
                    continue;
                }
                Due::Tick { at, missed } => Plan::Tick { at, before: missed, prior: Prior::None },
                Due::Skip(ticks) => Plan::Skip(Skipped { reason: SkipReason::Misfire, ticks }),
            };
            self.serial += 1;
            let write = Write { serial: self.serial, plan };
            self.busy += 1;
            if known.prior_job(&schedule, &write.plan).is_some() {
                known.state = ScheduleState::ToCheck(write);
                self.to_check.push_back(schedule);
            } else {
                known.state = ScheduleState::Ready(write);
                self.ready.push_back(schedule);
            }
        }
    }

    pub(super) fn check_some(&mut self, out: &mut Vec<Effect>) {
        while self.reads < READ_WINDOW && !self.to_check.is_empty() {
            let mut jobs = Vec::new();
            while jobs.len() < MAX_READ_BATCH
                && let Some(schedule) = self.to_check.pop_front()
            {
                let Some(known) = self.known.get_mut(&schedule) else { continue };
                let ScheduleState::ToCheck(write) = &known.state else { continue };
                let Some(job) = known.prior_job(&schedule, &write.plan) else { continue };
                let write = write.clone();
                jobs.push((Key { schedule, serial: write.serial }, job));
                known.state = ScheduleState::Checking(write);
            }
            if !jobs.is_empty() {
                self.reads += 1;
                out.push(Effect::ReadJobs(jobs));
            }
        }
    }

    pub(super) fn batch(&mut self, now: WallMillis, fence: Vec<Op>) -> Option<Batch<Key>> {
        let mut batch = Batch::new(fence);
        let (mut jobs, mut later) = (BTreeSet::new(), Vec::new());
        while batch.len() < BATCH
            && let Some(schedule) = self.ready.pop_front()
        {
            let Some(known) = self.known.get_mut(&schedule) else { continue };
            let ScheduleState::Ready(write) = &known.state else { continue };
            // A multi with two ticks of one job would reject itself.
            let job = known.job_id().filter(|_| matches!(write.plan, Plan::Tick { .. })).cloned();
            if job.as_ref().is_some_and(|job| jobs.contains(job)) {
                later.push(schedule);
                continue;
            }
            let Some(ops) = known.ops(&schedule, &write.plan, now) else {
                self.reread(&schedule);
                continue;
            };
            let (write, key) = (write.clone(), Key { schedule: schedule.clone(), serial: write.serial });
            if batch.push(key, ops).is_err() {
                self.ready.push_front(schedule);
                break;
            }
            jobs.extend(job);
            known.hints = 0;
            known.state = ScheduleState::Committing(write);
        }
        self.ready.extend(later);
        (!batch.is_empty()).then_some(batch)
    }
}
