//! The dashboard of one or more workers: their attempts and results.

use super::Limits::{Above, Any, Is};
use super::Unit::{Count, PerSecond, Seconds};
use super::{Board, Scope, attempts, growth, line, lines, quantile, rate, row, stat, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-worker",
        title: "Bellwether: worker",
        about: "What do these workers run, and how do their attempts end?",
        scope: Scope::Nodes,
        rows: vec![
            row(
                "Are the workers available?",
                vec![
                    stat("Do all of these nodes answer?", Count, Is(1.0), "1 if Prometheus could scrape each of them.", "min(up)"),
                    stat("Are all of these nodes connected?", Count, Is(1.0), "1 if each of them is connected to ZooKeeper.", "min(bellwether_session_connected)"),
                    stat("How many attempts run now?", Count, Any, "The total of these workers.", "sum(bellwether_job_attempts_running)"),
                    stat("How many results were dropped in the last hour?", Count, Above(1.0, 10.0), "Results of zombies: runs that outlived their attempt, usually because the session expired.", "sum(increase(bellwether_stale_results_dropped_total[1h]))"),
                    states("Which node was connected at which time?", &["disconnected", "connected"], Any, "A disconnected worker starts no jobs. Its running jobs continue.", "bellwether_session_connected"),
                ],
            ),
            row(
                "What do the workers run?",
                vec![
                    lines("How many attempts run on each worker?", Count, Any, "Compare with its slots: `bellwether worker list`.", [line("{{instance}}", "bellwether_job_attempts_running")]),
                    lines("How many attempts succeed on each worker?", PerSecond, Any, "A worker with far fewer than the others is slow or gets few jobs.", [line("{{instance}}", rate(&attempts("succeeded"), "instance"))]),
                    lines("How many attempts fail on each worker?", PerSecond, Any, "If a worker fails far more often than the others, check its machine.", [line("{{instance}}", rate(&attempts("failed|invalid"), "instance"))]),
                    lines("How long do handlers run on each worker?", Seconds, Any, "99th percentile.", [line("{{instance}}", quantile(0.99, "bellwether_handler_duration_seconds", "instance"))]),
                    lines("How many attempts does each worker hand back?", Count, Any, "While it drains. Counts between the last scrape and the end of the process are missing.", [line("{{instance}}", growth(&attempts("released"), "instance"))]),
                    lines("How many results does each worker drop?", Count, Above(1.0, 10.0), "Their attempts were closed by another node.", [line("{{instance}}", growth("bellwether_stale_results_dropped_total", "instance"))]),
                ],
            ),
        ],
    }
}
