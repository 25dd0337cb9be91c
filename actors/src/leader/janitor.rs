//! The janitor: removes records whose retention time is over.
//!
//! It sets no watches. Every round reads the retention setting and the child counts of all buckets. While the session
//! is disconnected no request is sent, and the next round tries again.

use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::chain::chain;
use bellwether_core::change::Noted;
use bellwether_core::machine::janitor::{
    self, BucketKind, Effect, Event, Found, FoundGroup, FoundSegment, PARTS, ROUND, segment_paths,
};
use bellwether_core::machine::worker::Lookup;
use bellwether_core::metric;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket};
use bellwether_core::port::{Node, ReadError, ReadResult, Requests};
use bellwether_core::retention::Retention;
use bellwether_core::segment::{Chunks, SegmentId};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use metrics::counter;

use super::FencedOut;
use crate::unreadable::Unreadable;
use crate::{Concern, Context};

/// A timer of the janitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The end of a pause, or the next round, of this machine.
    Next(usize),
}

/// Removes records whose retention time is over, in one term.
pub struct Janitor {
    machines: Vec<janitor::Janitor>,
    unreadable: Unreadable,
}

/// Messages to the janitor. The number identifies the machine.
pub enum JanitorMsg {
    /// The term is active again.
    Resume,
    /// A pause within a round is over.
    Tick(usize),
    /// A round starts.
    Sweep(usize),
    /// The retention setting, and the time at which the epoch was last written.
    Settings(usize, ReadResult<(Lookup<Retention>, Option<WallMillis>)>),
    /// The number of children of each bucket.
    Counted(usize, BucketKind, Vec<Bucket>, ReadResult<Vec<usize>>),
    /// The version of a bucket and the names in it.
    Listed(usize, BucketKind, Bucket, ReadResult<(i32, Vec<String>)>),
    /// The records that were read.
    Read(usize, Vec<JobId>, ReadResult<Vec<Found>>),
    /// The segments that were read.
    Segments(usize, Vec<(SegmentId, Chunks)>, ReadResult<Vec<Vec<Option<Node>>>>),
    /// The groups that were read.
    Groups(usize, Vec<GroupId>, ReadResult<Vec<Option<Node>>>),
    /// The names below segments or a group's parents.
    Names(usize, ReadResult<Vec<Option<Vec<String>>>>),
    /// The time of the last write to each znode, and the number of its children.
    Stats(usize, ReadResult<Vec<Option<(WallMillis, usize)>>>),
    /// The outcome of a removal.
    Committed(usize, Batch<String>, Outcome<()>),
}

kinds!(JanitorMsg {
    Resume,
    Tick,
    Sweep,
    Settings,
    Counted,
    Listed,
    Read,
    Segments,
    Groups,
    Names,
    Stats,
    Committed
});

