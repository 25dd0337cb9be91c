//! Every state of small clusters, reached through the machines that production runs.
//!
//! # Why
//!
//! The property tests of `bellwether-core` and the simulator draw what happens at random, and may never draw the one
//! order that breaks an invariant. Here nothing is drawn: within small bounds, stateright takes every step in every
//! order. A model is machines, a ZooKeeper that fits into a state ([`zookeeper`]), and the adversities between them as
//! steps; it holds no decision that a machine could make.
//!
//! | model | machines | invariants |
//! | --- | --- | --- |
//! | [`election`] | campaign, leadership, claim | S3, S4, S5, L5 |
//! | [`attempts`] | assigner, membership, recovery, leases, expirer, janitor, inbox, executor, beats, reporter, record, identity | S1, S2, S3, S5, S9, S10, S11, S12, S14, S16, L3 |
//! | [`lanes`] | assigner with its gate, record | S6, S10 |
//! | [`groups`] | joiner, group, record, identity | S2, S3, S7, S10, L3 |
//!
//! Ticks (S8) are explored in the core, in `machine/schedule_keeper/model.rs`.
//!
//! # What is and what is not explored
//!
//! * How often an adversity happens is bounded; when it happens, and what else happens meanwhile, is not. `README.md`
//!   has the bounds, the numbers of states, and which invariant breaks when a fence is taken out of the product.
//! * A lost write may be applied at any later time, also after its session ended: more than ZooKeeper would do.
//! * Clients (but for a submission again, a cancel, a retry and a purge), the promoter, the backlog of waiting jobs,
//!   drains that are given up and re-registration are the simulator's.
//! * Retries and removals of a group's members are drawn at random, by `machine/group_joiner/model.rs` of the core and the simulator.
//! * A model must always be able to go on and must reach its *sights*, states without which it would prove nothing.
#![allow(clippy::wildcard_enum_match_arm, reason = "a model picks what it looks for")]

mod attempts;
mod election;
mod explore;
mod groups;
mod kit;
mod lanes;
mod part;
mod zookeeper;
