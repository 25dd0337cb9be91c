//! Every metric, in one table: its name, type, unit, labels and help.
//!
//! The crates record under these names; the node describes and touches each series at start-up, so that a
//! dashboard shows zero instead of nothing. `docs/metrics.md` is written from this table, and `dashboards/` may name
//! no metric that is not in it, nor leave one out. Never a job id as a label: labels have few values.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// Only grows.
    Counter,
    /// A value now.
    Gauge,
    /// A distribution.
    Histogram,
}

/// What one of its values is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// What its name says: jobs, workers, writes.
    Count,
    /// Seconds, as its name says last.
    Seconds,
    /// One of the few values that its help lists, or a number that only orders.
    State,
}

/// How the series of a metric are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// One series.
    None,
    /// One series per kind that this node has met.
    Kind,
    /// A fixed set of values.
    Fixed(&'static str, &'static [&'static str]),
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, which ends in its unit.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricType,
    /// What its values count or measure.
    pub unit: Unit,
    /// How its series are told apart.
    pub labels: Labels,
    /// What it tells, in a line.
    pub help: &'static str,
}

/// A row is `NAME = "bellwether_name", Type(Unit), labels, "Help.";`. Without a unit, a counter or gauge counts, and a
/// histogram, whose buckets are seconds, is of those.
macro_rules! metrics {
    ($($const:ident = $name:literal, $kind:ident $(($unit:ident))?, $labels:expr, $help:literal;)*) => {
        $(#[doc = $help] pub const $const: &str = $name;)*

        /// All of them.
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
    JOBS_SUBMITTED = "bellwether_jobs_submitted_total", Counter, Labels::Kind, "Jobs that this process submitted and that ZooKeeper acknowledged.";
    JOBS_ASSIGNED = "bellwether_jobs_assigned_total", Counter, Labels::Kind, "Attempts that this leader assigned.";
    JOBS_COMPLETED = "bellwether_jobs_completed_total", Counter, Labels::Kind, "Attempts that this worker closed with a result.";
    JOBS_FAILED = "bellwether_jobs_failed_total", Counter, Labels::Kind, "Attempts that this worker closed with an error, a panic or a timeout.";
    JOBS_DEAD = "bellwether_jobs_dead_total", Counter, Labels::Kind, "Jobs that this node closed as dead.";
    JOBS_CANCELLED = "bellwether_jobs_cancelled_total", Counter, Labels::Kind, "Running attempts that this node closed as cancelled.";
    JOBS_LOST = "bellwether_jobs_lost_total", Counter, Labels::Kind, "Attempts that this leader closed because their worker was lost.";
    RECORDS_REMOVED = "bellwether_records_removed_total", Counter, Labels::None, "Records of finished jobs that this leader removed.";
    JOBS_RELEASED = "bellwether_jobs_released_total", Counter, Labels::Kind, "Attempts that this worker handed back while it drained.";
    JOBS_DEFERRED = "bellwether_jobs_deferred_total", Counter, Labels::Kind, "Attempts whose handler requested a retry later.";
    LEASES_EXPIRED = "bellwether_leases_expired_total", Counter, Labels::Kind, "Attempts that this node closed because their lease expired, as the worker, or as the leader if the worker did not.";
    ATTEMPTS_RUNNING = "bellwether_attempts_running", Gauge, Labels::None, "Attempts that this worker is running.";
    ZOMBIES = "bellwether_zombie_results_total", Counter, Labels::None, "Results that were dropped because their attempt was already closed.";
    QUARANTINED = "bellwether_quarantined_total", Counter, Labels::None, "Znodes whose stored bytes this node could not read.";
    QUEUE_DEPTH = "bellwether_queue_depth", Gauge, Labels::None, "Jobs that wait for a worker, as seen by this leader.";
    DELAYED = "bellwether_delayed_jobs", Gauge, Labels::None, "Jobs that wait for their start time, within the horizon of this leader.";
    SCHEDULES = "bellwether_schedules", Gauge, Labels::None, "Schedules, as seen by this leader.";
    TICKS = "bellwether_schedule_ticks_total", Counter, Labels::None, "Ticks of schedules for which this leader created a job.";
    TICKS_PASSED_OVER = "bellwether_schedule_ticks_passed_over_total", Counter, Labels::Fixed("why", &["misfire", "overlap", "taken"]), "Ticks of schedules that this leader skipped; at most 100 missed ticks of a cron expression are counted at a time.";
    GROUPS = "bellwether_groups", Gauge, Labels::None, "Groups that are not done, as seen by this leader.";
    WORKERS = "bellwether_workers", Gauge, Labels::None, "Live workers, as seen by this leader.";
    SLOTS = "bellwether_slots", Gauge, Labels::None, "Slots of all live workers, as seen by this leader.";
    SLOTS_USED = "bellwether_slots_used", Gauge, Labels::None, "Slots that hold a job, as seen by this leader.";
    ASSIGN_SECONDS = "bellwether_assignment_seconds", Histogram(Seconds), Labels::None, "Time from when the leader learned of a job to its committed assignment.";
    RUN_SECONDS = "bellwether_run_seconds", Histogram(Seconds), Labels::Kind, "Run time of handlers.";
    END_TO_END_SECONDS = "bellwether_end_to_end_seconds", Histogram(Seconds), Labels::Kind, "Time from the submission, by the client's clock, to the committed result, by the worker's clock.";
    ORPHANS = "bellwether_orphans_recovered_total", Counter, Labels::None, "Jobs of lost workers that this leader requeued or ended.";
    LEADERSHIP_STATE = "bellwether_leadership_state", Gauge(State), Labels::None, "Leadership of this node: 0 inactive, 1 paused, 2 active.";
    LEADERSHIP_TRANSITIONS = "bellwether_leadership_transitions_total", Counter, Labels::Fixed("to", &["inactive", "paused", "active"]), "Changes of the leadership state of this node.";
    EPOCH = "bellwether_epoch", Gauge(State), Labels::None, "The epoch that this node holds; 0 while it is not the leader.";
    FENCED = "bellwether_fenced_writes_total", Counter, Labels::None, "Writes of this node that a fence rejected, because of a newer epoch or a newer version of the record.";
    SESSION_CONNECTED = "bellwether_session_connected", Gauge(State), Labels::None, "1 while this node is connected to ZooKeeper, else 0.";
    SESSION_GENERATIONS = "bellwether_session_generations_total", Counter, Labels::None, "ZooKeeper sessions that this node created.";
    SESSION_RECONNECTS = "bellwether_session_reconnects_total", Counter, Labels::None, "Reconnections to ZooKeeper in the same session.";
    SESSION_EXPIRED = "bellwether_session_expired_total", Counter, Labels::None, "ZooKeeper sessions of this node that ended unexpectedly.";
    ROUND_TRIP_SECONDS = "bellwether_zookeeper_round_trip_seconds", Histogram(Seconds), Labels::None, "Round-trip time of the heartbeats of the ZooKeeper session.";
    ZK_REQUESTS = "bellwether_zookeeper_requests_total", Counter, Labels::Fixed("request", &["read", "write"]), "Requests sent to ZooKeeper; a transaction counts as one.";
    ZK_OPERATIONS = "bellwether_zookeeper_operations_total", Counter, Labels::Fixed("request", &["read", "write"]), "Operations in the requests sent to ZooKeeper.";
    UNKNOWN_OUTCOMES = "bellwether_zookeeper_unknown_outcomes_total", Counter, Labels::None, "Writes to ZooKeeper whose reply was lost.";
    UNKNOWN_RESOLVED = "bellwether_unknown_outcomes_resolved_total", Counter, Labels::Fixed("as", &["applied", "not_applied"]), "Lost replies that were resolved by reading back.";
    HTTP_REQUESTS = "bellwether_http_requests_total", Counter, Labels::Fixed("code", &["ok", "client_error", "refused", "server_error"]), "Requests that this gateway answered; `refused` counts 429 and 503.";
    HTTP_SECONDS = "bellwether_http_request_seconds", Histogram(Seconds), Labels::None, "Time from a request to the first byte of its response, without long polls, event streams and health checks.";
    HTTP_REFUSED = "bellwether_http_refused_total", Counter, Labels::Fixed("why", &["connections", "requests", "one_caller", "waits", "streams", "batches", "purges"]), "Requests, connections and streams that this gateway refused because a limit was reached.";
    HTTP_CONNECTIONS = "bellwether_http_connections", Gauge, Labels::None, "Open connections to this gateway.";
    HTTP_STREAMS = "bellwether_http_event_streams", Gauge, Labels::None, "Event streams that this gateway serves.";
    ACTOR_RESTARTS = "bellwether_actor_restarts_total", Counter, Labels::None, "Restarts of actors, or of groups of actors, by their supervisor.";
    ZK_REQUEST_SECONDS = "bellwether_zookeeper_request_seconds", Histogram(Seconds), Labels::Fixed("request", &["read", "write"]), "Time from sending a request to ZooKeeper to its answer.";
    SESSION_MARGIN = "bellwether_session_margin_seconds", Gauge(Seconds), Labels::None, "The shortest time, in the last 30 to 60 seconds, for which this node could still trust its session; 0 if it could not.";
    SESSION_TIMEOUT = "bellwether_session_timeout_seconds", Gauge(Seconds), Labels::None, "The session timeout that ZooKeeper granted.";
    WORKERS_LOST = "bellwether_workers_lost_total", Counter, Labels::None, "Workers that ended without a drain and whose inbox this leader emptied and removed.";
    ORPHANED_INBOXES = "bellwether_orphaned_inboxes", Gauge, Labels::None, "Inboxes of lost workers that this leader has not emptied yet.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_what_they_count() {
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
