//! All metrics in one table: name, type, unit, labels and help.
//!
//! The crates record under these names. At start-up the node describes and touches each series, so that a dashboard
//! shows zero instead of no data. `docs/metrics.md` is generated from this table, and the dashboards use exactly
//! these metrics. A job id must never be a label: labels have few values.
//!
//! Names follow <https://prometheus.io/docs/practices/naming>: a counter ends in `_total`, a histogram in
//! `_duration_seconds`, and the sum over all values of a label has a meaning. A constant is the name in upper case without
//! the prefix `bellwether_` and the suffix `_total`.

use crate::job::AttemptOutcome;
use crate::name::Kind;
use crate::schedule::SkipReason;

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

/// The labels of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// No label: one series.
    None,
    /// The label `kind`: one series per kind up to a bound, and [`OTHER_KINDS`] for the sum of all further kinds.
    Kind,
    /// A label with a fixed set of values.
    Fixed(&'static str, &'static [&'static str]),
    /// The label `kind`, and a label with a fixed set of values.
    KindAnd(&'static str, &'static [&'static str]),
}

/// The value of the label `kind` for all kinds that have no series of their own.
pub const OTHER_KINDS: &str = "other";

impl Labels {
    /// Whether the series have the label `kind`.
    #[must_use]
    pub fn has_kind(self) -> bool {
        matches!(self, Self::Kind | Self::KindAnd(..))
    }

    /// Returns the label with a fixed set of values, with these values.
    #[must_use]
    pub fn fixed(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Fixed(name, values) | Self::KindAnd(name, values) => Some((name, values)),
            Self::None | Self::Kind => None,
        }
    }

    /// Returns the labels of each series that exists for these kinds: names with their values.
    #[must_use]
    pub fn series(self, kinds: &[Kind]) -> Vec<Vec<(&'static str, String)>> {
        let of_kinds = || kinds.iter().map(|kind| vec![("kind", kind.to_string())]);
        let mut series: Vec<_> = if self.has_kind() { of_kinds().collect() } else { vec![Vec::new()] };
        if self.has_kind() {
            series.push(vec![("kind", OTHER_KINDS.to_owned())]);
        }
        if let Some((name, values)) = self.fixed() {
            let each = series.iter().flat_map(|labels| {
                values.iter().map(|value| [labels.clone(), vec![(name, (*value).to_owned())]].concat())
            });
            series = each.collect();
        }
        series
    }
}

/// The names of all values of an enum, as the values of a label.
macro_rules! names {
    ($($const:ident = $of:ty;)*) => {
        $(const $const: [&str; <$of>::ALL.len()] = {
            let mut names = [""; <$of>::ALL.len()];
            let mut n = 0;
            while n < names.len() {
                names[n] = <$of>::ALL[n].as_str();
                n += 1;
            }
            names
        };)*
    };
}

names! {
    ATTEMPT_OUTCOMES = AttemptOutcome;
    SKIP_REASONS = SkipReason;
    HTTP_REFUSAL_REASONS = HttpRefusal;
}

/// Why a gateway refused a connection or a request: the values of the label `reason` of [`HTTP_REFUSALS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpRefusal {
    /// The number of connections of one address, or of all.
    Connections,
    /// The number of requests of all callers.
    Requests,
    /// The number of requests of one caller.
    OneCaller,
    /// The number of long polls.
    Waits,
    /// The number of event streams.
    Streams,
    /// The number of batches.
    Batches,
    /// Another purge is running.
    Purges,
    /// The number of open jobs of a token.
    OpenJobs,
    /// The number of remote workers.
    RemoteWorkers,
}

crate::impl_names!(HttpRefusal {
    Connections = "connections",
    Requests = "requests",
    OneCaller = "one_caller",
    Waits = "waits",
    Streams = "streams",
    Batches = "batches",
    Purges = "purges",
    OpenJobs = "open_jobs",
    RemoteWorkers = "remote_workers",
});

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: MetricType,
    /// The unit.
    pub unit: Unit,
    /// The labels.
    pub labels: Labels,
    /// The help text: one sentence.
    pub help: &'static str,
}

