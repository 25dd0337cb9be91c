//! The dashboard of the cluster: health, work and problems on one page.

use super::Limits::{Above, Any, Below, Is};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, WAITING, attempts, growth, line, lines, quantile, rate, row, stat, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-overview",
        title: "Bellwether: cluster",
        about: "Is the cluster healthy, what does it do, and what went wrong?",
        scope: Scope::Namespace,
        rows: vec![
            row(
                "Is the cluster healthy?",
                vec![
                    stat("Is exactly one node the leader?", Count, Is(1.0), "With 0, no job is assigned. If 2 lasts longer than one scrape, see the runbook of BellwetherTwoLeaders.", "job:bellwether_leaders:sum"),
                    stat("How many nodes are cut off?", Count, Above(1.0, 2.0), "Nodes without a connection to ZooKeeper.", "sum(1 - bellwether_session_connected)"),
                    stat("How many nodes answer?", Count, Below(3.0, 2.0), "Nodes that Prometheus could scrape. With fewer than three, no node may fail while another is restarted.", "sum(up)"),
                    stat("How many workers are alive?", Count, Below(2.0, 1.0), "As seen by the leader.", "max(bellwether_workers)"),
                    stat("What share of the slots is used?", Ratio, Above(0.8, 0.95), "Slots that hold a job, divided by all slots of live workers.", "job:bellwether_slots:used_ratio"),
                    stat("How many jobs became dead in the last hour?", Count, Above(1.0, 10.0), "Jobs without a result: `bellwether job list --state dead`.", "sum(increase(bellwether_jobs_dead_total[1h]))"),
                ],
            ),
            row(
                "What does the cluster do?",
                vec![
                    lines("How many attempts start, and how do they end?", PerSecond, Any, "Assigned by the leader, closed by the workers. The difference is running.", [
                        line("assigned", rate("bellwether_job_attempts_assigned_total", "")),
                        line("succeeded", rate(&attempts("succeeded"), "")),
                        line("failed", rate(&attempts("failed|invalid"), "")),
                    ]),
                    lines("How many jobs wait?", Count, Above(1_000.0, 10_000.0), "For a worker, or for their start time within the leader's horizon, as seen by the leader.", [
                        line("for a worker", WAITING),
                        line("for their start time", "max(bellwether_delayed_jobs_in_horizon)"),
                    ]),
                    lines("How many slots are used?", Count, Any, "When both lines meet, jobs wait for a slot.", [line("used", "max(bellwether_slots_used)"), line("all", "max(bellwether_slots)")]),
                    lines("How long does a job take from submission to result?", Seconds, Any, "From the client's clock to the worker's clock, including waiting, retries and backoffs.", [
                        line("median", quantile(0.5, "bellwether_job_end_to_end_duration_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_job_end_to_end_duration_seconds", "")),
                    ]),
                    lines("How long does a job wait for its assignment?", Seconds, Above(5.0, 60.0), "From when the leader learned of the job.", [
                        line("median", quantile(0.5, "bellwether_assignment_duration_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_assignment_duration_seconds", "")),
                    ]),
                    states("Which node was the leader at which time?", &["inactive", "paused", "active"], Any, "Exactly one node is active. A paused node is a leader without a connection to ZooKeeper.", "bellwether_leadership_state"),
                ],
            ),
            row(
                "What went wrong?",
                vec![
                    lines("How many attempts failed, how many results were dropped, and how many jobs became dead?", Count, Above(1.0, 10.0), "`failed`: the handler failed. `lost`: the worker was lost. `lease expired`: the worker or the handler hung. `dropped`: results of attempts that were already closed. `dead`: jobs without further attempts.", [
                        line("failed", growth(&attempts("failed|invalid"), "")),
                        line("lost", growth(&attempts("lost"), "")),
                        line("lease expired", growth(&attempts("lease_expired"), "")),
                        line("dropped", growth("bellwether_stale_results_dropped_total", "")),
                        line("dead", growth("bellwether_jobs_dead_total", "")),
                    ]),
                    lines("How many workers, sessions and actors failed?", Count, Above(1.0, 2.0), "Workers that ended without a drain, expired sessions, and restarted actors.", [
                        line("workers", growth("bellwether_workers_lost_total", "")),
                        line("sessions", growth("bellwether_sessions_expired_total", "")),
                        line("actors", growth("bellwether_actor_restarts_total", "")),
                    ]),
                    lines("How many writes had an unknown outcome or were rejected?", Count, Above(1.0, 100.0), "Lost replies are resolved by reading back. A fenced term ended with a write that came too late.", [
                        line("reply lost", growth("bellwether_zookeeper_unknown_outcomes_total", "")),
                        line("terms fenced", growth("bellwether_leadership_terms_fenced_total", "")),
                        line("unreadable", growth("bellwether_znodes_quarantined_total", "")),
                    ]),
                ],
            ),
        ],
    }
}
