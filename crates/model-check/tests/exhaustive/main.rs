//! Explores every state of small clusters with the state machines of the product.
//!
//! # Why
//!
//! The property tests of `bellwether-core` and the simulator draw events at random, and may never draw the one order
//! that breaks an invariant. Here nothing is random: within small bounds, stateright takes every step in every order. A
//! model consists of machines, a ZooKeeper that fits into a state ([`zookeeper`]), and the adversities as steps. It
//! makes no decision that belongs to a machine.
//!
//! | model | machines | invariants |
//! | --- | --- | --- |
//! | [`election`] | campaign, leadership, claim | S3, S4, S5, L5 |
//! | [`attempts`] | assigner, membership, recovery, leases, expirer, janitor | S1, S2, S3, S5, S9, S10 |
//! | | inbox, executor, beats, reporter, record, identity | S11, S12, S14, S16, S18, L3, L9 |
//! | [`lanes`] | assigner with its gate, record | S6, S10 |
//! | [`groups`] | joiner, group, record, identity | S2, S3, S7, S10, L3 |
//! | [`segments`] | none: the transactions, compared with those of single jobs | S22 (S1, S2), S3 |
//!
//! Ticks (S8) are explored in the core, in `machine/schedule_keeper/model.rs`.
//!
//! # What is explored
//!
//! * The number of times that an adversity happens is bounded; its time and the steps between are not. `README.md`
//!   lists the bounds, the numbers of states, and the invariant that breaks when a fence is removed from the product.
//! * A lost write may be applied at any later time, even after its session has ended. ZooKeeper itself would not do
//!   that.
//! * The simulator covers clients (except for a resubmission, a cancel, a retry and a purge), the promoter, the backlog
//!   of waiting jobs, drains that are given up, and re-registration.
//! * Retries and removals of a group's members are tested at random, in `machine/group_joiner/model.rs` of the core and
//!   in the simulator.
//! * A model must always have a next step and must reach its *milestones*: states without which the exploration would prove
//!   nothing.
#![allow(clippy::wildcard_enum_match_arm, reason = "a model matches only the variants that it needs")]

/// An exploration allocates and frees the parts of millions of states.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod attempts;
mod election;
mod explore;
mod fixture;
mod groups;
mod lanes;
mod segments;
mod shared_part;
mod zookeeper;
