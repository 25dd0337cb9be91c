//! A worker, or some: what they run and how that ends.

use super::Limits::{Above, Any, Is};
use super::Unit::{Count, PerSecond, Seconds};
use super::{Board, Scope, growth, line, lines, quantile, rate, row, stat, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-worker",
        title: "Bellwether: worker",
        about: "What do these workers run, and how does it end?",
        scope: Scope::Nodes,
        rows: vec![
            row(
                "Is it there?",
                vec![
                    stat("Do all of these nodes answer?", Count, Is(1.0), "1 if Prometheus could scrape each of them.", "min(up)"),
                    stat("Are all of these nodes connected?", Count, Is(1.0), "1 if ZooKeeper serves each of them.", "min(bellwether_session_connected)"),
                    stat("How many attempts run now?", Count, Any, "On these workers together.", "sum(bellwether_attempts_running)"),
                    stat("How many results were dropped in the last hour?", Count, Above(1.0, 10.0), "Zombies: runs that outlived their attempt, as their session had expired.", "sum(increase(bellwether_zombie_results_total[1h]))"),
                    states("When was which node connected?", &["cut off", "connected"], Any, "A worker that is cut off starts nothing; what runs goes on.", "bellwether_session_connected"),
                ],
            ),
            row(
                "What does it do?",
                vec![
                    lines("How many attempts run on each?", Count, Any, "Compare with its slots: `bellwether worker list`.", [line("{{instance}}", "bellwether_attempts_running")]),
                    lines("How many attempts does each close with a result?", PerSecond, Any, "Much less than its peers: slow, or not given any.", [line("{{instance}}", rate("bellwether_jobs_completed_total", "instance"))]),
                    lines("How many attempts fail on each?", PerSecond, Any, "One that fails much more than its peers has a trouble of its own.", [line("{{instance}}", rate("bellwether_jobs_failed_total", "instance"))]),
                    lines("How long do handlers run on each?", Seconds, Any, "The slowest hundredth.", [line("{{instance}}", quantile(0.99, "bellwether_run_seconds", "instance"))]),
                    lines("How many attempts does each hand back?", Count, Any, "While it drains. What it hands back in its last moments ends with its process, unseen.", [line("{{instance}}", growth("bellwether_jobs_released_total", "instance"))]),
                    lines("How many results does each drop?", Count, Above(1.0, 10.0), "Their attempt had been closed by somebody else.", [line("{{instance}}", growth("bellwether_zombie_results_total", "instance"))]),
                ],
            ),
        ],
    }
}
