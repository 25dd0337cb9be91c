//! Handles the answer to a batch for each of its ticks: implements the table of the [parent module](super).

use super::known::{Plan, ScheduleState, Write};
use super::{Effect, Key, MAX_UNEXPLAINED, ScheduleKeeper, single};
use crate::name::ScheduleId;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::schedule::{SkipReason, Skipped};
use crate::txn::{Batch, Locus, Op, Subject};

fn is_job(path: &str) -> bool {
    path.starts_with(path::JOBS)
}

impl ScheduleKeeper {
    pub(super) fn committed(&mut self, mut batch: Batch<Key>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        self.commits -= 1;
        match outcome {
            Outcome::Applied(()) => {
                for (key, _) in batch.into_groups() {
                    self.applied(&key, out);
                }
            }
            // Applied or not: the read after the resync shows it.
            Outcome::Unknown => {
                self.acting = false;
                self.read_all(batch);
            }
            Outcome::Rejected(rejection) if rejection.is_whole() => {
                self.acting = false;
                self.read_all(batch);
            }
            Outcome::Rejected(rejection) => match batch.locate(rejection.at) {
                Some(Locus::Group { group, op, .. }) => {
                    let (key, ops) = batch.remove(group);
                    self.rejected(&key, &ops[op], &rejection);
                    self.put_back(batch);
                }
                Some(Locus::Fence(Subject::Epoch)) => {
                    self.acting = false;
                    if rejection.is_fence() {
                        out.push(Effect::FencedOut);
                    }
                    self.read_all(batch);
                }
                // A schedule was removed.
                Some(Locus::Fence(_)) | None => {
                    self.removals = None;
                    self.read_all(batch);
                    self.list(out);
                }
            },
        }
    }

    fn applied(&mut self, key: &Key, out: &mut Vec<Effect>) {
        if !self.has_at(key, |state| matches!(state, ScheduleState::Committing(_))) {
            return;
        }
        self.busy -= 1;
        let Some(known) = self.known.get_mut(&key.schedule) else { return };
        let ScheduleState::Committing(write) = std::mem::replace(&mut known.state, ScheduleState::Unread)
        else {
            return;
        };
        known.unexplained = 0;
        known.apply(&write.plan);
        match write.plan {
            Plan::Tick { at, before, .. } => {
                let skipped = before.map(|ticks| Skipped { reason: SkipReason::Misfire, ticks });
                out.extend(skipped.map(|skipped| Effect::Skipped(key.schedule.clone(), skipped)));
                out.push(Effect::Ticked(key.schedule.clone(), at));
            }
            Plan::Skip(skipped) => out.push(Effect::Skipped(key.schedule.clone(), skipped)),
        }
        let hints = std::mem::take(&mut known.hints);
        if hints == 0 {
            known.echoes += 1;
        }
        if hints > 1 {
            self.reread(&key.schedule);
        } else {
            self.wait(&key.schedule);
        }
    }

    fn rejected(&mut self, key: &Key, op: &Op, rejection: &Rejection) {
        if !self.has_at(key, |state| matches!(state, ScheduleState::Committing(_))) {
            return;
        }
        let Some(known) = self.known.get_mut(&key.schedule) else { return };
        let ScheduleState::Committing(write) = &known.state else { return };
        let mut write = write.clone();
        match (op, &rejection.reason) {
            // The job on which the tick depends has changed, or another one of its id was created.
            (Op::Check { .. }, Reason::BadVersion | Reason::NoNode) => self.check_again(key, write),
            (Op::Set { path, .. }, Reason::BadVersion | Reason::NoNode) if is_job(path) => {
                self.check_again(key, write);
            }
            (Op::Create { path, .. }, Reason::NodeExists) if is_job(path) && known.job_id().is_some() => {
                self.check_again(key, write);
            }
            // An entry or a turn without its record was created by an operator: an unexplained rejection.
            (Op::Create { path, .. }, Reason::NodeExists) if is_job(path) => {
                if let Plan::Tick { at, before, .. } = write.plan {
                    write.plan = Plan::Skip(match before {
                        Some(ticks) => Skipped { reason: SkipReason::Misfire, ticks },
                        None => Skipped { reason: SkipReason::Taken, ticks: single(at) },
                    });
                }
                known.state = ScheduleState::Ready(write);
                self.ready.push_back(key.schedule.clone());
            }
            (_, _) => {
                known.unexplained += u32::from(rejection.reason != Reason::BadVersion);
                if known.unexplained >= MAX_UNEXPLAINED {
                    self.wait_for_sweep(&key.schedule);
                } else {
                    self.reread(&key.schedule);
                }
            }
        }
    }

    /// Reads the job again on which the tick depends.
    fn check_again(&mut self, key: &Key, write: Write) {
        if let Some(known) = self.known.get_mut(&key.schedule) {
            known.state = ScheduleState::ToCheck(write);
            self.to_check.push_back(key.schedule.clone());
        }
    }

    /// Makes a schedule wait for the next list.
    fn wait_for_sweep(&mut self, schedule: &ScheduleId) {
        self.leave(schedule);
        if let Some(known) = self.known.get_mut(schedule) {
            known.unexplained = 0;
            known.state = ScheduleState::Unexplained;
        }
    }

    fn read_all(&mut self, batch: Batch<Key>) {
        for (key, _) in batch.into_groups() {
            if self.has_at(&key, |state| matches!(state, ScheduleState::Committing(_))) {
                self.reread(&key.schedule);
            }
        }
    }

    fn put_back(&mut self, batch: Batch<Key>) {
        for (key, _) in batch.into_groups().into_iter().rev() {
            if !self.has_at(&key, |state| matches!(state, ScheduleState::Committing(_))) {
                continue;
            }
            if let Some(known) = self.known.get_mut(&key.schedule)
                && let ScheduleState::Committing(write) = &known.state
            {
                known.state = ScheduleState::Ready(write.clone());
                self.ready.push_front(key.schedule);
            }
        }
    }
}
