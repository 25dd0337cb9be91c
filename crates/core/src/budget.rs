//! The bounds, each with its argument. Beyond one the caller gets a typed error before anything is written.

use std::time::Duration;

/// Longest name in bytes. Keeps a 5,000-entry child list under ZooKeeper's 1 MB reply limit for Java tools.
pub const MAX_NAME_BYTES: usize = 128;

/// Largest payload or result. ZooKeeper is a coordination service: larger data belongs in a store, its address here.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// Longest error text kept with a job; the rest is cut at a character boundary.
pub const MAX_ERROR_BYTES: usize = 4 * 1024;

/// Most tags on a job or a worker.
pub const MAX_TAGS: usize = 32;

/// Most kinds that one worker serves.
pub const MAX_KINDS: usize = 256;

/// Most attempts or losses a policy may allow: a job that needs more is a loop, not a retry.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// Highest stored count of attempts, failures, losses or generations: no history gets there, and counting on
/// from it cannot overflow.
pub const MAX_COUNT: u32 = u32::MAX / 2;

/// Longest wait between attempts, and longest timeout of one: a week.
pub const MAX_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Shortest time after which a handler may ask to be called again. Such a round costs the cluster four transactions, counts
/// as nothing and has no bound on how often: a job that always asks for none would keep everybody busy.
pub const MIN_DEFERRAL: Duration = Duration::from_secs(1);

/// A job's lease unless it, or its kind, has another: longer than most jobs run, short enough that a hung one is noticed
/// before its user does.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(300);

/// Shortest lease. Below it the leader's sight of a renewal, late by a watch and a mailbox, would revoke honest work.
pub const MIN_LEASE: Duration = Duration::from_secs(1);

/// Longest message of a job's progress.
pub const MAX_MESSAGE_BYTES: usize = 1024;

/// Largest checkpoint. It says where to go on; what was done belongs in a store.
pub const MAX_CHECKPOINT_BYTES: usize = 16 * 1024;

/// Most members of a group.
pub const MAX_MEMBERS: u32 = 1_000_000;

/// What a step of priority is worth in waiting. Nine of them are the longest that a job can be held up by later ones of
/// higher priority; four put the most urgent before half a working day's backlog of ordinary ones. Minutes would be no
/// urgency beside a backlog of hours, and days no bound.
pub const AGEING: Duration = Duration::from_secs(3_600);

/// How far ahead a job's start or expiry may lie: ten years. What is further is a mistake of units, not a plan.
pub const MAX_AHEAD: Duration = Duration::from_secs(3_653 * 86_400);

/// Most minutes that jobs may be delayed to: two weeks of them, each with jobs. The leader lists them every minute, which is
/// a quarter of a megabyte then.
pub const MAX_MINUTES: usize = 20_000;

/// Longest text that says who paused a kind: a line for people.
pub const MAX_BY_BYTES: usize = 256;

/// Longest name of a schedule: with `@` and a UUID behind it, as a triggered job's id has, it is a job's id.
pub const MAX_SCHEDULE_ID_BYTES: usize = MAX_NAME_BYTES - 37;

/// Largest payload of a schedule: the leader holds all of them.
pub const MAX_SCHEDULE_PAYLOAD_BYTES: usize = 16 * 1024;

/// Most schedules of a namespace. They have one parent: a list of so many of the longest names stays under ZooKeeper's
/// 1 MB reply limit for Java tools.
pub const MAX_SCHEDULES: usize = 10_000;

/// Members of a group that share a parent znode: under [`MAX_BUCKET_ENTRIES`], and with short names. The largest group
/// has 245 such chunks.
pub const MEMBERS_PER_CHUNK: u32 = 4_096;

/// How deep groups may be nested: deeper than anybody means to, and an end to a kind that submits itself.
pub const MAX_DEPTH: u32 = 16;

/// Hash buckets under `/jobs` and `/queue`.
pub const BUCKETS: u16 = 256;

/// Most entries of one bucket: a fifth of where the Java tools' child lists break.
pub const MAX_BUCKET_ENTRIES: usize = 5_000;

/// Most operations of one multi. The throughput knee is at 50 to 100 jobs; a job is two to four operations.
pub const MAX_TXN_OPS: usize = 500;

/// Most bytes of one multi: a quarter of ZooKeeper's default 1 MB request limit, beyond which the server
/// drops the connection and every request behind it.
pub const MAX_TXN_BYTES: usize = 256 * 1024;

/// Most requests in flight per session where one caller has many to send. The windows of a node's actors and of a
/// client's batcher add up to less: enough to fill the server's pipeline, few enough that a lost connection
/// leaves a readable number of unknown outcomes.
pub const MAX_IN_FLIGHT: usize = 64;

/// Most paths of one batched read.
pub const MAX_READ_BATCH: usize = 100;

/// Most lanes of one batched list. Lanes have no bound of their own: ten with 10,000 of the longest names each are 14 MB,
/// which a server may still put into one reply, and a hundred would not be.
pub const MAX_LANE_LISTS: usize = 10;

/// Largest stored record: payload, result, error, progress and the rest of a job record, with room for a later field.
pub const MAX_RECORD_BYTES: usize =
    2 * MAX_PAYLOAD_BYTES + MAX_ERROR_BYTES + MAX_CHECKPOINT_BYTES + MAX_MESSAGE_BYTES + 16 * 1024;

/// Most slots of one worker.
pub const MAX_SLOTS: u32 = 4_096;

/// Most records that retention may keep: all that the buckets hold.
pub const MAX_RECORDS: u32 = BUCKETS as u32 * MAX_BUCKET_ENTRIES as u32;

/// Shortest retention: four times a client's usual deadline. A client that lost the reply to a submission looks for the
/// record, and sends the job again if there is none: it must not be gone by then because it is over.
pub const MIN_RETENTION: Duration = Duration::from_secs(60);

/// Longest retention: ten years. A record that must be kept for longer belongs in an archive.
pub const MAX_RETENTION: Duration = Duration::from_secs(3650 * 24 * 3600);
