//! A client that submits the job again, to have it opened if it is over: as a round of `src/client/submit`.
//!
//! What to do about a record that is there, `identity` decides. A reply that is lost is made up for by a look.

use bellwether_core::job::JobRecord;
use bellwether_core::job::identity::{self, IfExists, Sight};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::{self, Op};

use super::stage::{self, job};
use crate::zookeeper::ZooKeeper;

/// How far its call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    /// Not made (again).
    Not,
    /// On its way.
    Sent,
    /// The reply was lost.
    Unknown,
    /// It was accepted.
    Accepted,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    ours: JobRecord,
    /// The version of the record that is over and that ours replaces.
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

    /// What is on its way.
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

    /// What is there decides.
    pub(crate) fn look(&mut self, zk: &ZooKeeper) {
        self.call = Call::Sent;
        let Some((there, version)) = zk.value::<JobRecord>(&path::record(&job())) else {
            (self.ours, self.reopens) = (identity::anew(self.ours.clone()), None);
            return;
        };
        match identity::look(&there, &self.ours, IfExists::Again) {
            Sight::Accepted(_) => self.call = Call::Accepted,
            Sight::Over => {
                (self.ours, self.reopens) = (identity::again(self.ours.clone(), there), Some(version));
            }
            Sight::Conflict => unreachable!("it is the same job"),
        }
    }
}
