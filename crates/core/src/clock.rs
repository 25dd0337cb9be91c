//! The time by which jobs start, expire and are retried.
//!
//! The wall clocks of machines differ, and one may be a year ahead. So each process follows one clock, that of ZooKeeper's
//! leader, which every process can read: the modification time of a write. A reading does not give an instant but an
//! interval, because the write was applied at some time between the sending of the request and its answer:
//!
//! ```text
//!  this process   sent ──────────────▶ answered
//!  ZooKeeper             └ written at t
//!  when it is answered, ZooKeeper's clock shows t … t + (answered − sent)
//! ```
//!
//! [`Clock`] holds one instant and continues from it with the process's monotonic clock. A reading moves this time only as far
//! as the interval requires. So the time does not follow a jump of the machine's wall clock, and two processes differ by at
//! most the length of one round trip.
//!
//! **Two clocks.** ZooKeeper's clock may be wrong as well, for example after its leader has changed. The machine's wall clock is
//! the second opinion. When the two differ by more than [`MAX_DIFFERENCE`], the clocks *disagree*, and a process does not lead
//! until they agree: it cannot know which of them is right, and an expired job or a moved schedule cannot be taken back. Its
//! time is then
//!
//! | the machine's wall clock confirms the time held so far | time |
//! | --- | --- |
//! | yes: ZooKeeper's clock has jumped | the time held so far; the reading is ignored |
//! | no: the machine's clock is wrong, or has jumped | ZooKeeper's, as always |
//! | there was no reading before in this session | ZooKeeper's |
//!
//! A worker needs no leadership to compute the end of a backoff, so the time is defined in each of these cases.
//!
//! A session is new when its process was down or frozen, or its whole virtual machine was paused. A paused virtual machine shows
//! an old time on both of its clocks, so the time held before proves nothing then.
//!
//! Limits: two clocks that are wrong by the same amount agree. A process that opens a session while ZooKeeper's clock is wrong
//! follows it, but does not lead. Without the permission to write, there is no reading, and the process uses its own clock.

use std::time::Duration;

use crate::time::{Millis, WallMillis, as_millis};

/// The largest difference between the machine's wall clock and ZooKeeper's with which a process leads. NTP keeps clocks within
/// a second of each other, so a larger difference has a cause that needs an operator. Half of the default grace of a schedule:
/// a tick is on time by both clocks.
pub const MAX_DIFFERENCE: Duration = Duration::from_secs(30);

/// Times are whole milliseconds: the start and the end of an interval may each be up to one off.
const RESOLUTION: Duration = Duration::from_millis(2);

/// A reading of ZooKeeper's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When the write was sent.
    pub sent: Millis,
    /// The modification time of the znode.
    pub server: WallMillis,
}

/// The time of a process in one session, and what is known about the machine's wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// A time, and when it was true.
    held: Option<(WallMillis, Millis)>,
    /// By how many milliseconds the machine's clock is provably ahead of ZooKeeper's; negative if it is behind.
    ahead: i64,
}

impl Clock {
    /// Handles a reading whose answer has arrived: `now` and `local` are the present times of the monotonic clock and of the
    /// machine's wall clock.
    pub fn read(&mut self, reading: Reading, now: Millis, local: WallMillis) {
        let earliest = reading.server;
        let latest = reading.server + now.since(reading.sent) + RESOLUTION;
        let held = self.held.map(|_| self.wall(now, local));
        self.ahead = difference(local, local.clamp(earliest, latest));
        let confirmed = held.is_some_and(|held| is_close(difference(local, held)));
        if self.agrees() || !confirmed {
            self.held = Some((held.unwrap_or(local).clamp(earliest, latest), now));
        }
    }

    /// Returns the time: that of ZooKeeper's clock, or of the machine's before the first reading.
    #[must_use]
    pub fn wall(&self, now: Millis, local: WallMillis) -> WallMillis {
        self.held.map_or(local, |(time, at)| time + now.since(at))
    }

    /// Returns by how many milliseconds the machine's clock was provably ahead of ZooKeeper's at the last reading; negative
    /// if it was behind. Zero means that the difference is not longer than a round trip.
    #[must_use]
    pub fn ahead(&self) -> i64 {
        self.ahead
    }

    /// Whether the two clocks agreed at the last reading. True before the first.
    #[must_use]
    pub fn agrees(&self) -> bool {
        is_close(self.ahead)
    }
}

fn difference(one: WallMillis, other: WallMillis) -> i64 {
    let signed = |at: WallMillis| i64::try_from(at.0).unwrap_or(i64::MAX);
    signed(one).saturating_sub(signed(other))
}

