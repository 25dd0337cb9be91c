//! The janitor: removes what nobody needs any more, above all the records of jobs that are over.
//!
//! ```text
//!          every ROUND                                  256 buckets
//!  Resting ───────────▶ settings ─▶ counts ─▶ choose ─┬─▶ list ─▶ read … ─▶ remove … ─┐
//!     ▲                    │           │         ▲    │                               │
//!     │   not answered     │           │         └────┼───────── next bucket ─────────┘
//!     └────────────────────┴───────────┴──────────────┘ none is due
//! ```
//!
//! **What is removed.** A record whose job is over, at the version that was read, behind the check of the epoch. A job
//! that was retried meanwhile has another version, and stays. If the reply to a removal is lost, the bucket is looked at
//! again: what is there still is removed then.
//!
//! **When a job ended** is told by two clocks: the wall clock of whoever ended it, in the record, and ZooKeeper's, in the
//! znode's time of modification. The later of the two counts, so that one that is behind shortens nobody's retention,
//! unless it is ahead of this leader's clock by more than [`WRONG_AHEAD`], so that one that is far ahead keeps nothing
//! for ever.
//!
//! **What time it is** is told by this leader's clock, and borne out by ZooKeeper's: the later of its own claim's time and
//! of all ends that were read, and what has passed since. So a leader whose clock is ahead removes nothing early. (One
//! that was started again long after its claim, in a namespace where nothing ends, is late.)
//!
//! **What is read.** Nobody watches records. Of each bucket the machine remembers three numbers (`bucket`): when its
//! next record is due, how many it had and when that was. A bucket is listed and read only when something in it can be
//! due, and then not more often than a slack allows, so that a record is read about ten times in its life, however many
//! there are. The count of each bucket is asked for in every round, by three requests.
//!
//! **Where it begins** is another bucket in each term (`STRIDE`), of jobs and of groups by turns: a term that is shorter
//! than a pass over all of them would always clean the same ones, and never come to the last. So it is with corners.
//!
//! **Corners**: notes of quarantine whose record is gone, and containers that were never used, one corner a round: see
//! `corner`.
//!
//! **Groups** go as a whole, with the records of their jobs: see `group`. The record of a job of a group is passed over
//! here.
//!
//! **At what pace.** One request at a time, and after each a rest as long as it took: the janitor has at most half of one
//! place in ZooKeeper's queue, where the assigner has four, and less of it when ZooKeeper is slow. That is still
//! thousands of records a second, as many as one leader assigns.
//!
//! Limits: memory is one bucket's list, [`MAX_BUCKET_ENTRIES`](crate::budget::MAX_BUCKET_ENTRIES) ids with their times,
//! and [`READ`] records at a time; or one corner's list, as long as the lanes of a bucket, the delayed minutes or the notes
//! are many.

mod bucket;
mod corner;
mod event;
mod found;
mod group;
mod look;

use std::time::Duration;

use crate::budget::{BUCKETS, MAX_READ_BATCH};
use crate::outcome::Outcome;
use crate::path::{self, Bucket};
use crate::retention::Retention;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus, Op};

pub use corner::{Stat, UNUSED};
pub use event::{Effect, Event};
pub use found::{Found, FoundGroup, Shelf};

use bucket::Facts;
use corner::{Corner, Tidying};
use group::{Groups, Removals};
use look::{Look, Next};

/// How often the counts of buckets are asked for, and the settings: what was set holds after that.
pub const ROUND: Duration = Duration::from_secs(5);

/// Records of one read, and of one removal.
pub const READ: usize = MAX_READ_BATCH;

/// A clock that is ahead by more than this is wrong, and what it said is not believed.
pub const WRONG_AHEAD: Duration = Duration::from_secs(3600);

/// How many buckets lie between those that two terms in a row of one shelf begin with: odd, so that 512 terms begin with
/// each of both shelves once.
const STRIDE: usize = 97;

/// Rest after a request that took no time that the clock shows.
const SHORTEST_REST: Duration = Duration::from_millis(1);

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Janitor {
    epoch: i32,
    /// The shelf and the bucket that this term begins with.
    begins: Shelf,
    first: usize,
    retention: Retention,
    buckets: Vec<Facts>,
    groups: Vec<Facts>,
    /// Counts the rounds, for the corner of the next.
    corner: usize,
    step: Step,
    /// When the request in flight was sent.
    asked: Option<Millis>,
    /// Nothing is asked for before.
    rest: Millis,
    /// The latest that ZooKeeper's clock was seen to show, and when.
    seen: (WallMillis, Millis),
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    /// Begin a round.
    Settings,
    /// Count the buckets from this one on.
    Count(Shelf, usize),
    /// Look for a bucket that is due, from this one of the term's order on.
    Choose(Shelf, usize),
    Look(At),
    /// A batch is to be sent (again), and whether something was taken out of it.
    Send(At, Batch<String>, bool),
    /// It was sent.
    Sent(At, bool),
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    Jobs(Look),
    Groups(Box<Groups>),
    Corner(Tidying),
}

