//! Moves groups from stage to stage: the join when all members have ended, then the parent's finished job, then the
//! parent's own place in its group.
//!
//! ```text
//!  seen, changed, enough ends ─▶ due ─▶ Looking ─▶ decide ─▶ nothing to do: wait for ends
//!                                 ▲                   │──▶ Committing ─▶ look again
//!                                 │                   └──▶ Finding ─▶ Cancelling ─▶ … (open members of a stopped group)
//!                                 └── no answer, unknown, rejected
//! ```
//!
//! Every decision is based on one *look* at the whole group: record, marks, and counts. A look costs a few reads,
//! whatever the number of members. An ended member therefore only decrements a counter until the next look is useful: a
//! group of 100,000 needs a handful of looks. The decision is committed at the record's version that the look found,
//! and after any answer follows another look: a lost reply is not a special case, and a second leader changes nothing
//! (S7).
//!
//! **A group that waits for its client** (no total, or members that were not submitted) is counted once a day. If the count has
//! not changed for [`ABANDONED_AFTER`], the group is stopped as abandoned.
//!
//! **Several groups of one parent.** The parent's end is marked in the first group. A look that finds this mark also wakes the
//! further groups, and the mark of each further group wakes the first one.
//!
//! **A lost hint** delays the group until the next sweep, which looks at every group that is not done.
//!
//! Limits: a few words per group, whatever its size; [`BUSY`] groups with a request in flight, [`REST`] members of one
//! stopped group at a time.

mod decide;
mod group_state;
mod open_members;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use decide::ABANDONED_AFTER;
pub use group_state::{GroupState, Lookup};
pub use open_members::{Cursor, MemberLocation, OpenMember};

use crate::group::{End, GroupRecord, Mark};
use crate::name::{GroupId, JobId};
use crate::outcome::Outcome;
use crate::time::WallMillis;
use crate::txn::{self, Batch, Op};
use decide::{Step, decide};
use open_members::Pass;

/// Groups with a request in flight: each has one at a time, and a look is a sequence of a few requests.
pub const BUSY: usize = 8;

/// Members of a stopped group that are read and cancelled at a time: two reads each, in addition to the inboxes.
pub const REST: usize = 50;

