//! All bounds, each with its reason. A caller that exceeds one gets a typed error before anything is written.

use std::time::Duration;

/// Longest name in bytes. Keeps a 5,000-entry child list under ZooKeeper's 1 MB reply limit for Java tools.
pub const MAX_NAME_BYTES: usize = 128;

/// Largest payload or result. ZooKeeper is a coordination service: store larger data elsewhere and submit its address.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// Largest payload or result before a codec encodes it and after it is decoded. A worker holds one of each per running
/// job, and a client one per call.
pub const MAX_PLAIN_BYTES: usize = 16 * 1024 * 1024;

/// Longest error text kept with a job; a longer one is cut at a character boundary.
pub const MAX_ERROR_BYTES: usize = 4 * 1024;

/// Most closed attempts that a record lists. People read them; the default limits of failures and losses together allow
/// fewer.
pub const MAX_PAST_ATTEMPTS: usize = 8;

/// Longest error of a listed attempt: two lines of a terminal. The last error is kept in full.
pub const MAX_PAST_ERROR_BYTES: usize = 256;

/// Most tags on a job or a worker.
pub const MAX_TAGS: usize = 32;

/// Most kinds that one worker serves.
pub const MAX_KINDS: usize = 256;

/// Most former ids in a worker's registration: sessions that expired one after the other before a leader recovered the
/// first one's jobs. More only cost counted losses.
pub const MAX_FORMER_IDS: usize = 8;

/// Most losses of a generation that are excused because the worker's process is alive. A job that freezes its own process
/// looks the same as a partition: with this bound it still ends as dead. A job that runs through this many expired sessions
/// has a problem that an operator must see.
pub const MAX_EXCUSED_LOSSES: u32 = 16;

/// Most attempts or losses that a policy may allow: a job that needs more is a loop, not a retry.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// Highest stored count of attempts, failures, losses or generations. No real job reaches it, and incrementing it
/// cannot overflow.
pub const MAX_COUNT: u32 = u32::MAX / 2;

/// Longest wait between attempts, and longest timeout of an attempt: one week.
pub const MAX_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Shortest time after which a handler may ask to be called again. Each such round costs the cluster four
/// transactions, counts as neither failure nor loss, and is not limited in number: without this bound a job could
/// keep all nodes busy.
pub const MIN_DEFERRAL: Duration = Duration::from_secs(1);

/// The lease if neither the job nor its kind sets one: longer than most jobs run, and short enough that a hung job is
/// detected soon.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(300);

/// Shortest lease. The leader sees a renewal late, after a watch and a mailbox: a shorter lease would revoke live
/// attempts.
pub const MIN_LEASE: Duration = Duration::from_secs(1);

/// Longest message of a job's progress.
pub const MAX_MESSAGE_BYTES: usize = 1024;

/// Largest checkpoint. The next attempt continues from it; store results elsewhere.
pub const MAX_CHECKPOINT_BYTES: usize = 16 * 1024;

/// Most members of a group.
pub const MAX_MEMBERS: u32 = 1_000_000;

/// Most groups of sub-jobs of one job, each of another kind. The leader reads the open ones at each look at the first.
pub const MAX_GROUPS_OF_PARENT: usize = 16;

/// The waiting time that one step of priority is worth. Nine steps are the longest time for which later jobs of higher
/// priority can delay a job. Four steps put an urgent job ahead of a backlog of half a working day. With minutes,
/// priority would have no effect on a backlog of hours; with days, the delay would hardly be bounded.
pub const AGEING: Duration = Duration::from_secs(3_600);

/// How far in the future a job's start or expiry may be: ten years. A later time is a mistake of units.
pub const MAX_AHEAD: Duration = Duration::from_secs(3_653 * 86_400);

/// Most minutes that can contain delayed jobs: two weeks of minutes, each with jobs. The leader lists them every
/// minute, which is then a quarter of a megabyte.
pub const MAX_MINUTES: usize = 20_000;

/// Longest name of the author of a change: one line.
pub const MAX_BY_BYTES: usize = 256;

/// Longest note of a pause: one line.
pub const MAX_NOTE_BYTES: usize = 256;

/// Longest id of a schedule. The id of a triggered job appends `@` and a UUID, and must still be a valid job id.
pub const MAX_SCHEDULE_ID_BYTES: usize = MAX_NAME_BYTES - 37;

/// Largest payload of a schedule, because the leader keeps all schedules in memory.
pub const MAX_SCHEDULE_PAYLOAD_BYTES: usize = 16 * 1024;

