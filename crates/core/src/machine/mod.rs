//! The state machines.
