//! Limits of the gateway. [`Limits`] has those that a deployment may need to change; the others are constants.

use std::time::Duration;

use super::server::PerAddress;

/// Maximum bytes of a request line with its headers, of which a token is the longest.
pub(super) const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Maximum number of headers: browsers send about 20, proxies add a few.
pub(super) const MAX_HEADERS: usize = 64;

/// hyper's buffer of a connection: headers as above, and one read of a body.
pub(super) const MAX_BUFFER: usize = 32 * 1024;

/// Maximum bytes of a body with one job: a payload of 64 KiB as base64 or escaped, and its options.
pub(super) const MAX_BODY: usize = 256 * 1024;

/// Maximum bytes of a body with many jobs.
pub(super) const MAX_BATCH_BODY: usize = 4 * 1024 * 1024;

/// Maximum number of jobs in a body: as many as the client's window holds in one round trip.
pub(super) const MAX_BATCH: usize = 1_000;

/// Maximum bytes of the explanation in a problem. Escaped in JSON it has up to seven times as many.
pub(super) const MAX_DETAIL: usize = 1_024;

/// Bytes of a page of jobs after which no further job is added. One job, with a payload and a result of control characters,
/// has 768 KiB alone.
pub(super) const PAGE_BYTES: usize = 1024 * 1024;

/// Pages that are read at the same time, each for another caller. Their records are in memory several times: as received, as read and as
/// written.
pub(super) const MAX_PAGES_AT_ONCE: usize = 8;

/// Bodies with many jobs that are read or submitted concurrently: at most 32 MiB with their copies.
pub(super) const MAX_BATCHES_AT_ONCE: usize = 4;

/// Minutes in which `/v1/cluster` counts delayed jobs: most of a day, in ten requests. All 20,000 would take two
/// hundred.
pub(super) const MAX_MINUTES: usize = 1_000;

/// The longest long poll: below the default timeout of proxies (60 s).
pub(super) const MAX_WAIT: Duration = Duration::from_secs(50);

/// Maximum bytes of a poll, a heartbeat or a finish of a remote worker: 4,096 attempts with long ids, or 15 results of
/// 64 KiB in base64.
pub(super) const MAX_REMOTE_BODY: usize = 1024 * 1024;

/// Maximum number of attempts that a remote worker finishes or gets in one call.
pub(super) const MAX_REMOTE_ATTEMPTS: usize = 256;

/// Bytes of payloads and checkpoints in the answer of one poll after which no further attempt is added.
pub(super) const POLL_BYTES: usize = 1024 * 1024;

/// The longest poll of a remote worker: half of the usual timeout of proxies (60 s).
pub(super) const MAX_POLL: Duration = Duration::from_secs(30);

/// Duration of a poll of a remote worker without a value.
pub(super) const DEFAULT_POLL: Duration = Duration::from_secs(20);

/// Duration of a long poll without a parameter.
pub(super) const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// `Retry-After` of a saturated gateway: most requests take milliseconds.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Time limit of a TLS handshake.
pub(super) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Time after which a connection is closed whose peer does not read its answer.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(30);

/// Bytes per second that a peer must read of its answer, averaged over [`STALLED_AFTER`].
pub(super) const LEAST_READ_RATE: u32 = 32 * 1024;

/// Send buffer of a connection in the kernel, which doubles it. More would only hold answers of peers that read slowly.
pub(super) const SEND_BUFFER: u32 = 128 * 1024;

/// Limits on concurrency and time. [`GatewayBuilder::check`](crate::GatewayBuilder::check) refuses a count of 0, and a time below 1 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Limits {
    /// Open connections. Each needs a file descriptor. Further connections are answered with 503 and closed.
    pub connections: usize,
    /// Open connections of one address, or of one IPv6 network of 64 bits. Without a value, a quarter of the connections, and
    /// addresses of this machine have no limit, because a proxy may connect for many callers.
    pub connections_per_address: Option<usize>,
    /// Concurrent requests, except long polls and event streams. Further requests get 503.
    pub requests: usize,
    /// Concurrent requests of one caller, identified by token or else by address. Further requests get 429.
    pub requests_per_caller: usize,
    /// Concurrent long polls. Further ones get 503.
    pub waits: usize,
    /// Event streams. Further ones get 503.
    pub streams: usize,
    /// Remote workers. Each has its own session in ZooKeeper. Further ones get 503.
    pub remote_workers: usize,
    /// Time for the headers of a request, and for an idle connection.
    pub header_time: Duration,
    /// Time for a request with its body, except long polls and event streams. After it the request gets 504.
    pub request_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            connections_per_address: None,
            // Multiplied by the largest body: 64 MiB, or 256 MiB if all requests are finishes of remote workers.
            requests: 256,
            requests_per_caller: 128,
            // Only 64 waits for a job have a watch; the others read their job every 250 ms: 2,000 reads per second.
            waits: 512,
            streams: 2_048,
            // Each may wait in a poll: half of the waits.
            remote_workers: 256,
            header_time: Duration::from_secs(10),
            // Longer than the client's deadline, because the client's error has more detail.
            request_time: Duration::from_secs(20),
        }
    }
}