impl Janitor {
    /// A machine for the term of `epoch`. Begins with the first [`Event::Go`].
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        let term = epoch.unsigned_abs();
        let stride = (term / 2) as usize % usize::from(BUCKETS) * STRIDE;
        Self {
            epoch,
            begins: if term.is_multiple_of(2) { Shelf::Jobs } else { Shelf::Groups },
            first: stride % usize::from(BUCKETS),
            retention: Retention::default(),
            buckets: vec![Facts::default(); usize::from(BUCKETS)],
            groups: vec![Facts::default(); usize::from(BUCKETS)],
            corner: term as usize % usize::from(BUCKETS) * STRIDE,
            step: Step::Settings,
            asked: None,
            rest: Millis(0),
            seen: (WallMillis(0), Millis(0)),
        }
    }

    /// Handles one event: `now` paces, `wall` decides what is due.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        if event == Event::Go {
            return self.advance(now, self.trusted(now, wall), out);
        }
        let Some(asked) = self.asked.take() else { return };
        self.rest = now + now.since(asked).max(SHORTEST_REST);
        self.see(now, &event);
        let wall = self.trusted(now, wall);
        match self.answered(wall, event, out) {
            Ok(step) => {
                self.step = step;
                self.advance(now, wall, out);
            }
            Err(Unanswered) => {
                self.step = Step::Settings;
                out.push(Effect::Idle);
            }
        }
    }

    /// The time, as far as ZooKeeper's clock bears it out.
    fn trusted(&self, now: Millis, wall: WallMillis) -> WallMillis {
        let (at, seen) = self.seen;
        wall.min(at + now.since(seen))
    }

    /// What was just written tells ZooKeeper's time: its own claim first, then every end that is read.
    fn see(&mut self, now: Millis, event: &Event) {
        let latest = match event {
            Event::Settings(Ok((_, claimed))) => *claimed,
            Event::Read(_, Ok(found)) => {
                let modified = |found: &Found| match found {
                    Found::Over { modified, .. } => Some(*modified),
                    Found::Absent | Found::Left => None,
                };
                found.iter().filter_map(modified).max()
            }
            Event::Groups(_, Ok(found)) => found.iter().flatten().map(|(_, _, modified)| *modified).max(),
            Event::Settings(Err(()))
            | Event::Read(_, Err(()))
            | Event::Groups(_, Err(()))
            | Event::Go
            | Event::Counted(..)
            | Event::Listed(..)
            | Event::Names(_)
            | Event::Stats(_)
            | Event::Committed(..) => None,
        };
        if let Some(latest) = latest.filter(|latest| *latest > self.trusted(now, WallMillis(u64::MAX))) {
            self.seen = (latest, now);
        }
    }

    fn answered(
        &mut self,
        wall: WallMillis,
        event: Event,
        out: &mut Vec<Effect>,
    ) -> Result<Step, Unanswered> {
        let step = std::mem::replace(&mut self.step, Step::Settings);
        let retention = &self.retention;
        match (event, step) {
            (Event::Settings(settings), _) => {
                // Nothing is removed that nobody said how long to keep.
                let retention = settings?.0.ok_or(Unanswered)?;
                if self.retention != retention {
                    self.retention = retention;
                    self.buckets.iter_mut().chain(&mut self.groups).for_each(Facts::forget);
                }
                Ok(Step::Count(Shelf::Jobs, 0))
            }
            (Event::Counted(shelf, buckets, counts), _) => {
                let next = buckets.last().map_or(0, |bucket| bucket.index() + 1);
                let facts = self.shelf(shelf);
                for (bucket, count) in buckets.into_iter().zip(counts?) {
                    facts[bucket.index()].counted(count);
                }
                Ok(match shelf {
                    shelf if next < usize::from(BUCKETS) => Step::Count(shelf, next),
                    Shelf::Jobs => Step::Count(Shelf::Groups, 0),
                    Shelf::Groups => Step::Choose(self.begins, 0),
                })
            }
            (Event::Listed(Shelf::Jobs, bucket, names), _) => {
                Ok(Step::Look(At::Jobs(Look::new(bucket, &names?))))
            }
            (Event::Listed(Shelf::Groups, bucket, names), _) => {
                Ok(Step::Look(At::Groups(Box::new(Groups::new(bucket, &names?)))))
            }
            (Event::Read(jobs, found), Step::Look(At::Jobs(mut look))) => {
                for (job, found) in jobs.into_iter().zip(found?) {
                    look.read(job, found, retention, wall);
                }
                Ok(Step::Look(At::Jobs(look)))
            }
            (Event::Read(_, found), Step::Look(At::Groups(mut look))) => {
                let removals = look.read(found?, retention, wall);
                Ok(self.remove(At::Groups(look), removals))
            }
            (Event::Groups(groups, found), Step::Look(At::Groups(mut look))) => {
                look.groups(groups.into_iter().zip(found?).collect(), retention, wall);
                Ok(Step::Look(At::Groups(look)))
            }
            (Event::Names(names), Step::Look(At::Groups(mut look))) => {
                let removals = look.names(names?, retention, wall);
                Ok(self.remove(At::Groups(look), removals))
            }
            (Event::Names(names), Step::Look(At::Corner(mut tidying))) => {
                tidying.listed(names?.into_iter().flatten().flatten().collect());
                Ok(Step::Look(At::Corner(tidying)))
            }
            (Event::Stats(stats), Step::Look(At::Corner(mut tidying))) => {
                let removals = tidying.seen(stats?, wall);
                Ok(self.remove(At::Corner(tidying), removals))
            }
            (Event::Committed(batch, outcome), Step::Sent(at, whole)) => {
                self.committed(at, batch, whole, outcome, out)
            }
            // Of a request that this machine did not send.
            (
                Event::Read(..)
                | Event::Groups(..)
                | Event::Names(_)
                | Event::Stats(_)
                | Event::Committed(..)
                | Event::Go,
                step,
            ) => Ok(step),
        }
    }

    fn shelf(&mut self, shelf: Shelf) -> &mut Vec<Facts> {
        match shelf {
            Shelf::Jobs => &mut self.buckets,
            Shelf::Groups => &mut self.groups,
        }
    }

    /// What a look wants removed: it goes on after that.
    fn remove(&self, at: At, removals: Removals) -> Step {
        if removals.is_empty() {
            return Step::Look(at);
        }
        let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
        for (what, ops) in removals {
            let fits = batch.push(what, ops).is_ok();
            debug_assert!(fits, "a hundred members are far below any budget");
        }
        Step::Send(at, batch, true)
    }

    fn committed(
        &mut self,
        at: At,
        mut batch: Batch<String>,
        whole: bool,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) -> Result<Step, Unanswered> {
        let rejection = match outcome {
            Outcome::Applied(()) => {
                // A record that is only asserted to be absent is deleted at no version.
                let removed = |op: &&Op| matches!(op, Op::Delete { path, version: Some(_) } if path.starts_with(path::JOBS));
                let records = batch.ops().filter(removed).count();
                out.push(Effect::Removed(records));
                return Ok(self.go_on(at, whole));
            }
            // Removed or not: the bucket is looked at anew, because nothing was noted of this look.
            Outcome::Unknown => return Err(Unanswered),
            Outcome::Rejected(rejection) => rejection,
        };
        if rejection.is_whole() {
            return Err(Unanswered);
        }
        match batch.locate(rejection.at) {
            Some(Locus::Group { group, .. }) => {
                // Retried, or removed by hand, or with a child that is not ours. It stays as it is.
                batch.remove(group);
                Ok(if batch.is_empty() { self.go_on(at, false) } else { Step::Send(at, batch, false) })
            }
            Some(Locus::Fence(_)) if rejection.is_fence() => {
                out.push(Effect::FencedOut);
                Err(Unanswered)
            }
            Some(Locus::Fence(_)) | None => Err(Unanswered),
        }
    }

    fn go_on(&self, at: At, whole: bool) -> Step {
        match at {
            at @ (At::Jobs(_) | At::Corner(_)) => Step::Look(at),
            At::Groups(mut look) => {
                let removals = look.removed(whole);
                self.remove(At::Groups(look), removals)
            }
        }
    }

    fn advance(&mut self, now: Millis, wall: WallMillis, out: &mut Vec<Effect>) {
        if self.asked.is_some() {
            return;
        }
        let ahead = self.rest.since(now);
        if !ahead.is_zero() {
            out.push(Effect::Rest(ahead));
            return;
        }
        let effect = match std::mem::replace(&mut self.step, Step::Settings) {
            Step::Settings => Effect::Settings,
            Step::Count(shelf, from) => {
                let few = Bucket::all().skip(from).take(MAX_READ_BATCH).collect();
                self.step = Step::Count(shelf, from);
                Effect::Count(shelf, few)
            }
            Step::Choose(shelf, from) => return self.choose(shelf, from, now, wall, out),
            Step::Look(At::Jobs(mut look)) => match look.next(&self.retention, wall) {
                Next::Read(jobs) => {
                    self.step = Step::Look(At::Jobs(look));
                    Effect::Read(jobs)
                }
                Next::Remove(records) => {
                    let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
                    for (job, version) in records {
                        let op = txn::remove_record(&job, version);
                        let fits = batch.push(op.path().to_owned(), vec![op]).is_ok();
                        debug_assert!(fits, "a hundred removals are far below any budget");
                    }
                    self.step = Step::Sent(At::Jobs(look), true);
                    Effect::Commit(batch)
                }
                Next::Done { bucket, left, due, removed } => {
                    self.buckets[bucket.index()].looked(left, due, removed, &self.retention, wall);
                    return self.choose(Shelf::Jobs, self.position(bucket) + 1, now, wall, out);
                }
            },
            Step::Look(At::Groups(mut look)) => {
                let effect = match look.next() {
                    group::Next::Groups(groups) => Effect::Groups(groups),
                    group::Next::Names(parents) => Effect::Names(parents),
                    group::Next::Read(jobs) => Effect::Read(jobs),
                    group::Next::Done { bucket, left, due } => {
                        self.groups[bucket.index()].looked(left, due, true, &self.retention, wall);
                        return self.choose(Shelf::Groups, self.position(bucket) + 1, now, wall, out);
                    }
                };
                self.step = Step::Look(At::Groups(look));
                effect
            }
            Step::Look(At::Corner(mut tidying)) => match tidying.next() {
                Some(paths) => {
                    self.step = Step::Look(At::Corner(tidying));
                    Effect::Stat(paths)
                }
                None => return out.push(Effect::Idle),
            },
            Step::Send(at, batch, whole) => {
                self.step = Step::Sent(at, whole);
                Effect::Commit(batch)
            }
            // Nothing is asked, so nothing was sent: that of a term that is over. Begin anew.
            Step::Sent(..) => Effect::Settings,
        };
        self.asked = Some(now);
        out.push(effect);
    }

    /// Where a bucket stands in this term's order.
    fn position(&self, bucket: Bucket) -> usize {
        (bucket.index() + usize::from(BUCKETS) - self.first) % usize::from(BUCKETS)
    }

    fn choose(&mut self, shelf: Shelf, from: usize, now: Millis, wall: WallMillis, out: &mut Vec<Effect>) {
        let (retention, first) = (self.retention, self.first);
        let facts = self.shelf(shelf);
        let order = Bucket::all().skip(first).chain(Bucket::all().take(first));
        let due = order.skip(from).find(|bucket| {
            let facts = &facts[bucket.index()];
            match shelf {
                Shelf::Jobs => facts.is_due(&retention, wall),
                Shelf::Groups => facts.has_aged(wall),
            }
        });
        match (due, shelf) {
            (Some(bucket), _) => {
                // Answered, it becomes a look; unanswered, a round begins.
                self.step = Step::Choose(shelf, self.position(bucket));
                self.asked = Some(now);
                out.push(Effect::List(shelf, bucket));
            }
            (None, shelf) if shelf == self.begins => self.choose(shelf.other(), 0, now, wall, out),
            (None, Shelf::Jobs | Shelf::Groups) => {
                // The next round goes on, whatever becomes of this one.
                let corner = Corner::nth(self.corner);
                self.corner = self.corner.wrapping_add(1);
                self.step = Step::Look(At::Corner(Tidying::new(corner)));
                self.asked = Some(now);
                out.push(Effect::Names(vec![corner.path()]));
            }
        }
    }
}

/// When it ended, of what two clocks say: the later, unless it is wrong.
fn ended(at: WallMillis, modified: WallMillis, wall: WallMillis) -> WallMillis {
    let (early, late) = (at.min(modified), at.max(modified));
    if late > wall + WRONG_AHEAD { early } else { late }
}

/// The round cannot go on: the next one begins anew.
struct Unanswered;

impl From<()> for Unanswered {
    fn from((): ()) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests;
