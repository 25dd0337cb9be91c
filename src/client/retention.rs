//! The retention of records: one setting of the namespace, which the leader reads every few seconds.

use bellwether_core::path;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::retention::{Retention, RetentionError};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::{Error, Subject};
use super::setting::Setting;

/// The retention was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetRetentionError {
    /// A value is out of bounds. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] RetentionError),
    /// The setting could not be written, or the outcome is unknown. Setting it again is safe.
    #[error(transparent)]
    Client(#[from] Error),
}

impl SetRetentionError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Invalid,
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(SetRetentionError);

impl Client {
    /// Returns how long records of ended jobs are kept. `None` if an operator deleted the setting: then no record is
    /// removed.
    ///
    /// # Errors
    /// [`Error::Settings`] if the setting cannot be read (then no record is removed either), or no answer within the
    /// client's deadline.
    pub fn retention(&self) -> BoxFuture<'_, Result<Option<Setting<Retention>>, Error>> {
        self.setting(path::RETENTION).boxed()
    }

    /// Sets how long records of ended jobs are kept, for the whole namespace. The leader applies it within seconds,
    /// also to jobs that have already ended.
    ///
    /// # Errors
    /// The errors of [`Client::update_retention`].
    pub fn set_retention(&self, retention: Retention) -> BoxFuture<'_, Result<(), SetRetentionError>> {
        async move { self.update_retention(|_| retention).await.map(|_| ()) }.boxed()
    }

    /// Applies `change` to the current setting, or to the default if there is no readable one, and returns the new
    /// setting. `change` is called again if another client writes the setting concurrently, so no update is lost.
    ///
    /// A lost reply is resolved by reading and applying `change` again. So `change` must be idempotent: set absolute
    /// values, not relative ones.
    ///
    /// # Errors
    /// [`SetRetentionError`]; a setting that a newer build wrote is not overwritten.
    pub async fn update_retention(
        &self,
        change: impl Fn(Retention) -> Retention,
    ) -> Result<Setting<Retention>, SetRetentionError> {
        self.update_setting((path::RETENTION, Subject::Retention), |there| {
            let wanted = change(there.unwrap_or_default());
            wanted.check()?;
            Ok(wanted)
        })
        .await
    }
}
