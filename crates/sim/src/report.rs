//! The result of a simulation.

use std::collections::BTreeMap;

use bellwether_core::job::Assignment;
use bellwether_core::path::{self, EPOCH, GroupPlace, Place};

use bellwether_core::wire::decode;

use crate::history::{Answer, EventKind, Leading, RunStep, TxnOp, Violation};
use crate::trace::Trace;

/// Counters of a simulation.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Events taken from the queue.
    pub steps: u64,
    /// Virtual time, in microseconds.
    pub virtual_us: u64,
    /// Transactions that the server committed.
    pub transactions: u64,
    /// Transactions that the server rejected.
    pub refused: u64,
    /// Groups created, including groups of sub-jobs.
    pub groups: u64,
    /// Stage changes of groups that a leader committed.
    pub stages: u64,
    /// Drain requests of clients that were acknowledged.
    pub drains: u64,
    /// Attempts that a worker took over.
    pub moves: u64,
    /// Handler runs that started.
    pub runs: u64,
    /// Times that a node became the leader or resumed leading after a pause.
    pub terms: u64,
    /// Sessions created.
    pub sessions: u64,
    /// Sessions whose client saw them end.
    pub expirations: u64,
    /// Times that a session continued on a new connection.
    pub reconnections: u64,
    /// Requests whose reply was lost with their connection.
    pub lost_replies: u64,
    /// Faults by name.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Stats {
    pub(crate) fn note(&mut self, event: &EventKind) {
        match event {
            EventKind::Txn { ops, .. } => {
                self.transactions += 1;
                let of_group = |path: &str| matches!(path::parse(path), Place::Group(GroupPlace::Record(_)));
                let made = |op: &&TxnOp| matches!(op, TxnOp::Create { path, .. } if of_group(path));
                let fenced =
                    ops.first().is_some_and(|op| matches!(op, TxnOp::Check { path, .. } if path == EPOCH));
                let is_move = |op: &&TxnOp| {
                    let TxnOp::Create { path, data, .. } = op else { return false };
                    let assignment = matches!(path::parse(path), Place::Assignment(..))
                        .then(|| decode::<Assignment>(&data.0).ok())
                        .flatten();
                    assignment.is_some_and(|assignment| assignment.moved_from.is_some())
                };
                let set = |op: &&TxnOp| matches!(op, TxnOp::Set { path, .. } if of_group(path));
                self.moves += ops.iter().filter(is_move).count() as u64;
                self.groups += ops.iter().filter(made).count() as u64;
                self.stages += ops.iter().filter(|_| fenced).filter(set).count() as u64;
            }
            EventKind::Refused { .. } => self.refused += 1,
            EventKind::Run { step: RunStep::Started, .. } => self.runs += 1,
            EventKind::Leadership { state: Leading::Active, .. } => self.terms += 1,
            EventKind::Return { answer: Answer::Drains, .. } => self.drains += 1,
            EventKind::Run { step: RunStep::Ended | RunStep::Said(_), .. }
            | EventKind::Leadership { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Node { .. }
            | EventKind::Evicted { .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Healed => {}
        }
    }

    /// Adds the counters of another simulation.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.virtual_us += other.virtual_us;
        self.transactions += other.transactions;
        self.refused += other.refused;
        self.groups += other.groups;
        self.stages += other.stages;
        self.drains += other.drains;
        self.moves += other.moves;
        self.runs += other.runs;
        self.terms += other.terms;
        self.sessions += other.sessions;
        self.expirations += other.expirations;
        self.reconnections += other.reconnections;
        self.lost_replies += other.lost_replies;
        for (name, count) in &other.faults {
            *self.faults.entry(name).or_default() += count;
        }
    }
}

/// The outcome of one simulation.
#[derive(Debug)]
pub struct Report {
    /// The seed of its plan.
    pub seed: u64,
    /// The invariants that one event, or the final check, broke; usually empty.
    pub violations: Vec<Violation>,
    /// Counters.
    pub stats: Stats,
    /// The trace of the run.
    pub trace: Trace,
}
