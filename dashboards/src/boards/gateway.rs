//! The dashboard of the HTTP gateway: responses and capacity.

use super::Limits::{Above, Any};
use super::Unit::{Count, PerSecond, Ratio, Seconds};
use super::{Board, Scope, growth, line, lines, quantile, rate, row};

#[rustfmt::skip]
pub(super) fn board() -> Board {
    Board {
        slug: "bellwether-gateway",
        title: "Bellwether: HTTP gateway",
        about: "How do these gateways respond, and do they have capacity left?",
        scope: Scope::Nodes,
        rows: vec![
            row(
                "How do the gateways respond?",
                vec![
                    lines("How many requests are answered, and how?", PerSecond, Any, "`refused` is 429 and 503, with a `Retry-After` header.", [line("{{outcome}}", rate("bellwether_http_requests_total", "outcome"))]),
                    lines("What share of the responses are server errors?", Ratio, Above(0.001, 0.01), "Server errors divided by all responses.", [line("{{instance}}", "sum by (instance) (rate(bellwether_http_requests_total{outcome=\"server_error\"}[$__rate_interval])) / (sum by (instance) (rate(bellwether_http_requests_total[$__rate_interval])) > 0)")]),
                    lines("How long does a response take?", Seconds, Above(0.5, 2.0), "Time to the first byte, without long polls, event streams and health checks.", [
                        line("median", quantile(0.5, "bellwether_http_request_duration_seconds", "")),
                        line("99 %", quantile(0.99, "bellwether_http_request_duration_seconds", "")),
                    ]),
                ],
            ),
            row(
                "Is there capacity left?",
                vec![
                    lines("How many requests are refused, and for which reason?", Count, Above(1.0, 100.0), "By the limit that was reached. See BellwetherGatewayFull in docs/operations.md.", [line("{{reason}}", growth("bellwether_http_refusals_total", "reason"))]),
                    lines("How many connections are open?", Count, Any, "Includes idle connections.", [line("{{instance}}", "bellwether_http_connections")]),
                    lines("How many event streams are served?", Count, Any, "Each stream costs some memory, and a write for each transition that it subscribed to.", [line("{{instance}}", "bellwether_http_event_streams")]),
                ],
            ),
        ],
    }
}
