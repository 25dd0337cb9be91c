//! What the clients of a plan do.

use bellwether_core::job::identity::IfExists;

use super::{Who, World};
use crate::plan::PlannedCall;

impl World {
    /// A client does what it planned.
    pub(super) fn act(&mut self, at: usize, action: usize) {
        let (now_us, jobs) = (self.now_us, &self.plan.jobs);
        let peer = &mut self.peers[at];
        let view = peer.link.view;
        let Who::Client(client) = &mut peer.who else { return };
        let id = |job: &usize| jobs[*job].id.clone();
        let out = match &self.plan.actions[action].call {
            PlannedCall::Submit(round) => {
                let round = round.iter().map(|job| jobs[*job].wish(false, IfExists::Same)).collect();
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::SubmitOther(job) => {
                let round = vec![jobs[*job].wish(true, IfExists::Same)];
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::SubmitIgnoring(job) => {
                let round = vec![jobs[*job].wish(true, IfExists::Ignore)];
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::SubmitAgain(job) => {
                let round = vec![jobs[*job].wish(false, IfExists::Again)];
                client.begin(now_us, view, |shell| shell.submit(round))
            }
            PlannedCall::Generate { group, members, seal, pace_ms } => {
                let group = &self.plan.groups[*group];
                let (members, seal, pace_ms) = (*members, *seal, *pace_ms);
                let generation = group.generation(&self.plan.jobs, members, seal, pace_ms);
                client.begin(now_us, view, |shell| shell.generate(generation))
            }
            PlannedCall::CancelJoin(group) => {
                let join = self.plan.groups[*group].join_id();
                client.begin(now_us, view, |shell| shell.cancel(join))
            }
            PlannedCall::RetryJoin(group) => {
                let join = self.plan.groups[*group].join_id();
                client.begin(now_us, view, |shell| shell.retry(join))
            }
            PlannedCall::Pause(kind, ms) => {
                let (kind, ms) = (kind.clone(), *ms);
                client.begin(now_us, view, move |shell| shell.pause(kind, ms))
            }
            PlannedCall::DrainWorker(which) => {
                let which = *which;
                client.begin(now_us, view, move |shell| shell.drain_one(which))
            }
            PlannedCall::Cancel(job) => client.begin(now_us, view, |shell| shell.cancel(id(job))),
            PlannedCall::Retry(job) => client.begin(now_us, view, |shell| shell.retry(id(job))),
            PlannedCall::RetryAtEnd(job) => client.begin(now_us, view, |shell| shell.retry_at_end(id(job))),
            PlannedCall::Wait(job) => client.begin(now_us, view, |shell| shell.wait(id(job))),
        };
        self.carry_out(at, out);
    }
}
