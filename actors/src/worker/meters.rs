//! The reporter's metrics by kind. The handles are cached, because a lookup per job costs more than the count itself.

use std::collections::HashMap;

use bellwether_core::job::AttemptEndKind;
use bellwether_core::machine::worker::status_reporter::reporter::{Close, Settled};
use bellwether_core::metric;
use bellwether_core::name::Kind;
use metrics::{Counter, Histogram, counter, histogram};

#[derive(Default)]
pub(super) struct Meters(HashMap<Kind, OfKind>);

struct OfKind {
    completed: Counter,
    failed: Counter,
    dead: Counter,
    cancelled: Counter,
    released: Counter,
    deferred: Counter,
    lease_expired: Counter,
    run_seconds: Histogram,
    end_to_end_seconds: Histogram,
}

impl OfKind {
    fn new(kind: &Kind) -> Self {
        let label = || kind.as_str().to_owned();
        Self {
            completed: counter!(metric::JOBS_COMPLETED, "kind" => label()),
            failed: counter!(metric::JOBS_FAILED, "kind" => label()),
            dead: counter!(metric::JOBS_DEAD, "kind" => label()),
            cancelled: counter!(metric::JOBS_CANCELLED, "kind" => label()),
            released: counter!(metric::JOBS_RELEASED, "kind" => label()),
            deferred: counter!(metric::JOBS_DEFERRED, "kind" => label()),
            lease_expired: counter!(metric::LEASES_EXPIRED, "kind" => label()),
            run_seconds: histogram!(metric::RUN_SECONDS, "kind" => label()),
            end_to_end_seconds: histogram!(metric::END_TO_END_SECONDS, "kind" => label()),
        }
    }
}

impl Meters {
    pub(super) fn settled(&mut self, close: &Close, settled: Settled) {
        let Settled::Closed { how, dead } = settled else {
            counter!(metric::ZOMBIES).increment(1);
            counter!(metric::FENCED).increment(1);
            return;
        };
        let kind = &close.record().kind;
        if !self.0.contains_key(kind) {
            self.0.insert(kind.clone(), OfKind::new(kind));
        }
        let meters = &self.0[kind];
        match how {
            AttemptEndKind::Succeeded => {
                meters.completed.increment(1);
                meters.end_to_end_seconds.record(close.since_submission());
            }
            AttemptEndKind::Failed | AttemptEndKind::Invalid => meters.failed.increment(1),
            AttemptEndKind::Cancelled => meters.cancelled.increment(1),
            AttemptEndKind::Released => meters.released.increment(1),
            AttemptEndKind::Deferred => meters.deferred.increment(1),
            AttemptEndKind::LeaseExpired => meters.lease_expired.increment(1),
            // An overdue job is counted as dead below. Only a leader closes attempts as lost.
            AttemptEndKind::Overdue | AttemptEndKind::Lost => {}
        }
        if dead {
            meters.dead.increment(1);
        }
        if let Some(ran) = close.ran() {
            meters.run_seconds.record(ran);
        }
    }
}
