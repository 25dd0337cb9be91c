//! Configuration of the model.

use crate::proto::Compat;

/// Default bounds of session timeouts, in ticks.
const MIN_TICKS: i32 = 2;
const MAX_TICKS: i32 = 20;
/// ZooKeeper's default tick.
const TICK_MS: i32 = 2000;
/// ZooKeeper's interval for the removal of containers and TTL znodes.
const CLEANING_INTERVAL_MS: u64 = 60_000;

/// What clients may store and set, all together. Without bounds a client could take all memory of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Bounds {
    /// Sessions. A client that asks for another one is disconnected. Default: 50,000, each of which needs up to 1 KiB.
    pub sessions: usize,
    /// Watches, counted once per connection and path. A request for another one fails with `THROTTLEDOP`; a client that sets
    /// its watches again is disconnected. Default: 1,000,000, each of which needs about 200 bytes and its path.
    pub watches: usize,
    /// The total length of the paths of all watches, counted once per connection. Default: 256 MiB.
    pub watch_bytes: usize,
    /// Znodes. A create fails with `QUOTAEXCEEDED`. Default: 10,000,000, each of which needs about 500 bytes.
    pub znodes: usize,
    /// The total length of all paths and data. A write that would exceed it fails with `QUOTAEXCEEDED`, unless it makes the
    /// data shorter. Default: 4 GiB.
    pub data_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            sessions: 50_000,
            watches: 1_000_000,
            watch_bytes: 256 * 1024 * 1024,
            znodes: 10_000_000,
            data_bytes: 4 * 1024 * 1024 * 1024,
        }
    }
}

impl Bounds {
    /// Sets the number of sessions. Default 50,000.
    pub fn sessions(self, sessions: usize) -> Self {
        Self { sessions, ..self }
    }

    /// Sets the number of watches. Default 1,000,000.
    pub fn watches(self, watches: usize) -> Self {
        Self { watches, ..self }
    }

    /// Sets the total length of the paths of all watches, in bytes. Default 256 MiB.
    pub fn watch_bytes(self, bytes: usize) -> Self {
        Self { watch_bytes: bytes, ..self }
    }

    /// Sets the number of znodes. Default 10,000,000.
    pub fn znodes(self, znodes: usize) -> Self {
        Self { znodes, ..self }
    }

    /// Sets the total length of all paths and data, in bytes. Default 4 GiB.
    pub fn data_bytes(self, bytes: u64) -> Self {
        Self { data_bytes: bytes, ..self }
    }
}

/// Configuration of the model, in the milliseconds of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The granularity of session expiry, above 0. Session timeouts are 2 to 20 ticks unless the bounds below are set.
    pub tick_ms: i32,
    /// The shortest session timeout, above 0.
    pub min_session_timeout_ms: Option<i32>,
    /// The longest session timeout, not below the shortest.
    pub max_session_timeout_ms: Option<i32>,
    /// The interval for the removal of empty containers and expired TTL znodes, above 0.
    pub cleaning_interval_ms: u64,
    /// Whether clients can create TTL znodes.
    pub extended_types: bool,
    /// The digest identity that passes every ACL, as `user:base64(sha1(user:password))`.
    pub super_digest: Option<String>,
    /// The release whose behaviour clients see.
    pub compat: Compat,
    /// What clients may store and set.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tick_ms: TICK_MS,
            min_session_timeout_ms: None,
            max_session_timeout_ms: None,
            cleaning_interval_ms: CLEANING_INTERVAL_MS,
            extended_types: true,
            super_digest: None,
            compat: Compat::default(),
            bounds: Bounds::default(),
        }
    }
}

impl Config {
    /// Returns the shortest and the longest session timeout.
    #[must_use]
    pub fn session_bounds_ms(&self) -> (i32, i32) {
        (
            self.min_session_timeout_ms.unwrap_or(self.tick_ms.saturating_mul(MIN_TICKS)),
            self.max_session_timeout_ms.unwrap_or(self.tick_ms.saturating_mul(MAX_TICKS)),
        )
    }

    /// Returns the session timeout for a client that requests `asked`.
    pub(super) fn negotiate(&self, asked: i32) -> i32 {
        let (shortest, longest) = self.session_bounds_ms();
        asked.max(shortest).min(longest)
    }
}
