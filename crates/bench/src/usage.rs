//! Processor time and memory by process.

use std::time::Duration;

use serde::Serialize;

use super::count;

/// A quantity of each process of a run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Usage<T> {
    /// The benchmark itself: the client.
    pub client: T,
    /// The leader.
    pub leader: T,
    /// All workers together.
    pub workers: T,
    /// The ZooKeeper server; `None` if its process is on another machine or belongs to another user.
    pub server: Option<T>,
}

impl<T> Usage<T> {
    /// Combines two quantities of each process.
    pub(super) fn zip<U, V>(self, other: Usage<U>, with: impl Fn(T, U) -> V) -> Usage<V> {
        Usage {
            client: with(self.client, other.client),
            leader: with(self.leader, other.leader),
            workers: with(self.workers, other.workers),
            server: self.server.zip(other.server).map(|(own, other)| with(own, other)),
        }
    }
}

impl Usage<Duration> {
    /// Returns the microseconds per job since `before`.
    pub(super) fn per_job(self, before: Self, jobs: usize) -> Usage<f64> {
        self.zip(before, |now, before| now.saturating_sub(before).as_secs_f64() * 1e6 / count(jobs))
    }
}

impl Usage<f64> {
    /// Returns the sum over the processes of the product, without the server.
    #[must_use]
    pub fn product(&self) -> f64 {
        self.client + self.leader + self.workers
    }
}