/// A row is `NAME = "bellwether_name", Type(Unit), labels, "Help.";`. The default unit of a counter or gauge is a
/// count. The unit of a histogram is seconds, because its buckets are in seconds.
macro_rules! metrics {
    ($($const:ident = $name:literal, $kind:ident $(($unit:ident))?, $labels:expr, $help:literal;)*) => {
        $(#[doc = $help] pub const $const: &str = $name;)*

        /// All metrics.
        pub const ALL: &[Metric] = &[
            $(Metric { name: $name, kind: MetricType::$kind, unit: metrics!(@unit $kind $($unit)?), labels: $labels, help: $help }),*
        ];

        #[cfg(test)]
        const CONSTANTS: &[&str] = &[$(stringify!($const)),*];
    };
    (@unit Counter) => { Unit::Count };
    (@unit Gauge) => { Unit::Count };
    (@unit Histogram) => { Unit::Seconds };
    (@unit $kind:ident $unit:ident) => { Unit::$unit };
}

metrics! {
    JOBS_SUBMITTED = "bellwether_jobs_submitted_total", Counter, Labels::Kind, "Jobs that submissions of this process created or opened again.";
    JOB_ATTEMPTS_ASSIGNED = "bellwether_job_attempts_assigned_total", Counter, Labels::Kind, "Attempts that this leader assigned.";
    JOB_ATTEMPTS = "bellwether_job_attempts_total", Counter, Labels::KindAnd("outcome", &ATTEMPT_OUTCOMES), "Attempts that this node closed, by outcome: as their worker, or as the leader if the worker was lost or its lease expired.";
    JOBS_DEAD = "bellwether_jobs_dead_total", Counter, Labels::Kind, "Jobs that this node ended as dead.";
    RECORDS_REMOVED = "bellwether_records_removed_total", Counter, Labels::None, "Records of terminal jobs that this leader removed.";
    JOB_ATTEMPTS_RUNNING = "bellwether_job_attempts_running", Gauge, Labels::None, "Attempts that run on the workers of this process; a gateway has one worker for each remote worker.";
    STALE_RESULTS_DROPPED = "bellwether_stale_results_dropped_total", Counter, Labels::None, "Results of this worker that were dropped because another node had closed their attempt.";
    ZNODES_QUARANTINED = "bellwether_znodes_quarantined_total", Counter, Labels::None, "Znodes whose stored bytes this node could not read.";
    QUEUE_DEPTH = "bellwether_queue_depth", Gauge, Labels::Kind, "Queued jobs that this leader knows, by kind; `other` counts the kinds without a series of their own.";
    ISOLATED_JOBS = "bellwether_isolated_jobs", Gauge, Labels::None, "Queued jobs that have lost workers and wait for a worker that can isolate them from other jobs.";
    DELAYED_JOBS_IN_HORIZON = "bellwether_delayed_jobs_in_horizon", Gauge, Labels::None, "Delayed jobs that this leader holds in memory, because they start within its horizon.";
    SCHEDULES = "bellwether_schedules", Gauge, Labels::None, "Schedules that this leader knows.";
    SCHEDULE_TICKS = "bellwether_schedule_ticks_total", Counter, Labels::None, "Schedule ticks for which this leader created a job.";
    SCHEDULE_TICKS_SKIPPED = "bellwether_schedule_ticks_skipped_total", Counter, Labels::Fixed("reason", &SKIP_REASONS), "Schedule ticks that this leader skipped; for missed ticks of a cron expression, each skip counts at most 100.";
    UNFINISHED_GROUPS = "bellwether_unfinished_groups", Gauge, Labels::None, "Unfinished groups that this leader knows.";
    WORKERS = "bellwether_workers", Gauge, Labels::None, "Live workers that this leader knows.";
    WORKERS_UNLISTED = "bellwether_workers_unlisted", Gauge, Labels::None, "Live workers that get no jobs because the leader cannot list their inboxes.";
    PLACEMENT_FALLBACK = "bellwether_placement_fallback", Gauge(State), Labels::None, "1 while this leader uses the default placement strategy because the one that is set is unknown, unreadable or has failed.";
    SLOTS = "bellwether_slots", Gauge, Labels::None, "Slots of all live workers that this leader knows.";
    SLOTS_USED = "bellwether_slots_used", Gauge, Labels::None, "Occupied slots of all live workers that this leader knows.";
    ASSIGNMENT_DURATION_SECONDS = "bellwether_assignment_duration_seconds", Histogram(Seconds), Labels::None, "Time from when the leader learned of a job to its committed assignment.";
    HANDLER_DURATION_SECONDS = "bellwether_handler_duration_seconds", Histogram(Seconds), Labels::Kind, "Run time of handlers.";
    JOB_END_TO_END_DURATION_SECONDS = "bellwether_job_end_to_end_duration_seconds", Histogram(Seconds), Labels::Kind, "Time from the submission to the committed result, by ZooKeeper's clock.";
    ORPHANED_ATTEMPTS_RECOVERED = "bellwether_orphaned_attempts_recovered_total", Counter, Labels::None, "Attempts of lost workers whose jobs this leader requeued or ended.";
    LEADERSHIP_STATE = "bellwether_leadership_state", Gauge(State), Labels::None, "0 inactive, 1 paused, 2 active.";
    LEADERSHIP_TRANSITIONS = "bellwether_leadership_transitions_total", Counter, Labels::Fixed("state", &["inactive", "paused", "active"]), "Changes of this node's leadership, by the new state.";
    EPOCH = "bellwether_epoch", Gauge(State), Labels::None, "The epoch that this node holds; 0 while it does not lead.";
    LEADERSHIP_TERMS_FENCED = "bellwether_leadership_terms_fenced_total", Counter, Labels::None, "Leadership terms of this node that ended because a newer epoch rejected a write.";
    SESSION_CONNECTED = "bellwether_session_connected", Gauge(State), Labels::None, "1 while ZooKeeper serves every node of this process.";
    SESSIONS_CREATED = "bellwether_sessions_created_total", Counter, Labels::None, "ZooKeeper sessions that this node created.";
    SESSION_RECONNECTS = "bellwether_session_reconnects_total", Counter, Labels::None, "Reconnections that kept the session.";
    SESSIONS_EXPIRED = "bellwether_sessions_expired_total", Counter, Labels::None, "ZooKeeper sessions of this process that expired, or that another client closed.";
    SESSIONS_EXPIRED_EARLY = "bellwether_sessions_expired_early_total", Counter, Labels::None, "ZooKeeper sessions that ended while this node still counted them as alive.";
    ZOOKEEPER_HEARTBEAT_DURATION_SECONDS = "bellwether_zookeeper_heartbeat_duration_seconds", Histogram(Seconds), Labels::None, "Round-trip time of the ZooKeeper session's heartbeats.";
    ZOOKEEPER_REQUESTS = "bellwether_zookeeper_requests_total", Counter, Labels::Fixed("request", &["read", "write"]), "Requests sent to ZooKeeper; a transaction is one.";
    ZOOKEEPER_OPERATIONS = "bellwether_zookeeper_operations_total", Counter, Labels::Fixed("request", &["read", "write"]), "Operations inside these requests.";
    ZOOKEEPER_UNKNOWN_OUTCOMES = "bellwether_zookeeper_unknown_outcomes_total", Counter, Labels::None, "Writes whose reply was lost.";
    UNKNOWN_OUTCOMES_RESOLVED = "bellwether_unknown_outcomes_resolved_total", Counter, Labels::Fixed("outcome", &["applied", "not_applied"]), "Outcomes that were unknown after a lost reply and were then read back: one per submitted job, per assignment of a job or a segment, and per attempt end.";
    HTTP_REQUESTS = "bellwether_http_requests_total", Counter, Labels::Fixed("outcome", &["ok", "client_error", "refused", "server_error"]), "Requests that this gateway answered; refused are 429 and 503.";
    HTTP_REQUEST_DURATION_SECONDS = "bellwether_http_request_duration_seconds", Histogram(Seconds), Labels::None, "Time from a request to the first byte of its response, without long polls, event streams and health checks.";
    HTTP_REFUSALS = "bellwether_http_refusals_total", Counter, Labels::Fixed("reason", &HTTP_REFUSAL_REASONS), "Connections and requests that this gateway refused because a limit was reached.";
    HTTP_CONNECTIONS = "bellwether_http_connections", Gauge, Labels::None, "Open connections to this gateway.";
    HTTP_EVENT_STREAMS = "bellwether_http_event_streams", Gauge, Labels::None, "Event streams that this gateway serves.";
    ACTOR_RESTARTS = "bellwether_actor_restarts_total", Counter, Labels::None, "Restarts after a defect: of an actor, of a group of actors, or of the gateway's accept loop.";
    ZOOKEEPER_REQUEST_DURATION_SECONDS = "bellwether_zookeeper_request_duration_seconds", Histogram(Seconds), Labels::Fixed("request", &["read", "write"]), "Time from sending a request to ZooKeeper to its response.";
    CLOCK_OFFSET_SECONDS = "bellwether_clock_offset_seconds", Gauge(Seconds), Labels::None, "By how much this machine's wall clock is provably ahead of ZooKeeper's; negative if it is behind.";
    SESSION_MARGIN_SECONDS = "bellwether_session_margin_seconds", Gauge(Seconds), Labels::None, "The shortest time, in the last 30 to 60 seconds, for which the ZooKeeper session was still known to be alive; 0 if that time ran out or there is no session.";
    SESSION_TIMEOUT_SECONDS = "bellwether_session_timeout_seconds", Gauge(Seconds), Labels::None, "The session timeout that ZooKeeper granted.";
    WORKERS_LOST = "bellwether_workers_lost_total", Counter, Labels::None, "Workers that ended without a drain and whose inbox this leader emptied and removed.";
    ORPHANED_INBOXES = "bellwether_orphaned_inboxes", Gauge, Labels::None, "Inboxes of dead workers that this leader has not emptied yet.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The label names in use. Extend it only with a name that describes its values.
    const LABEL_NAMES: [&str; 5] = ["kind", "outcome", "reason", "request", "state"];

    #[test]
    fn metric_names_end_in_their_unit() {
        for metric in ALL {
            let Metric { name, kind, unit, help, .. } = metric;
            assert!(name.starts_with("bellwether_"), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == MetricType::Counter, "{name}");
            assert_eq!(name.ends_with("_seconds"), *unit == Unit::Seconds, "{name}");
            assert_eq!(name.ends_with("_duration_seconds"), *kind == MetricType::Histogram, "{name}");
            assert!(help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn label_names_come_from_a_fixed_list() {
        for Metric { name, labels, .. } in ALL {
            let kind = Kind::new("sum").unwrap();
            for (label, value) in labels.series(&[kind]).into_iter().flatten() {
                assert!(LABEL_NAMES.contains(&label), "{name}: the label {label}");
                assert!(!value.is_empty(), "{name}: the label {label}");
            }
        }
    }

    #[test]
    fn constants_are_named_after_their_metrics() {
        for (metric, constant) in ALL.iter().zip(CONSTANTS) {
            let name = metric.name.trim_start_matches("bellwether_").trim_end_matches("_total");
            assert_eq!(name.to_uppercase(), *constant, "{}", metric.name);
        }
    }

    #[test]
    fn a_metric_with_two_labels_has_a_series_for_each_pair_of_values() {
        let kinds = [Kind::new("a").unwrap(), Kind::new("b").unwrap()];
        let label = |name, value: &str| (name, value.to_owned());
        let pair = |kind, state| vec![label("kind", kind), label("state", state)];
        assert_eq!(
            Labels::KindAnd("state", &["x", "y"]).series(&kinds),
            [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("other", "x"), ("other", "y")]
                .map(|(kind, state)| pair(kind, state))
        );
        assert_eq!(Labels::None.series(&kinds), [vec![]]);
        assert_eq!(Labels::Kind.series(&[]), [vec![label("kind", "other")]]);
        assert_eq!(
            Labels::Kind.series(&kinds),
            [vec![label("kind", "a")], vec![label("kind", "b")], vec![label("kind", "other")]]
        );
    }

    #[test]
    fn each_value_of_an_enum_has_its_own_label_value() {
        for names in [&ATTEMPT_OUTCOMES[..], &SKIP_REASONS, &HTTP_REFUSAL_REASONS] {
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        }
    }
}
