//! The metrics of a node and of a client: their names, and their registration.
//!
//! They are recorded with the [`metrics`](https://docs.rs/metrics) facade, so the embedding program chooses the exporter. Give
//! histograms the buckets [`SECONDS`]. With `metrics-exporter-prometheus`:
//!
//! ```rs
//! PrometheusBuilder::new()
//!     .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &bellwether::metrics::SECONDS)?
//!     .with_http_listener(address)
//!     .install()?;
//! bellwether::metrics::register(&kinds);
//! ```
//!
//! An exporter renders a series only after it was recorded once. [`register`] records each series at zero, so that a dashboard
//! shows zero instead of no data.

use bellwether_host::kind_label;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

pub use bellwether_core::metric::*;

use crate::Kind;

/// Histogram buckets in seconds, about three per decade: from a fast round trip (0.3 ms) to a long job (an hour).
pub const SECONDS: [f64; 21] = [
    0.0003, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0,
    120.0, 300.0, 900.0, 3600.0,
];

/// Describes every metric to the installed recorder and creates its series at zero: those with the label `kind` for each of
/// `kinds`. Call it after the recorder is installed; a series that has a value keeps it.
pub fn register(kinds: &[Kind]) {
    kind_label::serve(kinds);
    for metric in ALL {
        describe(metric);
        metric.labels.series(kinds).iter().for_each(|labels| make(metric, labels));
    }
}

fn describe(metric: &Metric) {
    let unit = match metric.unit {
        // The exporters have no unit for states; a state is exported as a number.
        Unit::Count | Unit::State => metrics::Unit::Count,
        Unit::Seconds => metrics::Unit::Seconds,
    };
    match metric.kind {
        MetricType::Counter => describe_counter!(metric.name, unit, metric.help),
        MetricType::Gauge => describe_gauge!(metric.name, unit, metric.help),
        MetricType::Histogram => describe_histogram!(metric.name, unit, metric.help),
    }
}

/// Registers the series. A value that was set before is kept.
fn make(metric: &Metric, labels: &[(&'static str, String)]) {
    match metric.kind {
        MetricType::Counter => counter!(metric.name, labels).increment(0),
        MetricType::Gauge => gauge!(metric.name, labels).increment(0.0),
        MetricType::Histogram => drop(histogram!(metric.name, labels)),
    }
}
