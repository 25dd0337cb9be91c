//! The test harness: a janitor, and a namespace that answers its requests one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::*;
use crate::job::Verdict;
use crate::name::JobId;
use crate::outcome::{Reason, Rejection};
use crate::path::Bucket;
use crate::txn::Op;

pub(super) const WALL: WallMillis = WallMillis(1_700_000_000_000);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// Duration of a request, by default.
pub(super) const TOOK: Duration = Duration::from_millis(3);

/// A namespace whose requests are answered one by one.
pub(super) struct Stage {
    pub(super) janitor: Janitor,
    pub(super) now: Millis,
    /// Duration of a request.
    pub(super) took: Duration,
    pub(super) retention: Option<Retention>,
    pub(super) records: BTreeMap<JobId, Found>,
    /// The chunks of the segments.
    pub(super) segments: BTreeMap<SegmentId, Vec<Chunk>>,
    /// The versions of the buckets.
    pub(super) removals: BTreeMap<Bucket, i32>,
    pub(super) asked: Vec<Effect>,
    pub(super) removed: usize,
    pub(super) fenced: bool,
    /// When the epoch was claimed; the current time by default.
    pub(super) claimed: Option<WallMillis>,
}

pub(super) fn retention() -> Retention {
    Retention { succeeded: MINUTE, cancelled: MINUTE, dead: 2 * MINUTE, ..Retention::default() }
}

pub(super) fn job(n: u32) -> JobId {
    JobId::new(format!("job-{n}")).unwrap()
}

