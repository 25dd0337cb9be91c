//! Recorded histories, and the checker that decides whether a history keeps the invariants of `docs/invariants.md`.
//!
//! A history is a list of [`Event`]s on one clock: the calls of clients and their answers, the states that nodes
//! report, the start and end of handler runs, and the transactions that ZooKeeper committed or rejected. The
//! transactions are the *truth*: the checker replays them into a copy of the namespace ([`truth`]) and compares
//! everything else with it.
//!
//! ```text
//!   Event ──▶ Checker ─┬─ truth: replays transactions ─▶ what changed, decoded by core
//!                      └─ rules: one predicate per invariant, all in one table ─▶ Violation
//! ```
//!
//! The simulator records its history while it runs and checks it after every step. A recorder of a real cluster writes
//! JSON lines ([`Event::to_line`]), merges those of all processes by time and passes them to the checker. It must put
//! an effect after its cause: among events of the same time, transactions come first.
//!
//! To add an invariant, add one file under `rules` and one line to its table.

mod checker;
mod digest;
mod event;
mod rules;
pub mod segments;
pub mod truth;

pub use checker::{Bounds, Checker, Violation};
pub use digest::Digest;
pub use event::{
    Answer, Bytes, Call, Event, EventKind, JobSight, Leading, Life, LineError, RunStep, Seen, TxnOp,
};
pub use rules::{RULES, Rule};
