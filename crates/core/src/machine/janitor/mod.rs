//! The janitor: removes records that are past their retention, and other znodes that are no longer needed.
//!
//! ```text
//!          every ROUND                                  256 buckets
//!  Resting ───────────▶ settings ─▶ counts ─▶ choose ─┬─▶ list ─▶ read … ─▶ remove … ─┐
//!     ▲                    │           │         ▲    │                               │
//!     │   no answer        │           │         └────┼───────── next bucket ─────────┘
//!     └────────────────────┴───────────┴──────────────┘ no bucket is due
//! ```
//!
//! **Removal.** The record of a terminal job, at the version that was read, behind the epoch check and the counter of the
//! bucket's removals. A job that was retried in the meantime has another version and stays; a job that was removed by a
//! purge and submitted again stays because of the counter. If the reply to a removal is lost, the janitor
//! scans the bucket again and removes the records that still exist.
//!
//! **When a job ended** is decided from two clocks: see [`retention::ended`](crate::retention::ended).
//!
//! **The current time** is the leader's, limited once more by ZooKeeper's, because a removal cannot be taken back: it is at most the latest ZooKeeper time seen
//! (the time of the leader's own claim, or of any end that was read) plus the monotonic time since then. So a
//! leader whose clock is ahead removes nothing early. (A leader that restarts long after its claim, in a namespace
//! where no job ends, removes records late.)
//!
//! **Reads.** Records are not watched. For each bucket the machine keeps a few numbers (`bucket`): when its
//! next record is due, its last record count, and when that was counted. It lists and reads a bucket only when a
//! record in it can be due, and at most as often as a slack allows. A bucket whose new names are enough to exceed its share if
//! they are segments is listed, and read only if it does. It does not read a record whose id is younger than the
//! shortest retention (`JobId::generated_at`). So a record with a generated id is read about
//! once, and one with another id about ten times in its life, whatever the number of records. A bucket above its share with
//! many open jobs is scanned less often, because each scan reads them again (`bucket`). Every round asks for the
//! counts of all buckets.
//!
//! **Where a pass begins.** Each term begins with another bucket (`STRIDE`), and terms alternate between jobs and
//! groups. Otherwise a term shorter than a full pass would always clean the same buckets and never reach the last
//! ones. The same holds for leftovers.
//!
//! **Segments** ([`crate::segment`]) are removed as a whole, once all members have left and the last of those that succeeded
//! has ended long enough ago. The members with records are removed like any record. A chunk that was created after the list rejects the removal,
//! because a znode with children is not deleted.
//!
//! **Leftovers**: quarantine notes without a record, and containers that were never used. Each round checks one
//! list: see `leftovers`.
//!
//! **Groups** are removed as a whole, with the records of their jobs: see `group`. The scan of a job bucket skips
//! the records of jobs that belong to a group. But it deletes the turn of an ended job whose sub-jobs' group is absent, because
//! an operator has deleted it: otherwise the job's lane would wait forever.
//!
//! **Pace.** The buckets are divided among [`PARTS`] machines. Each takes one step at a time, followed by a rest of the same
//! length. So the janitor uses at most half of the time of four steps, and slows down with ZooKeeper.
//!
//! Limits: a machine holds one bucket's list (80,000 ids with their times: [`SUB_BUCKETS`](crate::budget::SUB_BUCKETS) times
//! [`MAX_BUCKET_ENTRIES`](crate::budget::MAX_BUCKET_ENTRIES)) and [`RECORDS`] records at a time; or one list of possible leftovers, whose length is the number of
//! lanes of a bucket, delayed minutes or notes.

mod bucket;
mod bucket_scan;
mod buckets;
mod event;
mod found;
mod group;
mod leftovers;
mod segment_scan;
mod time;

use std::time::Duration;

use crate::budget::{BUCKETS, MAX_READ_BATCH, MAX_STAT_BATCH};
use crate::name::JobId;
use crate::outcome::Outcome;
use crate::path;
use crate::retention::Retention;
use crate::segment::{Chunks, SegmentId};
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus, Op, Subject};

pub use event::{Effect, Event};
pub use found::{BucketKind, Found, FoundGroup, FoundSegment};
pub use leftovers::{Stat, UNUSED};
pub use segment_scan::paths as segment_paths;

use bucket::Size;
use bucket_scan::{BucketScan, Next};
use buckets::{Buckets, STRIDE};
use group::{Groups, Removals};
use leftovers::{LeftoverScan, Leftovers};
use time::SeenTime;

/// Interval at which the settings and the bucket counts are read. New settings apply from the next read.
pub const ROUND: Duration = Duration::from_secs(5);