/// A limit that is too low.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the gateway's limit `{field}` must be {least} or more")]
pub struct LimitsError {
    field: &'static str,
    least: String,
}

impl Limits {
    /// Sets the number of open connections: 1 or more. Default 4,096.
    pub fn connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// Sets the number of open connections of one address, or of one IPv6 network of 64 bits: 1 or more. `None`, the default, is a
    /// quarter of the connections, and no limit for addresses of this machine.
    pub fn connections_per_address(self, connections: impl Into<Option<usize>>) -> Self {
        Self { connections_per_address: connections.into(), ..self }
    }

    /// Sets the number of concurrent requests: 1 or more. Default 256.
    pub fn requests(self, requests: usize) -> Self {
        Self { requests, ..self }
    }

    /// Sets the number of concurrent requests of one caller: 1 or more. Default 128.
    pub fn requests_per_caller(self, requests: usize) -> Self {
        Self { requests_per_caller: requests, ..self }
    }

    /// Sets the number of concurrent long polls, which include those of remote workers: at least the number of remote
    /// workers. Default 512.
    pub fn waits(self, waits: usize) -> Self {
        Self { waits, ..self }
    }

    /// Sets the number of event streams: 1 or more. Default 2,048.
    pub fn streams(self, streams: usize) -> Self {
        Self { streams, ..self }
    }

    /// Sets the number of remote workers: 1 or more. Default 256. Raises the number of long polls to twice this value if it is
    /// lower, so that the other callers have as many polls as the workers; a later call of [`Limits::waits`] replaces that.
    pub fn remote_workers(self, remote_workers: usize) -> Self {
        Self { remote_workers, waits: self.waits.max(remote_workers.saturating_mul(2)), ..self }
    }

    /// Sets the time for the headers of a request, and for an idle connection: 1 ms or more. Default 10 s.
    pub fn header_time(self, time: Duration) -> Self {
        Self { header_time: time, ..self }
    }

    /// Sets the time for a request with its body: 1 ms or more. Default 20 s.
    pub fn request_time(self, time: Duration) -> Self {
        Self { request_time: time, ..self }
    }

    /// The limit of the connections of one address.
    pub(super) fn per_address(&self) -> PerAddress {
        match self.connections_per_address {
            Some(most) => PerAddress { most, loopback: true },
            None => PerAddress { most: self.connections.div_ceil(4), loopback: false },
        }
    }

    pub(super) fn check(&self) -> Result<(), LimitsError> {
        let Self {
            connections,
            connections_per_address,
            requests,
            requests_per_caller,
            waits,
            streams,
            remote_workers,
            header_time,
            request_time,
        } = *self;
        let counts = [
            ("connections", connections),
            ("connections_per_address", connections_per_address.unwrap_or(1)),
            ("requests", requests),
            ("requests_per_caller", requests_per_caller),
            ("waits", waits),
            ("streams", streams),
            ("remote_workers", remote_workers),
        ];
        let times = [("header_time", header_time), ("request_time", request_time)];
        let count = counts.iter().find(|(_, count)| *count == 0).map(|(field, _)| (*field, "1"));
        let short = |time: Duration| time < Duration::from_millis(1);
        let time = times.iter().find(|(_, time)| short(*time)).map(|(field, _)| (*field, "1ms"));
        if let Some((field, least)) = count.or(time) {
            return Err(LimitsError { field, least: least.to_owned() });
        }
        // Each remote worker may wait in a poll.
        if waits < remote_workers {
            let least = format!("{remote_workers}, the number of remote workers,");
            return Err(LimitsError { field: "waits", least });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_remote_worker_has_room_for_its_poll() {
        let usual = Limits::default();
        assert_eq!(usual.remote_workers(3), Limits { remote_workers: 3, ..usual });
        assert_eq!(usual.remote_workers(1_000).waits, 2_000);
        let refused = usual.waits(255).check().unwrap_err().to_string();
        let least = "the gateway's limit `waits` must be 256, the number of remote workers, or more";
        assert_eq!(refused, least);
        assert!(usual.waits(256).check().is_ok() && usual.remote_workers(9).waits(9).check().is_ok());
    }
}
