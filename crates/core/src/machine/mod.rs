//! State machines of the actors. The module of a machine is named after its actor, and its type after the module:
//! [`job_watcher::JobWatcher`] is the machine of the actor `JobWatcher`. An actor with several machines has a module
//! for each. The type of [`worker::wing`] is prefixed with its role, [`worker::wing::WorkerWing`], like its actor.
//!
//! A machine takes events and emits effects. It has no clock, no randomness and no connection. The result of an effect
//! returns as an event, with a ticket where answers may overtake each other, so that an answer to an abandoned request
//! is recognised and dropped.
//!
//! The only random values are the secret keys of the hash maps by job (`by_job`). The effects of an event do not depend
//! on them.

pub mod assigner;
mod by_job;
pub mod election;
pub mod expirer;
pub mod group_joiner;
pub mod inbox_segment;
pub mod janitor;
pub mod job_watcher;
pub mod lease_watcher;
pub mod promoter;
pub mod schedule_keeper;
pub mod worker;
pub mod worker_registry;
