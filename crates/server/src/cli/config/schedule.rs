//! The section `[[schedule]]` of a file.

use bellwether::client::JobOptions;
use bellwether::{Job, Schedule};
use serde::Deserialize;

use super::value::Json;
use crate::cli::exit::chain;
use bellwether_documents::NewSchedule;

pub(super) type Section = NewSchedule<JobSection>;

/// The job that each tick submits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobSection {
    kind: String,
    #[serde(default)]
    payload: Json,
    #[serde(default)]
    options: JobOptions,
}

/// Returns the schedule of a section.
pub(super) fn schedule(section: Section) -> Result<Schedule, String> {
    section.schedule(JobSection::job, |reason| reason)
}

impl JobSection {
    fn job(self) -> Result<Job, String> {
        let job = Job::new(self.kind, &self.payload.0).options(self.options);
        job.check().map(|()| job).map_err(|error| chain(&error))
    }
}
