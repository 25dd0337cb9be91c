//! Every bound of the server, and the argument for its size.
//!
//! What one hostile or stuck client can make the server hold, by what it takes in memory:
//!
//! | what | at most |
//! | --- | --- |
//! | requests | [`OUTSTANDING_BYTES`] and the longest one: 22 MB, since a frame of a megabyte decodes to 20 |
//! | replies | [`REPLIES_HIGH`] and one more: a znode's megabyte, 32 MiB of a multi-read, [`REPLY_BYTES`] of names |
//! | notifications | [`NOTICE_BYTES`] |
//!
//! So it is 35 MB without the help of what is in the tree, and 100 with the longest of lists, for each of
//! [`Limits::connections`]: there is no bound for all clients together, but for one batch's notifications. The
//! usual 4,096 connections can hold more than a machine has. A server that strangers reach wants fewer, and a bound
//! per address. Znodes, sessions and watches are the service itself: they are bounded as in Java, by memory.

use std::time::Duration;

/// The longest request: `jute.maxbuffer` of the Java server. A connection that announces more is closed, since
/// nothing behind such a length can be trusted to be a frame.
pub const FRAME_BYTES: usize = 0xf_ffff;

/// Requests of one connection that may wait for their answers; with more, the socket is not read from. Java's bound
/// for the whole server (`globalOutstandingLimit`) is the same; the usual client has a window of tens to hundreds.
pub const OUTSTANDING_REQUESTS: usize = 1_000;

/// Bytes of one connection's unanswered requests, decoded: the longest frame, and as much again to read on meanwhile;
/// overshot by one read, which can complete one longest request.
pub const OUTSTANDING_BYTES: usize = 2 * 1024 * 1024;

/// Requests that wait for the engine. What it takes at once is committed in a few milliseconds if it is single writes;
/// larger batches add latency and hardly any throughput.
pub const INBOX_REQUESTS: usize = 1_000;

/// Changed znodes behind one commit, overshot by one transaction (25,000 in the longest frame). A row is at most some
/// 5 KB beside its data, so a commit's rows stay below 200 MB. One batch is being committed while the next gathers.
pub const COMMIT_NODES: usize = 10_000;

/// Changed znodes that are sealed in the middle of a batch when the committer is idle. A commit of fewer costs nearly
/// as much as one of as many, so that short batches are better off as one.
pub const SEAL_NODES: usize = 300;

/// What the requests of a batch may weigh before it waits for the disk, overshot by one request. Each adds its data to
/// the commit: as much as the inbox holds.
pub const BATCH_BYTES: usize = INBOX_BYTES;

/// How long nobody may come before the store does what it puts off: longer than the pauses of a client that works
/// through a list, each of whose requests would else find the disk busy.
pub const TIDY_AFTER: Duration = Duration::from_millis(20);

/// Bytes that wait for the engine. A connection that finds the inbox full waits; each can overshoot by one read.
pub const INBOX_BYTES: usize = 8 * 1024 * 1024;

/// With more unsent bytes than this, a connection's next requests are parked, and it is soon not read from: the
/// client has to read before it asks for more. More than a round trip of any sensible network holds.
pub const REPLIES_HIGH: usize = 1024 * 1024;

/// The parked requests go on below this: half, so that the engine is not woken for every write.
pub const REPLIES_LOW: usize = REPLIES_HIGH / 2;

/// The longest list that is answered: a million children fit. A longer one closes its connection, as no client could
/// read it and none of the protocol's errors says so. Multi-reads are bounded by the model.
pub const REPLY_BYTES: usize = 64 * 1024 * 1024;

/// Unsent notifications of one connection, with those that wait for the disk. They cannot be held back like replies, and none may be left out, so a
/// client that is further behind is closed: it re-attaches, sets its watches again and reads what is. About 100,000
/// notifications, seconds of the fastest change.
pub const NOTICE_BYTES: usize = 8 * 1024 * 1024;

/// Notifications for all connections together that wait for the disk, of the batch that is being committed and of the
/// next: two hundred clients that hear of the longest multi. Up to twice as much memory, as buffers grow by doubling
/// (450 MB were measured). Who would get more is closed as above; one transaction cannot fill the memory.
pub const BATCH_NOTICE_BYTES: usize = 256 * 1024 * 1024;

/// How long a new connection may take for TLS and its first frame. Java's
/// `zookeeper.nio.sessionlessCnxnTimeout`.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// Between the look into the inbox that finds a session's time over and the one that ends it, for what waits in
/// sockets after the process was stopped: thousands are read in that time, and against the shortest of sessions it
/// is little.
pub const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How much later than asked for the engine wakes before it takes the process for stopped or starved: far more than a
/// timer's own lateness, and little against the shortest session.
pub const AWAY: Duration = Duration::from_millis(100);

/// [`LOOK_AGAIN`] of a server that was away: while it is starved, tasks that read sockets get their turn late, and one of
/// them may be whose session is thought to be over.
pub const CATCH_UP: Duration = Duration::from_millis(250);

/// How long full batches may keep a look from being the one. Below the shortest session of the default tick.
pub const LOOKS_LAST: Duration = Duration::from_secs(1);

/// How long a connection that is to be closed may take to read what was sent before.
pub const LINGER: Duration = Duration::from_secs(2);

/// A pause after a failed `accept`: out of file descriptors, only time helps.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a buffer keeps when it is empty. One large frame does not tie up its megabyte for good.
pub const BUFFER_KEEPS: usize = 64 * 1024;

/// How much is read from a socket at once: the requests of a window of some hundred small writes, and no more than
/// 5,000 of the smallest, by which a client can overshoot [`OUTSTANDING_REQUESTS`].
pub const READ_BYTES: u64 = 64 * 1024;

/// How many clients a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections from all addresses; the next one is closed at once. Default: 4,096, under the usual limit of file
    /// descriptors on servers; 0 is none.
    pub connections: usize,
    /// Connections from one address (`maxClientCnxns`). Default: 0, none, as on a loopback listener all clients
    /// share their address. Java's default is 60.
    pub connections_per_address: usize,
    /// How long a new connection may take for TLS and its first frame. Default: [`HANDSHAKE`].
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4_096, connections_per_address: 0, handshake: HANDSHAKE }
    }
}
