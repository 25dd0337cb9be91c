//! Every metric, in one table: its name, type, labels and help.
//!
//! The crates record under these names; the node describes and touches each series at start-up, so that a
//! dashboard shows zero instead of nothing. Never a job id as a label: labels have few values.

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
    /// How its series are told apart.
    pub labels: Labels,
    /// What it tells, in a line.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($const:ident = $name:literal, $kind:ident, $labels:expr, $help:literal;)*) => {
        $(#[doc = $help] pub const $const: &str = $name;)*

        /// All of them.
        pub const ALL: &[Metric] = &[
            $(Metric { name: $name, kind: MetricType::$kind, labels: $labels, help: $help }),*
        ];
    };
}

metrics! {
    JOBS_SUBMITTED = "bellwether_jobs_submitted_total", Counter, Labels::Kind, "Jobs that this process submitted and saw acknowledged.";
    JOBS_ASSIGNED = "bellwether_jobs_assigned_total", Counter, Labels::Kind, "Attempts that this leader assigned.";
    JOBS_COMPLETED = "bellwether_jobs_completed_total", Counter, Labels::Kind, "Attempts that this worker closed with a result.";
    JOBS_FAILED = "bellwether_jobs_failed_total", Counter, Labels::Kind, "Attempts that this worker closed with an error, a panic or a timeout.";
    JOBS_DEAD = "bellwether_jobs_dead_total", Counter, Labels::Kind, "Jobs that this node closed for good without a result.";
    JOBS_CANCELLED = "bellwether_jobs_cancelled_total", Counter, Labels::Kind, "Running attempts that this worker closed as cancelled.";
    JOBS_LOST = "bellwether_jobs_lost_total", Counter, Labels::Kind, "Attempts that this leader closed because their worker was lost.";
    RECORDS_REMOVED = "bellwether_records_removed_total", Counter, Labels::None, "Records of jobs that are over that this leader removed.";
    JOBS_RELEASED = "bellwether_jobs_released_total", Counter, Labels::Kind, "Attempts that this worker handed back while draining.";
    JOBS_DEFERRED = "bellwether_jobs_deferred_total", Counter, Labels::Kind, "Attempts whose handler asked to be called again later.";
    LEASES_EXPIRED = "bellwether_leases_expired_total", Counter, Labels::Kind, "Attempts that this node closed because their lease was over: as their worker, or as the leader because the worker did not.";
    ATTEMPTS_RUNNING = "bellwether_attempts_running", Gauge, Labels::None, "Attempts that run on this worker now.";
    ZOMBIES = "bellwether_zombie_results_total", Counter, Labels::None, "Results that were dropped because their attempt had been closed.";
    QUARANTINED = "bellwether_quarantined_total", Counter, Labels::None, "Znodes whose stored bytes could not be read.";
    QUEUE_DEPTH = "bellwether_queue_depth", Gauge, Labels::None, "Jobs that wait for a worker, as this leader sees them.";
    DELAYED = "bellwether_delayed_jobs", Gauge, Labels::None, "Jobs that wait for their time, within this leader's horizon.";
    SCHEDULES = "bellwether_schedules", Gauge, Labels::None, "Schedules, as this leader sees them.";
    TICKS = "bellwether_schedule_ticks_total", Counter, Labels::None, "Ticks of schedules that this leader made a job of.";
    TICKS_PASSED_OVER = "bellwether_schedule_ticks_passed_over_total", Counter, Labels::Fixed("why", &["misfire", "overlap", "taken"]), "Ticks of schedules that this leader passed over; of missed ones, a thousand at a time at most are counted.";
    WORKERS = "bellwether_workers", Gauge, Labels::None, "Live workers, as this leader sees them.";
    SLOTS = "bellwether_slots", Gauge, Labels::None, "Slots of all live workers, as this leader sees them.";
    SLOTS_USED = "bellwether_slots_used", Gauge, Labels::None, "Slots that hold a job, as this leader sees them.";
    ASSIGN_SECONDS = "bellwether_assignment_seconds", Histogram, Labels::None, "From when the leader learnt of a job to its committed assignment.";
    RUN_SECONDS = "bellwether_run_seconds", Histogram, Labels::Kind, "How long handlers ran.";
    END_TO_END_SECONDS = "bellwether_end_to_end_seconds", Histogram, Labels::Kind, "From submission, by the client's clock, to the committed result, by the worker's.";
    ORPHANS = "bellwether_orphans_recovered_total", Counter, Labels::None, "Jobs of lost workers that this leader queued again or ended.";
    LEADERSHIP_STATE = "bellwether_leadership_state", Gauge, Labels::None, "0 inactive, 1 paused, 2 active.";
    LEADERSHIP_TRANSITIONS = "bellwether_leadership_transitions_total", Counter, Labels::Fixed("to", &["inactive", "paused", "active"]), "Changes of this node's leadership.";
    EPOCH = "bellwether_epoch", Gauge, Labels::None, "The epoch that this node holds; 0 while it does not lead.";
    FENCED = "bellwether_fenced_writes_total", Counter, Labels::None, "Writes of this node that a fence rejected: a newer epoch, or a record that had moved on.";
    SESSION_CONNECTED = "bellwether_session_connected", Gauge, Labels::None, "1 while ZooKeeper serves this node.";
    SESSION_GENERATIONS = "bellwether_session_generations_total", Counter, Labels::None, "ZooKeeper sessions that this node made.";
    SESSION_RECONNECTS = "bellwether_session_reconnects_total", Counter, Labels::None, "Times that a session outlived its connection.";
    SESSION_EXPIRED = "bellwether_session_expired_total", Counter, Labels::None, "ZooKeeper sessions that ended without this node's wish.";
    ROUND_TRIP_SECONDS = "bellwether_zookeeper_round_trip_seconds", Histogram, Labels::None, "Heartbeats of the ZooKeeper session.";
    ZK_REQUESTS = "bellwether_zookeeper_requests_total", Counter, Labels::Fixed("request", &["read", "write"]), "Requests sent to ZooKeeper; a transaction is one.";
    ZK_OPERATIONS = "bellwether_zookeeper_operations_total", Counter, Labels::Fixed("request", &["read", "write"]), "Operations inside these requests.";
    UNKNOWN_OUTCOMES = "bellwether_zookeeper_unknown_outcomes_total", Counter, Labels::None, "Writes whose reply was lost.";
    UNKNOWN_RESOLVED = "bellwether_unknown_outcomes_resolved_total", Counter, Labels::Fixed("as", &["applied", "not_applied"]), "Lost replies that were resolved by reading back.";
    ACTOR_RESTARTS = "bellwether_actor_restarts_total", Counter, Labels::None, "Actors, or groups of them, that a supervisor started again.";
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
            assert_eq!(
                metric.name.ends_with("_seconds"),
                metric.kind == MetricType::Histogram,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
