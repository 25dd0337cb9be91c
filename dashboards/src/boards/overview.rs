//! The cluster on one page: is it healthy, what does it do, what went wrong.

use super::Limits::{Above, Any, Below, Is};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, line, lines, quantile, rate, row, stat, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-overview",
        title: "Bellwether: cluster",
        about: "Is it healthy, what does it do, and what went wrong?",
        scope: Scope::Namespace,
        rows: vec![
            row(
                "Is it healthy?",
                vec![
                    stat("Does exactly one node lead?", Count, Is(1.0), "0: nothing is assigned. 2 for longer than a scrape: see the alert's runbook.", "job:bellwether_leaders:sum"),
                    stat("How many nodes are cut off?", Count, Above(1.0, 2.0), "Nodes that ZooKeeper does not serve now.", "sum(1 - bellwether_session_connected)"),
                    stat("How many nodes answer?", Count, Below(3.0, 2.0), "Nodes that Prometheus could scrape. Fewer than three bear no loss while one is restarted.", "sum(up)"),
                    stat("How many workers live?", Count, Below(2.0, 1.0), "As the leader sees them.", "max(bellwether_workers)"),
                    stat("How full are the slots?", Ratio, Above(0.8, 0.95), "Slots that hold a job, of all slots of live workers.", "job:bellwether_slots:used_ratio"),
                    stat("How many jobs died in the last hour?", Count, Above(1.0, 10.0), "Jobs closed for good without a result: `bellwether job list --state dead`.", "sum(increase(bellwether_jobs_dead_total[1h]))"),
                ],
            ),
            row(
                "What does it do?",
                vec![
                    lines("How many attempts begin, and how do they end?", PerSecond, Any, "Assigned by the leader, closed by the workers. What begins and does not end is running.", [
                        line("assigned", rate("bellwether_jobs_assigned_total", "")),
                        line("completed", rate("bellwether_jobs_completed_total", "")),
                        line("failed", rate("bellwether_jobs_failed_total", "")),
                    ]),
                    lines("How many jobs wait?", Count, Above(1_000.0, 10_000.0), "For a worker, or for their time within the leader's horizon. As the leader sees them.", [
                        line("for a worker", "max(bellwether_queue_depth)"),
                        line("for their time", "max(bellwether_delayed_jobs)"),
                    ]),
                    lines("How many slots are used, of how many?", Count, Any, "When both meet, jobs wait for a slot.", [line("used", "max(bellwether_slots_used)"), line("all", "max(bellwether_slots)")]),
                    lines("How long does a job take, from submission to result?", Seconds, Any, "By the client's clock at one end and the worker's at the other; it includes waiting, retries and backoffs.", [
                        line("half", quantile(0.5, "bellwether_end_to_end_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_end_to_end_seconds", "")),
                    ]),
                    lines("How long does a job wait for its assignment?", Seconds, Above(5.0, 60.0), "From when the leader learnt of it.", [
                        line("half", quantile(0.5, "bellwether_assignment_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_assignment_seconds", "")),
                    ]),
                    states("Who led when?", &["inactive", "paused", "active"], Any, "Exactly one is active. A pause is a leader without ZooKeeper.", "bellwether_leadership_state"),
                ],
            ),
            row(
                "What went wrong?",
                vec![
                    lines("Which attempts came to nothing?", Count, Above(1.0, 10.0), "Failed: the handler's error. Lost: the worker died. Dead: the job gave up.", [
                        line("failed", growth("bellwether_jobs_failed_total", "")),
                        line("lost", growth("bellwether_jobs_lost_total", "")),
                        line("dead", growth("bellwether_jobs_dead_total", "")),
                        line("zombies", growth("bellwether_zombie_results_total", "")),
                    ]),
                    lines("Which parts were lost?", Count, Above(1.0, 2.0), "Workers that went without a drain, sessions that expired, actors that died.", [
                        line("workers", growth("bellwether_workers_lost_total", "")),
                        line("sessions", growth("bellwether_session_expired_total", "")),
                        line("actors", growth("bellwether_actor_restarts_total", "")),
                    ]),
                    lines("Which writes are in doubt, or were refused?", Count, Above(1.0, 100.0), "Lost replies are resolved by reading back. A fenced write is one that came too late.", [
                        line("reply lost", growth("bellwether_zookeeper_unknown_outcomes_total", "")),
                        line("fenced", growth("bellwether_fenced_writes_total", "")),
                        line("unreadable", growth("bellwether_quarantined_total", "")),
                    ]),
                ],
            ),
        ],
    }
}
