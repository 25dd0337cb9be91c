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
//! **What is read.** Nobody watches records. Of each bucket the machine remembers three numbers ([`bucket`]): when its
//! next record is due, how many it had and when that was. A bucket is listed and read only when something in it can be
//! due, and then not more often than a slack allows, so that a record is read about ten times in its life, however many
//! there are. The count of each bucket is asked for in every round, by three requests.
//!
//! **At what pace.** One request at a time, and after each a rest as long as it took: the janitor has at most half of one
//! place in ZooKeeper's queue, where the assigner has four, and less of it when ZooKeeper is slow. That is still
//! thousands of records a second, as many as one leader assigns.
//!
//! Limits: memory is one bucket's list, [`MAX_BUCKET_ENTRIES`](crate::budget::MAX_BUCKET_ENTRIES) ids with their times,
//! and [`READ`] records at a time.

mod bucket;
mod look;

use std::time::Duration;

use crate::budget::{BUCKETS, MAX_READ_BATCH};
use crate::job::{JobRecord, JobState, Verdict};
use crate::name::JobId;
use crate::outcome::Outcome;
use crate::path::Bucket;
use crate::retention::Retention;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus};
use crate::wire;

use bucket::Facts;
use look::{Look, Next};

/// How often the counts of buckets are asked for, and the settings: what was set holds after that.
pub const ROUND: Duration = Duration::from_secs(5);

/// Records of one read, and of one removal.
pub const READ: usize = MAX_READ_BATCH;

/// A clock that is ahead by more than this is wrong, and what it said is not believed.
pub const WRONG_AHEAD: Duration = Duration::from_secs(3600);

/// Rest after a request that took no time that the clock shows.
const SHORTEST_REST: Duration = Duration::from_millis(1);

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// It is gone, or cannot be read, or its job is not over: nothing to do.
    Left,
    /// Its job is over.
    Over {
        /// The version that was read.
        version: i32,
        /// How it ended.
        verdict: Verdict,
        /// When, by the clock of whoever ended it.
        at: WallMillis,
        /// When, by ZooKeeper's clock.
        modified: WallMillis,
    },
}

impl Found {
    /// From a znode's data, version and time of modification. Bytes that this build cannot read stay: a newer one may,
    /// or an operator may repair them.
    #[must_use]
    pub fn of(data: &[u8], version: i32, modified: WallMillis) -> Self {
        let Ok(record) = wire::decode::<JobRecord>(data) else { return Self::Left };
        match record.state {
            // A group reads the records of its members.
            JobState::Terminal { .. } if record.membership.is_some() => Self::Left,
            JobState::Terminal { verdict, at } => Self::Over { version, verdict, at, modified },
            JobState::Open { .. } => Self::Left,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The time of the last [`Effect::Rest`] or [`Effect::Idle`] is over, or the session serves again.
    Go,
    /// The settings were read: `Ok(None)` if they are absent or cannot be read; `Err` was not answered.
    Settings(Result<Option<Retention>, ()>),
    /// How many records these buckets have; 0 for one that is not there.
    Counted(Vec<Bucket>, Result<Vec<usize>, ()>),
    /// The records of a bucket.
    Listed(Bucket, Result<Vec<JobId>, ()>),
    /// Records were read, in the order in which they were asked for.
    Read(Vec<JobId>, Result<Vec<Found>, ()>),
    /// A batch was answered.
    Committed(Batch<JobId>, Outcome<()>),
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Say [`Event::Go`] after this time.
    Rest(Duration),
    /// The round is over: say [`Event::Go`] after [`ROUND`], or when the session serves again.
    Idle,
    /// Read the settings.
    Settings,
    /// Count the records of these buckets, at most [`MAX_READ_BATCH`].
    Count(Vec<Bucket>),
    /// List a bucket.
    List(Bucket),
    /// Read these records, at most [`READ`].
    Read(Vec<JobId>),
    /// Commit this and hand it back with its outcome.
    Commit(Batch<JobId>),
    /// So many records were removed.
    Removed(usize),
    /// Another leader has claimed.
    FencedOut,
}

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Janitor {
    epoch: i32,
    retention: Retention,
    buckets: Vec<Facts>,
    step: Step,
    /// When the request in flight was sent.
    asked: Option<Millis>,
    /// Nothing is asked for before.
    rest: Millis,
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    /// Begin a round.
    Settings,
    /// Count the buckets from this one on.
    Count(usize),
    /// Look for a bucket that is due, from this one on.
    Choose(usize),
    Look(Look),
    /// A batch is to be sent (again).
    Send(Look, Batch<JobId>),
}

impl Janitor {
    /// A machine for the term of `epoch`. Begins with the first [`Event::Go`].
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self {
            epoch,
            retention: Retention::default(),
            buckets: vec![Facts::default(); usize::from(BUCKETS)],
            step: Step::Settings,
            asked: None,
            rest: Millis(0),
        }
    }

    /// Handles one event: `now` paces, `wall` decides what is due.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        if event == Event::Go {
            return self.advance(now, wall, out);
        }
        let Some(asked) = self.asked.take() else { return };
        self.rest = now + now.since(asked).max(SHORTEST_REST);
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

