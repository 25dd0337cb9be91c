//! How long records are kept: one setting of the namespace, which the leader reads every few seconds.

use bellwether_core::path;
use bellwether_core::retention::{Retention, RetentionError};
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire::{self, WireError};

use super::Client;
use super::error::Error;
use super::link::Written;

/// How often a setting that others change at the same time is tried.
const TRIES: u32 = 16;

/// Why retention was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetRetentionError {
    /// A value is out of its bounds. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] RetentionError),
    /// It could not be set, or nobody said whether it was: then setting it again is safe.
    #[error(transparent)]
    Client(#[from] Error),
}

impl Client {
    /// How long records of jobs that are over are kept. `None` when an operator deleted the setting: then none is removed.
    ///
    /// # Errors
    /// [`Error::Settings`] when it cannot be read, and then no record is removed either; or no answer within the client's
    /// deadline.
    pub async fn retention(&self) -> Result<Option<Retention>, Error> {
        let node = self.0.link.read(self.by(), |zk| zk.get(path::RETENTION.to_owned())).await?;
        let Some(node) = node else { return Ok(None) };
        wire::decode(&node.data).map(Some).map_err(unreadable)
    }

    /// Sets how long records of jobs that are over are kept, for the whole namespace. The leader follows within seconds,
    /// also for jobs that are over already.
    ///
    /// # Errors
    /// As [`Client::update_retention`].
    pub async fn set_retention(&self, retention: Retention) -> Result<(), SetRetentionError> {
        self.update_retention(|_| retention).await.map(|_| ())
    }

    /// Sets what `change` makes of the present setting, or of the default if there is none that can be read. Called again
    /// when somebody else sets it at the same time, so that no change of another's is lost. Gives what was set.
    ///
    /// A reply that was lost is resolved by reading: what `change` makes of it again is set, so let it say what shall be, not
    /// by how much.
    ///
    /// # Errors
    /// [`SetRetentionError`]; a setting of a newer build is left alone.
    pub async fn update_retention(
        &self,
        change: impl Fn(Retention) -> Retention,
    ) -> Result<Retention, SetRetentionError> {
        let by = self.by();
        for _ in 0..TRIES {
            let node = self.0.link.read(by, |zk| zk.get(path::RETENTION.to_owned())).await?;
            let there = node.as_ref().map(|node| wire::decode::<Retention>(&node.data));
            let there = match there {
                Some(Ok(there)) => Some(there),
                Some(Err(error)) if error.is_newer() => return Err(unreadable(error).into()),
                Some(Err(_)) | None => None,
            };
            let wanted = change(there.unwrap_or_default());
            wanted.check()?;
            if there == Some(wanted) {
                return Ok(wanted);
            }
            let (path, data) = (path::RETENTION.to_owned(), wire::encode(&wanted));
            let op = match node {
                Some(node) => Op::Set { path, data, version: node.version },
                None => Op::Create { path, data, lifetime: Lifetime::Persistent },
            };
            match self.0.link.commit(by, vec![op]).await? {
                Written::Applied => return Ok(wanted),
                Written::Lost | Written::Unknown => {}
            }
        }
        Err(Error::Busy { what: "the retention", tries: TRIES }.into())
    }
}

fn unreadable(reason: WireError) -> Error {
    Error::Settings { path: path::RETENTION, reason }
}
