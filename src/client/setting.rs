//! Settings of the namespace: each is one znode, and the leader applies its changes.
//!
//! **What if the reply is lost?** The setting is read: if it has the wanted value, the call is done, whichever client wrote it.
//! Else it is written again, at the version that was read.

use bellwether_core::change::{ChangeKind, Noted};
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire::{self, Stored, WireError};

use super::Client;
use super::author::Changed;
use super::error::{Error, Subject};
use super::session::Written;

/// Limit of attempts for a setting that other clients change concurrently.
const TRIES: u32 = 16;

/// A setting of the namespace, and who changed it last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The last change; `None` if there was none, or if its client named no author.
    pub changed: Option<Changed>,
}

impl<T> Setting<T> {
    pub(super) fn of(noted: Noted<T>) -> Self {
        Self { value: noted.value, changed: noted.changed.map(Changed::of) }
    }
}

impl Client {
    /// Reads the setting at this path; `None` if an operator deleted it.
    pub(super) async fn setting<T>(&self, path: &'static str) -> Result<Option<Setting<T>>, Error>
    where
        Noted<T>: Stored,
    {
        let node = self.0.session.read(self.by(), |zk| zk.get(path.to_owned())).await?;
        let Some(node) = node else { return Ok(None) };
        wire::decode::<Noted<T>>(&node.data).map(|noted| Some(Setting::of(noted))).map_err(unreadable(path))
    }

    /// Sets the value that `change` makes of the present one, or of `None` if there is no readable one. `change` is called again
    /// if another client writes the setting concurrently, and after a lost reply. A setting that a newer build wrote is not
    /// overwritten.
    pub(super) async fn update_setting<T, E>(
        &self,
        (path, subject): (&'static str, Subject),
        change: impl Fn(Option<T>) -> Result<T, E>,
    ) -> Result<Setting<T>, E>
    where
        T: PartialEq + Clone,
        Noted<T>: Stored,
        E: From<Error>,
    {
        let by = self.by();
        for _ in 0..TRIES {
            let node = self.0.session.read(by, |zk| zk.get(path.to_owned())).await?;
            let there = match node.as_ref().map(|node| wire::decode::<Noted<T>>(&node.data)) {
                Some(Ok(there)) => Some(there),
                Some(Err(error)) if error.is_newer() => return Err(unreadable(path)(error).into()),
                Some(Err(_)) | None => None,
            };
            let value = change(there.as_ref().map(|there| there.value.clone()))?;
            if let Some(there) = there.filter(|there| there.value == value) {
                return Ok(Setting::of(there));
            }
            let wanted = Noted { value, changed: self.change(ChangeKind::Set) };
            let (to, data) = (path.to_owned(), wire::encode(&wanted));
            let op = match node {
                Some(node) => Op::Set { path: to, data, version: node.version },
                None => Op::Create { path: to, data, lifetime: Lifetime::Persistent },
            };
            match self.0.session.commit(by, vec![op]).await? {
                Written::Applied => return Ok(Setting::of(wanted)),
                Written::Rejected | Written::Unknown => {}
            }
        }
        Err(Error::Contended { subject, tries: TRIES }.into())
    }
}

fn unreadable(path: &'static str) -> impl Fn(WireError) -> Error {
    move |reason| Error::Settings { path, reason }
}
