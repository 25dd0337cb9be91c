//! The end of a group that waits for a client that is gone.

use bellwether_core::change::ChangeKind;
use bellwether_core::group::{GroupError, GroupRecord, Stop};
use bellwether_core::name::GroupId;
use bellwether_core::{path, txn};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{GroupView, TRIES, decode};
use crate::client::Client;
use crate::client::error::{Error, Subject};

impl Client {
    /// Abandons a group: it accepts no more members, and is done without a join when its members have ended. The members
    /// are ordinary jobs and run on. The leader does the same with a group that waits for its client for one to two days
    /// without a new member. Abandoning a group again changes nothing.
    ///
    /// # Errors
    /// [`Error::Group`]: the group does not exist, is past its members, was stopped for another reason, or belongs to a job.
    /// Then nothing was written.
    ///
    /// # Cancellation
    /// The group may be abandoned or not.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back.
    pub fn abandon_group<'a>(&'a self, id: &'a GroupId) -> BoxFuture<'a, Result<GroupView, Error>> {
        async move {
            let by = self.by();
            for _ in 0..TRIES {
                let absent = || GroupError::NotFound { group: id.clone() };
                let node = self.0.session.read(by, |zk| zk.get(path::group(id))).await?.ok_or_else(absent)?;
                let record = decode(id, &node)?;
                if record.stopped == Some(Stop::Abandoned) {
                    return Ok(self.get_group(id).await?.ok_or_else(absent)?);
                }
                if let Some(parent) = &record.parent {
                    return Err(GroupError::SubJobs { group: id.clone(), parent: parent.job.clone() }.into());
                }
                if let Some(reason) = record.refuses_new() {
                    return Err(GroupError::Closed { group: id.clone(), reason }.into());
                }
                let abandoned =
                    GroupRecord { changed: self.change(ChangeKind::Abandoned), ..record.abandoned() };
                // Whatever the outcome: the next read shows it.
                self.0.session.commit(by, txn::set_group(id, node.version, &abandoned)).await?;
            }
            Err(Error::Contended { subject: Subject::Group(id.clone()), tries: TRIES })
        }
        .boxed()
    }
}
