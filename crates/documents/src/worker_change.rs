//! A change of a worker.

use bellwether::client::WorkerSettings;
use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::text::{KindText, TagText, Text};

/// A change of a worker. Values that are not given do not change.
#[derive(Debug, Clone, Args, Deserialize, ToSchema)]
#[group(required = true, multiple = true)]
#[serde(deny_unknown_fields)]
pub struct WorkerChange {
    /// Number of jobs that run at the same time, 0 to 4096; 0 takes no jobs.
    #[arg(long, value_name = "N")]
    #[schema(maximum = 4096)]
    slots: Option<u32>,
    /// Tags instead of the present ones; an empty list removes all.
    #[arg(long, value_name = "TAG,…", value_parser = tags)]
    #[schema(value_type = Option<Vec<TagText>>, max_items = 32)]
    tags: Option<Tags>,
    /// Kinds of which the worker starts no further jobs.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    #[serde(default)]
    pause_kinds: Vec<KindText>,
    /// Kinds of which the worker starts jobs again.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    #[serde(default)]
    resume_kinds: Vec<KindText>,
    /// Whether to return to the configuration of the node first.
    #[arg(long)]
    #[serde(default)]
    reset: bool,
}

// Hides the `Vec` from clap's derive, so that an empty value is an empty list.
type Tags = Vec<TagText>;

fn tags(text: &str) -> Result<Tags, String> {
    text.split(',').filter(|_| !text.is_empty()).map(str::parse).collect()
}

impl WorkerChange {
    /// Returns the changed settings.
    pub fn apply(&self, present: WorkerSettings) -> WorkerSettings {
        let mut settings = if self.reset { WorkerSettings::default() } else { present };
        settings.slots = self.slots.or(settings.slots);
        settings.tags =
            self.tags.clone().map(|tags| tags.into_iter().map(|Text(tag)| tag).collect()).or(settings.tags);
        settings.paused_kinds.retain(|kind| !self.resume_kinds.iter().any(|Text(resumed)| resumed == kind));
        settings.paused_kinds.extend(self.pause_kinds.iter().map(|Text(kind)| kind.clone()));
        settings
    }
}
