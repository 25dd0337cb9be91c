//! The state machines of the actors. A machine's module has the name of its actor, and its type has the name of its
//! module: [`job_watcher::JobWatcher`] decides for the actor `JobWatcher`. An actor with several machines has a module for
//! each. The type of [`worker::wing`] has its role's name before it, [`worker::wing::WorkerWing`], as its actor has.
//!
//! A machine takes events and pushes effects; it holds no clock, no randomness and no connection. What an
//! effect led to comes back as an event, with a ticket where answers may overtake each other, so that a reply
//! to a question that is no longer asked is recognised and dropped.
//!
//! One thing is random: the keys of the hash maps by job (`by_job`), which nobody shall know. No event's effects depend on
//! them.

pub mod assigner;
mod by_job;
pub mod election;
pub mod expirer;
pub mod group_joiner;
pub mod janitor;
pub mod job_watcher;
pub mod lease_watcher;
pub mod promoter;
pub mod schedule_keeper;
pub mod worker;
pub mod worker_registry;
