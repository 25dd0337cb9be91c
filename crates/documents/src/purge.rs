//! A purge of records.

use std::time::Duration;

use bellwether::client::{Error, Purge, Purged};
use bellwether::{Client, JobId};
use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::invalid::Invalid;
use super::text::{DurationText, JobIdText, KindText, Text};
use super::word::EndedWord;

/// Which records of ended jobs to remove: of given jobs, or of all jobs with a state, kind and age.
#[derive(Debug, Clone, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPurge {
    /// Only these jobs, in any final state. Without them, the jobs are selected by state, kind and age.
    #[arg(value_name = "JOB", conflicts_with_all = ["state", "kind", "older_than"])]
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Vec<JobIdText>, required = false, min_items = 1, max_items = 1000)]
    jobs: Option<Vec<JobIdText>>,
    /// Final state of the jobs. Default: dead.
    #[arg(long)]
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = EndedWord, required = false, default = "dead")]
    state: Option<EndedWord>,
    /// Only jobs of this kind.
    #[arg(long)]
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = KindText, required = false)]
    kind: Option<KindText>,
    /// Only jobs that ended at least this long ago. Default: 0s.
    #[arg(long, value_name = "DURATION")]
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = DurationText, required = false, default = "0s")]
    older_than: Option<DurationText>,
    /// Whether to remove the records. Without this they are only counted.
    #[arg(long)]
    #[serde(default)]
    pub remove: bool,
}

/// Reads a value that may be left out, but not be null: a program that failed to compute it would select more jobs.
fn not_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The jobs of a purge.
#[derive(Debug)]
pub enum PurgedJobs {
    /// The given jobs.
    Given(Vec<JobId>),
    /// All jobs with a state, kind and age.
    Selected(Purge),
}

impl PurgedJobs {
    /// Removes the records, or only counts them.
    pub async fn run(
        &self,
        client: &Client,
        remove: bool,
        progress: impl FnMut(Purged),
    ) -> Result<Purged, Error> {
        match (self, remove) {
            (Self::Selected(purge), true) => client.purge(purge, progress).await,
            (Self::Selected(purge), false) => client.would_purge(purge, progress).await,
            (Self::Given(jobs), true) => client.purge_jobs(jobs, progress).await,
            (Self::Given(jobs), false) => client.would_purge_jobs(jobs, progress).await,
        }
    }
}

impl NewPurge {
    /// Returns the jobs. The given ones are not counted yet.
    pub fn jobs(self) -> Result<PurgedJobs, Invalid> {
        match self.jobs {
            None => {
                let purge =
                    Purge::of(self.state.unwrap_or_default().0).kind(self.kind.map(|Text(kind)| kind));
                let age = self.older_than.map_or(Duration::ZERO, |Text(age)| age);
                Ok(PurgedJobs::Selected(purge.older_than(age)))
            }
            Some(jobs) if self.state.is_none() && self.kind.is_none() && self.older_than.is_none() => {
                Ok(PurgedJobs::Given(jobs.into_iter().map(|Text(job)| job).collect()))
            }
            Some(_) => Err(Invalid("give either jobs, or state, kind and older_than".to_owned())),
        }
    }
}

/// The outcome of a purge.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Purged)]
pub struct PurgedDocument {
    /// Matching records that were found.
    pub matched: u64,
    /// Records that were removed.
    pub removed: u64,
    /// Matching records that are kept because their jobs ended within the last minute.
    pub too_recent: u64,
    /// Whether all records were read. Otherwise the time limit was reached: repeat the request to continue.
    pub complete: bool,
}

impl PurgedDocument {
    /// Returns the document of a purge that has ended, or of its progress.
    pub fn new(purged: &Purged, complete: bool) -> Self {
        let Purged { matched, removed, too_recent, .. } = *purged;
        Self { matched, removed, too_recent, complete }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jobs(request: serde_json::Value) -> Result<PurgedJobs, Invalid> {
        serde_json::from_value::<NewPurge>(request).unwrap().jobs()
    }

    #[test]
    fn an_empty_list_of_jobs_does_not_select_others() {
        assert!(
            matches!(jobs(json!({ "jobs": [], "remove": true })), Ok(PurgedJobs::Given(jobs)) if jobs.is_empty())
        );
        assert!(matches!(jobs(json!({ "remove": true })), Ok(PurgedJobs::Selected(_))));
        assert!(jobs(json!({ "jobs": ["a"], "state": "dead" })).is_err());
        for field in ["jobs", "state", "kind", "older_than"] {
            let null = serde_json::from_value::<NewPurge>(json!({ field: null, "remove": true }));
            assert!(null.unwrap_err().to_string().contains("invalid type: null"), "{field}");
        }
    }
}
