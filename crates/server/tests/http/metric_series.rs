//! Submissions of thousands of kinds, as an attacker sends them to grow the memory of the gateway and of Prometheus.

use std::collections::BTreeSet;

use serde_json::json;

use crate::ask::Ask;
use crate::idle_connections::Gateway;

/// Kinds that were never registered get half of the hundred series, and `other`.
const MOST_KINDS: usize = 51;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_kinds_have_a_bounded_number_of_series() {
    let gateway = Gateway::start("http-kinds").await;
    for batch in 0..3 {
        let jobs = (0..1_000).map(|n| json!({ "kind": format!("attack-{batch}-{n}") }));
        let body = json!({ "jobs": jobs.collect::<Vec<_>>() }).to_string();
        let answer = Ask::post("/v1/batch", &body).of(gateway.address).await.is(200).json();
        assert_eq!(answer["accepted"], 1_000, "{answer}");
    }
    let text = Ask::get("/metrics").of(gateway.address).await.is(200).text();
    let submitted = text.lines().filter(|line| line.starts_with("bellwether_jobs_submitted_total{"));
    let count = |line: &str| line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
    assert_eq!(submitted.filter_map(count).sum::<u64>(), 3_000, "each submission is counted");
    let kinds = text.split("kind=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let unknown = kinds.filter(|kind| kind.starts_with("attack-") || *kind == "other");
    let unknown = unknown.collect::<BTreeSet<_>>();
    assert_eq!(unknown.len(), MOST_KINDS);
}
