//! The reporter's metrics by kind. The handles are cached, because a lookup per job costs more than the count itself.

use std::collections::HashMap;
use std::time::Duration;

use bellwether_core::job::{AttemptOutcome, ClosedAttempt};
use bellwether_core::machine::worker::status_reporter::reporter::Settled;
use bellwether_core::metric;
use bellwether_core::name::Kind;
use metrics::{Counter, Histogram, counter, histogram};

use crate::kind_label;

#[derive(Default)]
pub(super) struct Meters(HashMap<Kind, OfKind>);

struct OfKind {
    kind: Kind,
    attempts: HashMap<AttemptOutcome, Counter>,
    dead: Counter,
    end_to_end_duration: Histogram,
}

impl OfKind {
    fn new(kind: &Kind) -> Self {
        let label = || kind_label::of_served(kind);
        Self {
            kind: kind.clone(),
            attempts: HashMap::new(),
            dead: counter!(metric::JOBS_DEAD, "kind" => label()),
            end_to_end_duration: histogram!(metric::JOB_END_TO_END_DURATION_SECONDS, "kind" => label()),
        }
    }

    fn attempts(&mut self, how: AttemptOutcome) -> &Counter {
        let labels = || counter!(metric::JOB_ATTEMPTS, "kind" => kind_label::of_served(&self.kind), "outcome" => how.as_str());
        self.attempts.entry(how).or_insert_with(labels)
    }
}

impl Meters {
    /// Counts the end of an attempt of this kind, at this time after its submission.
    pub(super) fn settled(&mut self, kind: &Kind, since_submission: Duration, settled: Settled) {
        let Settled::Closed(ClosedAttempt { how, dead }) = settled else {
            counter!(metric::STALE_RESULTS_DROPPED).increment(1);
            return;
        };
        let meters = self.0.entry(kind.clone()).or_insert_with(|| OfKind::new(kind));
        meters.attempts(how).increment(1);
        if how == AttemptOutcome::Succeeded {
            meters.end_to_end_duration.record(since_submission);
        }
        if dead {
            meters.dead.increment(1);
        }
    }
}