/// Consecutive rejections after which a group waits for the next sweep: a group that cannot advance must not keep the
/// leader busy.
const STRIKES: u32 = 3;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A list contained these groups.
    Seen(Vec<GroupId>),
    /// A watch reported a new or changed record.
    Changed(GroupId),
    /// A watch reported that a job of the group has ended.
    Ended(GroupId, Mark, End),
    /// A watch reported that the group was deleted.
    Gone(GroupId),
    /// The answer to a look.
    Looked(GroupId, Lookup),
    /// The outcome of a transaction that advances the group.
    Committed(GroupId, Outcome<()>),
    /// Open members of a stopped group, and the position to continue from; `Err` means no answer.
    Found(GroupId, Result<(Vec<OpenMember>, Option<Cursor>), ()>),
    /// The outcome of their cancellation.
    Cancelled(GroupId, Batch<JobId>, Outcome<()>),
    /// The session is usable (again), or the sweep is due: look at every group that is not done.
    Resync,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Look at this group.
    Look(GroupId),
    /// Commit these operations.
    Commit(GroupId, Vec<Op>),
    /// Find at most [`REST`] open members from this position on.
    Find(GroupId, Cursor),
    /// Commit this batch and return it with its outcome.
    Cancel(GroupId, Batch<JobId>),
    /// A group has reached this stage.
    Advanced(GroupId, Box<GroupRecord>),
    /// A group cannot advance until an operator fixes the reported problem.
    Stuck(GroupId, String),
    /// Another leader has claimed the epoch.
    FencedOut,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Doing {
    Nothing,
    Looking,
    /// The new record, and the operations that write it.
    Committing(Box<GroupRecord>, Vec<Op>),
    Finding(Pass),
    Cancelling(Pass),
    /// Done: remembered, so that a list does not cause another look.
    Over,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Tracked {
    doing: Doing,
    due: bool,
    /// Ends until the next look is useful; `None` if it does not depend on ends.
    left: Option<u32>,
    /// Ends reported since the look in flight was sent.
    heard: u32,
    fail_fast: bool,
    /// The parent's turn, and parts of its place, that an operator already deleted or created.
    gone: Vec<String>,
    /// The open members were asked to end since the last sweep.
    swept: bool,
    /// A look has found the mark of the parent. Then its further groups were looked at.
    parent_ended: bool,
    strikes: u32,
}

impl Tracked {
    fn new() -> Self {
        Self {
            doing: Doing::Nothing,
            due: false,
            left: None,
            heard: 0,
            fail_fast: false,
            gone: Vec::new(),
            swept: false,
            parent_ended: false,
            strikes: 0,
        }
    }
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupJoiner {
    epoch: i32,
    groups: BTreeMap<GroupId, Tracked>,
    due: VecDeque<GroupId>,
    /// Groups of sub-jobs whose parent's group was stopped, with the further groups of the same parents.
    condemned: BTreeSet<GroupId>,
    /// Groups with a request in flight.
    busy: BTreeSet<GroupId>,
    over: usize,
    acting: bool,
}

impl GroupJoiner {
    /// Creates the machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self {
            epoch,
            groups: BTreeMap::new(),
            due: VecDeque::new(),
            condemned: BTreeSet::new(),
            busy: BTreeSet::new(),
            over: 0,
            acting: false,
        }
    }

    /// Handles one event at the wall time `now`.
    pub fn handle(&mut self, now: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Seen(groups) => {
                for group in groups {
                    if !self.groups.contains_key(&group) {
                        self.wake(group);
                    }
                }
            }
            Event::Changed(group) => self.wake(group),
            Event::Ended(group, mark, end) => self.ended(group, mark, end),
            Event::Gone(group) => self.forget(&group),
            Event::Looked(group, look) => {
                self.looked(now, group.clone(), look, out);
                self.let_go(&group);
            }
            Event::Committed(group, outcome) => {
                self.committed(group.clone(), outcome, out);
                self.let_go(&group);
            }
            Event::Found(group, found) => {
                self.found(now, group.clone(), found, out);
                self.let_go(&group);
            }
            Event::Cancelled(group, batch, outcome) => {
                self.cancelled(group.clone(), batch, outcome, out);
                self.let_go(&group);
            }
            Event::Resync => {
                self.acting = true;
                let all = self.groups.iter_mut().map(|(group, tracked)| {
                    (tracked.strikes, tracked.swept) = (0, false);
                    group.clone()
                });
                all.collect::<Vec<_>>().into_iter().for_each(|group| self.wake(group));
            }
        }
        self.advance(out);
    }

    /// Returns the number of groups that are not done.
    #[must_use]
    pub fn open(&self) -> usize {
        self.groups.len() - self.over
    }

    /// After an answer: the group is no longer busy unless the answer caused another request.
    fn let_go(&mut self, group: &GroupId) {
        match self.groups.get(group).map(|tracked| &tracked.doing) {
            None | Some(Doing::Nothing | Doing::Over) => drop(self.busy.remove(group)),
            Some(Doing::Looking | Doing::Committing(..) | Doing::Finding(_) | Doing::Cancelling(_)) => {}
        }
    }

    fn forget(&mut self, group: &GroupId) {
        let gone = self.groups.remove(group);
        self.over -= usize::from(gone.is_some_and(|tracked| tracked.doing == Doing::Over));
        self.condemned.remove(group);
    }

    /// Schedules a look at the group as soon as no request is in flight.
    fn wake(&mut self, group: GroupId) {
        let tracked = self.groups.entry(group.clone()).or_insert_with(Tracked::new);
        if tracked.doing == Doing::Over {
            return;
        }
        if !tracked.due {
            tracked.due = true;
            self.due.push_back(group);
        }
    }

    fn ended(&mut self, group: GroupId, mark: Mark, end: End) {
        let Some(tracked) = self.groups.get_mut(&group) else { return self.wake(group) };
        tracked.heard = tracked.heard.saturating_add(1);
        let worth_it = match mark {
            Mark::Parent | Mark::Join | Mark::Finish | Mark::Further(_) => true,
            Mark::Member(_) => {
                tracked.left = tracked.left.map(|left| left.saturating_sub(1));
                tracked.left == Some(0) || (tracked.fail_fast && end != End::Succeeded)
            }
        };
        if worth_it {
            self.wake(group);
        }
    }

    fn looked(&mut self, now: WallMillis, group: GroupId, look: Lookup, out: &mut Vec<Effect>) {
        let condemned = self.condemned.contains(&group);
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        tracked.doing = Doing::Nothing;
        let state = match look {
            Lookup::Found(state) => state,
            Lookup::Absent => {
                return self.forget(&group);
            }
            Lookup::Unreadable(why) => return out.push(Effect::Stuck(group, why)),
            Lookup::NotAnswered => {
                self.acting = false;
                return self.wake(group);
            }
        };
        tracked.fail_fast = state.record.fail_fast;
        // Only the first group has the mark of the parent and is condemned by an outer group.
        let told = std::mem::replace(&mut tracked.parent_ended, state.parent.is_some());
        for further in &state.further {
            if condemned && self.condemned.insert(further.clone()) || state.parent.is_some() && !told {
                self.wake(further.clone());
            }
        }
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        match decide(&group, &state, condemned, now) {
            Ok(Step::Wait(left)) => self.wait(group, left),
            Ok(Step::Over) => {
                tracked.doing = Doing::Over;
                self.over += 1;
                self.condemned.remove(&group);
            }
            Ok(Step::Set(next, job)) => {
                let mut ops =
                    txn::advance(self.epoch, &group, state.version, &next, job.as_deref(), state.parent);
                ops.retain(|op| !tracked.gone.iter().any(|gone| gone == op.path()));
                tracked.doing = Doing::Committing(next, ops.clone());
                out.push(Effect::Commit(group, ops));
            }
            // The open members were already asked to end: wait until all of them have ended.
            Ok(Step::EndRest) if tracked.swept => self.wait(group, Some(state.open)),
            Ok(Step::EndRest) => {
                tracked.swept = true;
                let pass = Pass::default();
                tracked.doing = Doing::Finding(pass);
                out.push(Effect::Find(group, Cursor::default()));
            }
            Err(why) => out.push(Effect::Stuck(group, why.to_string())),
        }
    }

    /// Waits until this many members have ended. Ends reported during the look may or may not be counted in it: an
    /// extra look is better than a missing one.
    fn wait(&mut self, group: GroupId, ends: Option<u32>) {
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        tracked.left = ends.map(|ends| ends.saturating_sub(tracked.heard));
        if tracked.left == Some(0) {
            self.wake(group);
        }
    }

    fn committed(&mut self, group: GroupId, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        let Doing::Committing(next, ops) = std::mem::replace(&mut tracked.doing, Doing::Nothing) else {
            return;
        };
        match outcome {
            Outcome::Applied(()) => {
                tracked.strikes = 0;
                out.push(Effect::Advanced(group.clone(), next));
                self.wake(group);
            }
            // Applied or not: the next look shows it.
            Outcome::Unknown => self.interrupt(group),
            Outcome::Rejected(rejection) if rejection.is_whole() => self.interrupt(group),
            Outcome::Rejected(rejection) if rejection.is_fenced_out() => {
                self.acting = false;
                out.push(Effect::FencedOut);
            }
            Outcome::Rejected(rejection) => {
                let gone = txn::gone_part(&ops, rejection.at, &rejection.reason);
                // The next transaction omits it, so it counts as progress.
                tracked.strikes += u32::from(gone.is_none());
                tracked.gone.extend(gone);
                if tracked.strikes < STRIKES {
                    return self.wake(group);
                }
                let what = ops.get(rejection.at).map(Op::path).unwrap_or_default();
                out.push(Effect::Stuck(group, format!("{what}: {}", rejection.reason)));
            }
        }
    }

    fn found(
        &mut self,
        now: WallMillis,
        group: GroupId,
        found: Result<(Vec<OpenMember>, Option<Cursor>), ()>,
        out: &mut Vec<Effect>,
    ) {
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        let Doing::Finding(mut pass) = std::mem::replace(&mut tracked.doing, Doing::Nothing) else { return };
        let Ok((rest, next)) = found else { return self.interrupt(group) };
        let nested = pass.found(rest, next, now);
        tracked.doing = Doing::Finding(pass);
        self.next_rest(group, out);
        for group in nested {
            if self.condemned.insert(group.clone()) {
                self.wake(group);
            }
        }
    }

    fn cancelled(
        &mut self,
        group: GroupId,
        mut batch: Batch<JobId>,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) {
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        let Doing::Cancelling(mut pass) = std::mem::replace(&mut tracked.doing, Doing::Nothing) else {
            return;
        };
        match outcome {
            Outcome::Applied(()) => {
                tracked.doing = Doing::Finding(pass);
                self.next_rest(group, out);
            }
            Outcome::Unknown => self.interrupt(group),
            Outcome::Rejected(rejection) if rejection.is_whole() => self.interrupt(group),
            Outcome::Rejected(rejection) => match batch.locate(rejection.at) {
                Some(txn::Locus::Group { group: at, op, .. }) => {
                    let (job, ops) = batch.remove(at);
                    pass.rejected(job, ops, op, &rejection.reason);
                    if batch.is_empty() {
                        tracked.doing = Doing::Finding(pass);
                        self.next_rest(group, out);
                    } else {
                        tracked.doing = Doing::Cancelling(pass);
                        out.push(Effect::Cancel(group, batch));
                    }
                }
                Some(txn::Locus::Fence(_)) if rejection.is_fence() => {
                    self.acting = false;
                    out.push(Effect::FencedOut);
                }
                Some(txn::Locus::Fence(_)) | None => self.interrupt(group),
            },
        }
    }

    /// Continues with the unsent cancellations of the members that were found, then the next page of open members, then
    /// another pass, or finishes.
    fn next_rest(&mut self, group: GroupId, out: &mut Vec<Effect>) {
        let Some(tracked) = self.groups.get_mut(&group) else { return };
        let Doing::Finding(pass) = &mut tracked.doing else { return };
        if let Some(batch) = pass.batch(self.epoch) {
            let Doing::Finding(pass) = std::mem::replace(&mut tracked.doing, Doing::Nothing) else { return };
            tracked.doing = Doing::Cancelling(pass);
            return out.push(Effect::Cancel(group, batch));
        }
        match pass.go_on() {
            Some(cursor) => out.push(Effect::Find(group, cursor)),
            None => {
                tracked.doing = Doing::Nothing;
                self.wake(group);
            }
        }
    }

    /// Stops until the session is back or the next sweep.
    fn interrupt(&mut self, group: GroupId) {
        self.acting = false;
        if let Some(tracked) = self.groups.get_mut(&group) {
            tracked.swept = false;
        }
        self.wake(group);
    }

    fn advance(&mut self, out: &mut Vec<Effect>) {
        let mut busy = Vec::new();
        while self.acting
            && self.busy.len() < BUSY
            && let Some(group) = self.due.pop_front()
        {
            let Some(tracked) = self.groups.get_mut(&group) else { continue };
            match tracked.doing {
                Doing::Nothing => {
                    (tracked.due, tracked.heard) = (false, 0);
                    tracked.doing = Doing::Looking;
                    self.busy.insert(group.clone());
                    out.push(Effect::Look(group));
                }
                Doing::Over => tracked.due = false,
                // A look follows the answer in flight.
                Doing::Looking | Doing::Committing(..) | Doing::Finding(_) | Doing::Cancelling(_) => {
                    busy.push(group)
                }
            }
        }
        self.due.extend(busy);
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