/// Maximum number of znodes per read.
pub const READ: usize = MAX_READ_BATCH;

/// Maximum number of records that a scan of a bucket reads, or removes, in one step.
pub const RECORDS: usize = 4 * READ;

/// Minimum rest after a request, also after one that took less than a clock tick.
const SHORTEST_REST: Duration = Duration::from_millis(1);

/// The number of machines of a term ([`Janitor::parts`]).
pub const PARTS: usize = 4;

/// State machine of one term, for all buckets or a part of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Janitor {
    epoch: i32,
    retention: Retention,
    buckets: Buckets,
    /// Counts the rounds; selects the leftovers of the next round.
    leftovers: usize,
    step: Step,
    /// When the request in flight was sent.
    asked: Option<Millis>,
    /// No request is sent before this time.
    rest: Millis,
    time: SeenTime,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    /// Begin a round.
    Settings,
    /// Count the buckets from this index on.
    Count(BucketKind, usize),
    /// Find a due bucket, from this position of the term's order on.
    Choose(BucketKind, usize),
    Scan(At),
    /// Send a batch (again). The flag is false if an operation was taken out of it.
    Send(At, Batch<String>, bool),
    /// The batch was sent.
    Sent(At, bool),
}

/// The object of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    Jobs(Box<BucketScan>),
    Groups(Box<Groups>),
    Leftovers(LeftoverScan),
}

impl Janitor {
    /// Creates the machines of the term of `epoch`, each for its part of the buckets.
    pub fn parts(epoch: i32) -> impl Iterator<Item = Self> {
        (0..PARTS).map(move |part| Self::of(epoch, part, PARTS))
    }

