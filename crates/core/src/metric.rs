//! All metrics in one table: name, type, unit, labels and help.
//!
//! The crates record under these names. At start-up the node describes and touches each series, so that a dashboard
//! shows zero instead of no data. `docs/metrics.md` is generated from this table, and the dashboards use exactly
//! these metrics. A job id must never be a label: labels have few values.

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// A count that only grows.
    Counter,
    /// A current value.
    Gauge,
    /// A distribution.
    Histogram,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of the things that the name states: jobs, workers, writes.
    Count,
    /// Seconds; the name ends in `_seconds`.
    Seconds,
    /// One of a few values that the help lists, or a number that is only compared.
    State,
}

/// The label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// No label: one series.
    None,
    /// The label `kind`: one series per kind that this node has seen.
    Kind,
    /// A label with a fixed set of values.
    Fixed(&'static str, &'static [&'static str]),
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: MetricType,
    /// The unit.
    pub unit: Unit,
    /// The label.
    pub labels: Labels,
    /// The help text: one sentence.
    pub help: &'static str,
}

/// A row is `NAME = "bellwether_name", Type(Unit), labels, "Help.";`. The default unit of a counter or gauge is a
/// count, that of a histogram is seconds, because its buckets are.
macro_rules! metrics {
    ($($const:ident = $name:literal, $kind:ident $(($unit:ident))?, $labels:expr, $help:literal;)*) => {
        $(#[doc = $help] pub const $const: &str = $name;)*

        /// All metrics.
        pub const ALL: &[Metric] = &[
            $(Metric { name: $name, kind: MetricType::$kind, unit: metrics!(@unit $kind $($unit)?), labels: $labels, help: $help }),*
        ];
    };
    (@unit Counter) => { Unit::Count };
    (@unit Gauge) => { Unit::Count };
    (@unit Histogram) => { Unit::Seconds };
    (@unit $kind:ident $unit:ident) => { Unit::$unit };
}

metrics! {
    JOBS_SUBMITTED = "bellwether_jobs_submitted_total", Counter, Labels::Kind, "Submissions of this process that were acknowledged.";
    JOBS_ASSIGNED = "bellwether_jobs_assigned_total", Counter, Labels::Kind, "Attempts that this leader assigned.";
    JOBS_COMPLETED = "bellwether_jobs_completed_total", Counter, Labels::Kind, "Attempts that this worker closed with a result.";
    JOBS_FAILED = "bellwether_jobs_failed_total", Counter, Labels::Kind, "Attempts that this worker closed with an error, a panic or a timeout.";
    JOBS_DEAD = "bellwether_jobs_dead_total", Counter, Labels::Kind, "Jobs that this node ended as dead.";
    JOBS_CANCELLED = "bellwether_jobs_cancelled_total", Counter, Labels::Kind, "Running attempts that this node closed as cancelled.";
    JOBS_LOST = "bellwether_jobs_lost_total", Counter, Labels::Kind, "Attempts that this leader closed because their worker was lost.";
    RECORDS_REMOVED = "bellwether_records_removed_total", Counter, Labels::None, "Records of terminal jobs that this leader removed.";
    JOBS_RELEASED = "bellwether_jobs_released_total", Counter, Labels::Kind, "Attempts that this worker handed back while draining.";
    JOBS_DEFERRED = "bellwether_jobs_deferred_total", Counter, Labels::Kind, "Attempts whose handler asked to be called again later (snooze).";
    LEASES_EXPIRED = "bellwether_leases_expired_total", Counter, Labels::Kind, "Attempts that this node closed because their lease expired: as their worker, or as the leader if the worker did not close them.";
    ATTEMPTS_RUNNING = "bellwether_attempts_running", Gauge, Labels::None, "Attempts that currently run on this worker.";
    ZOMBIES = "bellwether_zombie_results_total", Counter, Labels::None, "Results that were dropped because their attempt was already closed.";
    QUARANTINED = "bellwether_quarantined_total", Counter, Labels::None, "Znodes whose stored bytes this node could not read.";
    QUEUE_DEPTH = "bellwether_queue_depth", Gauge, Labels::None, "Queued jobs that this leader knows.";
    DELAYED = "bellwether_delayed_jobs", Gauge, Labels::None, "Delayed jobs within this leader's horizon.";
    SCHEDULES = "bellwether_schedules", Gauge, Labels::None, "Schedules that this leader knows.";
    TICKS = "bellwether_schedule_ticks_total", Counter, Labels::None, "Schedule ticks for which this leader created a job.";
    TICKS_PASSED_OVER = "bellwether_schedule_ticks_passed_over_total", Counter, Labels::Fixed("why", &["misfire", "overlap", "taken"]), "Schedule ticks that this leader skipped; for missed ticks of a cron expression, each skip counts at most 100.";
    GROUPS = "bellwether_groups", Gauge, Labels::None, "Unfinished groups that this leader knows.";
    WORKERS = "bellwether_workers", Gauge, Labels::None, "Live workers that this leader knows.";
    SLOTS = "bellwether_slots", Gauge, Labels::None, "Slots of all live workers that this leader knows.";
    SLOTS_USED = "bellwether_slots_used", Gauge, Labels::None, "Occupied slots of all live workers that this leader knows.";
    ASSIGN_SECONDS = "bellwether_assignment_seconds", Histogram(Seconds), Labels::None, "Time from when the leader learnt of a job to its committed assignment.";
    RUN_SECONDS = "bellwether_run_seconds", Histogram(Seconds), Labels::Kind, "Run time of handlers.";
    END_TO_END_SECONDS = "bellwether_end_to_end_seconds", Histogram(Seconds), Labels::Kind, "Time from the submission, by the client's clock, to the committed result, by the worker's clock.";
    ORPHANS = "bellwether_orphans_recovered_total", Counter, Labels::None, "Jobs of lost workers that this leader requeued or ended.";
    LEADERSHIP_STATE = "bellwether_leadership_state", Gauge(State), Labels::None, "0 inactive, 1 paused, 2 active.";
    LEADERSHIP_TRANSITIONS = "bellwether_leadership_transitions_total", Counter, Labels::Fixed("to", &["inactive", "paused", "active"]), "Changes of this node's leadership.";
    EPOCH = "bellwether_epoch", Gauge(State), Labels::None, "The epoch that this node holds; 0 while it does not lead.";
    FENCED = "bellwether_fenced_writes_total", Counter, Labels::None, "Writes of this node that a fence rejected: a newer epoch, or a newer version of the record.";
    SESSION_CONNECTED = "bellwether_session_connected", Gauge(State), Labels::None, "1 while ZooKeeper serves this node.";
    SESSION_GENERATIONS = "bellwether_session_generations_total", Counter, Labels::None, "ZooKeeper sessions that this node created.";
    SESSION_RECONNECTS = "bellwether_session_reconnects_total", Counter, Labels::None, "Reconnections that kept the session.";
    SESSION_EXPIRED = "bellwether_session_expired_total", Counter, Labels::None, "ZooKeeper sessions that ended without being closed by this node.";
    ROUND_TRIP_SECONDS = "bellwether_zookeeper_round_trip_seconds", Histogram(Seconds), Labels::None, "Round-trip time of the ZooKeeper session's heartbeats.";
    ZK_REQUESTS = "bellwether_zookeeper_requests_total", Counter, Labels::Fixed("request", &["read", "write"]), "Requests sent to ZooKeeper; a transaction is one.";
    ZK_OPERATIONS = "bellwether_zookeeper_operations_total", Counter, Labels::Fixed("request", &["read", "write"]), "Operations inside these requests.";
    UNKNOWN_OUTCOMES = "bellwether_zookeeper_unknown_outcomes_total", Counter, Labels::None, "Writes whose reply was lost.";
    UNKNOWN_RESOLVED = "bellwether_unknown_outcomes_resolved_total", Counter, Labels::Fixed("as", &["applied", "not_applied"]), "Writes with a lost reply whose outcome was resolved by reading back.";
    HTTP_REQUESTS = "bellwether_http_requests_total", Counter, Labels::Fixed("code", &["ok", "client_error", "refused", "server_error"]), "Requests that this gateway answered; refused are 429 and 503.";
    HTTP_SECONDS = "bellwether_http_request_seconds", Histogram(Seconds), Labels::None, "Time from a request to the first byte of its response, without long polls, event streams and health checks.";
    HTTP_REFUSED = "bellwether_http_refused_total", Counter, Labels::Fixed("why", &["connections", "requests", "one_caller", "waits", "streams", "batches", "purges"]), "Connections and requests that this gateway refused because a limit was reached.";
    HTTP_CONNECTIONS = "bellwether_http_connections", Gauge, Labels::None, "Open connections to this gateway.";
    HTTP_STREAMS = "bellwether_http_event_streams", Gauge, Labels::None, "Event streams that this gateway serves.";
    ACTOR_RESTARTS = "bellwether_actor_restarts_total", Counter, Labels::None, "Restarts of actors, or groups of actors, by a supervisor.";
    ZK_REQUEST_SECONDS = "bellwether_zookeeper_request_seconds", Histogram(Seconds), Labels::Fixed("request", &["read", "write"]), "Time from sending a request to ZooKeeper to its response.";
    SESSION_MARGIN = "bellwether_session_margin_seconds", Gauge(Seconds), Labels::None, "The shortest remaining trust in the session in the last 30 to 60 seconds; 0 if the trust expired.";
    SESSION_TIMEOUT = "bellwether_session_timeout_seconds", Gauge(Seconds), Labels::None, "The session timeout that ZooKeeper granted.";
    WORKERS_LOST = "bellwether_workers_lost_total", Counter, Labels::None, "Workers that ended without a drain and whose inbox this leader emptied and removed.";
    ORPHANED_INBOXES = "bellwether_orphaned_inboxes", Gauge, Labels::None, "Inboxes of dead workers that this leader has not emptied yet.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_end_in_their_unit() {
        for metric in ALL {
            assert!(metric.name.starts_with("bellwether_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == MetricType::Counter,
                "{}",
                metric.name
            );
            assert_eq!(metric.name.ends_with("_seconds"), metric.unit == Unit::Seconds, "{}", metric.name);
            if metric.kind == MetricType::Histogram {
                assert_eq!(metric.unit, Unit::Seconds, "{}: its buckets are seconds", metric.name);
            }
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
