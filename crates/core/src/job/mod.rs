//! Jobs: the submission, the history, and the next step.
//!
//! ```text
//!              submit                 assign
//!   (client) ─────────▶ queued ────────────────▶ assigned ──▶ succeeded
//!                        ▲  ▲                      │  │  └───▶ cancelled
//!                promote │  │                      │  └──────▶ dead
//!                        │  └──── handed back ─────┤
//!                      delayed ◀─ failed, or lost ─┘
//! ```
//!
//! The record holds the durable data. *Where* an open job is (queued, delayed, assigned) is defined by the one place
//! that holds its entry, and every move between places is one transaction ([`crate::txn`]). An assignment does not
//! write the record, and an attempt reports into its assignment while it runs. So the zkVersion of the record is the
//! fencing token of the attempt from the moment that the previous attempt was closed.

mod attempt;
mod dead_letter;
mod entry;
mod excuse;
mod history;
pub mod identity;
mod isolation;
mod membership;
mod payload;
mod placement;
mod policy;
mod priority;
mod progress;
mod record;

pub use attempt::{Attempt, AttemptEnd, AttemptOutcome, ClosedAttempt, Ending};
pub use dead_letter::{dead_letter, dead_letter_kind, has_own_payload, is_dead_letter};
pub use entry::{Assignment, AttemptKey, Delay, QueueEntry, Turn, TurnIndex};
pub use history::PastAttempt;
pub use isolation::Isolation;
pub use membership::{Membership, Role};
pub use payload::{ContentType, ContentTypeError, NestingError, Payload, PayloadError};
pub use placement::Placement;
pub use policy::{Policy, PolicyError};
pub use priority::{Priority, PriorityError};
pub use progress::{Progress, ProgressError};
pub use record::{JobRecord, JobState, Next, Verdict};