/// The name of a chunk, and when its last member left by the clock of the worker and by ZooKeeper's clock; `None` if it cannot
/// be read.
pub(super) type Chunk = (&'static str, Option<(WallMillis, WallMillis)>);

impl Stage {
    pub(super) fn new() -> Self {
        let janitor = Janitor::new(7);
        let retention = Some(retention());
        let (records, segments, asked) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let (now, took) = (Millis(0), TOOK);
        let removals = BTreeMap::new();
        Self {
            janitor,
            now,
            took,
            retention,
            records,
            segments,
            removals,
            asked,
            removed: 0,
            fenced: false,
            claimed: None,
        }
    }

    pub(super) fn wall(&self) -> WallMillis {
        WallMillis(WALL.0 + self.now.0)
    }

    pub(super) fn end(&mut self, n: u32, verdict: Verdict) {
        let at = self.wall();
        self.records.insert(
            job(n),
            Found::Over {
                version: 2,
                verdict,
                at,
                modified: at,
                grouped: false,
                counted: false,
                sub_jobs: None,
                turn: None,
            },
        );
    }

    pub(super) fn feed(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.janitor.handle(self.now, self.wall(), event, &mut out);
        out
    }

    /// Runs one round and answers every request; returns how long it rested and how long requests took.
    pub(super) fn round(&mut self) -> (Duration, Duration) {
        self.round_but(|_| None)
    }

    /// Runs a round in which some requests have another answer.
    pub(super) fn round_but(
        &mut self,
        mut otherwise: impl FnMut(&Effect) -> Option<Event>,
    ) -> (Duration, Duration) {
        let (mut rested, mut busy) = (Duration::ZERO, Duration::ZERO);
        let mut event = Event::Go;
        loop {
            let effects = self.feed(event);
            let mut next = None;
            for effect in effects {
                match effect {
                    Effect::Rest(wait) => {
                        rested += wait;
                        self.now = self.now + wait;
                        assert_eq!(next.replace(Event::Go), None);
                    }
                    Effect::Idle => return (rested, busy),
                    Effect::Removed(count) => self.removed += count,
                    Effect::FencedOut => self.fenced = true,
                    request => {
                        busy += self.took;
                        self.now = self.now + self.took;
                        let answer = otherwise(&request).unwrap_or_else(|| self.answer(request.clone()));
                        self.asked.push(request);
                        assert_eq!(next.replace(answer), None, "one request at a time");
                    }
                }
            }
            event = next.expect("the janitor rests, sends a request, or is idle");
        }
    }

    pub(super) fn answer(&mut self, request: Effect) -> Event {
        let of = |bucket: Bucket| {
            let segments = self.segments.keys().map(|id| id.job());
            let all = self.records.keys().cloned().chain(segments);
            all.filter(move |job| Bucket::of(job) == bucket)
        };
        match request {
            Effect::Settings => {
                Event::Settings(Ok((self.retention, Some(self.claimed.unwrap_or(self.wall())))))
            }
            Effect::Count(BucketKind::Jobs, buckets) => {
                let counts = buckets.iter().map(|bucket| of(*bucket).count()).collect();
                Event::Counted(BucketKind::Jobs, buckets, Ok(counts))
            }
            Effect::Count(BucketKind::Groups, buckets) => {
                let counts = vec![0; buckets.len()];
                Event::Counted(BucketKind::Groups, buckets, Ok(counts))
            }
            Effect::List(kind, bucket) => Event::Listed(
                kind,
                bucket,
                Ok((self.removals(bucket), of(bucket).map(|job| job.to_string()).collect())),
            ),
            Effect::Read(jobs) => {
                let found = |job| self.records.get(job).cloned().unwrap_or(Found::Absent);
                let found = jobs.iter().map(found).collect();
                Event::Read(jobs, Ok(found))
            }
            Effect::Commit(batch) => {
                let outcome = self.commit(&batch);
                Event::Committed(batch, outcome)
            }
            Effect::Names(parents) => {
                let names = |parent: &String| {
                    let (_, chunks) = self.segments.iter().find(|(id, _)| path::segment(**id) == *parent)?;
                    Some(chunks.iter().map(|(name, _)| (*name).to_owned()).collect())
                };
                Event::Names(Ok(parents.iter().map(names).collect()))
            }
            Effect::Segments(segments) => {
                let found = |(id, _): &(SegmentId, Chunks)| match self.segments.get(id) {
                    Some(chunks) => {
                        let ends = chunks.iter().map(|(_, ends)| *ends).collect::<Option<Vec<_>>>();
                        ends.map_or(FoundSegment::Left, FoundSegment::Over)
                    }
                    None => FoundSegment::Absent,
                };
                let found = segments.iter().map(found).collect();
                Event::Segments(segments, Ok(found))
            }
            other => panic!("{other:?} is not a request"),
        }
    }

    fn removals(&self, bucket: Bucket) -> i32 {
        self.removals.get(&bucket).copied().unwrap_or_default()
    }

    fn commit(&mut self, batch: &Batch<String>) -> Outcome<()> {
        let mut ops = batch.ops().enumerate();
        assert_eq!(ops.next().unwrap().1, &txn::fence(7), "the batch checks the epoch");
        let Some((_, Op::Set { path, version, .. })) = ops.next() else { panic!("no counter in {batch:?}") };
        let bucket = Bucket::all().find(|bucket| bucket.jobs() == *path).unwrap();
        if *version != self.removals(bucket) {
            return Outcome::Rejected(Rejection { at: 1, reason: Reason::BadVersion });
        }
        let (mut gone, mut segments, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        for (at, op) in ops {
            let Op::Delete { path, version: Some(wanted) } = op else { panic!("{op:?}") };
            if path::below_parent(path) == (path::JOBS, 4) {
                chunks.push(path.rsplit('/').next().unwrap());
                continue;
            }
            let job = JobId::new(path.rsplit('/').next().unwrap()).unwrap();
            assert_eq!(path::record(&job), *path);
            if let Some(id) = SegmentId::of_job(&job) {
                let reason = match self.segments.get(&id) {
                    Some(all) if all.len() == std::mem::take(&mut chunks).len() => {
                        segments.push(id);
                        continue;
                    }
                    Some(_) => Reason::NotEmpty,
                    None => Reason::NoNode,
                };
                return Outcome::Rejected(Rejection { at, reason });
            }
            let reason = match self.records.get(&job) {
                Some(Found::Over { version, .. }) if version == wanted => {
                    gone.push(job);
                    continue;
                }
                Some(_) => Reason::BadVersion,
                None => Reason::NoNode,
            };
            return Outcome::Rejected(Rejection { at, reason });
        }
        gone.iter().for_each(|job| drop(self.records.remove(job)));
        segments.iter().for_each(|id| drop(self.segments.remove(id)));
        *self.removals.entry(bucket).or_default() += 1;
        Outcome::Applied(())
    }

    pub(super) fn after(&mut self, wait: Duration) -> &mut Self {
        self.now = self.now + wait;
        self
    }
}
