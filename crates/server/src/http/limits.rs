//! The gateway's bounds. Those that a deployment may need to change are in [`Limits`]; the rest are constants.

use std::time::Duration;

/// Most bytes of a request line with its headers, of which a token is the longest.
pub(super) const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Most headers: browsers send about 20, proxies add a few.
pub(super) const MAX_HEADERS: usize = 64;

/// hyper's buffer of a connection: a header as above, and what of a body is read at once.
pub(super) const MAX_BUFFER: usize = 32 * 1024;

/// Most bytes of a body that holds one job: a payload of 64 KiB as base64 or escaped, and its policy.
pub(super) const MAX_BODY: usize = 256 * 1024;

/// Most bytes of a body that holds many.
pub(super) const MAX_BATCH_BODY: usize = 4 * 1024 * 1024;

/// Most jobs of one body: what one round trip of the client's window holds.
pub(super) const MAX_BATCH: usize = 1_000;

/// Bodies with many jobs that are read or submitted at a time: 32 MiB with their copies at most.
pub(super) const MAX_BATCHES_AT_ONCE: usize = 4;

/// Deepest nesting of a payload. What is deeper no reader with a recursion limit (serde's is 128) can take, so its
/// handler would fail on each attempt.
pub(super) const MAX_DEPTH: usize = 100;

/// Minutes in which `/v1/cluster` counts delayed jobs: most of a day, in ten requests. All may be 20,000, in two hundred.
pub(super) const MAX_MINUTES: usize = 1_000;

/// The longest long poll: below what proxies wait for by default (60 s).
pub(super) const MAX_WAIT: Duration = Duration::from_secs(50);

/// A long poll that does not say.
pub(super) const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// What a saturated gateway asks for: most requests take milliseconds.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long a peer may take for its TLS handshake.
pub(super) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// How long a connection may take no byte of an answer before it is closed.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(30);

/// What a gateway takes on at a time, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. Each needs a file descriptor; those beyond are answered 503 and closed.
    pub connections: usize,
    /// Requests under way, long polls and event streams aside. Beyond it 503.
    pub requests: usize,
    /// Of these, those of one caller, by token or else by address. Beyond it 429.
    pub requests_of_one: usize,
    /// Long polls under way. Beyond it 503.
    pub waits: usize,
    /// Event streams. Beyond it 503.
    pub streams: usize,
    /// How long the headers of a request may take, and a connection may be idle.
    pub header_time: Duration,
    /// How long a request may take, its body included; long polls and event streams aside. Beyond it 504.
    pub request_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            // Times the largest body: 64 MiB.
            requests: 256,
            requests_of_one: 128,
            // Only 64 of them are watched; the others read their job every 250 ms: 2,000 reads a second.
            waits: 512,
            streams: 2_048,
            header_time: Duration::from_secs(10),
            // Longer than the client's deadline, whose answer says more.
            request_time: Duration::from_secs(20),
        }
    }
}

/// A limit that nothing could be served with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gateway's limit `{field}` must be {least} or more")]
pub struct LimitsError {
    field: &'static str,
    least: &'static str,
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), LimitsError> {
        let Self { connections, requests, requests_of_one, waits, streams, header_time, request_time } =
            *self;
        let counts = [
            ("connections", connections),
            ("requests", requests),
            ("requests_of_one", requests_of_one),
            ("waits", waits),
            ("streams", streams),
        ];
        let times = [("header_time", header_time), ("request_time", request_time)];
        let count = counts.iter().find(|(_, count)| *count == 0).map(|(field, _)| (*field, "1"));
        let short = |time: Duration| time < Duration::from_millis(1);
        let time = times.iter().find(|(_, time)| short(*time)).map(|(field, _)| (*field, "1ms"));
        match count.or(time) {
            Some((field, least)) => Err(LimitsError { field, least }),
            None => Ok(()),
        }
    }
}
