//! Metrics of this process. Every series is described and registered before the first scrape.
//!
//! A series that was never touched is not rendered, and a dashboard would show no data instead of zero. So [`touch`]
//! registers all series of the table [`bellwether_core::metric::ALL`], for each known kind.

use std::net::SocketAddr;

use bellwether_core::metric::{self, Labels, Metric, MetricType, Unit};
use bellwether_core::name::Kind;
use metrics::{Label, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Histogram buckets from a fast round trip (0.3 ms) to a long job (an hour), about three per decade.
const SECONDS: [f64; 21] = [
    0.0003, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0,
    120.0, 300.0, 900.0, 3600.0,
];

/// How often samples are moved into their histograms. Until then each sample is kept in memory.
const UPKEEP: std::time::Duration = std::time::Duration::from_secs(5);

/// Metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The address is in use, or does not belong to this machine.
    #[error(
        "cannot serve metrics on {address}: {reason}; choose another address, or port 0 for any free one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// This process already has a metrics recorder.
    #[error("this process already has another metrics recorder")]
    Installed,
    /// The exporter refused its settings.
    #[error("the metrics exporter refused its settings")]
    Settings(#[source] BuildError),
}

/// Starts to record this process's metrics, with every series at zero. The returned handle renders them.
///
/// Must be called in a tokio runtime: a task compacts the histograms periodically.
///
/// # Errors
/// [`MetricsError::Installed`].
pub fn record(kinds: &[Kind]) -> Result<PrometheusHandle, MetricsError> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .map_err(MetricsError::Settings)?;
    let handle = builder.install_recorder().map_err(|error| match error {
        BuildError::FailedToSetGlobalRecorder(_) => MetricsError::Installed,
        other => MetricsError::Settings(other),
    })?;
    let kept = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            kept.run_upkeep();
        }
    });
    touch(kinds);
    Ok(handle)
}

/// Starts to record this process's metrics, with every series at zero, and serves `/metrics` on `address`. The
/// returned handle renders the same metrics.
///
/// Must be called in a tokio runtime, which runs the server.
///
/// # Errors
/// [`MetricsError`].
pub fn serve(address: SocketAddr, kinds: &[Kind]) -> Result<PrometheusHandle, MetricsError> {
    let builder = PrometheusBuilder::new()
        .with_http_listener(address)
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .map_err(MetricsError::Settings)?;
    let (recorder, exporter) = builder.build().map_err(|error| match error {
        BuildError::FailedToCreateHTTPListener(reason) => MetricsError::Listen { address, reason },
        other => MetricsError::Settings(other),
    })?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| MetricsError::Installed)?;
    tokio::spawn(async move {
        if let Err(error) = exporter.await {
            tracing::error!(?error, "the metrics server ended: metrics are no longer served");
        }
    });
    touch(kinds);
    Ok(handle)
}

/// Describes every metric and registers its series at zero.
pub fn touch(kinds: &[Kind]) {
    for metric in metric::ALL {
        describe(metric);
        match metric.labels {
            Labels::None => make(metric, Vec::new()),
            Labels::Kind => {
                kinds.iter().for_each(|kind| make(metric, vec![Label::new("kind", kind.to_string())]));
            }
            Labels::Fixed(name, values) => {
                values.iter().for_each(|value| make(metric, vec![Label::from_static_parts(name, value)]));
            }
        }
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
fn make(metric: &Metric, labels: Vec<Label>) {
    match metric.kind {
        MetricType::Counter => counter!(metric.name, labels).increment(0),
        MetricType::Gauge => gauge!(metric.name, labels).increment(0.0),
        MetricType::Histogram => drop(histogram!(metric.name, labels)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered() -> String {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .unwrap()
            .build_recorder();
        let kinds = [Kind::new("sum").unwrap(), Kind::new("exec").unwrap()];
        metrics::with_local_recorder(&recorder, || touch(&kinds));
        recorder.handle().render()
    }

    #[test]
    fn every_series_is_rendered_at_zero_before_anything_happens() {
        let text = rendered();
        for metric in metric::ALL {
            let labels: Vec<String> = match metric.labels {
                Labels::None => vec![String::new()],
                Labels::Kind => vec!["kind=\"sum\"".to_owned(), "kind=\"exec\"".to_owned()],
                Labels::Fixed(name, values) => values.iter().map(|v| format!("{name}=\"{v}\"")).collect(),
            };
            let (name, histogram) = (metric.name, metric.kind == MetricType::Histogram);
            for label in labels {
                let series = match (label.is_empty(), histogram) {
                    (true, false) => format!("{name} 0"),
                    (false, false) => format!("{name}{{{label}}} 0"),
                    (true, true) => format!("{name}_bucket{{le=\"0.001\"}} 0"),
                    (false, true) => format!("{name}_bucket{{{label},le=\"0.001\"}} 0"),
                };
                assert!(text.lines().any(|line| line == series), "{series} is not in\n{text}");
            }
            assert!(text.contains(&format!("# HELP {name} {}", metric.help)), "{name}");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_is_named_in_the_error() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = serve(address, &[]).unwrap_err();
        assert!(matches!(error, MetricsError::Listen { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("cannot serve metrics on {address}: ")), "{error}");
    }
}
