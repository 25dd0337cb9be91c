//! The election on a real ZooKeeper.

mod faults;
mod handover;
mod operators;
mod stage;
