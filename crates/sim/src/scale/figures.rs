//! What a job costs one partition. Each figure names its source; `docs/scale.md` lists them.
//!
//! A partition is one ensemble with one leader. The rates are those of two cores that run the servers, the leader, workers and
//! clients together, because no larger machine has been measured.

/// Service time of a plain job in a segment, in nanoseconds. A goal: 35,000 jobs/s on ZooKeeper.
pub const PLAIN_NS: u64 = 1_000_000_000 / 35_000;

/// Service time of a job that has a record, in nanoseconds. Measured: 8,217 jobs/s on ZooKeeper.
pub const RECORD_NS: u64 = 1_000_000_000 / 8_217;

/// Server memory of a waiting plain job of 120 bytes: its share of a segment and of an entry. Measured on ZooKeeper.
const PLAIN_BYTES: u64 = 157;

/// Server memory of a waiting job with a record: two znodes on ZooKeeper. Measured.
const RECORD_BYTES: u64 = 1_140;

/// Memory of a leader without jobs. Measured.
const LEADER_BYTES: u64 = 18 << 20;

/// Entries in a leader's window, and the memory of each. A design figure: 8 MB in total.
const WINDOW: u64 = 20_000;
const ENTRY_BYTES: u64 = 400;

/// Jobs in a full segment, which has one entry.
const SEGMENT: u64 = 100;

/// Leader memory of a waiting job with a lane, of which a leader holds all. Measured.
const LANED_BYTES: u64 = 490;

/// How long a candidate waits for the beat of a leader. The default of the product.
const BEAT_WAIT_MS: u64 = 3_000;

/// Requests of a new leader for one class of jobs, and their time: 320 requests take 0.5 s. Computed.
const TAKEOVER_REQUESTS: u64 = 20;
const REQUEST_US: u64 = 1_600;

/// Waiting jobs that a new leader reads in a millisecond, in multi-reads of 100. Measured on ZooKeeper without load.
const READS_PER_MS: u64 = 800;

/// Returns the memory of each server of a partition for its waiting jobs.
#[must_use]
pub fn server_bytes(plain: u64, records: u64) -> u64 {
    plain * PLAIN_BYTES + records * RECORD_BYTES
}

/// Returns the memory of a partition's leader.
#[must_use]
pub fn leader_bytes(plain: u64, records: u64, laned: u64) -> u64 {
    LEADER_BYTES + WINDOW.min(plain / SEGMENT + records) * ENTRY_BYTES + laned * LANED_BYTES
}

/// Returns the time from the last beat of a leader to the first assignment of the next one.
#[must_use]
pub fn takeover_ms(laned: u64) -> u64 {
    BEAT_WAIT_MS + TAKEOVER_REQUESTS * REQUEST_US / 1_000 + laned / READS_PER_MS
}
