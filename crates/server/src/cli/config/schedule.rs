//! The section `[[schedule]]` of a file.

use bellwether::{Job, Schedule};

use super::value::Json;
use crate::cli::exit::chain;
use bellwether_documents::{NewSchedule, ScheduledJob};

pub(super) type Section = NewSchedule<ScheduledJob<Json>>;

/// Returns the schedule of a section.
pub(super) fn schedule(section: Section) -> Result<Schedule, String> {
    section.into_schedule(|job| {
        let job = job.into_job(payload)?;
        job.check().map(|()| job).map_err(|error| chain(&error))
    })
}

fn payload(kind: &str, Json(payload): Json, content_type: &str) -> Result<Job, String> {
    match payload {
        payload if content_type == "application/json" => Ok(Job::new(kind, &payload)),
        serde_json::Value::String(text) => Ok(Job::raw(kind, content_type, text.into_bytes())),
        _ => Err(format!("payload must be a string, because its content_type is {content_type:?}")),
    }
}
