//! Every bound of the server, with the reason for its value.
//!
//! Memory that one hostile or stuck client can occupy:
//!
//! | data | at most |
//! | --- | --- |
//! | requests | [`OUTSTANDING_BYTES`] plus the longest request: 22 MB, because a frame of 1 MB decodes to 20 MB |
//! | replies | [`REPLIES_HIGH`] plus one reply: a znode of 1 MB, a multi-read of 32 MiB, or [`REPLY_BYTES`] of names |
//! | notifications | [`NOTICE_BYTES`] |
//!
//! This adds up to 35 MB, or 100 MB with the longest lists of children, for each connection. All connections together hold
//! at most [`Limits::connection_memory`]: above it the connections that hold most are closed. In addition each connection keeps up to
//! four empty buffers of [`BUFFER_KEEPS`] and one for [`TURN_REQUESTS`], and the budget can be exceeded by an eighth, by one reply and by
//! one decoded request per thread.
//! [`Bounds`](super::Bounds) limits znodes, sessions and watches.

use std::time::Duration;

/// The longest request: `jute.maxbuffer` of the Java server. A connection that announces a longer one is closed,
/// because the bytes after such a length cannot be assumed to be a frame.
pub const FRAME_BYTES: usize = 0xf_ffff;

/// The longest first frame: about a hundred times that of a client. A connection without a session holds little more than this.
pub const FIRST_FRAME_BYTES: usize = 4 * 1024;

/// Unanswered requests per connection; at this limit the socket is not read. One turn can exceed it. Java's limit for the whole
/// server (`globalOutstandingLimit`) has the same value; a typical client has tens to hundreds of requests in flight.
pub const OUTSTANDING_REQUESTS: usize = 1_000;

/// Requests that a connection decodes and sends to the engine at a time: all that a usual client has in flight, so that they form one
/// batch. Clients that send more take turns, and others wait less.
pub const TURN_REQUESTS: usize = 500;

/// Decoded bytes of unanswered requests per connection: the longest frame, and as much again to read ahead. One read
/// can exceed it by one request of the longest size.
pub const OUTSTANDING_BYTES: usize = 2 * 1024 * 1024;

/// Requests in the inbox of the engine. If they are single writes, the engine commits that many in a few milliseconds;
/// larger batches add latency and hardly any throughput.
pub const INBOX_REQUESTS: usize = 1_000;

/// Changed znodes per commit; one transaction can exceed it (25,000 znodes in the longest frame). A row has at most
/// about 5 KB in addition to its data, so the rows of a commit stay below 200 MB. One batch is committed while the next
/// one fills.
pub const COMMIT_NODES: usize = 10_000;

/// Changed znodes after which a batch is sealed early if the committer is idle. A commit of fewer znodes costs nearly
/// as much as one of this size, so short batches are committed whole.
pub const SEAL_NODES: usize = 300;

/// Request bytes per batch before the engine waits for the disk; one request can exceed it. Each request adds its data
/// to the commit. The value is the capacity of the inbox.
pub const BATCH_BYTES: usize = INBOX_BYTES;

/// Idle time before the store does deferred work. Longer than the pauses of a client that sends sequential requests:
/// otherwise each of its requests would wait for the disk.
pub const TIDY_AFTER: Duration = Duration::from_millis(20);

/// Request bytes in the inbox, which one longer request can exceed. A connection waits for space.
pub const INBOX_BYTES: usize = 8 * 1024 * 1024;

/// Request bytes for which a request takes one of the [`INBOX_REQUESTS`] places: all places together hold [`INBOX_BYTES`].
pub const PLACE_BYTES: usize = INBOX_BYTES / INBOX_REQUESTS;

/// Unsent bytes above which further requests of a connection are parked; soon after, its socket is not read. The client
/// must read before it can send more. The value exceeds the bandwidth-delay product of any usual network.
pub const REPLIES_HIGH: usize = 1024 * 1024;

/// Unsent bytes below which parked requests resume: half of the high mark, so that not every write wakes the engine.
pub const REPLIES_LOW: usize = REPLIES_HIGH / 2;

/// The longest list in a reply: one million children fit. For a longer one the connection is closed, because no client
/// can read it and the protocol has no error for it. The model bounds multi-reads.
pub const REPLY_BYTES: usize = 64 * 1024 * 1024;

/// Unsent notifications per connection, including those that wait for the commit. They cannot be parked like replies
/// and none may be dropped, so a connection that exceeds the limit is closed. Its client re-attaches, sets its watches
/// again and reads the current state. The value is about 100,000 notifications, several seconds of the fastest possible
/// changes.
pub const NOTICE_BYTES: usize = 8 * 1024 * 1024;

