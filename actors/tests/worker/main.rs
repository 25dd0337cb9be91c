//! The worker wing against a real ZooKeeper. The tests are the leader: they submit and assign by hand.

mod faults;
mod life;
mod stage;
