//! Groups, their joins and sub-jobs, on clusters whose workers and leaders die.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod finished;
mod lanes;
mod many;
mod nested;
mod recon;
mod rules;
mod several;
mod stage;
mod stopped;
mod trace;
mod typed;