fn is_close(difference: i64) -> bool {
    difference.unsigned_abs() <= as_millis(MAX_DIFFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: u64 = 365 * 86_400_000;
    /// ZooKeeper's clock when the monotonic clock shows 0.
    const START: u64 = 1_700_000_000_000;

    /// A process whose wall clock shows `START` plus this when the monotonic clock shows 0.
    struct Process {
        clock: Clock,
        skew: i64,
    }

    impl Process {
        fn new(skew: i64) -> Self {
            Self { clock: Clock::default(), skew }
        }

        fn local(&self, now: u64) -> WallMillis {
            WallMillis((START + now).saturating_add_signed(self.skew))
        }

        /// Reads ZooKeeper's clock, which is wrong by `server`. The write is applied at the end of the round trip.
        fn reads(&mut self, sent: u64, now: u64, server: i64) {
            let server = WallMillis((START + now).saturating_add_signed(server));
            self.clock.read(Reading { sent: Millis(sent), server }, Millis(now), self.local(now));
        }

        /// By how much its time is ahead of the true time.
        fn error(&self, now: u64) -> i64 {
            difference(self.clock.wall(Millis(now), self.local(now)), WallMillis(START + now))
        }
    }

    #[test]
    fn before_a_reading_the_time_is_the_machines() {
        let process = Process::new(5_000);
        assert_eq!((process.error(0), process.clock.agrees()), (5_000, true));
    }

    #[test]
    fn a_wrong_wall_clock_does_not_change_the_time_and_is_noticed() {
        for skew in [YEAR.cast_signed(), -YEAR.cast_signed(), 30_010, -30_010] {
            let mut process = Process::new(skew);
            process.reads(0, 4, 0);
            assert!(process.error(1_000).abs() <= 6, "{skew}");
            assert!(!process.clock.agrees(), "{skew}");
            assert!((process.clock.ahead() - skew).abs() <= 6, "{skew}");
        }
    }

    #[test]
    fn a_difference_within_the_round_trip_is_no_error() {
        let mut process = Process::new(29_000);
        process.reads(0, 30_000, 0);
        assert_eq!((process.clock.ahead(), process.error(30_000)), (0, 29_000));
        process.reads(40_000, 40_010, 0);
        assert!(process.error(40_010).abs() <= 12, "a shorter round trip shows more");
        assert!(process.clock.agrees());
    }

    #[test]
    fn the_time_does_not_follow_a_jump_of_the_machines_clock() {
        let mut process = Process::new(0);
        process.reads(0, 2, 0);
        process.skew = YEAR.cast_signed();
        assert!(process.error(100).abs() <= 4, "between two readings");
        process.reads(1_000, 1_002, 0);
        assert!(process.error(1_002).abs() <= 4);
        assert!(!process.clock.agrees());
        process.skew = 0;
        process.reads(2_000, 2_002, 0);
        assert!(process.clock.agrees(), "the machine's clock was corrected");
    }

    #[test]
    fn the_time_does_not_follow_a_jump_of_zookeepers_clock_that_the_machine_contradicts() {
        for jump in [YEAR.cast_signed(), -YEAR.cast_signed()] {
            let mut process = Process::new(1_000);
            process.reads(0, 2, 0);
            for reading in 1..5 {
                process.reads(reading * 1_000, reading * 1_000 + 2, jump);
                assert!(process.error(reading * 1_000 + 2).abs() <= 4, "{jump}");
                assert!(!process.clock.agrees(), "{jump}");
            }
            process.reads(6_000, 6_002, 0);
            assert!(process.clock.agrees(), "ZooKeeper's clock was corrected");
        }
    }

    #[test]
    fn the_time_follows_a_correction_of_zookeepers_clock() {
        // ZooKeeper's clock is a year behind, and so is the time of this process, until an operator corrects it.
        let mut process = Process::new(0);
        process.reads(0, 2, -YEAR.cast_signed());
        assert!(!process.clock.agrees());
        assert!((process.error(2) + YEAR.cast_signed()).abs() <= 4);
        process.reads(1_000, 1_002, 0);
        assert!(process.clock.agrees());
        assert!(process.error(1_002).abs() <= 4);
    }

    #[test]
    fn a_hostile_time_does_not_overflow() {
        for server in [0, u64::MAX] {
            let mut clock = Clock::default();
            clock.read(Reading { sent: Millis(0), server: WallMillis(server) }, Millis(5), WallMillis(START));
            assert!(!clock.agrees());
            let _ = clock.wall(Millis(u64::MAX), WallMillis(START));
        }
    }
}