/// Most schedules of a namespace. They have one parent: the list of this many names of the longest kind stays below
/// ZooKeeper's 1 MB reply limit for Java tools.
pub const MAX_SCHEDULES: usize = 10_000;

/// Members of a group that share a parent znode: fewer than [`MAX_BUCKET_ENTRIES`], with short names. The largest group
/// has 245 such chunks.
pub const MEMBERS_PER_CHUNK: u32 = 4_096;

/// How deep groups may be nested: deeper than any sensible use, and a stop for a kind that submits itself.
pub const MAX_DEPTH: u32 = 16;

/// Hash buckets under `/jobs`, `/lanes`, `/groups` and `/members`.
pub const BUCKETS: u16 = 256;

/// Parents of records in each bucket of `/jobs`.
pub const SUB_BUCKETS: u16 = 16;

/// Most records of one sub-bucket: a fifth of the number at which the child lists of Java tools fail.
pub const MAX_BUCKET_ENTRIES: usize = 5_000;

/// Most operations of one multi. Throughput stops growing at 50 to 100 jobs; a job has two to four operations.
pub const MAX_TXN_OPS: usize = 500;

/// Most bytes of one multi: a quarter of ZooKeeper's default request limit of 1 MB, above which the server drops the
/// connection and all requests queued behind.
pub const MAX_TXN_BYTES: usize = 256 * 1024;

/// Most requests in flight per session if one caller has many to send. The windows of a node's actors and of a client's
/// batcher add up to less. Enough to fill the server's pipeline, and few enough that a lost connection leaves a
/// manageable number of unknown outcomes.
pub const MAX_IN_FLIGHT: usize = 64;

/// Most paths of one batched read.
pub const MAX_READ_BATCH: usize = 100;

/// Most paths of one batched read of znodes without data, of which only the stats count.
pub const MAX_STAT_BATCH: usize = 512;

/// Most lanes of one batched list. The number of turns in a lane is not limited: ten lanes with 10,000 of the longest
/// names each are 14 MB, which a server can still put into one reply; for a hundred it could not.
pub const MAX_LANE_LISTS: usize = 10;

/// Largest stored job record: payload, result, error, progress and the other fields, with room for future fields.
pub const MAX_RECORD_BYTES: usize =
    2 * MAX_PAYLOAD_BYTES + MAX_ERROR_BYTES + MAX_CHECKPOINT_BYTES + MAX_MESSAGE_BYTES + 16 * 1024;

/// Most slots of one worker.
pub const MAX_SLOTS: u32 = 4_096;

/// Most znodes of an inbox that a leader lists: twice the most slots of a worker. Only foreign znodes can be more.
pub const MAX_INBOX: usize = 2 * MAX_SLOTS as usize;

/// Most records that retention may keep: the capacity of all sub-buckets.
pub const MAX_RECORDS: u32 = BUCKETS as u32 * SUB_BUCKETS as u32 * MAX_BUCKET_ENTRIES as u32;

/// Shortest retention: four times the usual deadline of a client. After a lost reply, a client reads the record of its
/// submission and sends the job again if it is absent, so the record must not be removed before that.
pub const MIN_RETENTION: Duration = Duration::from_secs(60);

/// Longest retention: ten years. Use an archive for longer times.
pub const MAX_RETENTION: Duration = Duration::from_secs(3650 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    /// The values that documents state, without the arithmetic of the definitions.
    #[test]
    fn each_computed_bound_has_the_documented_value() {
        let bytes = [
            (MAX_PAYLOAD_BYTES, 65_536),
            (MAX_PLAIN_BYTES, 16_777_216),
            (MAX_ERROR_BYTES, 4_096),
            (MAX_CHECKPOINT_BYTES, 16_384),
            (MAX_SCHEDULE_ID_BYTES, 91),
            (MAX_SCHEDULE_PAYLOAD_BYTES, 16_384),
            (MAX_TXN_BYTES, 262_144),
            (MAX_RECORD_BYTES, 168_960),
        ];
        for (bound, value) in bytes {
            assert_eq!(bound, value);
        }
        let seconds = [(MAX_WAIT, 7 * DAY), (MAX_AHEAD, 3_653 * DAY), (MAX_RETENTION, 3_650 * DAY)];
        for (bound, value) in seconds {
            assert_eq!(bound.as_secs(), value);
        }
        assert_eq!((MAX_COUNT, MAX_INBOX, MAX_RECORDS), (2_147_483_647, 8_192, 20_480_000));
    }
}
