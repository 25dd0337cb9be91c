//! Counters reported by the four-letter words.
//!
//! A latency is the time from the arrival of a frame to the release of its reply after the commit. Latencies are
//! recorded once per batch: their sum needs only the sum of the arrival times.

use std::time::{Duration, Instant};

/// Arrival times of the requests of one batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrivals {
    origin: Instant,
    count: u64,
    sum: Duration,
    first: Duration,
    last: Duration,
}

impl Arrivals {
    /// Returns an empty set. Times are counted from `origin`, which must be before every arrival.
    pub(super) fn since(origin: Instant) -> Self {
        Self { origin, count: 0, sum: Duration::ZERO, first: Duration::MAX, last: Duration::ZERO }
    }

    /// Adds one arrival.
    pub(super) fn add(&mut self, received: Instant) {
        let received = received.saturating_duration_since(self.origin);
        self.count += 1;
        self.sum += received;
        self.first = self.first.min(received);
        self.last = self.last.max(received);
    }

    /// Returns the recorded arrivals and resets `self`.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::since(self.origin))
    }
}

/// Latencies since the start or the last reset. They are reported in whole milliseconds, as in Java.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latency {
    count: u64,
    sum: Duration,
    min: Option<Duration>,
    max: Duration,
    last: Duration,
}

impl Latency {
    /// Adds a batch that was released at `now`.
    pub(super) fn record(&mut self, batch: Arrivals, now: Instant) {
        if batch.count == 0 {
            return;
        }
        let now = now.saturating_duration_since(batch.origin);
        self.count += batch.count;
        let count = u32::try_from(batch.count).unwrap_or(u32::MAX);
        self.sum += (now * count).saturating_sub(batch.sum);
        self.last = now.saturating_sub(batch.last);
        self.min = Some(self.min.map_or(self.last, |min| min.min(self.last)));
        self.max = self.max.max(now.saturating_sub(batch.first));
    }

    pub(super) fn min_ms(&self) -> u128 {
        self.min.unwrap_or_default().as_millis()
    }

    pub(super) fn max_ms(&self) -> u128 {
        self.max.as_millis()
    }

    pub(super) fn last_ms(&self) -> u128 {
        self.last.as_millis()
    }

    pub(super) fn average_ms(&self) -> f64 {
        let count = u32::try_from(self.count).unwrap_or(u32::MAX).max(1);
        self.sum.as_secs_f64() * 1_000.0 / f64::from(count)
    }
}

/// Counts of received and sent frames, and the latencies of requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) latency: Latency,
}
