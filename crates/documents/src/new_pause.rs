//! A pause of a kind.

use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

/// A pause of a kind.
#[derive(Debug, Clone, Default, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPause {
    /// Why the kind is paused, for other people, in at most 256 bytes.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    #[schema(max_length = 256)]
    pub note: Option<String>,
}
