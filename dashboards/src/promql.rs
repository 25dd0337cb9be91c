//! Finds the names of metrics in PromQL expressions.

use bellwether_core::metric::{self, MetricType};

use crate::rules;

/// One name in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found<'a> {
    name: &'a str,
    end: usize,
}

/// Returns the metrics and recorded rules that an expression names, in order.
#[must_use]
pub fn names(expr: &str) -> Vec<&str> {
    found(expr).into_iter().map(|found| found.name).collect()
}

/// Adds a label selector to each metric in the expression. A metric with an empty selector is unchanged.
#[must_use]
pub fn scoped(expr: &str, selector: impl Fn(&str) -> String) -> String {
    let mut scoped = String::new();
    let mut copied = 0;
    for Found { name, end } in found(expr) {
        scoped.push_str(&expr[copied..end]);
        copied = end;
        let labels = selector(name);
        if labels.is_empty() {
            continue;
        }
        match expr[end..].strip_prefix('{') {
            Some(rest) => {
                let more = if rest.starts_with('}') { "" } else { ", " };
                scoped.push_str(&format!("{{{labels}{more}"));
                copied += 1;
            }
            None => scoped.push_str(&format!("{{{labels}}}")),
        }
    }
    scoped.push_str(&expr[copied..]);
    scoped
}

/// Whether a word is one of Bellwether's metrics, or `up`, which Prometheus creates for each target.
fn is_metric(word: &str) -> bool {
    word.contains("bellwether_") || word == "up"
}

fn found(expr: &str) -> Vec<Found<'_>> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let (mut at, mut quoted) = (0, false);
    while let Some(next) = expr[at..].chars().next() {
        if next == '"' {
            quoted = !quoted;
        }
        if quoted || !in_name(next) {
            at += next.len_utf8();
            continue;
        }
        let length = expr[at..].find(|c| !in_name(c)).unwrap_or(expr.len() - at);
        let name = &expr[at..at + length];
        at += length;
        if is_metric(name) {
            found.push(Found { name, end: at });
        }
    }
    found
}

/// Returns the metric of a series. A histogram has three series.
#[must_use]
pub fn metric_of(series: &str) -> Option<&'static metric::Metric> {
    metric::ALL.iter().find(|metric| match metric.kind {
        MetricType::Counter | MetricType::Gauge => metric.name == series,
        MetricType::Histogram => {
            let suffix = series.strip_prefix(metric.name);
            suffix.is_some_and(|suffix| ["_bucket", "_sum", "_count"].contains(&suffix))
        }
    })
}

/// Whether a series has this label.
#[must_use]
pub fn has_label(series: &str, label: &str) -> bool {
    if let Some(rule) = rules::RECORDED.iter().find(|rule| rule.name == series) {
        return rule.name.split(':').next().is_some_and(|labels| labels.split('_').any(|word| word == label));
    }
    metric_of(series).is_some_and(|metric| {
        let is_fixed = metric.labels.fixed().is_some_and(|(name, _)| label == name);
        is_fixed || (label == "kind" && metric.labels.has_kind())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_added_to_every_metric_and_only_there() {
        let selector = |name: &str| if name == "up" { String::new() } else { "job=\"$job\"".to_owned() };
        for (expr, scoped_expr) in [
            ("bellwether_epoch", "bellwether_epoch{job=\"$job\"}"),
            (
                "sum by (kind) (rate(bellwether_a_total{kind=\"bellwether_b\"}[$__rate_interval])) > 1e3",
                "sum by (kind) (rate(bellwether_a_total{job=\"$job\", kind=\"bellwether_b\"}[$__rate_interval])) > 1e3",
            ),
            ("max(up) - job:bellwether_x:sum{}", "max(up) - job:bellwether_x:sum{job=\"$job\"}"),
        ] {
            assert_eq!(scoped(expr, selector), scoped_expr);
        }
    }

    #[test]
    fn the_series_of_a_histogram_belong_to_the_histogram() {
        let of = |series| metric_of(series).map(|metric| metric.name);
        assert_eq!(of("bellwether_handler_duration_seconds_bucket"), Some(metric::HANDLER_DURATION_SECONDS));
        assert_eq!(
            of("bellwether_handler_duration_seconds"),
            None,
            "a histogram has no series without a suffix"
        );
        assert_eq!(of("bellwether_epoch"), Some(metric::EPOCH));
        assert!(has_label("bellwether_handler_duration_seconds_bucket", "kind"));
        assert!(!has_label("bellwether_epoch", "kind"));
    }
}