impl Concern for Janitor {
    const NAME: &'static str = "janitor";
    type Msg = JanitorMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = FencedOut;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        // A new leader has more urgent things to do.
        (0..PARTS).for_each(|part| cx.sweep(Key::Next(part), ROUND, JanitorMsg::Sweep(part)));
        Self { machines: janitor::Janitor::parts(epoch).collect(), unreadable: Unreadable::default() }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: JanitorMsg) {
        let (part, event) = match msg {
            JanitorMsg::Resume => return (0..PARTS).for_each(|part| self.feed(cx, part, Event::Go)),
            JanitorMsg::Tick(part) | JanitorMsg::Sweep(part) => (part, Event::Go),
            JanitorMsg::Settings(part, read) => {
                // An unreadable setting counts as absent, and without a setting no record is removed.
                let mut readable = |setting| self.unreadable.readable(|| path::RETENTION.into(), setting);
                let read = read.map(|(setting, epoch)| (readable(setting), epoch));
                (part, Event::Settings(read.map_err(note)))
            }
            JanitorMsg::Counted(part, kind, buckets, counts) => {
                (part, Event::Counted(kind, buckets, counts.map_err(note)))
            }
            JanitorMsg::Listed(part, kind, bucket, names) => {
                (part, Event::Listed(kind, bucket, names.map_err(note)))
            }
            JanitorMsg::Read(part, jobs, found) => (part, Event::Read(jobs, found.map_err(note))),
            JanitorMsg::Segments(part, segments, read) => {
                let found = read.map(|each| {
                    segments.iter().zip(each).map(|((id, _), nodes)| self.segment(*id, &nodes)).collect()
                });
                (part, Event::Segments(segments, found.map_err(note)))
            }
            JanitorMsg::Groups(part, groups, read) => {
                let group = |(id, node): (&GroupId, Option<Node>)| self.group(id, &node?);
                let found = read.map(|nodes| groups.iter().zip(nodes).map(group).collect());
                (part, Event::Groups(groups, found.map_err(note)))
            }
            JanitorMsg::Names(part, names) => (part, Event::Names(names.map_err(note))),
            JanitorMsg::Stats(part, stats) => (part, Event::Stats(stats.map_err(note))),
            JanitorMsg::Committed(part, batch, outcome) => (part, Event::Committed(batch, outcome)),
        };
        self.feed(cx, part, event);
    }
}

impl Janitor {
    fn feed(&mut self, cx: &mut Context<'_, Self>, part: usize, event: Event) {
        let mut effects = Vec::new();
        self.machines[part].handle(cx.now, cx.wall, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Rest(wait) => cx.after(Key::Next(part), wait, JanitorMsg::Tick(part)),
                Effect::Idle => cx.sweep(Key::Next(part), ROUND, JanitorMsg::Sweep(part)),
                Effect::Settings => {
                    cx.task(move |zk| async move { JanitorMsg::Settings(part, settings(zk).await) })
                }
                Effect::Count(kind, buckets) => {
                    let parents = buckets.iter().map(|bucket| kind.parents(*bucket)).collect::<Vec<_>>();
                    let paths = parents.concat();
                    cx.get_many(paths, move |nodes| {
                        let count =
                            |nodes: &[Option<Node>]| nodes.iter().flatten().map(|node| node.children).sum();
                        let each = parents.first().map_or(1, Vec::len);
                        let counts = nodes.map(|nodes| nodes.chunks(each).map(count).collect());
                        JanitorMsg::Counted(part, kind, buckets, counts)
                    });
                }
                Effect::List(kind, bucket) => cx.task(move |zk| {
                    let listed = list(zk, kind.path(bucket), kind.parents(bucket));
                    async move { JanitorMsg::Listed(part, kind, bucket, listed.await) }
                }),
                Effect::Segments(segments) => cx.task(move |zk| async move {
                    let nodes = read_segments(&zk, &segments).await;
                    JanitorMsg::Segments(part, segments, nodes)
                }),
                Effect::Groups(groups) => {
                    let paths = groups.iter().map(path::group).collect();
                    cx.get_many(paths, move |nodes| JanitorMsg::Groups(part, groups, nodes));
                }
                Effect::Names(parents) => {
                    cx.children_many(parents, move |names| JanitorMsg::Names(part, names))
                }
                Effect::Stat(paths) => cx.get_many(paths, move |nodes| {
                    let stat = |node: Option<Node>| node.map(|node| (node.modified, node.children));
                    JanitorMsg::Stats(part, nodes.map(|nodes| nodes.into_iter().map(stat).collect()))
                }),
                Effect::Read(jobs) => cx.task(move |zk| async move {
                    let found = read(&zk, &jobs).await;
                    JanitorMsg::Read(part, jobs, found)
                }),
                Effect::Commit(batch) => {
                    cx.commit_batch(batch, move |batch, outcome| JanitorMsg::Committed(part, batch, outcome))
                }
                Effect::Removed(count) => {
                    tracing::debug!(count, "the leader removed the records of ended jobs");
                    counter!(metric::RECORDS_REMOVED).increment(count as u64);
                }
                Effect::FencedOut => cx.tell(FencedOut),
            }
        }
    }

    fn segment(&mut self, id: SegmentId, nodes: &[Option<Node>]) -> FoundSegment {
        let (segment, chunks) = nodes.split_first().expect("the segment was read with its chunks");
        let found = FoundSegment::of(
            segment.as_ref().map(|node| node.data.as_slice()),
            chunks.iter().map(|chunk| chunk.as_ref().map(|chunk| (chunk.data.as_slice(), chunk.modified))),
        );
        if found == FoundSegment::Left {
            self.unreadable.tell(path::segment(id), 0, "the segment or one of its chunks");
        }
        found
    }

    fn group(&mut self, id: &GroupId, node: &Node) -> FoundGroup {
        let record = wire::decode(&node.data);
        let record =
            record.inspect_err(|error| self.unreadable.tell(path::group(id), node.version, error)).ok()?;
        Some((record, node.version, node.modified))
    }
}

