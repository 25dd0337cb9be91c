//! A change of a worker.

use std::str::FromStr;

use bellwether::client::WorkerSettings;
use bellwether::{Kind, NameError, Tag};
use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

/// A change of a worker. Values that are not given do not change.
#[derive(Debug, Clone, Args, Deserialize, ToSchema)]
#[group(required = true, multiple = true)]
#[serde(deny_unknown_fields)]
pub struct WorkerChange {
    /// Number of jobs that run at the same time, 0 to 4096; 0 takes no jobs.
    #[arg(long)]
    slots: Option<u32>,
    /// Tags instead of the present ones. On the command line they are separated by commas, and an empty value removes all.
    #[arg(long, value_name = "TAG,…")]
    #[schema(value_type = Option<Vec<String>>)]
    tags: Option<Tags>,
    /// Kinds of which the worker starts no further jobs. The option can be repeated.
    #[arg(long = "pause-kind", value_name = "KIND")]
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pause_kinds: Vec<Kind>,
    /// Kinds of which the worker starts jobs again. The option can be repeated.
    #[arg(long = "resume-kind", value_name = "KIND")]
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    resume_kinds: Vec<Kind>,
    /// Whether to return to the configuration of the node first.
    #[arg(long)]
    #[serde(default)]
    reset: bool,
}

/// Tags: an array in JSON, separated by commas on the command line.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
struct Tags(Vec<Tag>);

impl FromStr for Tags {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let names = text.split(',').filter(|_| !text.is_empty());
        names.map(Tag::new).collect::<Result<_, _>>().map(Self)
    }
}

impl WorkerChange {
    /// Returns the changed settings.
    pub fn apply(&self, present: WorkerSettings) -> WorkerSettings {
        let mut settings = if self.reset { WorkerSettings::default() } else { present };
        settings.slots = self.slots.or(settings.slots);
        settings.tags = self.tags.clone().map(|Tags(tags)| tags).or(settings.tags);
        settings.paused.retain(|kind| !self.resume_kinds.contains(kind));
        settings.paused.extend(self.pause_kinds.iter().cloned());
        settings
    }
}