    /// Creates one machine for all buckets. It begins with the first [`Event::Go`].
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self::of(epoch, 0, 1)
    }

    fn of(epoch: i32, part: usize, machines: usize) -> Self {
        let term = epoch.unsigned_abs();
        Self {
            epoch,
            retention: Retention::default(),
            buckets: Buckets::new(term, part, machines),
            leftovers: term as usize % usize::from(BUCKETS) * STRIDE + part,
            step: Step::Settings,
            asked: None,
            rest: Millis(0),
            time: SeenTime::default(),
        }
    }

    /// Handles one event: `now` controls the pace, `wall` decides which records are due.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        if event == Event::Go {
            return self.advance(now, self.time.trusted(now, wall), out);
        }
        let Some(asked) = self.asked.take() else { return };
        self.rest = now + now.since(asked).max(SHORTEST_REST);
        self.time.see(now, &event);
        let wall = self.time.trusted(now, wall);
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
        let retention = &self.retention;
        match (event, step) {
            (Event::Settings(settings), _) => {
                // Without a readable retention setting nothing is removed.
                let retention = settings?.0.ok_or(Unanswered)?;
                if self.retention != retention {
                    self.retention = retention;
                    self.buckets.forget();
                }
                Ok(Step::Count(BucketKind::Jobs, 0))
            }
            (Event::Counted(kind, buckets, counts), _) => {
                let next = buckets.last().map_or(0, |bucket| bucket.index() + 1);
                for (bucket, count) in buckets.into_iter().zip(counts?) {
                    self.buckets.facts(kind, bucket).counted(count);
                }
                Ok(match kind {
                    kind if self.buckets.from(next).next().is_some() => Step::Count(kind, next),
                    BucketKind::Jobs => Step::Count(BucketKind::Groups, 0),
                    BucketKind::Groups => Step::Choose(self.buckets.begins(), 0),
                })
            }
            (Event::Listed(BucketKind::Jobs, bucket, listed), _) => {
                let (removals, names) = listed?;
                let (size, facts) = (bucket_scan::size(&names), self.buckets.facts(BucketKind::Jobs, bucket));
                if !facts.is_due_with(size.jobs, retention, wall) {
                    facts.listed(size);
                    return Ok(Step::Choose(BucketKind::Jobs, self.buckets.position(bucket)));
                }
                let scan = BucketScan::new(bucket, removals, &names, retention, wall);
                Ok(Step::Scan(At::Jobs(Box::new(scan))))
            }
            (Event::Listed(BucketKind::Groups, bucket, listed), _) => {
                Ok(Step::Scan(At::Groups(Box::new(Groups::new(bucket, &listed?.1)))))
            }
            (Event::Read(jobs, found), Step::Scan(At::Jobs(mut scan))) => {
                for (job, found) in jobs.into_iter().zip(found?) {
                    scan.read(job, found, retention, wall);
                }
                Ok(Step::Scan(At::Jobs(scan)))
            }
            (Event::Read(_, found), Step::Scan(At::Groups(mut scan))) => {
                let removals = scan.read(found?, retention, wall);
                Ok(self.remove(At::Groups(scan), removals))
            }
            (Event::Segments(segments, found), Step::Scan(At::Jobs(mut scan))) => {
                for (segment, found) in segments.into_iter().zip(found?) {
                    scan.read_segment(segment, &found, retention, wall);
                }
                Ok(Step::Scan(At::Jobs(scan)))
            }
            (Event::Names(names), Step::Scan(At::Jobs(mut scan))) => {
                scan.names(names?);
                Ok(Step::Scan(At::Jobs(scan)))
            }
            (Event::Groups(groups, found), Step::Scan(At::Groups(mut scan))) => {
                scan.groups(groups.into_iter().zip(found?).collect(), retention, wall);
                Ok(Step::Scan(At::Groups(scan)))
            }
            (Event::Names(names), Step::Scan(At::Groups(mut scan))) => {
                let removals = scan.names(names?, retention, wall);
                Ok(self.remove(At::Groups(scan), removals))
            }
            (Event::Names(names), Step::Scan(At::Leftovers(mut scan))) => {
                scan.listed(names?.into_iter().flatten().flatten().collect());
                Ok(Step::Scan(At::Leftovers(scan)))
            }
            (Event::Stats(stats), Step::Scan(At::Jobs(mut scan))) => {
                let removals = scan.seen(&stats?);
                Ok(self.remove(At::Jobs(scan), removals))
            }
            (Event::Stats(stats), Step::Scan(At::Leftovers(mut scan))) => {
                let removals = scan.seen(stats?, wall);
                Ok(self.remove(At::Leftovers(scan), removals))
            }
            (Event::Committed(batch, outcome), Step::Sent(at, whole)) => {
                self.committed(at, batch, whole, outcome, out)
            }
            // Answers to requests that this machine did not send.
            (
                Event::Read(..)
                | Event::Segments(..)
                | Event::Groups(..)
                | Event::Names(_)
                | Event::Stats(_)
                | Event::Committed(..)
                | Event::Go,
                step,
            ) => Ok(step),
        }
    }

    /// Commits the removals of a scan; the scan continues after that.
    fn remove(&self, at: At, removals: Removals) -> Step {
        if removals.is_empty() {
            return Step::Scan(at);
        }
        let mut fence = vec![txn::fence(self.epoch)];
        if let At::Jobs(scan) = &at {
            fence.push(scan.fence());
        }
        let mut batch = Batch::new(fence);
        for (what, ops) in removals {
            let fits = batch.push(what, ops).is_ok();
            debug_assert!(fits, "100 members are far below the budget of a batch");
        }
        Step::Send(at, batch, true)
    }

    fn committed(
        &mut self,
        mut at: At,
        mut batch: Batch<String>,
        whole: bool,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) -> Result<Step, Unanswered> {
        let rejection = match outcome {
            Outcome::Applied(()) => {
                let records = batch.into_groups().iter().map(|(_, ops)| removed(ops)).sum();
                out.push(Effect::Removed(records));
                if let At::Jobs(scan) = &mut at {
                    scan.applied();
                }
                return Ok(self.go_on(at, whole));
            }
            // Unknown outcome: the next round scans the bucket again, because this scan updated no facts.
            Outcome::Unknown => return Err(Unanswered),
            Outcome::Rejected(rejection) => rejection,
        };
        if rejection.is_whole() {
            return Err(Unanswered);
        }
        match batch.locate(rejection.at) {
            Some(Locus::Group { group, .. }) => {
                // The job was retried, its record was removed manually, or the znode has a foreign child. It stays.
                batch.remove(group);
                Ok(if batch.is_empty() { self.go_on(at, false) } else { Step::Send(at, batch, false) })
            }
            Some(Locus::Fence(Subject::Epoch)) if rejection.is_fence() => {
                out.push(Effect::FencedOut);
                Err(Unanswered)
            }
            // A purge removed records of the bucket: the next round scans it again.
            Some(Locus::Fence(_)) | None => Err(Unanswered),
        }
    }

    fn go_on(&self, at: At, whole: bool) -> Step {
        match at {
            at @ (At::Jobs(_) | At::Leftovers(_)) => Step::Scan(at),
            At::Groups(mut scan) => {
                let removals = scan.removed(whole);
                self.remove(At::Groups(scan), removals)
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
            Step::Count(kind, from) => {
                let few = self.buckets.from(from).take(MAX_STAT_BATCH / kind.parents_of_each()).collect();
                self.step = Step::Count(kind, from);
                Effect::Count(kind, few)
            }
            Step::Choose(kind, from) => return self.choose(kind, from, now, wall, out),
            Step::Scan(At::Jobs(mut scan)) => match scan.next(&self.retention, wall) {
                Next::Read(jobs) => {
                    self.step = Step::Scan(At::Jobs(scan));
                    Effect::Read(jobs)
                }
                Next::Names(parents) => {
                    self.step = Step::Scan(At::Jobs(scan));
                    Effect::Names(parents)
                }
                Next::Segments(segments) => {
                    self.step = Step::Scan(At::Jobs(scan));
                    Effect::Segments(segments)
                }
                Next::Stat(paths) => {
                    self.step = Step::Scan(At::Jobs(scan));
                    Effect::Stat(paths)
                }
                Next::Remove(removals) => {
                    let mut batch = Batch::new(vec![txn::fence(self.epoch), scan.fence()]);
                    for removal in removals {
                        let fits = batch.push(removal.path(), removal.ops()).is_ok();
                        debug_assert!(fits, "{RECORDS} deletes are within the budget of a batch");
                    }
                    self.step = Step::Sent(At::Jobs(scan), true);
                    Effect::Commit(batch)
                }
                Next::Done { bucket, left, open, due, removed } => {
                    let facts = self.buckets.facts(BucketKind::Jobs, bucket);
                    facts.scanned(left, open, due, removed, &self.retention, wall);
                    return self.choose(BucketKind::Jobs, self.buckets.position(bucket), now, wall, out);
                }
            },
            Step::Scan(At::Groups(mut scan)) => {
                let effect = match scan.next() {
                    group::Next::Groups(groups) => Effect::Groups(groups),
                    group::Next::Names(parents) => Effect::Names(parents),
                    group::Next::Read(jobs) => Effect::Read(jobs),
                    group::Next::Done { bucket, listed, due } => {
                        let facts = self.buckets.facts(BucketKind::Groups, bucket);
                        let left = Size { names: listed, jobs: listed };
                        facts.scanned(left, 0, due, true, &self.retention, wall);
                        return self.choose(
                            BucketKind::Groups,
                            self.buckets.position(bucket),
                            now,
                            wall,
                            out,
                        );
                    }
                };
                self.step = Step::Scan(At::Groups(scan));
                effect
            }
            Step::Scan(At::Leftovers(mut scan)) => match scan.next() {
                Some(paths) => {
                    self.step = Step::Scan(At::Leftovers(scan));
                    Effect::Stat(paths)
                }
                None => return out.push(Effect::Idle),
            },
            Step::Send(at, batch, whole) => {
                self.step = Step::Sent(at, whole);
                Effect::Commit(batch)
            }
            // No request is in flight, so this step is left from an interrupted request. Begin a new round.
            Step::Sent(..) => Effect::Settings,
        };
        self.asked = Some(now);
        out.push(effect);
    }

    fn choose(
        &mut self,
        kind: BucketKind,
        from: usize,
        now: Millis,
        wall: WallMillis,
        out: &mut Vec<Effect>,
    ) {
        if let Some(bucket) = self.buckets.due(kind, from, &self.retention, wall) {
            // An answer turns this step into a scan; without an answer a new round begins.
            self.step = Step::Choose(kind, self.buckets.position(bucket));
            self.asked = Some(now);
            out.push(Effect::List(kind, bucket));
        } else if kind == self.buckets.begins() {
            self.choose(kind.other(), 0, now, wall, out);
        } else {
            // The next round takes the next list, whatever the outcome of this one.
            let leftovers = Leftovers::nth(self.leftovers);
            self.leftovers = self.leftovers.wrapping_add(self.buckets.machines());
            self.step = Step::Scan(At::Leftovers(LeftoverScan::new(leftovers)));
            self.asked = Some(now);
            out.push(Effect::Names(vec![leftovers.path()]));
        }
    }
}

/// The number of jobs whose records these operations have removed. The results of members that have succeeded are removed with
/// their segment.
fn removed(ops: &[Op]) -> usize {
    // A delete without a version belongs to an absence check and removes no record.
    let names = ops.iter().filter_map(|op| match op {
        Op::Delete { path, version: Some(_) } if path.starts_with(path::JOBS) => path.rsplit('/').next(),
        Op::Check { .. } | Op::Create { .. } | Op::Set { .. } | Op::Delete { .. } => None,
    });
    let names = names.collect::<Vec<_>>();
    let is_segment = |name: &&str| JobId::new(name).is_ok_and(|job| SegmentId::of_job(&job).is_some());
    if names.last().is_some_and(is_segment) {
        return segment_scan::succeeded(&Chunks::of_names(names));
    }
    names.len()
}

/// The request has no usable answer: the next round begins from the start.
struct Unanswered;

impl From<()> for Unanswered {
    fn from((): ()) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests;
