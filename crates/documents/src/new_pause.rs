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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn the_described_bound_of_a_note_is_that_of_the_library() {
        let schema = json!(NewPause::schema());
        let text = schema["properties"]["note"]["description"].as_str().unwrap();
        assert!(text.contains(&format!("at most {} bytes", bellwether::client::MAX_NOTE_BYTES)), "{text}");
    }
}
