//! A change of what an operator has set on a worker.

use bellwether_core::name::{Kind, Tag};
use bellwether_core::worker::WorkerSettings;
use serde::Deserialize;

// Hides the `Vec` from clap's derive, so that an empty value is an empty list.
type Tags = Vec<Tag>;

/// A change of a worker; see [`Client::change_worker`](super::Client::change_worker). Values that are not given do not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "describe",
    derive(clap::Args, utoipa::ToSchema),
    group(required = true, multiple = true),
    schema(description = "A change of a worker. Values that are not given do not change.")
)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct WorkerChange {
    /// Number of jobs that run at the same time, 0 to 4096; 0 takes no jobs.
    #[cfg_attr(feature = "describe", arg(long, value_name = "N"), schema(maximum = 4096))]
    slots: Option<u32>,
    /// Tags instead of the present ones, at most 32; an empty list removes all.
    #[cfg_attr(
        feature = "describe",
        arg(long, value_name = "TAG,…", value_parser = tags),
        schema(value_type = Option<Vec<Tag>>, max_items = 32)
    )]
    tags: Option<Tags>,
    /// Kinds of which the worker starts no further jobs. It must have a handler for each.
    #[cfg_attr(feature = "describe", arg(long, value_name = "KIND,…", value_delimiter = ','))]
    #[serde(default)]
    pause_kinds: Vec<Kind>,
    /// Kinds of which the worker starts jobs again.
    #[cfg_attr(feature = "describe", arg(long, value_name = "KIND,…", value_delimiter = ','))]
    #[serde(default)]
    resume_kinds: Vec<Kind>,
    /// Whether to return to the configuration of the node first.
    #[cfg_attr(feature = "describe", arg(long))]
    #[serde(default)]
    reset: bool,
}

#[cfg(feature = "describe")]
fn tags(text: &str) -> Result<Tags, bellwether_core::name::NameError> {
    text.split(',').filter(|_| !text.is_empty()).map(str::parse).collect()
}

impl WorkerChange {
    /// Returns a change of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of jobs that run at the same time: 0 to 4096. With 0 the worker takes no jobs.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// Sets the tags that the worker offers, at most 32, instead of the present ones.
    pub fn tags(self, tags: impl IntoIterator<Item = Tag>) -> Self {
        Self { tags: Some(tags.into_iter().collect()), ..self }
    }

    /// Pauses kinds on the worker, in addition to those that are paused already. It must have a handler for each. A kind that is also
    /// resumed is paused.
    pub fn pause_kinds(self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self { pause_kinds: kinds.into_iter().collect(), ..self }
    }

    /// Resumes kinds on the worker.
    pub fn resume_kinds(self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self { resume_kinds: kinds.into_iter().collect(), ..self }
    }

    /// Sets whether the worker returns to the configuration of its node first.
    pub fn reset(self, reset: bool) -> Self {
        Self { reset, ..self }
    }

    /// Returns the changed settings.
    pub(super) fn of(&self, there: WorkerSettings) -> WorkerSettings {
        let mut settings = if self.reset { WorkerSettings::default() } else { there };
        settings.slots = self.slots.or(settings.slots);
        settings.tags = self.tags.clone().or(settings.tags);
        settings.paused_kinds.retain(|kind| !self.resume_kinds.contains(kind));
        settings.paused_kinds.extend(self.pause_kinds.iter().cloned());
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::in_memory::kind;

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let there = WorkerSettings::default().slots(3).paused_kinds(vec![kind("mail")]);
        assert_eq!(WorkerChange::new().of(there.clone()), there);
        let tags = WorkerChange::new().tags([]).of(there.clone());
        assert_eq!(tags, there.clone().tags(Vec::new()));
        let paused = WorkerChange::new().pause_kinds([kind("sum")]).of(there.clone());
        assert_eq!(paused.paused_kinds, [kind("mail"), kind("sum")]);
        let resumed = WorkerChange::new().resume_kinds([kind("mail")]).of(there.clone());
        assert_eq!((resumed.slots, resumed.paused_kinds), (Some(3), Vec::new()));
        let both = WorkerChange::new().resume_kinds([kind("mail")]).pause_kinds([kind("mail")]);
        assert_eq!(
            both.of(there.clone()).paused_kinds,
            [kind("mail")],
            "a kind that is also resumed is paused"
        );
        let reset = WorkerChange::new().reset(true).pause_kinds([kind("sum")]).of(there);
        assert_eq!(reset, WorkerSettings::default().paused_kinds(vec![kind("sum")]));
    }
}
