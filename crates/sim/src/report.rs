//! What a simulation came to.

use std::collections::BTreeMap;

use bellwether_core::path::{self, EPOCH, GroupPlace, Place};

use crate::history::{Answer, EventKind, Leading, RunStep, TxnOp, Violation};
use crate::trace::Trace;

/// What happened how often.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Events of the queue.
    pub steps: u64,
    /// Virtual time, in microseconds.
    pub virtual_us: u64,
    /// Transactions that the server committed.
    pub transactions: u64,
    /// Transactions that it refused.
    pub refused: u64,
    /// Groups that were made, sub-jobs' among them, and stages that a leader took them to.
    pub groups: u64,
    /// See there.
    pub stages: u64,
    /// Times that a client was told that a worker drains.
    pub drains: u64,
    /// Runs that handlers began.
    pub runs: u64,
    /// Times that a node became the leader, or leads again after a pause.
    pub terms: u64,
    /// Sessions that were made.
    pub sessions: u64,
    /// Sessions that their clients saw end.
    pub expirations: u64,
    /// Times that a session outlived its connection.
    pub reconnections: u64,
    /// Requests whose answer was lost with their connection.
    pub lost_replies: u64,
    /// Faults by their names.
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
                let set = |op: &&TxnOp| matches!(op, TxnOp::Set { path, .. } if of_group(path));
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
            | EventKind::Healed => {}
        }
    }

    /// Adds another simulation's.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.virtual_us += other.virtual_us;
        self.transactions += other.transactions;
        self.refused += other.refused;
        self.groups += other.groups;
        self.stages += other.stages;
        self.drains += other.drains;
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

/// One simulation.
#[derive(Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// What was broken: nothing, or what one event, or the end, broke.
    pub violations: Vec<Violation>,
    /// What happened how often.
    pub stats: Stats,
    /// What happened.
    pub trace: Trace,
}
