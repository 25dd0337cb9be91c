//! The alerts, each with a test case in which it fires and one in which it does not.
//!
//! A namespace is a scrape job whose name starts with `bellwether`.

use super::Severity::{Critical, Warning};
use super::{Alert, Case};

const B: (&str, &str) = ("job", "bellwether");
const A1: (&str, &str) = ("instance", "a:1");

/// All alerts.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "BellwetherNoLeader",
        severity: Critical,
        hold: "1m",
        expr: "sum by (job) (bellwether_leadership_state == bool 2) == 0",
        summary: "{{ $labels.job }} has no leader: no job is assigned",
        fires: Case {
            series: &[("bellwether_leadership_state{job=\"bellwether\",instance=\"a:1\"}", "2 2 0 0 1 0")],
            at: "4m",
            labels: &[B],
        },
        quiet: Case {
            series: &[
                ("bellwether_leadership_state{job=\"bellwether\",instance=\"a:1\"}", "2 2 0 0 0 0"),
                ("bellwether_leadership_state{job=\"bellwether\",instance=\"b:1\"}", "0 0 0 2 2 2"),
            ],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherTwoLeaders",
        severity: Critical,
        hold: "1m",
        expr: "sum by (job) (bellwether_leadership_state == bool 2) > 1",
        summary: "more than one node of {{ $labels.job }} reports that it is the leader",
        fires: Case {
            series: &[
                ("bellwether_leadership_state{job=\"bellwether\",instance=\"a:1\"}", "2 2 2 2 2"),
                ("bellwether_leadership_state{job=\"bellwether\",instance=\"b:1\"}", "0 2 2 2 2"),
            ],
            at: "3m",
            labels: &[B],
        },
        // A takeover between the scrapes of the two nodes.
        quiet: Case {
            series: &[
                ("bellwether_leadership_state{job=\"bellwether\",instance=\"a:1\"}", "2 2 0 0 0"),
                ("bellwether_leadership_state{job=\"bellwether\",instance=\"b:1\"}", "0 2 2 2 2"),
            ],
            at: "3m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherPausedTooLong",
        severity: Warning,
        hold: "2m",
        expr: "max by (job, instance) (bellwether_leadership_state) == 1",
        summary: "the leader {{ $labels.instance }} is paused, because ZooKeeper does not apply its beats, and assigns no jobs",
        fires: Case {
            series: &[("bellwether_leadership_state{job=\"bellwether\",instance=\"a:1\"}", "2 1 1 1 1 1")],
            at: "4m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[("bellwether_leadership_state{job=\"bellwether\",instance=\"a:1\"}", "2 1 2 1 2 1")],
            at: "5m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherBacklogGrowing",
        severity: Warning,
        hold: "10m",
        expr: "max by (job) (sum by (job, instance) (bellwether_queue_depth)) > 10 * max by (job) (bellwether_slots) and deriv(max by (job) (sum by (job, instance) (bellwether_queue_depth))[10m:1m]) > 0",
        summary: "the queue of {{ $labels.job }} grows: more than ten jobs wait per slot",
        fires: Case {
            series: &[
                ("bellwether_queue_depth{job=\"bellwether\",instance=\"a:1\",kind=\"mail\"}", "0+60x40"),
                ("bellwether_queue_depth{job=\"bellwether\",instance=\"a:1\",kind=\"sum\"}", "0+40x40"),
                ("bellwether_slots{job=\"bellwether\",instance=\"a:1\"}", "8x40"),
            ],
            at: "30m",
            labels: &[B],
        },
        // The queue is long but shrinks.
        quiet: Case {
            series: &[
                ("bellwether_queue_depth{job=\"bellwether\",instance=\"a:1\",kind=\"mail\"}", "4000-100x40"),
                ("bellwether_queue_depth{job=\"bellwether\",instance=\"a:1\",kind=\"sum\"}", "0+50x40"),
                ("bellwether_slots{job=\"bellwether\",instance=\"a:1\"}", "8x40"),
            ],
            at: "30m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherJobsDead",
        severity: Warning,
        hold: "0m",
        expr: "sum by (job, kind) (increase(bellwether_jobs_dead_total[10m])) > 0",
        summary: "jobs of kind {{ $labels.kind }} in {{ $labels.job }} are dead",
        fires: Case {
            series: &[(
                "bellwether_jobs_dead_total{job=\"bellwether\",instance=\"a:1\",kind=\"sum\"}",
                "0 0 1 1 1 1",
            )],
            at: "5m",
            labels: &[B, ("kind", "sum")],
        },
        // The jobs became dead long ago.
        quiet: Case {
            series: &[(
                "bellwether_jobs_dead_total{job=\"bellwether\",instance=\"a:1\",kind=\"sum\"}",
                "0 3x30",
            )],
            at: "20m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherOrphans",
        severity: Critical,
        hold: "2m",
        expr: "max by (job) (bellwether_orphaned_inboxes) > 0",
        summary: "the leader of {{ $labels.job }} cannot empty the inbox of a lost worker: its jobs are stuck",
        fires: Case {
            series: &[("bellwether_orphaned_inboxes{job=\"bellwether\",instance=\"a:1\"}", "0 1 1 1 1 1")],
            at: "4m",
            labels: &[B],
        },
        quiet: Case {
            series: &[("bellwether_orphaned_inboxes{job=\"bellwether\",instance=\"a:1\"}", "0 3 0 0 1 0")],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherWorkerLost",
        severity: Warning,
        hold: "0m",
        expr: "sum by (job) (increase(bellwether_workers_lost_total[10m])) > 0",
        summary: "a worker of {{ $labels.job }} ended without a drain",
        fires: Case {
            series: &[("bellwether_workers_lost_total{job=\"bellwether\",instance=\"a:1\"}", "0 0 1 1 1")],
            at: "4m",
            labels: &[B],
        },
        // A restarted leader counts from zero.
        quiet: Case {
            series: &[("bellwether_workers_lost_total{job=\"bellwether\",instance=\"a:1\"}", "4 4 4 0 0 0")],
            at: "5m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherNodeDown",
        severity: Warning,
        hold: "2m",
        expr: "max by (job, instance) (up{job=~\"bellwether.*\"}) == 0",
        summary: "Prometheus cannot scrape {{ $labels.instance }}",
        fires: Case {
            series: &[("up{job=\"bellwether\",instance=\"a:1\"}", "1 0 0 0 0 0")],
            at: "4m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[
                ("up{job=\"bellwether\",instance=\"a:1\"}", "1 0 1 1 1 1"),
                ("up{job=\"other\",instance=\"a:2\"}", "0 0 0 0 0 0"),
            ],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherCutOff",
        severity: Critical,
        hold: "1m",
        expr: "max by (job, instance) (bellwether_session_connected) == 0",
        summary: "{{ $labels.instance }} is disconnected from ZooKeeper",
        fires: Case {
            series: &[("bellwether_session_connected{job=\"bellwether\",instance=\"a:1\"}", "1 0 0 0 0")],
            at: "3m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[("bellwether_session_connected{job=\"bellwether\",instance=\"a:1\"}", "1 0 1 1 0")],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherSessionMargin",
        severity: Warning,
        hold: "0m",
        expr: "min by (job, instance) (bellwether_session_margin_seconds / (bellwether_session_timeout_seconds > 0)) < 0.2",
        summary: "the ZooKeeper session of {{ $labels.instance }} almost expired, or has expired",
        fires: Case {
            series: &[
                ("bellwether_session_margin_seconds{job=\"bellwether\",instance=\"a:1\"}", "4 4 1 4"),
                ("bellwether_session_timeout_seconds{job=\"bellwether\",instance=\"a:1\"}", "10x3"),
            ],
            at: "2m",
            labels: &[B, A1],
        },
        // A node without a session has no margin.
        quiet: Case {
            series: &[
                ("bellwether_session_margin_seconds{job=\"bellwether\",instance=\"a:1\"}", "4 4 3 4"),
                ("bellwether_session_timeout_seconds{job=\"bellwether\",instance=\"a:1\"}", "10x3"),
                ("bellwether_session_margin_seconds{job=\"bellwether\",instance=\"b:1\"}", "0x3"),
                ("bellwether_session_timeout_seconds{job=\"bellwether\",instance=\"b:1\"}", "0x3"),
            ],
            at: "2m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherClockWrong",
        severity: Warning,
        hold: "2m",
        expr: "max by (job, instance) (abs(bellwether_clock_offset_seconds)) > 5",
        summary: "the clocks of {{ $labels.instance }} and of ZooKeeper differ by more than 5 s",
        fires: Case {
            series: &[("bellwether_clock_offset_seconds{job=\"bellwether\",instance=\"a:1\"}", "0 -60x4")],
            at: "4m",
            labels: &[B, A1],
        },
        // The clock was corrected at once.
        quiet: Case {
            series: &[(
                "bellwether_clock_offset_seconds{job=\"bellwether\",instance=\"a:1\"}",
                "0 60 0 2 -2",
            )],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherSessionExpired",
        severity: Warning,
        hold: "0m",
        expr: "sum by (job, instance) (increase(bellwether_sessions_expired_total[10m])) > 0",
        summary: "a ZooKeeper session of {{ $labels.instance }} expired: its attempts are lost, and its leadership if it was the leader",
        fires: Case {
            series: &[("bellwether_sessions_expired_total{job=\"bellwether\",instance=\"a:1\"}", "0 0 1 1")],
            at: "3m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[("bellwether_sessions_expired_total{job=\"bellwether\",instance=\"a:1\"}", "2 2 2 2")],
            at: "3m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherUnknownOutcomes",
        severity: Warning,
        hold: "10m",
        expr: "sum by (job, instance) (increase(bellwether_zookeeper_unknown_outcomes_total[5m])) > 0",
        summary: "{{ $labels.instance }} repeatedly loses replies to its writes",
        fires: Case {
            series: &[(
                "bellwether_zookeeper_unknown_outcomes_total{job=\"bellwether\",instance=\"a:1\"}",
                "0+2x30",
            )],
            at: "20m",
            labels: &[B, A1],
        },
        // One lost connection.
        quiet: Case {
            series: &[(
                "bellwether_zookeeper_unknown_outcomes_total{job=\"bellwether\",instance=\"a:1\"}",
                "0x8 60x20",
            )],
            at: "20m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherZooKeeperSlow",
        severity: Warning,
        hold: "5m",
        expr: "histogram_quantile(0.99, sum by (job, instance, le) (rate(bellwether_zookeeper_request_duration_seconds_bucket[5m]))) > 0.5",
        summary: "one percent of the ZooKeeper requests of {{ $labels.instance }} takes longer than half a second",
        fires: Case {
            series: &[
                (
                    "bellwether_zookeeper_request_duration_seconds_bucket{job=\"bellwether\",instance=\"a:1\",request=\"write\",le=\"0.5\"}",
                    "0+90x20",
                ),
                (
                    "bellwether_zookeeper_request_duration_seconds_bucket{job=\"bellwether\",instance=\"a:1\",request=\"write\",le=\"1\"}",
                    "0+100x20",
                ),
                (
                    "bellwether_zookeeper_request_duration_seconds_bucket{job=\"bellwether\",instance=\"a:1\",request=\"write\",le=\"+Inf\"}",
                    "0+100x20",
                ),
            ],
            at: "15m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[
                (
                    "bellwether_zookeeper_request_duration_seconds_bucket{job=\"bellwether\",instance=\"a:1\",request=\"write\",le=\"0.5\"}",
                    "0+1000x20",
                ),
                (
                    "bellwether_zookeeper_request_duration_seconds_bucket{job=\"bellwether\",instance=\"a:1\",request=\"write\",le=\"1\"}",
                    "0+1002x20",
                ),
                (
                    "bellwether_zookeeper_request_duration_seconds_bucket{job=\"bellwether\",instance=\"a:1\",request=\"write\",le=\"+Inf\"}",
                    "0+1002x20",
                ),
            ],
            at: "15m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherUnreadable",
        severity: Warning,
        hold: "0m",
        expr: "sum by (job) (increase(bellwether_znodes_quarantined_total[10m])) > 0",
        summary: "stored bytes in {{ $labels.job }} cannot be read: a job may wait until they are repaired",
        fires: Case {
            series: &[(
                "bellwether_znodes_quarantined_total{job=\"bellwether\",instance=\"a:1\"}",
                "0 0 4 8 12",
            )],
            at: "4m",
            labels: &[B],
        },
        quiet: Case {
            series: &[(
                "bellwether_znodes_quarantined_total{job=\"bellwether\",instance=\"a:1\"}",
                "7 7 7 7 7",
            )],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherActorDied",
        severity: Warning,
        hold: "0m",
        expr: "sum by (job, instance) (increase(bellwether_actor_restarts_total[30m])) > 0",
        summary: "a part of {{ $labels.instance }} died and was restarted: this is a defect",
        fires: Case {
            series: &[("bellwether_actor_restarts_total{job=\"bellwether\",instance=\"a:1\"}", "0 0 1 1")],
            at: "3m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[("bellwether_actor_restarts_total{job=\"bellwether\",instance=\"a:1\"}", "1 1 1 1")],
            at: "3m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherPlacementFallback",
        severity: Warning,
        hold: "5m",
        expr: "max by (job) (bellwether_placement_fallback) > 0",
        summary: "the leader of {{ $labels.job }} does not use the placement strategy that is set",
        fires: Case {
            series: &[("bellwether_placement_fallback{job=\"bellwether\",instance=\"a:1\"}", "0 1x10")],
            at: "8m",
            labels: &[B],
        },
        // A leader without the strategy was replaced by one that has it.
        quiet: Case {
            series: &[
                ("bellwether_placement_fallback{job=\"bellwether\",instance=\"a:1\"}", "1 1 1 0 0 0 0 0 0"),
                ("bellwether_placement_fallback{job=\"bellwether\",instance=\"b:1\"}", "0x8"),
            ],
            at: "8m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherGatewayFails",
        severity: Warning,
        hold: "0m",
        expr: "sum by (job, instance) (increase(bellwether_http_requests_total{outcome=\"server_error\"}[10m])) > 0",
        summary: "the gateway {{ $labels.instance }} answered requests with a server error",
        fires: Case {
            series: &[(
                "bellwether_http_requests_total{job=\"bellwether\",instance=\"a:1\",outcome=\"server_error\"}",
                "0 0 1 1 1",
            )],
            at: "4m",
            labels: &[B, A1],
        },
        // Client errors do not count.
        quiet: Case {
            series: &[
                (
                    "bellwether_http_requests_total{job=\"bellwether\",instance=\"a:1\",outcome=\"server_error\"}",
                    "1x5",
                ),
                (
                    "bellwether_http_requests_total{job=\"bellwether\",instance=\"a:1\",outcome=\"client_error\"}",
                    "0+9x5",
                ),
            ],
            at: "4m",
            labels: &[],
        },
    },
    Alert {
        name: "BellwetherGatewayFull",
        severity: Warning,
        hold: "5m",
        expr: "sum by (job, instance) (rate(bellwether_http_refusals_total[5m])) > 1",
        summary: "the gateway {{ $labels.instance }} refuses requests because a limit is reached",
        fires: Case {
            series: &[(
                "bellwether_http_refusals_total{job=\"bellwether\",instance=\"a:1\",reason=\"waits\"}",
                "0+120x20",
            )],
            at: "15m",
            labels: &[B, A1],
        },
        quiet: Case {
            series: &[(
                "bellwether_http_refusals_total{job=\"bellwether\",instance=\"a:1\",reason=\"waits\"}",
                "0+30x20",
            )],
            at: "15m",
            labels: &[],
        },
    },
];
