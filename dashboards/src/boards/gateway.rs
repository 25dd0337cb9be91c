//! The gateway: is there room, and how does it answer?

use super::Limits::{Above, Any};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, line, lines, quantile, rate, row};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-gateway",
        title: "Bellwether: HTTP gateway",
        about: "How do these gateways answer, and is there room for more?",
        scope: Scope::Nodes,
        rows: vec![
            row(
                "How does it answer?",
                vec![
                    lines("How many requests are answered, and how?", PerSecond, Any, "Refused are 429 and 503: the caller is told when to come back.", [line("{{code}}", rate("bellwether_http_requests_total", "code"))]),
                    lines("Which part of the answers is the gateway's fault?", Ratio, Above(0.001, 0.01), "Server errors, of all that is answered.", [line("{{instance}}", "sum by (instance) (rate(bellwether_http_requests_total{code=\"server_error\"}[$__rate_interval])) / (sum by (instance) (rate(bellwether_http_requests_total[$__rate_interval])) > 0)")]),
                    lines("How long does an answer take?", Seconds, Above(0.5, 2.0), "Up to its first byte; long polls, event streams and health checks aside.", [
                        line("half", quantile(0.5, "bellwether_http_request_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_http_request_seconds", "")),
                    ]),
                ],
            ),
            row(
                "Is there room?",
                vec![
                    lines("What was turned away, and why?", Count, Above(1.0, 100.0), "By the bound that was met: docs/operations.md says how to raise it, or whom to slow down.", [line("{{why}}", growth("bellwether_http_refused_total", "why"))]),
                    lines("How many connections are open?", Count, Any, "Idle ones, too.", [line("{{instance}}", "bellwether_http_connections")]),
                    lines("How many event streams are served?", Count, Any, "Each costs a little memory, and a write for each transition that it asked for.", [line("{{instance}}", "bellwether_http_event_streams")]),
                ],
            ),
        ],
    }
}
