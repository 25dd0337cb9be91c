//! The section `[[schedule]]` of a file.

use bellwether::{Job, Schedule};

use super::value::Json;
use crate::cli::exit::chain;
use bellwether_documents::{NewSchedule, ScheduledJob, json_job};

pub(super) type Section = NewSchedule<ScheduledJob<Json>>;

/// Returns the schedule of a section.
pub(super) fn schedule(section: Section) -> Result<Schedule, String> {
    section.into_schedule(|job| {
        let job = job.into_job(payload)?;
        job.check().map(|()| job).map_err(|error| chain(&error))
    })
}

fn payload(kind: &str, Json(payload): Json, content_type: &str) -> Result<Job, String> {
    Ok(json_job(kind, &payload.to_string(), content_type)?)
}
