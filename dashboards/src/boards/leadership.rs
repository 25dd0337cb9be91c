//! The leader: who it is, how it came to that, and what only a leader does.

use super::Limits::{Above, Any, Below, Is};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, line, lines, quantile, rate, row, stat, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-leadership",
        title: "Bellwether: leader and election",
        about: "Who leads, since when, and does it do what only a leader does?",
        scope: Scope::Namespace,
        rows: vec![
            row(
                "Who leads?",
                vec![
                    stat("Does exactly one node lead?", Count, Is(1.0), "Nodes that say that they are active.", "job:bellwether_leaders:sum"),
                    stat("Which epoch is it?", Count, Any, "The version of /epoch that the leader holds: it grows with each claim.", "max(bellwether_epoch)"),
                    stat("For what part of the last hour did nobody lead?", Ratio, Above(0.01, 0.05), "A takeover after a kill takes about the session timeout.", "1 - avg_over_time((job:bellwether_leaders:sum > bool 0)[1h:])"),
                    stat("Is a leader paused?", Count, Above(1.0, 1.0), "It lost its connection and assigns nothing until it is back, or another leads.", "sum(bellwether_leadership_state == bool 1)"),
                    states("Who led when?", &["inactive", "paused", "active"], Any, "Exactly one is active. A pause is a leader without ZooKeeper.", "bellwether_leadership_state"),
                    lines("Which epoch does who hold?", Count, Any, "0 while a node does not lead. Two above 0 for longer than a scrape: one of them is cut off.", [line("{{instance}}", "bellwether_epoch")]),
                    lines("How often does leadership change?", Count, Above(2.0, 6.0), "A restart of the leader is one to inactive, and one to active elsewhere.", [line("to {{to}}", growth("bellwether_leadership_transitions_total", "to"))]),
                    lines("Was a late write fenced?", Count, Above(1.0, 10.0), "Each is a write that would have been wrong: a leader's of an old epoch, or a worker's of a closed attempt.", [line("{{instance}}", growth("bellwether_fenced_writes_total", "instance"))]),
                ],
            ),
            row(
                "Does it assign?",
                vec![
                    lines("How many jobs does it assign?", PerSecond, Any, "By kind.", [line("{{kind}}", rate("bellwether_jobs_assigned_total", "kind"))]),
                    lines("How long does a job wait for its assignment?", Seconds, Above(5.0, 60.0), "From when the leader learnt of it to the committed transaction.", [
                        line("half", quantile(0.5, "bellwether_assignment_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_assignment_seconds", "")),
                    ]),
                    lines("How many jobs wait?", Count, Above(1_000.0, 10_000.0), "For a worker, or for their time within the leader's horizon.", [
                        line("for a worker", "max(bellwether_queue_depth)"),
                        line("for their time", "max(bellwether_delayed_jobs)"),
                    ]),
                ],
            ),
            row(
                "Does it see who is there?",
                vec![
                    lines("How many workers does it see?", Count, Below(2.0, 1.0), "Live registrations. It is 0 on nodes that do not lead.", [line("workers", "max(bellwether_workers)")]),
                    lines("How many workers were lost, and how many of their jobs recovered?", Count, Above(1.0, 10.0), "A worker is lost when its session ends without a drain.", [
                        line("workers", growth("bellwether_workers_lost_total", "")),
                        line("jobs", growth("bellwether_orphans_recovered_total", "")),
                    ]),
                    lines("Do inboxes of lost workers wait to be emptied?", Count, Above(1.0, 2.0), "More than a moment above 0: their jobs are stuck.", [line("inboxes", "max(bellwether_orphaned_inboxes)")]),
                    lines("Did an actor die?", Count, Above(1.0, 1.0), "A defect: it was started again.", [line("{{instance}}", growth("bellwether_actor_restarts_total", "instance"))]),
                ],
            ),
        ],
    }
}
