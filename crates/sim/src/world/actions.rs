//! The actions of a plan's clients.

use std::time::Duration;

use bellwether::client::IfExists;
use bellwether_core::name::JobId;
use bellwether_core::worker::WorkerSettings;

use super::{Incoming, Who, World};
use crate::plan::{self, Plan, PlannedCall};
use crate::runtime::Task;
use crate::workload::{Env, Pack};

impl World {
    /// Runs a planned action of a client.
    pub(super) fn act(&mut self, at: usize, action: usize) {
        let (now_us, plan) = (self.now_us, &self.plan);
        let peer = &mut self.peers[at];
        let (Who::Client, Some(tasks)) = (&peer.who, &mut peer.tasks) else { return };
        let out =
            tasks.begin(now_us, peer.library.view, |env| workload(env, plan, &plan.actions[action].call));
        self.carry_out(at, out);
    }

    /// A submission was acknowledged. With an ensemble, another client may read the job at once, through its own server.
    pub(super) fn acknowledged(&mut self, at: usize, job: JobId, generation: u32) {
        let (nodes, clients) = (self.plan.nodes.len(), self.plan.clients.len());
        if self.plan.sync_limit.is_none() || clients < 2 || self.rng.bool() {
            return;
        }
        let other = nodes + (at - nodes + self.rng.usize(1..clients)) % clients;
        let soon_us = self.now_us + self.rng.u64(1..20_000);
        self.put_peer(soon_us, other, Incoming::Look(job, generation));
    }

    pub(super) fn look_at(&mut self, at: usize, job: JobId, generation: u32) {
        let (now_us, peer) = (self.now_us, &mut self.peers[at]);
        let Some(tasks) = &mut peer.tasks else { return };
        let out = tasks.begin(now_us, peer.library.view, |env| Box::pin(env.look(job, generation)));
        self.carry_out(at, out);
    }
}

fn workload(env: Env, plan: &Plan, call: &PlannedCall) -> Task {
    let id = |job: &usize| plan.jobs[*job].id.clone();
    let join = |group: &usize| plan.groups[*group].join_id();
    let submit = |jobs: &[usize], other, if_exists| {
        let wishes = jobs.iter().map(|job| (id(job), plan.jobs[*job].wish(other, if_exists))).collect();
        Box::pin(env.clone().submit(wishes))
    };
    match call {
        PlannedCall::Submit(round) => submit(round, false, IfExists::Same),
        PlannedCall::SubmitPacked(segment, jobs) => {
            let pack = Pack::new(*segment, &plan.jobs[jobs.clone()]);
            Box::pin(env.submit_packed(pack))
        }
        PlannedCall::SubmitOther(job) => submit(&[*job], true, IfExists::Same),
        PlannedCall::SubmitIgnoring(job) => submit(&[*job], true, IfExists::Ignore),
        PlannedCall::SubmitAgain(job) => submit(&[*job], false, IfExists::Again),
        PlannedCall::Generate { group, members, seal, pace_ms } => {
            let group = &plan.groups[*group];
            Box::pin(env.generate(group.generation(&plan.jobs, *members, *seal, *pace_ms)))
        }
        PlannedCall::CancelJoin(group) => Box::pin(env.cancel(join(group))),
        PlannedCall::RetryJoin(group) => Box::pin(env.retry(join(group))),
        PlannedCall::Pause(kind, ms) => Box::pin(env.pause(kind.clone(), Duration::from_millis(*ms))),
        PlannedCall::SetStrategy(strategy) => Box::pin(env.set_strategy(strategy.clone())),
        PlannedCall::SetWorker { which, slots, tagged, paused, ms } => {
            let (tags, paused) = (tagged.map(plan::tags), paused.iter().cloned().collect());
            let settings = WorkerSettings::default().slots(*slots).tags(tags).paused_kinds(paused);
            Box::pin(env.set_worker(*which, settings, Duration::from_millis(*ms)))
        }
        PlannedCall::ResetWorkers => Box::pin(env.reset_workers()),
        PlannedCall::DrainWorker(which) => Box::pin(env.drain_one(*which)),
        PlannedCall::Purge(ended) => Box::pin(env.purge(*ended)),
        PlannedCall::Cancel(job) => Box::pin(env.cancel(id(job))),
        PlannedCall::Retry(job) => Box::pin(env.retry(id(job))),
        PlannedCall::RetryAtEnd(job) => Box::pin(env.retry_at_end(id(job))),
        PlannedCall::Wait(job) => Box::pin(env.wait(id(job))),
    }
}
