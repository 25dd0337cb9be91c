//! The retention of records: one setting of the namespace, which the leader reads every few seconds.

use std::time::Duration;

use bellwether_core::duration::DurationText;
use bellwether_core::path;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::retention::{Retention, RetentionError};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::Client;
use super::error::{Error, Subject};
use super::setting::Setting;

/// A change of the retention. Values that are not given do not change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "describe",
    derive(clap::Args, utoipa::ToSchema),
    group(required = true, multiple = true)
)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct RetentionChange {
    /// Retention of succeeded jobs, 1m to 3650d.
    #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION"))]
    succeeded: Option<DurationText>,
    /// Retention of cancelled jobs, 1m to 3650d.
    #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION"))]
    cancelled: Option<DurationText>,
    /// Retention of dead jobs, 1m to 3650d.
    #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION"))]
    dead: Option<DurationText>,
    /// Maximum number of records of ended jobs, at most 20,480,000; above it the oldest are removed first.
    #[cfg_attr(feature = "describe", arg(long, value_name = "N"), schema(maximum = 20_480_000))]
    records: Option<u32>,
}

impl RetentionChange {
    /// Returns a change of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long records of succeeded jobs are kept: 1 min to 3650 d.
    pub fn succeeded(self, time: Duration) -> Self {
        Self { succeeded: Some(time.into()), ..self }
    }

    /// Sets how long records of cancelled jobs are kept: 1 min to 3650 d.
    pub fn cancelled(self, time: Duration) -> Self {
        Self { cancelled: Some(time.into()), ..self }
    }

    /// Sets how long records of dead jobs are kept: 1 min to 3650 d.
    pub fn dead(self, time: Duration) -> Self {
        Self { dead: Some(time.into()), ..self }
    }

    /// Sets how many records of ended jobs are kept, whatever their age: at most 20,480,000.
    pub fn records(self, records: u32) -> Self {
        Self { records: Some(records), ..self }
    }

    /// Returns the changed retention.
    pub(crate) fn of(self, there: Retention) -> Retention {
        there
            .succeeded(self.succeeded.map_or(there.succeeded, Duration::from))
            .cancelled(self.cancelled.map_or(there.cancelled, Duration::from))
            .dead(self.dead.map_or(there.dead, Duration::from))
            .records(self.records.unwrap_or(there.records))
    }
}

/// The retention was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeRetentionError {
    /// A value is out of bounds. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] RetentionError),
    /// The setting could not be written, or the outcome is unknown. Changing it again is safe.
    #[error(transparent)]
    Client(#[from] Error),
}

impl ChangeRetentionError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Invalid,
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(ChangeRetentionError);

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

    /// Changes how long records of ended jobs are kept, for the whole namespace, and returns the new setting. The leader applies it
    /// within seconds, also to jobs that have already ended. If there is no readable setting, the change applies to the default.
    ///
    /// A lost reply is resolved by reading and applying the change again. No change of another client is lost.
    ///
    /// # Errors
    /// [`ChangeRetentionError`]; a setting that a newer build wrote is not overwritten.
    pub fn change_retention<'a>(
        &'a self,
        change: &'a RetentionChange,
    ) -> BoxFuture<'a, Result<Setting<Retention>, ChangeRetentionError>> {
        self.update_setting((path::RETENTION, Subject::Retention), |there| {
            let wanted = change.of(there.unwrap_or_default());
            wanted.check()?;
            Ok(wanted)
        })
        .boxed()
    }
}