    fn answered(
        &mut self,
        wall: WallMillis,
        event: Event,
        out: &mut Vec<Effect>,
    ) -> Result<Step, Unanswered> {
        let step = std::mem::replace(&mut self.step, Step::Settings);
        match (event, step) {
            (Event::Settings(settings), _) => {
                // Nothing is removed that nobody said how long to keep.
                let retention = settings?.ok_or(Unanswered)?;
                if self.retention != retention {
                    self.retention = retention;
                    self.buckets.iter_mut().for_each(Facts::forget);
                }
                Ok(Step::Count(0))
            }
            (Event::Counted(buckets, counts), _) => {
                let next = buckets.last().map_or(0, |bucket| bucket.index() + 1);
                for (bucket, count) in buckets.into_iter().zip(counts?) {
                    self.buckets[bucket.index()].counted(count);
                }
                Ok(if next < self.buckets.len() { Step::Count(next) } else { Step::Choose(0) })
            }
            (Event::Listed(bucket, jobs), _) => Ok(Step::Look(Look::new(bucket, jobs?))),
            (Event::Read(jobs, found), Step::Look(mut look)) => {
                for (job, found) in jobs.into_iter().zip(found?) {
                    look.read(job, found, &self.retention, wall);
                }
                Ok(Step::Look(look))
            }
            (Event::Committed(batch, outcome), Step::Look(look)) => self.committed(look, batch, outcome, out),
            // Of a request that this machine did not send.
            (Event::Read(..) | Event::Committed(..), step) => Ok(step),
            (Event::Go, step) => Ok(step),
        }
    }

    fn committed(
        &mut self,
        look: Look,
        mut batch: Batch<JobId>,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) -> Result<Step, Unanswered> {
        let rejection = match outcome {
            Outcome::Applied(()) => {
                out.push(Effect::Removed(batch.len()));
                return Ok(Step::Look(look));
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
                Ok(if batch.is_empty() { Step::Look(look) } else { Step::Send(look, batch) })
            }
            Some(Locus::Fence(_)) if rejection.is_fence() => {
                out.push(Effect::FencedOut);
                Err(Unanswered)
            }
            Some(Locus::Fence(_)) | None => Err(Unanswered),
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
            Step::Count(from) => {
                let few = Bucket::all().skip(from).take(MAX_READ_BATCH).collect();
                self.step = Step::Count(from);
                Effect::Count(few)
            }
            Step::Choose(from) => return self.choose(from, now, wall, out),
            Step::Look(mut look) => match look.next(&self.retention, wall) {
                Next::Read(jobs) => {
                    self.step = Step::Look(look);
                    Effect::Read(jobs)
                }
                Next::Remove(records) => {
                    let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
                    for (job, version) in records {
                        let ops = vec![txn::remove_record(&job, version)];
                        let fits = batch.push(job, ops).is_ok();
                        debug_assert!(fits, "a hundred removals are far below any budget");
                    }
                    self.step = Step::Look(look);
                    Effect::Commit(batch)
                }
                Next::Done { bucket, left, due } => {
                    self.buckets[bucket.index()].looked(left, due, &self.retention, wall);
                    return self.choose(bucket.index() + 1, now, wall, out);
                }
            },
            Step::Send(look, batch) => {
                self.step = Step::Look(look);
                Effect::Commit(batch)
            }
        };
        self.asked = Some(now);
        out.push(effect);
    }

    fn choose(&mut self, from: usize, now: Millis, wall: WallMillis, out: &mut Vec<Effect>) {
        let retention = &self.retention;
        let due = Bucket::all().skip(from).find(|b| self.buckets[b.index()].is_due(retention, wall));
        if let Some(bucket) = due {
            // Answered, it becomes a look; unanswered, a round begins.
            self.step = Step::Choose(bucket.index());
            self.asked = Some(now);
            out.push(Effect::List(bucket));
        } else {
            self.step = Step::Settings;
            out.push(Effect::Idle);
        }
    }
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
