//! The placement strategy: one setting of the namespace, which a running leader follows.
//!
//! **What if the reply is lost?** The setting is read: if it names the strategy, the call is done, whichever client wrote
//! it. Else it is written again, at the version that was read.

use bellwether_core::name::StrategyName;
use bellwether_core::path;
use bellwether_core::placement::PlacementSetting;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire::{self, WireError};

use super::Client;
use super::error::{Error, Subject};
use super::session::Written;

/// Limit of attempts for a setting that other clients change concurrently.
const TRIES: u32 = 16;

impl Client {
    /// Returns the placement strategy that is set; `None` if none is set. Then leaders use the default,
    /// [`BuiltInStrategy::LeastLoaded`](crate::placement::BuiltInStrategy::LeastLoaded).
    ///
    /// # Errors
    /// [`Error::Settings`] if the setting cannot be read (then leaders use the default, too), or no answer within the
    /// client's deadline.
    pub async fn placement_strategy(&self) -> Result<Option<StrategyName>, Error> {
        let node = self.0.session.read(self.by(), |zk| zk.get(path::PLACEMENT.to_owned())).await?;
        let Some(node) = node else { return Ok(None) };
        let setting = wire::decode::<PlacementSetting>(&node.data).map_err(unreadable)?;
        Ok(Some(setting.strategy))
    }

    /// Sets the placement strategy of the namespace. The leader follows immediately, without a restart; assignments that it has
    /// made stand. Repeating the call is safe.
    ///
    /// No node checks the name now: a leader that has no strategy of this name uses the default and logs a warning.
    ///
    /// # Errors
    /// The setting could not be written, or the outcome is unknown. A setting that a newer build wrote is not overwritten.
    pub async fn set_placement_strategy(&self, strategy: StrategyName) -> Result<(), Error> {
        let by = self.by();
        let wanted = PlacementSetting { strategy };
        for _ in 0..TRIES {
            let node = self.0.session.read(by, |zk| zk.get(path::PLACEMENT.to_owned())).await?;
            match node.as_ref().map(|node| wire::decode::<PlacementSetting>(&node.data)) {
                Some(Ok(there)) if there == wanted => return Ok(()),
                Some(Err(error)) if error.is_newer() => return Err(unreadable(error)),
                Some(Ok(_) | Err(_)) | None => {}
            }
            let (path, data) = (path::PLACEMENT.to_owned(), wire::encode(&wanted));
            let op = match node {
                Some(node) => Op::Set { path, data, version: node.version },
                None => Op::Create { path, data, lifetime: Lifetime::Persistent },
            };
            match self.0.session.commit(by, vec![op]).await? {
                Written::Applied => return Ok(()),
                Written::Rejected | Written::Unknown => {}
            }
        }
        Err(Error::Contended { subject: Subject::Placement, tries: TRIES })
    }
}

fn unreadable(reason: WireError) -> Error {
    Error::Settings { path: path::PLACEMENT, reason }
}
