//! The payloads of the sections `[[schedule]]`.
//!
//! The library reads a schedule, but a payload from JSON only. So the payloads are taken out of the file, and given to the schedules as
//! JSON. All other values keep their places in the file, for the errors.

use serde::Deserialize;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

use super::value::Json;

/// Takes the payloads out of a file: one for each schedule, as JSON, if it has one.
pub(super) fn take_payloads(file: &mut DeTable<'_>) -> Result<Vec<Option<String>>, Error> {
    let sections = file.get_mut("schedule").map(|sections| sections.get_mut());
    let Some(DeValue::Array(sections)) = sections else { return Ok(Vec::new()) };
    sections.iter_mut().map(|section| payload(section.get_mut())).collect()
}

fn payload(section: &mut DeValue<'_>) -> Result<Option<String>, Error> {
    let DeValue::Table(section) = section else { return Ok(None) };
    let Some(DeValue::Table(job)) = section.get_mut("job").map(|job| job.get_mut()) else { return Ok(None) };
    let Some(payload) = job.remove("payload") else { return Ok(None) };
    let Json(payload) = Json::deserialize(ValueDeserializer::from(payload))?;
    Ok(Some(payload.to_string()))
}
