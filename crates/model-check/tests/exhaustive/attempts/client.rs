//! A client that submits the job again and opens it if it is terminal, like a round of `src/client/submit`.
//!
//! `identity` decides about an existing record. After a lost reply the client re-reads the record.

use bellwether_core::job::JobRecord;
use bellwether_core::job::identity::{self, Comparison, IfExists};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::{self, Op};

use super::stage::{self, job};
use crate::zookeeper::ZooKeeper;

/// The state of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    /// To be made, for the first time or again.
    Not,
    /// The request is in flight.
    Sent,
    /// The reply was lost.
    Unknown,
    /// The submission was accepted.
    Accepted,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    ours: JobRecord,
    /// The version of the terminal record that the submission replaces.
    reopens: Option<i32>,
    pub(crate) call: Call,
}

impl Client {
    pub(crate) fn new(token: u128) -> Self {
        Self { ours: stage::record(token), reopens: None, call: Call::Not }
    }

    pub(crate) fn is_calling(&self) -> bool {
        matches!(self.call, Call::Sent | Call::Unknown)
    }

    /// Returns the request in flight.
    pub(crate) fn ops(&self) -> Vec<Op> {
        match self.reopens {
            Some(version) => txn::reopen(&job(), version, &self.ours, 0),
            None => txn::submit(&job(), &self.ours, 0),
        }
    }

    pub(crate) fn answered(&mut self, zk: &ZooKeeper, outcome: &Outcome<()>) {
        match outcome {
            Outcome::Applied(()) => self.call = Call::Accepted,
            Outcome::Rejected(_) => self.look(zk),
            Outcome::Unknown => self.call = Call::Unknown,
        }
    }

    /// Reads the record and decides what to do next.
    pub(crate) fn look(&mut self, zk: &ZooKeeper) {
        self.call = Call::Sent;
        let Some((there, version)) = zk.value::<JobRecord>(&path::record(&job())) else {
            (self.ours, self.reopens) = (identity::as_first(self.ours.clone()), None);
            return;
        };
        match identity::compare(&there, &self.ours, IfExists::Again) {
            Comparison::Accepted(_) => self.call = Call::Accepted,
            Comparison::Ended => {
                (self.ours, self.reopens) =
                    (identity::reopened(self.ours.clone(), there, None), Some(version));
            }
            Comparison::Conflict => unreachable!("the submission is of the same job"),
        }
    }
}
