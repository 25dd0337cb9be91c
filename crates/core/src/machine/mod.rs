//! The state machines that actors feed.
//!
//! A machine is pure: events in, effects out, time and random numbers passed in with them. What an effect
//! led to comes back as an event, with a ticket where answers may overtake each other.

pub mod assigner;
pub mod backlog;
pub mod worker;
