//! The Prometheus exporter of this process. Every series is described and registered before the first scrape, so that a dashboard
//! shows zero instead of no data.

use std::error::Error;

use bellwether::Kind;
use bellwether::metrics::{HTTP_REFUSALS, HttpRefusal, SECONDS, register};
use bellwether_remedy::{ErrorClass, impl_remedy};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// How often samples are moved into their histograms. Until then each sample is kept in memory.
const UPKEEP: std::time::Duration = std::time::Duration::from_secs(5);

/// Metrics cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// This process already has a metrics recorder.
    #[error("this process already has another metrics recorder")]
    Installed,
    /// The exporter refused its settings.
    #[error("the metrics exporter refused its settings")]
    Settings(#[source] Box<dyn Error + Send + Sync>),
}

impl MetricsError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Installed => ErrorClass::Conflict,
            Self::Settings(_) => ErrorClass::Failed,
        }
    }
}

impl_remedy!(MetricsError);

/// The recorded metrics of this process.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Renders all series in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }
}

/// Counts a connection or request that the gateway refused.
pub(crate) fn refused(reason: HttpRefusal) {
    metrics::counter!(HTTP_REFUSALS, "reason" => reason.as_str()).increment(1);
}

/// Starts to record this process's metrics, with every series at zero.
///
/// Must be called in a tokio runtime: a task compacts the histograms periodically.
///
/// # Errors
/// [`MetricsError::Installed`].
pub fn record(kinds: &[Kind]) -> Result<Metrics, MetricsError> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .map_err(|error| MetricsError::Settings(error.into()))?;
    let handle = builder.install_recorder().map_err(|error| match error {
        BuildError::FailedToSetGlobalRecorder(_) => MetricsError::Installed,
        other => MetricsError::Settings(other.into()),
    })?;
    let kept = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            kept.run_upkeep();
        }
    });
    register(kinds);
    Ok(Metrics(handle))
}

#[cfg(test)]
mod tests {
    use bellwether::metrics::{ALL, MetricType};

    use super::*;

    fn kinds() -> [Kind; 2] {
        [Kind::new("sum").unwrap(), Kind::new("exec").unwrap()]
    }

    fn rendered() -> String {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .unwrap()
            .build_recorder();
        metrics::with_local_recorder(&recorder, || register(&kinds()));
        recorder.handle().render()
    }

    #[test]
    fn every_series_is_rendered_at_zero_before_anything_happens() {
        let text = rendered();
        for metric in ALL {
            let (name, histogram) = (metric.name, metric.kind == MetricType::Histogram);
            for labels in metric.labels.series(&kinds()) {
                let label = labels
                    .iter()
                    .map(|(name, value)| format!("{name}=\"{value}\""))
                    .collect::<Vec<_>>()
                    .join(",");
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
}
