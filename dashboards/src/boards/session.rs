//! The dashboard of the ZooKeeper session: stability, latency and lost replies.

use super::Limits::{Above, Any, Below};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, heatmap, line, lines, quantile, rate, row, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-zookeeper",
        title: "Bellwether: ZooKeeper session",
        about: "Are the nodes' sessions stable, and how fast is ZooKeeper?",
        scope: Scope::Nodes,
        rows: vec![
            row(
                "Are the sessions stable?",
                vec![
                    states("Which node was connected at which time?", &["disconnected", "connected"], Any, "If all nodes are disconnected at the same time, check ZooKeeper. If one node is, check its machine and its network.", "bellwether_session_connected"),
                    lines("How close were sessions to their end?", Ratio, Below(0.35, 0.2), "The shortest time in the last minute for which the session was still known to be alive, divided by the session timeout. 0.4 is normal; below 0.2 the node almost stopped relying on its session.", [line( "{{instance}}", "bellwether_session_margin_seconds / (bellwether_session_timeout_seconds > 0)", )]),
                    lines("How far is the machine's clock ahead of ZooKeeper's?", Seconds, Any, "Negative if it is behind. With more than 30 s of difference, the node does not lead. If all nodes differ by the same, ZooKeeper's clock is wrong.", [line("{{instance}}", "bellwether_clock_offset_seconds")]),
                    lines("What is the session timeout?", Seconds, Any, "The timeout that ZooKeeper granted. It may differ from the requested one.", [line("{{instance}}", "bellwether_session_timeout_seconds")]),
                    lines("How many sessions were created, reconnected and expired?", Count, Above(1.0, 5.0), "A reconnection is harmless. An expiry ends a leadership term and all attempts of a worker. An early expiry means that the servers grant different session timeouts, or that another client closed the session.", [
                        line("created", growth("bellwether_sessions_created_total", "")),
                        line("reconnected", growth("bellwether_session_reconnects_total", "")),
                        line("expired", growth("bellwether_sessions_expired_total", "")),
                        line("expired early", growth("bellwether_sessions_expired_early_total", "")),
                    ]),
                ],
            ),
            row(
                "How fast is ZooKeeper?",
                vec![
                    lines("How long does a heartbeat take?", Seconds, Above(0.1, 0.5), "One `sync`, ten times per session timeout.", [
                        line("median", quantile(0.5, "bellwether_zookeeper_heartbeat_duration_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_zookeeper_heartbeat_duration_seconds", "")),
                    ]),
                    lines("How long does a request take?", Seconds, Above(0.1, 0.5), "99th percentile. A write waits for the disks of a majority.", [line( "{{request}}", quantile(0.99, "bellwether_zookeeper_request_duration_seconds", "request"), )]),
                    heatmap("How are request times distributed?", "Two bands mean a slow member or a slow disk.", "bellwether_zookeeper_request_duration_seconds"),
                    lines("How many requests are sent?", PerSecond, Any, "A transaction counts as one.", [line("{{request}}", rate("bellwether_zookeeper_requests_total", "request"))]),
                    lines("How many operations does a request contain?", Count, Any, "About 1 when idle. Batches grow with the load.", [line( "{{request}}", format!( "{} / ({} > 0)", rate("bellwether_zookeeper_operations_total", "request"), rate("bellwether_zookeeper_requests_total", "request") ), )]),
                ],
            ),
            row(
                "Which outcomes were unknown?",
                vec![
                    lines("How many replies were lost?", Count, Above(1.0, 100.0), "Writes whose outcome was unknown.", [line( "{{instance}}", growth("bellwether_zookeeper_unknown_outcomes_total", "instance"), )]),
                    lines("What was the outcome of these writes?", Count, Any, "Determined by reading back. Counts outcomes, not transactions: one per submitted job, per assignment of a job or a segment, and per attempt end.", [line("{{outcome}}", growth("bellwether_unknown_outcomes_resolved_total", "outcome"))]),
                    lines("How many writes came too late?", Count, Above(1.0, 10.0), "Leadership terms that ended with such a write, and results of attempts that another node had closed.", [line("terms of {{instance}}", growth("bellwether_leadership_terms_fenced_total", "instance")), line("results of {{instance}}", growth("bellwether_stale_results_dropped_total", "instance"))]),
                ],
            ),
        ],
    }
}
