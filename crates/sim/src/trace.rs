//! A readable trace of a run, and its hash, which tests compare.

use bellwether_core::path::{self, Place};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::history::truth::{Spot, Value};
use crate::history::{EventKind, RunStep, TxnOp};

/// A trace: always its hash, and optionally its lines.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Keeps the hash only.
    #[must_use]
    pub fn hashed() -> Self {
        Self::default()
    }

    /// Keeps the hash and the lines.
    #[must_use]
    pub fn told() -> Self {
        Self { hash: 0, lines: Some(Vec::new()) }
    }

    /// Returns the hash, which is equal for equal runs.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the lines, or nothing if they were not kept.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }

    pub(crate) fn step(&mut self, at_us: u64, number: u64, tag: &[u64; 3]) {
        let mut bytes = [0; 40];
        let words = [at_us, number].into_iter().chain(*tag);
        for (into, word) in bytes.chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        self.hash = xxh3_64_with_seed(&bytes, self.hash);
    }

    pub(crate) fn note(&mut self, at_us: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>11.3} ms  {}", at_us as f64 / 1_000.0, line()));
        }
    }

    pub(crate) fn event(&mut self, at_us: u64, event: &EventKind) {
        self.note(at_us, || told(event));
    }
}

fn told(event: &EventKind) -> String {
    match event {
        EventKind::Invoke { client, call, what, .. } => format!("c{client} call {call:x}: {what:?}"),
        EventKind::Return { call, answer } => format!("c{} call {call:x}: {answer:?}", call >> 32),
        EventKind::Leadership { node, epoch, state, until, .. } => {
            let until = until.map_or(String::new(), |until| format!(", until {until} ms"));
            format!("{node}: {state:?} in epoch {epoch}{until}")
        }
        EventKind::Node { node, is } => format!("{node}: {is:?}"),
        EventKind::Run { worker, job, generation, attempt, step, .. } => {
            let step = match step {
                RunStep::Started => "starts".to_owned(),
                RunStep::Said(checkpoint) => format!("reports checkpoint {checkpoint}"),
                RunStep::Ended => "ends".to_owned(),
            };
            format!(
                "{}: the run of {job} {step}, attempt {attempt} of {generation}",
                short(&worker.to_string())
            )
        }
        EventKind::Txn { zxid, session, ops } => {
            let ops: Vec<_> = ops.iter().take(12).map(op).collect();
            format!("commit {zxid:#x} of session {}: {}", tail(*session), ops.join("; "))
        }
        EventKind::Refused { zxid, session, why } => {
            format!("rejected {zxid:#x} of session {}: {}", tail(*session), abbreviated(why))
        }
        EventKind::LeaderWrites { node, epoch } => format!("{node}: writes as the leader in epoch {epoch}"),
        EventKind::Link { node, up, .. } => {
            format!("{node}: the session is {}", if *up { "connected" } else { "cut off" })
        }
        EventKind::Evicted { session } => format!("session {} is expired before its timeout", tail(*session)),
        EventKind::Healed => "healed".to_owned(),
    }
}

fn op(op: &TxnOp) -> String {
    match op {
        TxnOp::Check { path, version } => format!("check {} at {version}", abbreviated(path)),
        TxnOp::Create { path, data, .. } => format!("+ {}{}", abbreviated(path), value(path, &data.0)),
        TxnOp::Set { path, data, version } => {
            format!("set {} to {version}{}", abbreviated(path), value(path, &data.0))
        }
        TxnOp::Delete { path } => format!("- {}", abbreviated(path)),
        TxnOp::CloseSession => "close the session".to_owned(),
    }
}

/// Formats the fields of a stored value that help to read a trace.
fn value(path: &str, data: &[u8]) -> String {
    let spot = Spot::of(path);
    match &*Value::decode(&spot, data) {
        Value::Record(record) => {
            let (n, failures, losses) = (record.attempts, record.failures, record.losses);
            let last = record.last.map_or(String::new(), |last| format!(", last {:?}", last.how));
            let state = if record.is_terminal() { "terminal" } else { "open" };
            format!(" [{state}, attempts {n}, failures {failures}, losses {losses}{last}]")
        }
        Value::Assignment(it) => {
            format!(" [attempt {}{}]", it.attempt, if it.cancel { ", cancel" } else { "" })
        }
        Value::Epoch(claim) => format!(" [by {}]", claim.node),
        Value::Worker(info) => {
            format!(" [of {}{}]", info.node, if info.draining { ", draining" } else { "" })
        }
        Value::Schedule(schedule) => {
            let paused = if schedule.paused { ", paused" } else { "" };
            format!(" [up to {}, {} ticks{paused}]", schedule.cursor.0, schedule.ticked)
        }
        Value::Retention(it) => format!(" [kept for {:?}]", it.succeeded),
        Value::Group(group) => {
            let closed = if group.closed { ", closed" } else { "" };
            let stopped = group.stopped.map_or(String::new(), |why| format!(", stopped by {why:?}"));
            format!(" [{:?}, total {:?}{closed}{stopped}]", group.stage, group.total)
        }
        Value::Entry(_) | Value::Turn(_) | Value::Unreadable(_) | Value::Opaque => String::new(),
    }
}

/// Shortens worker ids to eight digits.
fn abbreviated(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split('/') {
        words.push(if word.len() >= 36 { format!("{}{}", &word[..8], &word[36..]) } else { word.to_owned() });
    }
    let text = words.join("/");
    match path::parse(&text) {
        Place::Ready(_)
        | Place::ReadyClass(_)
        | Place::ReadySlot(..)
        | Place::DelayedEntry(..)
        | Place::Worker(_)
        | Place::Inbox(_)
        | Place::Assignment(..)
        | Place::Turn(..)
        | Place::Schedule(_)
        | Place::Group(_)
        | Place::SegmentChunk(..)
        | Place::Other => text,
    }
}

fn short(worker: &str) -> &str {
    &worker[..8]
}

fn tail(session: i64) -> String {
    format!("…{:04x}", session & 0xffff)
}
