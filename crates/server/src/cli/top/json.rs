//! A refresh as a line of JSON: the document of `GET /v1/cluster`, with rates and with samples of the waiting and running jobs.

use std::collections::BTreeMap;

use bellwether::client::Snapshot;
use bellwether_documents::ClusterDocument;
use bellwether_gateway::rates::Rates;
use serde::Serialize;

use super::view::{Count, View};

#[derive(Serialize)]
pub(super) struct Line<'a> {
    /// Why there is no newer data.
    trouble: Option<&'a str>,
    #[serde(flatten)]
    cluster: ClusterDocument,
    /// Rates since the previous refresh.
    per_second: Option<PerSecond<'a>>,
    /// Waiting and running jobs, and ended attempts, by kind. Counts that are not exact are estimated from a sample.
    sampled_kinds: Vec<SampledKind<'a>>,
}

#[derive(Serialize)]
struct PerSecond<'a> {
    #[serde(flatten)]
    jobs: Rates,
    /// Ended attempts of the workers that are still live.
    ended: f64,
    /// Ended attempts by the id of the worker.
    ended_by_worker: BTreeMap<&'a str, f64>,
}

#[derive(Serialize)]
struct SampledKind<'a> {
    kind: &'a str,
    waiting: Option<Count>,
    running: Option<Count>,
    /// Ended attempts per second, if all of its workers serve only this kind.
    ended_per_second: Option<f64>,
}

impl<'a> Line<'a> {
    pub(super) fn new(trouble: Option<&'a str>, snapshot: &Snapshot, view: &'a View) -> Self {
        let by_worker = view.workers.iter().filter_map(|one| Some((one.id.as_str(), one.ended_per_second?)));
        let per_second = view.per_second.map(|rates| PerSecond {
            jobs: rates.jobs,
            ended: rates.ended,
            ended_by_worker: by_worker.collect(),
        });
        let kinds = view.kinds.iter().map(|of| SampledKind {
            kind: &of.kind,
            waiting: of.waiting,
            running: of.running,
            ended_per_second: of.ended_per_second,
        });
        Self { trouble, cluster: snapshot.into(), per_second, sampled_kinds: kinds.collect() }
    }
}
