//! A worker: what it knows of its slice, what it runs, and its request.

use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord, Next, Payload};
use bellwether_core::outcome::Outcome;
use bellwether_core::segment::{Members, Results};
use bellwether_core::txn::Op;
use bellwether_core::txn::segment::{self, AssignedSlice, Extracted};

use super::stage::{self, MEMBERS, WALL};
use crate::zookeeper::ZooKeeper;

/// A request in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub(super) ops: Vec<Op>,
    what: What,
    /// The slice after it, if it is applied.
    after: Option<AssignedSlice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Raise,
    Report(Members),
    GiveBack(Members),
    Extract(u8),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Worker {
    /// Its session has ended, and it does not know.
    pub(super) is_lost: bool,
    /// Its slice, as it last read or wrote it.
    pub(super) view: Option<AssignedSlice>,
    pub(super) running: Members,
    succeeded: Members,
    failed: Members,
    /// Given back by a write with an unknown outcome: not begun before a later write of the slice is applied.
    uncertain: Members,
    pub(super) sent: Option<Sent>,
}

impl Worker {
    /// The member that it may begin now: the first open one below the committed number.
    pub(super) fn next(&self) -> Option<u8> {
        let slice = &self.view.as_ref()?.slice;
        let seen = self.running.with(self.succeeded).with(self.failed);
        let blocked = seen.with(self.uncertain).with(slice.cancel);
        slice.may_have_begun().without(blocked).iter().next()
    }

    pub(super) fn begin(&mut self, number: u8) {
        self.running = self.running.with(Members::one(number));
    }

    pub(super) fn finish(&mut self, number: u8, succeeded: bool) {
        let member = Members::one(number);
        self.running = self.running.without(member);
        let ended = if succeeded { &mut self.succeeded } else { &mut self.failed };
        *ended = ended.with(member);
    }

    /// Reads the inbox. What was taken away is dropped: its handler is aborted.
    pub(super) fn look(&mut self, zk: &ZooKeeper, worker: usize) {
        self.view = stage::slices(zk, stage::worker(worker)).into_iter().next();
        let open = self.view.as_ref().map_or(Members::NONE, |held| held.slice.open());
        for members in [&mut self.running, &mut self.succeeded, &mut self.failed, &mut self.uncertain] {
            *members = members.within(open);
        }
    }

    pub(super) fn raise(&mut self) {
        let held = self.view.clone().expect("it has a slice");
        let begun = held.slice.unbegun().iter().next().expect("a member to begin") + 1;
        let mut after = held.next();
        after.slice.begun = begun;
        self.send(vec![segment::raise(&held, begun)], What::Raise, Some(after));
    }

    /// What a report would end: the results, the failures, and what a client cancelled.
    fn reports(&self) -> Option<(AssignedSlice, Members)> {
        let held = self.view.clone()?;
        let cancelled = held.slice.open().within(held.slice.cancel).without(self.succeeded.with(self.failed));
        let any = self.succeeded.with(self.failed).with(cancelled);
        (!any.is_empty()).then_some((held, cancelled))
    }

    pub(super) fn can_report(&self) -> bool {
        self.reports().is_some()
    }

    pub(super) fn report(&mut self) {
        let (held, cancelled) = self.reports().expect("there is something to report");
        self.running = self.running.without(cancelled);
        let result = |number| (number, WALL, Payload::json(*b"2").expect("small"));
        let results = Results(self.succeeded.iter().map(result).collect());
        let moved = self.failed.iter().map(|number| closed(number, held.worker, Ending::Failed("no".into())));
        let moved = moved.collect::<Vec<_>>();
        let over = self.succeeded.with(cancelled).with(self.failed);
        let ops = segment::end(&held, &results, cancelled, &moved);
        let after = held.slice.after(over).map(|slice| AssignedSlice { slice, ..held.next() });
        self.send(ops, What::Report(over), after);
    }

    /// The members that it can give back.
    pub(super) fn spare(&self) -> Members {
        let spare = |held: &AssignedSlice| held.slice.unbegun().without(held.slice.cancel);
        self.view.as_ref().map_or(Members::NONE, spare).without(self.uncertain)
    }

    pub(super) fn give_back(&mut self) {
        let (held, back) = (self.view.clone().expect("it has a slice"), self.spare());
        let after = held.slice.without(back).map(|slice| AssignedSlice { slice, ..held.next() });
        self.send(segment::give_back(&held, back, &stage::to()), What::GiveBack(back), after);
    }

    pub(super) fn extract(&mut self, number: u8) {
        let held = self.view.clone().expect("it has a slice");
        let member = extracted(number, record(number), Next::Terminal);
        let ops = segment::extract_running(&held, &member, &Assignment::new(1, 1, WALL));
        let after =
            held.slice.after(Members::one(number)).map(|slice| AssignedSlice { slice, ..held.next() });
        self.send(ops, What::Extract(number), after);
    }

    fn send(&mut self, ops: Vec<Op>, what: What, after: Option<AssignedSlice>) {
        self.sent = Some(Sent { ops, what, after });
    }

    /// Handles the outcome of its request.
    pub(super) fn answered(&mut self, outcome: &Outcome<()>) {
        let sent = self.sent.take().expect("a request was sent");
        match (outcome, sent.what) {
            (Outcome::Applied(()), what) => {
                self.view = sent.after;
                self.uncertain = Members::NONE;
                match what {
                    What::Raise | What::GiveBack(_) => {}
                    What::Report(over) => {
                        self.succeeded = self.succeeded.without(over);
                        self.failed = self.failed.without(over);
                    }
                    // The run continues under its record.
                    What::Extract(number) => self.running = self.running.without(Members::one(number)),
                }
            }
            (Outcome::Unknown, What::GiveBack(back)) => {
                self.view = None;
                self.uncertain = self.uncertain.with(back);
            }
            (Outcome::Unknown, What::Raise | What::Report(_) | What::Extract(_))
            | (Outcome::Rejected(_), _) => {
                self.view = None;
            }
        }
    }
}

/// A slice that was written once more.
trait Written {
    fn next(&self) -> AssignedSlice;
}

impl Written for AssignedSlice {
    fn next(&self) -> AssignedSlice {
        AssignedSlice { version: self.version + 1, ..self.clone() }
    }
}

pub(super) fn record(number: u8) -> JobRecord {
    assert!(number < MEMBERS);
    stage::segment().record(number).expect("a member")
}

pub(super) fn extracted(number: u8, record: JobRecord, next: Next) -> Extracted {
    Extracted { number, job: stage::job(number), is_named: stage::is_named(number), record, next }
}

/// A member whose first attempt is closed.
pub(super) fn closed(number: u8, worker: bellwether_core::name::WorkerId, ending: Ending) -> Extracted {
    let (record, next) = record(number).close(Attempt { number: 1, worker }, ending, WALL, 0);
    extracted(number, record, next)
}
