//! The ZooKeeper session: does it hold, how fast is it, and what was lost on the way.

use super::Limits::{Above, Any, Below};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, heatmap, line, lines, quantile, rate, row, states};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-zookeeper",
        title: "Bellwether: ZooKeeper session",
        about: "Do the nodes' sessions hold, and how fast does ZooKeeper answer?",
        scope: Scope::Nodes,
        rows: vec![
            row(
                "Does it hold?",
                vec![
                    states("When was which node connected?", &["cut off", "connected"], Any, "All of them cut off at once: ZooKeeper. One of them: that machine or its network.", "bellwether_session_connected"),
                    lines("How near did sessions come to their end?", Ratio, Below(0.5, 0.3), "The least trusted time of the last minute, as a part of the session timeout. 0.7 is usual; below 0.3 a session nearly ended.", [line( "{{instance}}", "bellwether_session_margin_seconds / (bellwether_session_timeout_seconds > 0)", )]),
                    lines("How long may a session be silent?", Seconds, Any, "The timeout that ZooKeeper granted, which may be another than was asked for.", [line("{{instance}}", "bellwether_session_timeout_seconds")]),
                    lines("Which sessions came and went?", Count, Above(1.0, 5.0), "A reconnection is harmless. An expiry ends a term, and all attempts of a worker.", [
                        line("made", growth("bellwether_session_generations_total", "")),
                        line("reconnected", growth("bellwether_session_reconnects_total", "")),
                        line("expired", growth("bellwether_session_expired_total", "")),
                    ]),
                ],
            ),
            row(
                "How fast does it answer?",
                vec![
                    lines("How long does a heartbeat take?", Seconds, Above(0.1, 0.5), "One small read, five times per session timeout.", [
                        line("half", quantile(0.5, "bellwether_zookeeper_round_trip_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_zookeeper_round_trip_seconds", "")),
                    ]),
                    lines("How long does a request take?", Seconds, Above(0.1, 0.5), "The slowest hundredth. A write waits for a majority's disks.", [line( "{{request}}", quantile(0.99, "bellwether_zookeeper_request_seconds", "request"), )]),
                    heatmap("How are request times spread?", "Two bands: a slow member, or a slow disk.", "bellwether_zookeeper_request_seconds"),
                    lines("How many requests are sent?", PerSecond, Any, "A transaction is one.", [line("{{request}}", rate("bellwether_zookeeper_requests_total", "request"))]),
                    lines("How many operations share a request?", Count, Any, "Batches grow with the load: about 1 when idle.", [line( "{{request}}", format!( "{} / ({} > 0)", rate("bellwether_zookeeper_operations_total", "request"), rate("bellwether_zookeeper_requests_total", "request") ), )]),
                ],
            ),
            row(
                "What was in doubt?",
                vec![
                    lines("How many replies were lost?", Count, Above(1.0, 100.0), "Writes that may have been applied or not.", [line( "{{instance}}", growth("bellwether_zookeeper_unknown_outcomes_total", "instance"), )]),
                    lines("What had become of them?", Count, Any, "As found by reading back; counted by job, not by transaction.", [line("{{as}}", growth("bellwether_unknown_outcomes_resolved_total", "as"))]),
                    lines("Which writes came too late?", Count, Above(1.0, 10.0), "Rejected by a fence: a newer epoch, or a record that had moved on.", [line("{{instance}}", growth("bellwether_fenced_writes_total", "instance"))]),
                ],
            ),
        ],
    }
}
