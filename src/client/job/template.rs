//! The job of a schedule.

use bellwether_core::job::Payload;
use bellwether_core::name::Kind;
use serde::Deserialize;

use super::JobError;
use super::content::{content, with_content};
use super::options::Checked;

with_content! {
    ["Payload for the handler, at most 16 KiB: JSON, kept byte for byte. With a `content_type` other than JSON it is a string \
      with the text."]
    /// The job that each tick of a [`Schedule`](crate::Schedule) submits. As for a [`Job`](super::Job), only `serde_json` can read a
    /// payload.
    #[derive(Debug, Clone, Deserialize)]
    #[cfg_attr(feature = "describe", derive(clap::Args, utoipa::ToSchema), schema(as = ScheduledJob, description = "The job that each tick of a schedule submits."))]
    #[serde(deny_unknown_fields)]
    #[non_exhaustive]
    pub struct JobTemplate {}
}

impl JobTemplate {
    /// Returns what a job has in common with the jobs of other ticks.
    pub(super) fn of<K>(job: &super::Job<K>) -> Self {
        let super::Job { kind, payload, content_type, options, .. } = job;
        let (kind, payload, content_type) = (kind.clone(), payload.clone(), content_type.clone());
        Self { kind, payload, content_type, options: options.clone() }
    }

    /// Checks the job without the size of its payload, and returns its parts.
    pub(crate) fn checked(&self) -> Result<(Kind, Payload, Checked), JobError> {
        let (kind, payload) = content(&self.kind, &self.payload, self.content_type.as_deref())?;
        let options = self.options.checked_for(&kind)?;
        Ok((kind, payload, options))
    }
}
