//! Facts about a bucket: enough to decide, without reading it, whether a record in it can be due.

use std::time::Duration;

use crate::retention::Retention;
use crate::segment::MAX_PACKED;
use crate::time::WallMillis;

/// The slack is this fraction of the shortest retention. A record is read about this many times while it is kept,
/// and is removed at most one slack late.
const PARTS: u32 = 8;

/// Bounds of the slack. A shorter slack would save nothing; a longer one would be visible to users.
const SLACK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// Interval between scans of a bucket that is above its share but does not grow: its open jobs may have ended. It is longer
/// in proportion to the open jobs, because each scan reads all of them.
const OVERFULL: Duration = Duration::from_secs(60);

/// Each scan that removes nothing doubles that interval, up to about an hour.
const MOST_IDLE_SCANS: u32 = 6;

/// What a list of a bucket shows. A segment is one name and many jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Size {
    pub(super) names: usize,
    pub(super) jobs: usize,
}

/// See the [module](self).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Facts {
    /// The last count of its names.
    count: usize,
    /// Its size at the last list, minus the jobs that were removed after it.
    size: Size,
    last_scan: Option<LastScan>,
    /// Consecutive scans that removed nothing.
    idle_scans: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LastScan {
    /// When it was scanned.
    at: WallMillis,
    /// Number of jobs left after that scan.
    left: usize,
    /// Number of open jobs that it found. The next scan reads those that are still open again.
    open: usize,
    /// No record is due by its age before this time.
    due: WallMillis,
}

impl Facts {
    pub(super) fn counted(&mut self, count: usize) {
        self.count = count;
        if count == 0 {
            (self.last_scan, self.size) = (None, Size::default());
        }
    }

    pub(super) fn forget(&mut self) {
        self.last_scan = None;
    }

    /// Records a scan that left `left` and found `open` open jobs; `due` is the earliest known due time of the jobs that are left.
    pub(super) fn scanned(
        &mut self,
        left: Size,
        open: usize,
        due: Option<WallMillis>,
        removed: bool,
        retention: &Retention,
        at: WallMillis,
    ) {
        self.idle_scans = if removed { 0 } else { self.idle_scans + 1 };
        let shortest = retention.shortest();
        // A job that is open, or not submitted yet, ends later than now.
        let first = due.map_or(at + shortest, |due| due.min(at + shortest)).max(at);
        let due = first + (shortest / PARTS).clamp(SLACK.0, SLACK.1);
        (self.count, self.size) = (left.names, left);
        self.last_scan = Some(LastScan { at, left: left.jobs, open, due });
    }

    /// Records a list that was not worth a scan.
    pub(super) fn listed(&mut self, size: Size) {
        (self.count, self.size) = (size.names, size);
    }

    /// Whether a record in it may be due by its age.
    pub(super) fn has_aged(&self, wall: WallMillis) -> bool {
        // If the clock was set back, `due` is not reliable.
        let aged = |last_scan: &LastScan| wall >= last_scan.due || wall < last_scan.at;
        self.count > 0 && self.last_scan.as_ref().is_none_or(aged)
    }

    /// Whether it is worth a list: it is due if the names that it has gained are segments. Then a list shows whether it is.
    pub(super) fn may_be_due(&self, retention: &Retention, wall: WallMillis) -> bool {
        let gained = self.count.saturating_sub(self.size.names);
        let jobs = |each: usize| self.size.jobs + each * gained;
        // Each name is listed at most about this many times while the bucket grows.
        let worth_a_list = gained > self.size.names / PARTS as usize;
        self.is_due_with(jobs(1), retention, wall)
            || worth_a_list && self.is_due_with(jobs(usize::from(MAX_PACKED)), retention, wall)
    }

    /// Whether it is due now that it has this number of jobs.
    pub(super) fn is_due_with(&self, jobs: usize, retention: &Retention, wall: WallMillis) -> bool {
        let Some(last_scan) = &self.last_scan else { return self.count > 0 };
        let share = retention.per_bucket();
        // A scan reads the open jobs again. With this growth it reads at most two of them for each new record.
        let grown = jobs >= last_scan.left + 1 + share / PARTS as usize + last_scan.open / 2;
        // If all of its jobs are open, no record can be removed: frequent scans are not worth their cost.
        let often = OVERFULL * 2_u32.pow(self.idle_scans.saturating_sub(1).min(MOST_IDLE_SCANS));
        let shares = last_scan.open / share.max(1);
        let often = often * u32::try_from(1 + shares).unwrap_or(u32::MAX);
        let overfull = jobs > share && (grown || wall.since(last_scan.at) >= often);
        overfull || self.has_aged(wall)
    }

