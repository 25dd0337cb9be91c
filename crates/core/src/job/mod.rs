//! A job: what was submitted, what happened to it so far, and what happens next.
//!
//! ```text
//!              submit                 assign
//!   (client) ─────────▶ queued ────────────────▶ assigned ──▶ succeeded
//!                        ▲  ▲                      │  │  └───▶ cancelled
//!                promote │  │ worker lost, handed  │  └──────▶ dead
//!                        │  └──────── back ────────┤
//!                      delayed ◀────── failed ─────┘
//! ```
//!
//! The record holds what must survive; *where* an open job is (queued, delayed, assigned) is told by the one
//! place that holds its entry, and every move between places is one transaction ([`crate::txn`]). Assignment
//! does not touch the record, and what an attempt leaves while it runs stands in its assignment, so the record's zkVersion stays the fencing token of the attempt from the
//! moment that the previous attempt was closed.

mod attempt;
mod entry;
pub mod identity;
mod membership;
mod payload;
mod placement;
mod policy;
mod priority;
mod progress;
mod record;

pub use attempt::{Attempt, AttemptEnd, AttemptEndKind, Ending};
pub use entry::{Assignment, QueueEntry, Turn, TurnIndex};
pub use membership::{Membership, Role};
pub use payload::{ContentType, ContentTypeError, Payload, PayloadError};
pub use placement::Placement;
pub use policy::{Policy, PolicyError};
pub use priority::{Priority, PriorityError};
pub use progress::{Progress, ProgressError};
pub use record::{JobRecord, JobState, Next, Verdict};
