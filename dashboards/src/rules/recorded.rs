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
        name: "job_kind:bellwether_jobs_completed:rate5m",
        expr: "sum by (job, kind) (rate(bellwether_jobs_completed_total[5m]))",
    },
    Recorded {
        name: "job_kind:bellwether_jobs_failed:rate5m",
        expr: "sum by (job, kind) (rate(bellwether_jobs_failed_total[5m]))",
    },
    Recorded {
        name: "job_kind:bellwether_jobs_failed:ratio_rate5m",
        expr: "job_kind:bellwether_jobs_failed:rate5m / (job_kind:bellwether_jobs_failed:rate5m + job_kind:bellwether_jobs_completed:rate5m > 0)",
    },
    Recorded {
        name: "job_kind:bellwether_end_to_end_seconds:p99_rate5m",
        expr: "histogram_quantile(0.99, sum by (job, kind, le) (rate(bellwether_end_to_end_seconds_bucket[5m])))",
    },
];