    /// The number of records to which a bucket above its share is reduced. It is somewhat below the share, so that
    /// the bucket is read once per many new records instead of once per record.
    pub(super) fn target(retention: &Retention) -> usize {
        let share = retention.per_bucket();
        share - share / PARTS as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallMillis = WallMillis(1_000_000_000);

    fn facts(count: usize, left: usize, due: Option<WallMillis>) -> Facts {
        let mut facts = Facts::default();
        facts.scanned(records(left), 0, due, true, &Retention::default(), NOW);
        facts.counted(count);
        facts
    }

    fn records(count: usize) -> Size {
        Size { names: count, jobs: count }
    }

    /// Whether it is due if each of its names is a record.
    fn due_after(facts: &Facts, wait: Duration) -> bool {
        let (retention, wall) = (Retention::default(), NOW + wait);
        let due = facts.is_due_with(facts.count, &retention, wall);
        assert!(facts.may_be_due(&retention, wall) || !due, "a bucket that is due is listed");
        due
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_bucket_is_scanned_once_and_then_when_a_record_can_be_due() {
        assert!(due_after(&Facts { count: 1, ..Facts::default() }, Duration::ZERO));
        let open = facts(10, 10, None);
        assert!(!due_after(&open, 24 * HOUR), "a job that ends now is kept for a day and the slack");
        assert!(due_after(&open, 25 * HOUR));
        let soon = facts(10, 10, Some(NOW + 2 * HOUR));
        assert!(!due_after(&soon, 2 * HOUR) && due_after(&soon, 3 * HOUR));
    }

    #[test]
    fn an_empty_bucket_is_never_due() {
        assert!(!due_after(&facts(0, 10, Some(NOW)), 100 * HOUR));
    }

    #[test]
    fn a_bucket_above_its_share_is_scanned_when_it_grows_and_once_a_minute() {
        let minute = Duration::from_secs(60);
        assert!(!due_after(&facts(2_600, 2_500, None), minute / 2), "100 new records are not worth a scan");
        assert!(due_after(&facts(2_600, 2_500, None), minute), "open jobs may have ended");
        assert!(!due_after(&facts(2_812, 2_500, None), Duration::ZERO));
        assert!(due_after(&facts(2_813, 2_500, None), Duration::ZERO));
        assert!(!due_after(&facts(2_500, 100, None), minute), "the bucket is within its share");
    }

    #[test]
    fn scans_that_remove_nothing_become_less_frequent() {
        let mut facts = facts(2_600, 2_500, None);
        for (idle_scans, minutes) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
            facts.scanned(records(2_600), 0, None, false, &Retention::default(), NOW);
            facts.counted(2_600);
            let minutes = Duration::from_secs(60 * minutes);
            assert!(!due_after(&facts, minutes - Duration::from_millis(1)), "{idle_scans}");
            assert!(due_after(&facts, minutes), "{idle_scans}");
        }
    }

    #[test]
    fn a_bucket_with_many_open_jobs_is_scanned_less_often() {
        let mut facts = Facts::default();
        facts.scanned(records(10_000), 7_500, None, true, &Retention::default(), NOW);
        // An eighth of the share of 2,500, and half of the open jobs.
        facts.counted(10_000 + 312 + 3_750);
        let minute = Duration::from_secs(60);
        assert!(!due_after(&facts, 4 * minute - Duration::from_millis(1)));
        assert!(due_after(&facts, 4 * minute), "the open jobs are three shares more");
        facts.counted(10_000 + 313 + 3_750);
        assert!(due_after(&facts, Duration::ZERO));
    }

    #[test]
    fn a_bucket_is_scanned_again_after_the_clock_was_set_back() {
        assert!(facts(1, 1, None).is_due_with(1, &Retention::default(), WallMillis(NOW.0 - 1)));
    }

    #[test]
    fn a_bucket_that_may_have_gained_segments_is_listed_and_scanned_if_it_has() {
        let may_be_due = |facts: &Facts| facts.may_be_due(&Retention::default(), NOW);
        let mut grown = facts(125, 100, None);
        assert!(may_be_due(&grown) && !due_after(&grown, Duration::ZERO), "25 segments are a share");
        assert!(grown.is_due_with(100 + 2_500, &Retention::default(), NOW));
        assert!(!may_be_due(&facts(123, 100, None)), "23 segments are less");
        grown.listed(records(125));
        grown.counted(126);
        assert!(!may_be_due(&grown), "it is not listed again for one name");
        grown.counted(125 + 26);
        assert!(may_be_due(&grown));
        assert!(!may_be_due(&facts(2_100, 2_000, None)), "100 names are not worth a list of 2,000");
        assert!(!may_be_due(&facts(2_250, 2_000, None)) && may_be_due(&facts(2_251, 2_000, None)));
    }

    #[test]
    fn a_bucket_of_segments_is_counted_by_their_jobs() {
        let mut facts = Facts::default();
        facts.scanned(Size { names: 30, jobs: 3_000 }, 0, None, true, &Retention::default(), NOW);
        let may_be_due = |facts: &Facts, wait| facts.may_be_due(&Retention::default(), NOW + wait);
        assert!(!may_be_due(&facts, OVERFULL / 2));
        assert!(may_be_due(&facts, OVERFULL), "it is above its share");
        facts.counted(33);
        assert!(!may_be_due(&facts, Duration::ZERO));
        facts.counted(34);
        assert!(may_be_due(&facts, Duration::ZERO));
    }
}
