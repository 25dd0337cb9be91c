//! The requests as arguments of [`clap`] and as schemas of [`utoipa`], for a program that offers them on its own command line and over
//! HTTP.
//!
//! With the feature `describe`, the types that a client sends implement `clap::Args` and `utoipa::ToSchema`; [`Filter`](crate::client::Filter)
//! and [`Rule`](crate::client::Rule) implement `utoipa::IntoParams` instead, because they are queries. Closed lists of values implement
//! `clap::ValueEnum`, and those in documents also `utoipa::ToSchema`. The feature makes clap 4 and utoipa 6 part of the public API.
//!
//! The arguments of [`Job`](crate::Job), [`Schedule`](crate::Schedule) and
//! [`JobTemplate`](crate::client::JobTemplate) have no payload, because a program decides where it comes from. It is null until the program
//! sets it:
//!
//! ```
//! use bellwether::Job;
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Submit {
//!     #[command(flatten)]
//!     job: Job,
//!     /// Payload as JSON.
//!     payload: String,
//! }
//!
//! let submit = Submit::parse_from(["submit", "sum", "--max-attempts", "2", "[1, 2]"]);
//! let job = submit.job.payload(submit.payload.into_bytes());
//! assert!(job.check().is_ok());
//! ```
//!
//! A typed job or group of another kind than its type is refused by its check. A schedule needs one of `--cron`, `--every` and `--at`,
//! which its check reports, too.

pub use bellwether_core::describe::Name;
/// Implements the schemas of closed lists of values, for the documents of the gateway.
#[doc(hidden)]
pub use bellwether_core::impl_values;

use crate::State;
use crate::client::{Added, Ended, GroupStage, ScheduleState, WaitReason};
use crate::schedule::Misfire;

impl_values! {
    Added, "What adding a schedule did.";
    Ended, "Final state of a job.";
    GroupStage, "Stage of a group.";
    Misfire, "What to do with ticks that were missed because there was no leader.";
    ScheduleState, "State of a schedule.";
    State, "State of a job.";
    WaitReason, "Why a job does not run now.";
}

#[cfg(test)]
mod tests;
