//! The report of a process about its wrong wall clock ([`bellwether_core::clock_report`]).
//!
//! ```text
//!  Stored(none) ──clock is wrong─▶ Sent(7) ──applied─▶ Stored(7) ──clock is right─▶ Sent(none) ──applied─▶ Stored(none)
//! ```
//!
//! The clock is compared after each reading. While the last write is not confirmed, because its reply was lost or ZooKeeper
//! refused it, it is sent again after the next reading. The session's requests are applied in their order, so the last report
//! that was sent is the one that is stored. The znode ends with its session.

use bellwether_core::clock_report::{ClockReport, Process, seconds};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::txn::{self, Op};

/// The seconds by which the wall clock is ahead, in the report; `None` without a report.
pub(super) type Ahead = Option<i64>;

#[derive(Debug)]
pub(super) struct Report {
    process: Process,
    last: Last,
}

/// The last write of the current session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// It is stored.
    Stored(Ahead),
    /// It may or may not be stored.
    Sent(Ahead),
}

impl Report {
    pub(super) fn new(process: Process) -> Self {
        Self { process, last: Last::Stored(None) }
    }

    /// A new session has begun. It has no report.
    pub(super) fn renew(&mut self) {
        self.last = Last::Stored(None);
    }

    /// Returns the write that is due when the wall clock is ahead by these milliseconds.
    pub(super) fn compare(&mut self, session: i64, ahead_ms: i64) -> Option<(Ahead, Op)> {
        let ahead = seconds(ahead_ms);
        if self.last == Last::Stored(ahead) {
            return None;
        }
        self.last = Last::Sent(ahead);
        let op = match self.of(ahead) {
            Some(report) => txn::report_clock(session, &report),
            None => txn::withdraw_clock_report(session),
        };
        Some((ahead, op))
    }

    /// Handles the outcome of a write, and returns the write that follows.
    pub(super) fn written(
        &mut self,
        session: i64,
        ahead: Ahead,
        outcome: Outcome<()>,
    ) -> Option<(Ahead, Op)> {
        if self.last != Last::Sent(ahead) {
            // Of an earlier write. It does not show whether the last one was applied.
            return None;
        }
        let report = self.of(ahead);
        match (outcome, report) {
            (Outcome::Applied(()), _)
            // The report was withdrawn before.
            | (Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }), None) => {
                self.last = Last::Stored(ahead);
                None
            }
            // The session has reported before.
            (Outcome::Rejected(Rejection { reason: Reason::NodeExists, .. }), Some(report)) => {
                Some((ahead, txn::update_clock_report(session, &report)))
            }
            (outcome @ (Outcome::Rejected(_) | Outcome::Unknown), _) => {
                tracing::debug!(?outcome, "ZooKeeper did not confirm the report about this machine's clock");
                None
            }
        }
    }

    fn of(&self, ahead: Ahead) -> Option<ClockReport> {
        ahead.map(|ahead| ClockReport { process: self.process.clone(), ahead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REJECTED: fn(Reason) -> Outcome<()> = |reason| Outcome::Rejected(Rejection { at: 0, reason });

    fn report() -> Report {
        Report::new(Process { node: None, host: "h".to_owned() })
    }

    /// The seconds and the kind of a write.
    fn shown(write: Option<(Ahead, Op)>) -> String {
        match write {
            None => "nothing".to_owned(),
            Some((ahead, Op::Create { .. })) => format!("create {ahead:?}"),
            Some((ahead, Op::Set { .. })) => format!("set {ahead:?}"),
            Some((ahead, Op::Delete { .. })) => format!("delete {ahead:?}"),
            Some((ahead, Op::Check { .. })) => format!("check {ahead:?}"),
        }
    }

    #[test]
    fn a_wrong_clock_is_reported_until_it_is_right_and_changes_by_seconds() {
        let mut report = report();
        assert_eq!(shown(report.compare(1, 5_000)), "nothing", "within the tolerance");
        assert_eq!(shown(report.compare(1, 7_100)), "create Some(7)");
        assert_eq!(shown(report.written(1, Some(7), Outcome::Applied(()))), "nothing");
        assert_eq!(shown(report.compare(1, 7_900)), "nothing");
        assert_eq!(shown(report.compare(1, 9_100)), "create Some(9)");
        assert_eq!(shown(report.written(1, Some(9), REJECTED(Reason::NodeExists))), "set Some(9)");
        assert_eq!(shown(report.written(1, Some(9), Outcome::Applied(()))), "nothing");
        assert_eq!(shown(report.compare(1, 0)), "delete None");
        assert_eq!(shown(report.written(1, None, Outcome::Applied(()))), "nothing");
        assert_eq!(shown(report.compare(1, 0)), "nothing");
    }

    #[test]
    fn a_write_without_a_reply_is_sent_again() {
        let mut report = report();
        assert_eq!(shown(report.compare(1, 7_100)), "create Some(7)");
        assert_eq!(shown(report.written(1, Some(7), Outcome::Unknown)), "nothing");
        assert_eq!(shown(report.compare(1, 7_100)), "create Some(7)");
        assert_eq!(
            shown(report.written(1, Some(7), REJECTED(Reason::NodeExists))),
            "set Some(7)",
            "it was applied"
        );
        assert_eq!(shown(report.compare(1, 0)), "delete None");
        assert_eq!(shown(report.written(1, None, REJECTED(Reason::NotSent))), "nothing");
        assert_eq!(shown(report.compare(1, 0)), "delete None");
        assert_eq!(shown(report.written(1, None, REJECTED(Reason::NoNode))), "nothing");
        assert_eq!(shown(report.compare(1, 0)), "nothing");
    }

    #[test]
    fn the_outcome_of_an_earlier_write_confirms_nothing() {
        let mut report = report();
        assert_eq!(shown(report.compare(1, 7_100)), "create Some(7)");
        assert_eq!(shown(report.compare(1, 0)), "delete None");
        assert_eq!(shown(report.written(1, Some(7), Outcome::Applied(()))), "nothing");
        assert_eq!(shown(report.compare(1, 0)), "delete None", "the withdrawal is not confirmed");
    }

    #[test]
    fn a_new_session_has_no_report() {
        let mut report = report();
        assert_eq!(shown(report.compare(1, 7_100)), "create Some(7)");
        report.written(1, Some(7), Outcome::Applied(()));
        report.renew();
        assert_eq!(shown(report.compare(2, 0)), "nothing");
        assert_eq!(shown(report.compare(2, -8_100)), "create Some(-8)");
    }
}
