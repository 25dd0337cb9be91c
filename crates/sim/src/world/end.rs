//! The condition that ends a run.

use std::time::Duration;

use bellwether_core::group::{GroupRecord, Stage};
use bellwether_core::job::JobRecord;
use bellwether_core::path;
use bellwether_core::time::WallMillis;

use super::{Happening, Who, World};
use crate::host::context::WALL_MS;
use crate::report::Report;
use crate::workload::Process;

/// Time limit after the healing. It is far beyond any bound of L3, so that a late job is reported by the liveness
/// rules, with its reason. It is also longer than the timeouts and backoffs of all jobs and ticks of a plan in sequence
/// on a single slot.
const SETTLING_US: u64 = 1_200_000_000;

/// How often the world checks whether all work has ended.
pub(super) const LOOK_US: u64 = 1_000_000;

/// How long the world runs after that, so that forbidden events have time to happen.
const AFTER_US: u64 = 20_000_000;

impl World {
    /// Checks whether all work has ended. Called periodically after the healing.
    pub(super) fn look(&mut self) {
        let truth = self.checker.truth();
        let kept = self.plan.retention_ms.is_none();
        let over = |(id, _)| {
            let record = truth.record(id).and_then(|znode| znode.record());
            // The records of a group are removed with the group.
            let grouped = |record: &JobRecord| record.membership.is_some() || record.spawned;
            record.is_none_or(|record| (kept || grouped(record)) && record.is_terminal())
        };
        let left = |group: &GroupRecord| !kept && matches!(group.stage, Stage::Done { .. });
        let rests = |(id, _)| truth.group(id).is_none_or(|group| truth.rests(id, group) && !left(group));
        let rest = truth.groups().all().all(rests);
        let wall = WallMillis((WALL_MS + (self.now_us / 1_000).cast_signed()).cast_unsigned());
        // A schedule with a tick within this year is still active.
        let year = Duration::from_secs(300 * 24 * 3600);
        let ticks = truth.below(path::SCHEDULES).filter_map(|(_, znode)| znode.schedule()).any(|schedule| {
            let next = schedule.spec.when.calendar().ok().and_then(|calendar| schedule.next(&calendar));
            next.is_some_and(|next| next < wall + year)
        });
        let jobs = truth.jobs();
        let registered = |id| jobs.worker(id).is_some_and(|worker| worker.registered);
        let quiet = jobs.all().all(over) && jobs.inboxes().all(registered);
        let busy = self.peers.iter().any(|peer| match &peer.who {
            Who::Client => peer.tasks.as_ref().is_some_and(Process::is_busy),
            Who::Node(_, node) => node.is_none(),
        });
        if quiet && rest && !busy && !ticks {
            self.over_since_us.get_or_insert(self.now_us);
        } else {
            self.over_since_us = None;
        }
        self.put(self.now_us + LOOK_US, Happening::Look);
    }

    pub(super) fn is_over(&self) -> bool {
        let end = (self.plan.heal_ms * 1_000).saturating_add(SETTLING_US);
        let settled = self.over_since_us.is_some_and(|since| since + AFTER_US <= self.now_us);
        settled || self.now_us >= end
    }

    pub(super) fn finish(mut self) -> Report {
        self.stats.virtual_us = self.now_us;
        if self.violations.is_empty() {
            self.violations = self.checker.finish(self.now_us / 1_000);
        }
        Report { seed: self.plan.seed, violations: self.violations, stats: self.stats, trace: self.trace }
    }
}
