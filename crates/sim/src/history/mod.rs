//! Recorded histories, and the checker that decides whether one keeps the invariants of `docs/invariants.md`.
//!
//! A history is a list of [`Event`]s on one clock: what clients asked and were told, what nodes said of themselves, which
//! runs handlers began and ended, and the transactions that ZooKeeper committed or refused. The transactions are the
//! *truth*: they are replayed into a copy of the namespace ([`truth`]), and everything else is held against it.
//!
//! ```text
//!   Event ──▶ Checker ─┬─ truth: replays transactions ─▶ what changed, decoded by core
//!                      └─ rules: one predicate per invariant, all in one table ─▶ Violation
//! ```
//!
//! The simulator records its histories as it goes and checks after every step. A recorder of a real cluster writes JSON
//! lines ([`Event::to_line`]), merges those of all processes by time and feeds them in. It puts an effect after its
//! cause: among events of one time, transactions first.
//!
//! To add an invariant: one file under `rules` and one line in its table.

mod checker;
mod digest;
mod event;
mod rules;
pub mod truth;

pub use checker::{Bounds, Checker, Violation};
pub use digest::Digest;
pub use event::{
    Answer, Bytes, Call, Event, EventKind, JobSight, Leading, Life, LineError, RunStep, Seen, TxnOp,
};
pub use rules::{RULES, Rule};
