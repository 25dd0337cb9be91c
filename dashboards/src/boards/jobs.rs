//! The dashboard of jobs by kind: their number, duration and results.

use super::Limits::{Above, Any};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, attempts, growth, heatmap, line, lines, quantile, rate, row};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-jobs",
        title: "Bellwether: jobs and kinds",
        about: "How many jobs of each kind are there, how long do they take, and how do they end?",
        scope: Scope::Kinds,
        rows: vec![
            row(
                "How many jobs?",
                vec![
                    lines("How many jobs are submitted?", PerSecond, Any, "Submissions by scraped processes only. Other clients are not included.", [line("{{kind}}", rate("bellwether_jobs_submitted_total", "kind"))]),
                    lines("How many attempts are assigned?", PerSecond, Any, "Includes retries.", [line("{{kind}}", rate("bellwether_job_attempts_assigned_total", "kind"))]),
                    lines("How many attempts succeed?", PerSecond, Any, "Attempts that were closed with a result.", [line("{{kind}}", rate(&attempts("succeeded"), "kind"))]),
                ],
            ),
            row(
                "How do attempts end?",
                vec![
                    lines("How many attempts end, and with which outcome?", PerSecond, Any, "Each closed attempt counts once. `expired`: the job expired before the attempt started.", [line("{{outcome}}", rate("bellwether_job_attempts_total", "outcome"))]),
                    lines("What share of the attempts fails?", Ratio, Above(0.05, 0.5), "Failed attempts divided by failed and succeeded attempts, over 5 minutes.", [line("{{kind}}", "job_kind:bellwether_job_attempts:failed_ratio_rate5m")]),
                    lines("How many attempts fail?", PerSecond, Any, "Errors, panics and timeouts, which are retried after a backoff, and invalid inputs, which are not.", [line("{{kind}}", rate(&attempts("failed|invalid"), "kind"))]),
                    lines("How many jobs become dead?", Count, Above(1.0, 10.0), "The last allowed attempt failed or was lost, the handler reported invalid input, or the job expired.", [line("{{kind}}", growth("bellwether_jobs_dead_total", "kind"))]),
                    lines("How many attempts are lost with their worker?", Count, Above(1.0, 10.0), "The job is requeued immediately. By default a job is dead after three losses.", [line("{{kind}}", growth(&attempts("lost"), "kind"))]),
                    lines("How many running attempts are cancelled?", Count, Any, "Waiting jobs are cancelled without an attempt and are not counted.", [line("{{kind}}", growth(&attempts("cancelled"), "kind"))]),
                    lines("How many attempts are snoozed?", PerSecond, Any, "The handler requested a retry later. This is neither a success nor a failure.", [line("{{kind}}", rate(&attempts("snoozed"), "kind"))]),
                    lines("How many leases expire?", Count, Above(1.0, 10.0), "The lease was not renewed: the handler or the worker hangs, or the lease is too short.", [line("{{kind}}", growth(&attempts("lease_expired"), "kind"))]),
                    lines("How many attempts are handed back?", Count, Any, "By draining workers. Counts between the last scrape and the end of the process are missing.", [line("{{kind}}", growth(&attempts("released"), "kind"))]),
                ],
            ),
            row(
                "How long do jobs take?",
                vec![
                    lines("How long do handlers run?", Seconds, Any, "99th percentile by kind.", [line("{{kind}}", quantile(0.99, "bellwether_handler_duration_seconds", "kind"))]),
                    lines("How long does a job take from submission to result?", Seconds, Any, "99th percentile by kind, including waiting, retries and backoffs.", [line("{{kind}}", quantile(0.99, "bellwether_job_end_to_end_duration_seconds", "kind"))]),
                    heatmap("How are run times distributed?", "Attempts in each range of run times. Two bands mean that a kind has two types of jobs.", "bellwether_handler_duration_seconds"),
                ],
            ),
            row(
                "How many groups and schedules are there?",
                vec![
                    lines("How many groups are in progress?", Count, Any, "As seen by the leader: open, joining or finishing.", [line("groups", "max(bellwether_unfinished_groups)")]),
                    lines("How many schedules are there?", Count, Any, "As seen by the leader.", [line("schedules", "max(bellwether_schedules)")]),
                    lines("For how many ticks is a job created?", PerSecond, Any, "A tick is one due time of a schedule.", [line("ticks", rate("bellwether_schedule_ticks_total", ""))]),
                    lines("How many ticks are skipped, and for which reason?", Count, Any, "`misfire`: no node was the leader in time. `overlap`: the previous job had not ended. `taken`: a job with this id already existed. `job_open`: the job with the schedule's job id was open. `conflict`: that job has another kind or payload.", [line("{{reason}}", growth("bellwether_schedule_ticks_skipped_total", "reason"))]),
                ],
            ),
            row(
                "What happens to stored records?",
                vec![
                    lines("How many znodes were unreadable?", Count, Above(1.0, 10.0), "An unreadable znode is counted once per leadership term. See Quarantine in docs/operations.md.", [line("{{instance}}", growth("bellwether_znodes_quarantined_total", "instance"))]),
                    lines("How many records are removed?", PerSecond, Any, "Records of finished jobs whose retention time is over.", [line("removed", rate("bellwether_records_removed_total", ""))]),
                ],
            ),
        ],
    }
}
