//! The section `[[schedule]]` of a file.

use bellwether::schedule::{CronExpression, Misfire, Overlap, Zone};
use bellwether::{Job, Schedule};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::value::{DurationText, InstantText, Json};
use crate::cli::exit::chain;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    name: String,
    #[serde(default, deserialize_with = "cron")]
    cron: Option<String>,
    #[serde(default, deserialize_with = "zone")]
    zone: Option<String>,
    every: Option<DurationText>,
    anchor: Option<InstantText>,
    at: Option<InstantText>,
    misfire: Option<MisfireText>,
    grace: Option<DurationText>,
    overlap: Option<OverlapText>,
    expires_after: Option<DurationText>,
    #[serde(default)]
    replace: bool,
    job: JobSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobSection {
    kind: String,
    #[serde(default)]
    payload: Json,
    max_attempts: Option<u32>,
    max_losses: Option<u32>,
    backoff: Option<DurationText>,
    longest_backoff: Option<DurationText>,
    timeout: Option<DurationText>,
    lease: Option<DurationText>,
    renew_lease: Option<bool>,
    priority: Option<u8>,
    #[serde(default)]
    tags: Vec<String>,
    affinity: Option<String>,
    lane: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OverlapText {
    Allow,
    Forbid,
    Queue,
}

/// `"skip"`, `"once"`, or the number and the maximum age of the ticks to catch up with.
#[derive(Debug)]
struct MisfireText(Misfire);

impl<'de> Deserialize<'de> for MisfireText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Word(String),
            CatchUp(CatchUp),
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct CatchUp {
            catch_up: u32,
            within: String,
        }
        let refused = |what: &str| {
            D::Error::custom(format!(
                "{what} is not a misfire policy: give \"skip\", \"once\" or {{ catch_up = 3, within = \"1d\" }}"
            ))
        };
        match Either::deserialize(deserializer) {
            Ok(Either::Word(word)) if word == "skip" => Ok(Self(Misfire::Skip)),
            Ok(Either::Word(word)) if word == "once" => Ok(Self(Misfire::Once)),
            Ok(Either::Word(word)) => Err(refused(&format!("{word:?}"))),
            Ok(Either::CatchUp(CatchUp { catch_up, within })) => {
                let within = crate::cli::input::duration(&within).map_err(D::Error::custom)?;
                Ok(Self(Misfire::CatchUp { at_most: catch_up, within }))
            }
            Err(_) => Err(refused("this")),
        }
    }
}

fn cron<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    CronExpression::new(&text).map_err(D::Error::custom)?;
    Ok(Some(text))
}

fn zone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Zone::new(&text).map_err(D::Error::custom)?;
    Ok(Some(text))
}

impl Section {
    pub(super) fn schedule(self) -> Result<Schedule, String> {
        let job = self.job.job()?;
        let mut schedule = match (self.cron, self.every, self.at) {
            (Some(expression), None, None) => Schedule::cron(self.name, &expression, job),
            (None, Some(interval), None) => Schedule::every(self.name, interval.0, job),
            (None, None, Some(at)) => Schedule::once(self.name, at.0, job),
            (None, None, None) => return Err("missing time: give one of cron, every and at".to_owned()),
            (_, _, _) => return Err("more than one time: give one of cron, every and at".to_owned()),
        };
        if let Some(zone) = self.zone {
            schedule = schedule.zone(&zone);
        }
        if let Some(anchor) = self.anchor {
            schedule = schedule.anchor(anchor.0);
        }
        if let Some(MisfireText(misfire)) = self.misfire {
            schedule = schedule.misfire(misfire);
        }
        if let Some(grace) = self.grace {
            schedule = schedule.grace(grace.0);
        }
        if let Some(overlap) = self.overlap {
            schedule = schedule.overlap(match overlap {
                OverlapText::Allow => Overlap::Allow,
                OverlapText::Forbid => Overlap::Forbid,
                OverlapText::Queue => Overlap::Queue,
            });
        }
        if let Some(after) = self.expires_after {
            schedule = schedule.expires_after(after.0);
        }
        Ok(if self.replace { schedule.replace() } else { schedule })
    }
}

impl JobSection {
    fn job(self) -> Result<Job, String> {
        let mut job = Job::new(self.kind, &self.payload.0).map_err(|error| chain(&error))?;
        if let Some(attempts) = self.max_attempts {
            job = job.max_attempts(attempts);
        }
        if let Some(losses) = self.max_losses {
            job = job.max_losses(losses);
        }
        match (self.backoff, self.longest_backoff) {
            (Some(initial), Some(longest)) => job = job.backoff(initial.0, longest.0),
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                return Err("give both backoff and longest_backoff, or neither".to_owned());
            }
        }
        if let Some(timeout) = self.timeout {
            job = job.timeout(timeout.0);
        }
        if let Some(lease) = self.lease {
            job = job.lease(lease.0);
        }
        if let Some(renew) = self.renew_lease {
            job = job.renew_lease_automatically(renew);
        }
        if let Some(priority) = self.priority {
            job = job.priority(priority);
        }
        if let Some(key) = self.affinity {
            job = job.affinity(key);
        }
        if let Some(lane) = self.lane {
            job = job.lane(lane);
        }
        let job = self.tags.iter().fold(job, Job::tag);
        job.check().map_err(|error| chain(&error))?;
        Ok(job)
    }
}
