//! The known state of a group's record, and the operations that it adds to the submission of a member.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::group::{GroupError, GroupRecord};
use bellwether_core::name::{GroupId, Lane};
use bellwether_core::path;
use bellwether_core::txn::{self, Op};
use bellwether_zk::Node;

use super::decode;
use crate::client::error::Error;

/// The last known record of a group, with its version.
#[derive(Debug)]
pub(in crate::client) struct Known {
    pub(in crate::client) id: GroupId,
    record: Mutex<(GroupRecord, i32)>,
}

/// A submission's membership in a group.
#[derive(Debug, Clone)]
pub(in crate::client) struct Entrant {
    pub(in crate::client) known: Arc<Known>,
    pub(in crate::client) number: u32,
}

impl Known {
    pub(super) fn new(id: GroupId, record: GroupRecord, version: i32) -> Self {
        Self { id, record: Mutex::new((record, version)) }
    }

    pub(in crate::client) fn look(&self) -> (GroupRecord, i32) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Updates the known state from a read.
    ///
    /// # Errors
    /// [`GroupError::NotFound`] if the group was removed, [`Error::GroupUnreadable`] if its record cannot be read.
    pub(in crate::client) fn learn(&self, node: Option<&Node>) -> Result<(), Error> {
        let node = node.ok_or_else(|| GroupError::NotFound { group: self.id.clone() })?;
        let record = decode(&self.id, node)?;
        let mut known = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        // Another token means another group of the same name, created after this one was removed.
        if known.1 <= node.version || known.0.token != record.token {
            *known = (record, node.version);
        }
        Ok(())
    }

    /// Records the result of our own write at this version, unless a newer version was read in the meantime.
    pub(super) fn wrote(&self, version: i32, record: GroupRecord) {
        let mut known = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if known.1 == version {
            *known = (record, version + 1);
        }
    }
}

impl Entrant {
    /// Returns the operations that the group adds to the submission.
    ///
    /// # Errors
    /// Fails if the group does not accept a new member with this number and lane. The member may exist already.
    pub(in crate::client) fn ops(&self, lane: Option<&Lane>) -> Result<[Op; 2], GroupError> {
        let (record, version) = self.known.look();
        record.admits(&self.known.id, self.number, lane)?;
        Ok(txn::join_group(&self.known.id, version, self.number))
    }

    pub(in crate::client) fn chunk(&self) -> u32 {
        path::chunk(self.number)
    }
}
