//! What a submission does if its id exists, as an option of the command line and in JSON.

use bellwether::client::IfExists;
use clap::ValueEnum;
use serde::Deserialize;
use utoipa::ToSchema;

/// What to do if a job with this id exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[schema(as = IfExists)]
pub enum IfExistsName {
    /// The same job if kind and payload are the same, otherwise a conflict.
    #[default]
    Same,
    /// The submission is accepted and nothing is done, whatever the existing job is.
    Ignore,
    /// As `same`, but a job that has ended is opened again. Over HTTP that needs the role `operate`.
    Again,
}

impl From<IfExistsName> for IfExists {
    fn from(name: IfExistsName) -> Self {
        match name {
            IfExistsName::Same => Self::Same,
            IfExistsName::Ignore => Self::Ignore,
            IfExistsName::Again => Self::Again,
        }
    }
}