/// Reads the retention setting and the epoch after a sync. Without the sync, a server that lags could later return the
/// record of an earlier job with the same id.
async fn settings(zk: Arc<dyn Requests>) -> ReadResult<(Lookup<Retention>, Option<WallMillis>)> {
    let synced = zk.sync(path::JOBS.into());
    let read = zk.get_many(vec![path::RETENTION.into(), path::EPOCH.into()]);
    synced.await?;
    let mut nodes = read.await?.into_iter();
    let (setting, epoch) = (nodes.next().flatten(), nodes.next().flatten());
    Ok((Node::look::<Noted<Retention>>(&setting).map(|noted| noted.value), epoch.map(|node| node.modified)))
}

/// Reads the version of a bucket and lists its names, in this order: the list is not older than the version.
fn list(
    zk: Arc<dyn Requests>,
    bucket: String,
    parents: Vec<String>,
) -> impl Future<Output = ReadResult<(i32, Vec<String>)>> {
    let (bucket, names) = (zk.get(bucket), zk.children_many(parents));
    async move {
        let removals = bucket.await?.map_or(0, |bucket| bucket.version);
        Ok((removals, names.await?.into_iter().flatten().flatten().collect()))
    }
}

/// Reads records, in concurrent requests.
async fn read(zk: &Arc<dyn Requests>, jobs: &[JobId]) -> ReadResult<Vec<Found>> {
    let page = |jobs: &[JobId]| zk.get_many(jobs.iter().map(path::record).collect());
    let pages = jobs.chunks(MAX_READ_BATCH).map(|jobs| (jobs, page(jobs))).collect::<Vec<_>>();
    let mut all = Vec::with_capacity(jobs.len());
    for (jobs, nodes) in pages {
        all.extend(jobs.iter().zip(nodes.await?).map(found));
    }
    Ok(all)
}

/// Reads segments, each with its chunks, in concurrent requests.
async fn read_segments(
    zk: &Arc<dyn Requests>,
    segments: &[(SegmentId, Chunks)],
) -> ReadResult<Vec<Vec<Option<Node>>>> {
    let paths = segments.iter().map(|(id, chunks)| segment_paths(*id, chunks)).collect::<Vec<_>>();
    let all = paths.concat();
    let pages = all.chunks(MAX_READ_BATCH).map(|paths| zk.get_many(paths.to_vec())).collect::<Vec<_>>();
    let mut nodes = Vec::with_capacity(all.len());
    for page in pages {
        nodes.extend(page.await?);
    }
    let mut nodes = nodes.into_iter();
    Ok(paths.iter().map(|paths| nodes.by_ref().take(paths.len()).collect()).collect())
}

fn found((job, node): (&JobId, Option<Node>)) -> Found {
    node.map_or(Found::Absent, |node| Found::of(job, &node.data, node.version, node.modified))
}

/// Logs a failed read. The next round reads again.
fn note(error: ReadError) {
    tracing::debug!(error = %chain(&error), "the janitor could not read ZooKeeper");
}
