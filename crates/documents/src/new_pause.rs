//! A pause of a kind.

use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

/// A pause of a kind.
#[derive(Debug, Clone, Default, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPause {
    /// Reason for the pause, shown to other operators; at most 256 bytes. If the kind is already paused, the first note is kept.
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}
