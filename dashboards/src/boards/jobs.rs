//! Jobs by kind: how many, how long, and how they end.

use super::Limits::{Above, Any};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, heatmap, line, lines, quantile, rate, row};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-jobs",
        title: "Bellwether: jobs and kinds",
        about: "How many jobs of which kind, how long do they take, and how do they end?",
        scope: Scope::Kinds,
        rows: vec![
            row(
                "How many?",
                vec![
                    lines("How many jobs are submitted?", PerSecond, Any, "By the processes that are scraped; other clients count for themselves.", [line("{{kind}}", rate("bellwether_jobs_submitted_total", "kind"))]),
                    lines("How many attempts are assigned?", PerSecond, Any, "Retries are attempts, too.", [line("{{kind}}", rate("bellwether_jobs_assigned_total", "kind"))]),
                    lines("How many attempts succeed?", PerSecond, Any, "Closed with a result.", [line("{{kind}}", rate("bellwether_jobs_completed_total", "kind"))]),
                ],
            ),
            row(
                "How do they end?",
                vec![
                    lines("Which part of the attempts fails?", Ratio, Above(0.05, 0.5), "Errors, panics and timeouts, of all attempts that ended with or without a result; over 5 minutes.", [line("{{kind}}", "job_kind:bellwether_jobs_failed:ratio_rate5m")]),
                    lines("How many attempts fail?", PerSecond, Any, "Errors, panics and timeouts; a failed attempt is made again after a backoff.", [line("{{kind}}", rate("bellwether_jobs_failed_total", "kind"))]),
                    lines("How many jobs give up?", Count, Above(1.0, 10.0), "Dead: the last allowed attempt failed or was lost.", [line("{{kind}}", growth("bellwether_jobs_dead_total", "kind"))]),
                    lines("How many attempts are lost with their worker?", Count, Above(1.0, 10.0), "Queued again at once; three losses end a job.", [line("{{kind}}", growth("bellwether_jobs_lost_total", "kind"))]),
                    lines("How many running attempts are cancelled?", Count, Any, "Jobs that waited are cancelled without an attempt and are not counted.", [line("{{kind}}", growth("bellwether_jobs_cancelled_total", "kind"))]),
                    lines("How many attempts ask to be called again later?", PerSecond, Any, "Neither a success nor a failure: the handler said when.", [line("{{kind}}", rate("bellwether_jobs_deferred_total", "kind"))]),
                    lines("How many leases expire?", Count, Above(1.0, 10.0), "The attempt gave no sign of life for as long as its lease: it hangs, or its worker does, or the lease is too short.", [line("{{kind}}", growth("bellwether_leases_expired_total", "kind"))]),
                    lines("How many attempts are handed back?", Count, Any, "By workers that drain. What one hands back in its last moments ends with its process, unseen.", [line("{{kind}}", growth("bellwether_jobs_released_total", "kind"))]),
                ],
            ),
            row(
                "How long?",
                vec![
                    lines("How long do handlers run?", Seconds, Any, "The slowest hundredth, by kind.", [line("{{kind}}", quantile(0.99, "bellwether_run_seconds", "kind"))]),
                    lines("How long from submission to result?", Seconds, Any, "The slowest hundredth, by kind; it includes waiting, retries and backoffs.", [line("{{kind}}", quantile(0.99, "bellwether_end_to_end_seconds", "kind"))]),
                    heatmap("How are run times spread?", "Attempts in each range of run times; two bands are two sorts of jobs in one kind.", "bellwether_run_seconds"),
                ],
            ),
            row(
                "Which jobs hang together?",
                vec![
                    lines("How many groups are under way?", Count, Any, "As the leader sees them: open, joining or finishing.", [line("groups", "max(bellwether_groups)")]),
                    lines("How many schedules are there?", Count, Any, "As the leader sees them.", [line("schedules", "max(bellwether_schedules)")]),
                    lines("How many ticks become a job?", PerSecond, Any, "A tick is one instant of a schedule.", [line("ticks", rate("bellwether_schedule_ticks_total", ""))]),
                    lines("How many ticks are passed over, and why?", Count, Any, "Misfire: nobody led then. Overlap: the one before had not ended. Taken: a job of that id was there.", [line("{{why}}", growth("bellwether_schedule_ticks_passed_over_total", "why"))]),
                ],
            ),
            row(
                "What is kept?",
                vec![
                    lines("Were stored bytes unreadable?", Count, Above(1.0, 10.0), "Sightings: one znode is seen again every 15 s. See Quarantine in docs/operations.md.", [line("{{instance}}", growth("bellwether_quarantined_total", "instance"))]),
                    lines("How many records are removed?", PerSecond, Any, "Of jobs that have been over for as long as the retention says.", [line("removed", rate("bellwether_records_removed_total", ""))]),
                ],
            ),
        ],
    }
}
