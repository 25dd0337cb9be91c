//! The recording rules: expressions that the dashboards use often.

use super::Recorded;

/// All recording rules.
pub const RECORDED: &[Recorded] = &[
    Recorded {
        name: "job:bellwether_leaders:sum",
        expr: "sum by (job) (bellwether_leadership_state == bool 2)",
    },
    Recorded {
        name: "job:bellwether_slots:used_ratio",
        expr: "max by (job) (bellwether_slots_used) / (max by (job) (bellwether_slots) > 0)",
    },
    Recorded {
        name: "job_kind_outcome:bellwether_job_attempts:rate5m",
        expr: "sum by (job, kind, outcome) (rate(bellwether_job_attempts_total[5m]))",
    },
    Recorded {
        name: "job_kind:bellwether_job_attempts:failed_ratio_rate5m",
        expr: "sum by (job, kind) (job_kind_outcome:bellwether_job_attempts:rate5m{outcome=~\"failed|invalid\"}) / (sum by (job, kind) (job_kind_outcome:bellwether_job_attempts:rate5m{outcome=~\"failed|invalid|succeeded\"}) > 0)",
    },
    Recorded {
        name: "job_kind:bellwether_job_end_to_end_duration_seconds:p99_rate5m",
        expr: "histogram_quantile(0.99, sum by (job, kind, le) (rate(bellwether_job_end_to_end_duration_seconds_bucket[5m])))",
    },
];
