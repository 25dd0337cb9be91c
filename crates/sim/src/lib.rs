//! Proof of Bellwether's invariants.
//!
//! * [`history`]: what is recorded of a cluster, simulated or real, and the checker of its invariants.
#![forbid(unsafe_code)]

pub mod history;