/// Notifications of all connections that wait for a commit, in the current and the next batch: enough for two hundred
/// clients that watch the longest multi. They take up to twice that memory because buffers grow by doubling (measured:
/// 450 MB). A connection that would exceed the limit is closed as above, so that one transaction cannot exhaust the
/// memory.
pub const BATCH_NOTICE_BYTES: usize = 256 * 1024 * 1024;

/// Time limit for the TLS handshake and the first frame of a new connection. Java:
/// `zookeeper.nio.sessionlessCnxnTimeout`.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// Time between the look at the inbox that finds a session timed out and the look that expires it, so that requests
/// which waited in sockets while the process was stopped are read. Thousands of requests are read in that time, and it
/// is short compared with the shortest session.
pub const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Delay of a wake-up after which the engine assumes that the process was stopped or starved: far above the inaccuracy
/// of timers, and short compared with the shortest session.
pub const AWAY: Duration = Duration::from_millis(100);

/// [`LOOK_AGAIN`] after a late wake-up. In a starved process the tasks that read sockets also run late, and one of them
/// may hold a request of a session that seems to have timed out.
pub const CATCH_UP: Duration = Duration::from_millis(250);

/// The longest time for which full batches can delay a look from counting. Shorter than the shortest session at the
/// default tick.
pub const LOOKS_LAST: Duration = Duration::from_secs(1);

/// Time limit for a client to read the remaining bytes of a connection that is being closed.
pub const LINGER: Duration = Duration::from_secs(2);

/// Pause after a failed `accept`. When file descriptors run out, only waiting helps.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Capacity that an empty buffer keeps. One large frame does not hold a megabyte permanently.
pub const BUFFER_KEEPS: usize = 64 * 1024;

/// Bytes per read of a socket: about a hundred small writes, and at most 5,000 of the smallest requests.
pub const READ_BYTES: u64 = 64 * 1024;

/// The length from which frames are decoded and sent to the engine by one connection at a time, so that many clients with long
/// requests occupy one thread, and compete with the others for the inbox as one client. As long as one read, so a shorter frame
/// costs no more than the small requests that fit into its place.
pub const LONG_BYTES: usize = 64 * 1024;

/// Memory of a decoded request per byte of its frame, at most: a multi-read of the shortest paths.
pub const DECODED_PER_BYTE: usize = 24;

/// Limits for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Limits {
    /// Connections from all addresses; a further one is closed immediately. Default: 4,096, below the usual limit of
    /// file descriptors on servers. `None` is no limit.
    pub connections: Option<usize>,
    /// Connections from one address (`maxClientCnxns`). Default: `None` (no limit), because all clients of a loopback
    /// listener share one address. Java's default is 60.
    pub connections_per_address: Option<usize>,
    /// Bytes of received and unanswered requests, and of unsent replies and notifications, of all connections together.
    /// Default: [`MEMORY_BYTES`].
    pub connection_memory: usize,
    /// Time limit for the TLS handshake and the first frame. Default: [`HANDSHAKE`].
    pub handshake_time: Duration,
}

/// Memory for the requests and replies of all connections: the longest notifications of a batch fit twice, and thousands of
/// clients with usual requests.
pub const MEMORY_BYTES: usize = 512 * 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: Some(4_096),
            connections_per_address: None,
            connection_memory: MEMORY_BYTES,
            handshake_time: HANDSHAKE,
        }
    }
}

impl Limits {
    /// Sets the number of connections from all addresses: 1 or more. Default 4,096; `None` is no limit.
    pub fn connections(self, connections: impl Into<Option<usize>>) -> Self {
        Self { connections: connections.into(), ..self }
    }

    /// Sets the number of connections from one address: 1 or more. Default `None`, which is no limit.
    pub fn connections_per_address(self, connections: impl Into<Option<usize>>) -> Self {
        Self { connections_per_address: connections.into(), ..self }
    }

    /// Sets the bytes that all connections together may hold. Default [`MEMORY_BYTES`].
    pub fn connection_memory(self, bytes: usize) -> Self {
        Self { connection_memory: bytes, ..self }
    }

    /// Sets the time limit for the TLS handshake and the first frame. Default [`HANDSHAKE`].
    pub fn handshake_time(self, time: Duration) -> Self {
        Self { handshake_time: time, ..self }
    }

    /// Returns the name of a limit that no client satisfies.
    pub(super) fn prohibitive(&self) -> Option<&'static str> {
        let Self { connections, connections_per_address, connection_memory, handshake_time } = *self;
        [
            ("connections", connections == Some(0)),
            ("connections_per_address", connections_per_address == Some(0)),
            ("connection_memory", connection_memory == 0),
            ("handshake_time", handshake_time.is_zero()),
        ]
        .into_iter()
        .find_map(|(name, is_zero)| is_zero.then_some(name))
    }
}
