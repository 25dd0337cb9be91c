//! Groups, their joins and sub-jobs, on clusters whose workers and leaders die.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod crashes;
mod finished;
mod lanes;
mod large_group;
mod nested;
mod rules;
mod several;
mod stage;
mod stopped;
mod ticks;
mod trace;
mod typed;
