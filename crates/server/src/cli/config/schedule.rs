//! The payloads of the sections `[[schedule]]`.
//!
//! The library reads a schedule, but a payload from JSON only. So the payloads are taken out of the file, and given to the schedules as
//! JSON. All other values keep their places in the file, for the errors.

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::value::Json;

/// The payload of a schedule as JSON, or its place in the file and why it cannot be one.
type Payload = Result<String, (usize, String)>;

/// Takes the payloads out of a file: one for each schedule, if it has one.
pub(super) fn take_payloads(file: &mut DeTable<'_>) -> Vec<Option<Payload>> {
    let sections = file.get_mut("schedule").map(|sections| sections.get_mut());
    let Some(DeValue::Array(sections)) = sections else { return Vec::new() };
    sections.iter_mut().map(|section| payload(section.get_mut())).collect()
}

fn payload(section: &mut DeValue<'_>) -> Option<Payload> {
    let DeValue::Table(section) = section else { return None };
    let DeValue::Table(job) = section.get_mut("job")?.get_mut() else { return None };
    let payload = job.remove("payload")?;
    let at = payload.span().start;
    let json = Json::deserialize(ValueDeserializer::from(payload));
    Some(
        json.map(|Json(json)| json.to_string())
            .map_err(|error| (at, format!("payload: {}", error.message()))),
    )
}
