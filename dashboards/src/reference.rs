//! The table of all metrics, as a page.

use bellwether_core::metric::{self, Labels, Metric, MetricType, Unit};

const HEAD: &str = "\
# Metrics

<!-- Written by `cargo xtask dashboards` from crates/core/src/metric.rs. Change it there. -->

`bellwether node --metrics-addr ADDR` serves these for Prometheus at `/metrics`. Every series is there, at zero, from the
start: those with the label `kind` for each kind that the node has a handler of, and counters for each that it meets as a
leader. A histogram has the series `_bucket`, `_sum`
and `_count`. No label holds a job's id.

What to watch is in [operations.md](operations.md#alerts), and [dashboards/](../dashboards/README.md) shows all of them.

";

/// `docs/metrics.md`.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, kind) in [
        ("Counters", MetricType::Counter),
        ("Gauges", MetricType::Gauge),
        ("Histograms", MetricType::Histogram),
    ] {
        page +=
            &format!("## {title}\n\n| name | unit | labels | what it tells |\n| --- | --- | --- | --- |\n");
        metric::ALL.iter().filter(|metric| metric.kind == kind).for_each(|metric| page += &row(metric));
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn row(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Count => "a count",
        Unit::Seconds => "seconds",
        Unit::State => "a state",
    };
    let labels = match metric.labels {
        Labels::None => "–".to_owned(),
        Labels::Kind => "`kind`".to_owned(),
        Labels::Fixed(name, values) => format!("`{name}`: {}", values.join(", ")),
    };
    format!("| `{}` | {unit} | {labels} | {} |\n", metric.name, metric.help)
}
