//! Counters over a history, and the measured times for the bounds of the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_core::job::{JobRecord, JobState, Verdict};
use bellwether_core::name::{JobId, NodeId, WorkerId};
use bellwether_core::path::{self, Place};
use bellwether_core::time::as_millis;
use bellwether_core::wire;
use bellwether_core::worker::WorkerInfo;
use bellwether_sim::history::{Answer, Call, EventKind, RunStep, TxnOp};

use crate::fault::{Fault, Step, Target};
use crate::joins::Groups;
use crate::run::Outcome;
use crate::servers::TICK;

/// The measurements for one bound.
pub(super) struct Measured {
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    pub(super) bound: u64,
    /// Each measured time, and the lateness of the machine during it.
    pub(super) times: Vec<(u64, u64)>,
}

/// Counters over the history.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) calls: u64,
    pub(super) submits: BTreeMap<u64, JobId>,
    pub(super) acknowledged: BTreeSet<JobId>,
    pub(super) unknown: BTreeSet<JobId>,
    pub(super) conflicts: u64,
    pub(super) groups: Groups,
    pub(super) expired: u64,
    pub(super) pauses: u64,
    pub(super) ran: BTreeSet<JobId>,
    pub(super) runs: u64,
    pub(super) extra: u64,
    pub(super) transactions: u64,
    pub(super) refused: u64,
    /// When each epoch was claimed.
    pub(super) claims: Vec<u64>,
    /// When candidates were deleted.
    pub(super) candidates_left: Vec<u64>,
    pub(super) workers: BTreeMap<WorkerId, NodeId>,
    /// When an assignment of a node's worker was deleted.
    pub(super) taken: Vec<(u64, NodeId, WorkerId)>,
    pub(super) killed: Vec<(u64, NodeId)>,
}

impl Figures {
    pub(super) fn note(&mut self, at: u64, what: &EventKind) {
        match what {
            EventKind::Invoke { call, what, .. } => {
                self.calls += 1;
                if let Call::Submit { job, .. } = what {
                    self.submits.insert(*call, job.clone());
                }
            }
            EventKind::Return { call, answer } => {
                let Some(job) = self.submits.remove(call) else { return };
                match answer {
                    Answer::Accepted => {
                        self.acknowledged.insert(job);
                    }
                    Answer::Unknown { .. } => {
                        self.unknown.insert(job);
                    }
                    Answer::Conflict => self.conflicts += 1,
                    _ => {}
                }
            }
            EventKind::Run { job, step: RunStep::Started, .. } => {
                self.runs += 1;
                self.extra += u64::from(!self.ran.insert(job.clone()));
            }
            EventKind::Txn { ops, .. } => {
                self.transactions += 1;
                ops.iter().for_each(|op| self.op(at, op));
            }
            EventKind::Refused { .. } => self.refused += 1,
            EventKind::Node { node, is: bellwether_sim::history::Life::Killed } => {
                self.killed.push((at, node.clone()));
            }
            EventKind::Run { .. }
            | EventKind::Leadership { .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Evicted { .. }
            | EventKind::Node { .. }
            | EventKind::Healed => {}
        }
    }

    fn op(&mut self, at: u64, op: &TxnOp) {
        self.groups.note(op);
        match op {
            TxnOp::Create { path, data, .. } => {
                if let Place::Worker(id) = path::parse(path)
                    && let Ok(info) = wire::decode::<WorkerInfo>(&data.0)
                {
                    self.workers.insert(id, info.node);
                }
                if path == path::EPOCH {
                    self.claims.push(at);
                }
                self.pauses +=
                    u64::from(path.rsplit_once('/').is_some_and(|(parent, _)| parent == path::PAUSES));
            }
            TxnOp::Set { path, .. } if path == path::EPOCH => self.claims.push(at),
            TxnOp::Set { path, data, .. } if path.starts_with("/jobs/") => {
                self.expired += u64::from(wire::decode(&data.0).is_ok_and(|record| has_expired(&record)));
            }
            TxnOp::Delete { path } => {
                if let Place::Assignment(id, _) = path::parse(path)
                    && let Some(node) = self.workers.get(&id)
                {
                    self.taken.push((at, node.clone(), id));
                }
                if path.starts_with(path::ELECTION) {
                    self.candidates_left.push(at);
                }
            }
            TxnOp::Check { .. } | TxnOp::Set { .. } | TxnOp::CloseSession => {}
        }
    }

    pub(super) fn bounds(&self, outcome: &Outcome, session: Duration) -> Vec<Measured> {
        let session_end = as_millis(session + TICK);
        let mut takeovers = Vec::new();
        let mut handovers = Vec::new();
        let mut recoveries = Vec::new();
        let slack = |from: u64, to: u64| {
            let during = outcome.stalls.iter().filter(|(at, _)| (from..=to).contains(at));
            during.map(|(_, late)| *late).sum::<u64>()
        };
        for deal in outcome.deals.iter().filter(|deal| deal.alone) {
            let well = deal.well.unwrap_or(outcome.end);
            let claim = self.claims.iter().find(|at| (deal.began..=well).contains(at));
            match (deal.fault, claim) {
                (
                    Fault::Killed(Target::Leader)
                    | Fault::KilledAt(Step::Assign | Step::Promote | Step::Recover | Step::Join, _),
                    Some(claim),
                ) => {
                    takeovers.push((claim - deal.began, slack(deal.began, *claim)));
                }
                (Fault::Drained(Target::Leader), Some(claim)) => {
                    let left = self.candidates_left.iter().rfind(|at| (deal.began..=*claim).contains(at));
                    if let Some(left) = left {
                        handovers.push((claim - left, slack(*left, *claim)));
                    }
                }
                (_, _) => {}
            }
            if deal.fault == Fault::Killed(Target::Other)
                && let Some((_, node)) = self.killed.iter().find(|(at, _)| (deal.began..=well).contains(at))
            {
                // Only workers of earlier processes of the node; a restarted process has another worker id.
                let killed: BTreeSet<_> = self
                    .taken
                    .iter()
                    .filter(|(at, of, _)| of == node && *at <= deal.began)
                    .map(|(.., id)| *id)
                    .collect();
                let last = self.taken.iter().rfind(|(at, _, id)| *at <= well && killed.contains(id));
                if let Some((last, ..)) = last.filter(|(at, ..)| *at >= deal.began) {
                    recoveries.push((last - deal.began, slack(deal.began, *last)));
                }
            }
        }
        let measured = |id, what, bound, times| Measured { id, what, bound, times };
        vec![
            measured("L1", "a leader killed: the next epoch is claimed", session_end + 2_000, takeovers),
            measured("L1", "a leader drained: from its exit to the next claim", 1_000, handovers),
            measured("L2", "a worker killed: its last job is taken back", session_end + 1_000, recoveries),
        ]
    }
}

/// Returns whether the job is dead because it expired.
fn has_expired(record: &JobRecord) -> bool {
    let dead = matches!(record.state, JobState::Terminal { verdict: Verdict::Dead, .. });
    let told = |error: &String| error.starts_with("not started before it expired");
    dead && record.last_error.as_ref().is_some_and(told)
}
