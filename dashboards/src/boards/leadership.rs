//! The dashboard of the leader: elections, and the leader's own work.

use super::Limits::{Above, Any, Below, Is};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, WAITING, growth, line, lines, quantile, rate, row, stat, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-leadership",
        title: "Bellwether: leader and election",
        about: "Which node is the leader, since when, and does it do its work?",
        scope: Scope::Namespace,
        rows: vec![
            row(
                "Which node is the leader?",
                vec![
                    stat("Is exactly one node the leader?", Count, Is(1.0), "The number of nodes whose leadership is active.", "job:bellwether_leaders:sum"),
                    stat("What is the current epoch?", Count, Any, "The version of /epoch that the leader holds. It increases with each claim.", "max(bellwether_epoch)"),
                    stat("For what share of the last hour was there no leader?", Ratio, Above(0.01, 0.05), "After a kill, another node leads about 3 s after the last beat.", "1 - avg_over_time((job:bellwether_leaders:sum > bool 0)[1h:])"),
                    stat("Is a leader paused?", Count, Above(1.0, 1.0), "It has lost its connection, or ZooKeeper applied none of its beats for 2.7 s. It assigns no jobs until a beat is applied or its term ends.", "sum(bellwether_leadership_state == bool 1)"),
                    states("Which node was the leader at which time?", &["inactive", "paused", "active"], Any, "Exactly one node is active. A paused node is a leader whose beats ZooKeeper does not apply in time.", "bellwether_leadership_state"),
                    lines("Which epoch does each node hold?", Count, Any, "0 while a node is not the leader. If two nodes are above 0 for more than one scrape, one of them is disconnected.", [line("{{instance}}", "bellwether_epoch")]),
                    lines("How often does leadership change?", Count, Above(2.0, 6.0), "A restart of the leader is one change to inactive, and one to active on another node.", [line("to {{state}}", growth("bellwether_leadership_transitions_total", "state"))]),
                    lines("How many terms were fenced?", Count, Above(1.0, 10.0), "Terms of an old leader that ended because its write was rejected.", [line("{{instance}}", growth("bellwether_leadership_terms_fenced_total", "instance"))]),
                ],
            ),
            row(
                "Does it assign jobs?",
                vec![
                    lines("How many jobs does it assign?", PerSecond, Any, "By kind.", [line("{{kind}}", rate("bellwether_job_attempts_assigned_total", "kind"))]),
                    lines("How long does a job wait for its assignment?", Seconds, Above(5.0, 60.0), "From when the leader learned of the job to the committed transaction.", [
                        line("median", quantile(0.5, "bellwether_assignment_duration_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_assignment_duration_seconds", "")),
                    ]),
                    lines("How many jobs wait?", Count, Above(1_000.0, 10_000.0), "For a worker, or for their start time within the leader's horizon.", [
                        line("for a worker", WAITING),
                        line("of these, to be isolated after a loss", "max(bellwether_isolated_jobs)"),
                        line("for their start time", "max(bellwether_delayed_jobs_in_horizon)"),
                    ]),
                    lines("Of which kinds are the jobs that wait for a worker?", Count, Any, "As seen by the leader. `other` is the sum of the kinds without a series of their own.", [line("{{kind}}", "max by (kind) (bellwether_queue_depth)")]),
                ],
            ),
            row(
                "Does it track the workers?",
                vec![
                    lines("How many workers are registered?", Count, Below(2.0, 1.0), "Live registrations, as seen by the leader. An unlisted worker gets no jobs, because the leader cannot list its inbox. The placement fallback is 1 while the leader uses least-loaded instead of the strategy that is set.", [line("workers", "max(bellwether_workers)"), line("unlisted", "max(bellwether_workers_unlisted)"), line("placement fallback", "max(bellwether_placement_fallback)")]),
                    lines("How many workers were lost, and how many of their attempts were recovered?", Count, Above(1.0, 10.0), "A worker is lost when its session ends without a drain.", [
                        line("workers", growth("bellwether_workers_lost_total", "")),
                        line("attempts", growth("bellwether_orphaned_attempts_recovered_total", "")),
                    ]),
                    lines("How many inboxes of lost workers are not empty yet?", Count, Above(1.0, 2.0), "If the value stays above 0, the jobs in these inboxes are stuck.", [line("inboxes", "max(bellwether_orphaned_inboxes)")]),
                    lines("How many actors were restarted?", Count, Above(1.0, 1.0), "Each restart is a defect. A group of actors that restart together, and the accept loop of the gateway, count as one.", [line("{{instance}}", growth("bellwether_actor_restarts_total", "instance"))]),
                ],
            ),
        ],
    }
}
