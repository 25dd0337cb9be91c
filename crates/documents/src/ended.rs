//! How the jobs ended whose records a purge removes, as an option of the command line and in JSON.

use bellwether::client::Ended;
use clap::ValueEnum;
use serde::Deserialize;
use utoipa::ToSchema;

/// Final state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[schema(as = Ended)]
pub enum EndedName {
    /// The job succeeded.
    Succeeded,
    /// A client cancelled the job.
    Cancelled,
    /// The job failed or lost its workers too often.
    #[default]
    Dead,
}

impl From<EndedName> for Ended {
    fn from(name: EndedName) -> Self {
        match name {
            EndedName::Succeeded => Self::Succeeded,
            EndedName::Cancelled => Self::Cancelled,
            EndedName::Dead => Self::Dead,
        }
    }
}
