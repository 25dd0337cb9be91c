//! Reading groups, as `actors/src/group.rs` does: the same requests in the same order, on which
//! [`Sight`] relies. All chunks of a list are asked for at once: simulated groups have one.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::group::{End, GroupRecord, Mark, Stage};
use bellwether_core::job::{Assignment, JobRecord, JobState};
use bellwether_core::machine::group::{Cursor, Look, REST, Rest, Sight, Standing};
use bellwether_core::machine::recovery::Stored;
use bellwether_core::name::{GroupId, JobId, WorkerId};
use bellwether_core::path::{self, Bucket};
use bellwether_core::txn::Waiting;
use bellwether_core::wire;

use super::Shell;
use crate::zk::{Disconnected, ReadResult, Zk, Znode, ask};

impl Shell {
    /// Looks at a group.
    pub(crate) async fn look_at(&self, zk: Zk, group: &GroupId) -> ReadResult<Look> {
        let Some(node) = self.get(zk, path::group(group)).await? else { return Ok(Look::Absent) };
        let record = match wire::decode::<GroupRecord>(&node.data) {
            Ok(record) => record,
            Err(error) => return Ok(Look::Unreadable(error.to_string())),
        };
        let mut sight = Sight::new(record, node.version);
        if matches!(sight.record.stage, Stage::Done { .. }) {
            return Ok(Look::There(Box::new(sight)));
        }
        let names = self.names(zk, path::group(group)).await?;
        for (mark, end) in names.iter().filter_map(|name| path::parse_mark(name)) {
            match mark {
                Mark::Parent => sight.parent = Some(end),
                Mark::Join => sight.join = Some(end),
                Mark::Finish => sight.finish = Some(end),
                Mark::Member(_) => {}
            }
        }
        let chunks = names.iter().filter_map(|name| path::parse_chunk(name)).collect::<Vec<_>>();
        sight.open = self.count(zk, chunks.iter().map(|chunk| path::place_chunk(group, *chunk))).await?;
        sight.ended = self.count(zk, chunks.iter().map(|chunk| path::mark_chunk(group, *chunk))).await?;
        if Sight::wants_numbers(&sight.record, sight.ended) {
            self.number(zk, group, &chunks, &mut sight).await?;
        }
        Ok(Look::There(Box::new(sight)))
    }

    async fn count(&self, zk: Zk, paths: impl Iterator<Item = String>) -> ReadResult<u32> {
        let nodes = self.get_many(zk, paths.collect()).await?;
        Ok(count(nodes.iter().flatten().map(|node| node.children).sum()))
    }

    async fn number(&self, zk: Zk, group: &GroupId, chunks: &[u32], sight: &mut Sight) -> ReadResult<()> {
        let total = sight.record.total.unwrap_or(0);
        let (mut members, mut places, mut marks, mut below) = (0, 0, 0, 0);
        for chunk in chunks {
            let (open, ended) = self.members_of(zk, group, *chunk).await?;
            members += open.iter().filter(|number| !ended.contains_key(number)).count() + ended.len();
            places += open.len();
            marks += ended.len();
            below += ended.range(..total).count();
            let failed = ended.into_iter().find(|(_, end)| *end != End::Succeeded);
            sight.failed = sight.failed.or(failed.map(|(number, _)| number));
        }
        (sight.open, sight.ended, sight.below) = (count(places), count(marks), Some(count(below)));
        sight.members = sight.record.closed.then_some(count(members));
        Ok(())
    }

    /// The members of a chunk: places, then marks.
    pub(super) async fn members_of(
        &self,
        zk: Zk,
        group: &GroupId,
        chunk: u32,
    ) -> ReadResult<(BTreeSet<u32>, BTreeMap<u32, End>)> {
        let open = self.names(zk, path::place_chunk(group, chunk)).await?;
        let ended = self.names(zk, path::mark_chunk(group, chunk)).await?;
        let open = open.iter().filter_map(|name| path::parse_place(name)).collect();
        Ok((open, ended.iter().filter_map(|name| path::parse_member_mark(name)).collect()))
    }

    /// Finds members that have a place, from there on, at most [`REST`]; and where to go on, unless that was all.
    pub(crate) async fn rest_of(
        &self,
        zk: Zk,
        group: &GroupId,
        from: Cursor,
    ) -> ReadResult<(Vec<Rest>, Option<Cursor>)> {
        let record = self.get(zk, path::group(group)).await?;
        let record = record.and_then(|node| wire::decode::<GroupRecord>(&node.data).ok());
        let Some(record) = record else { return Ok((Vec::new(), None)) };
        let chunks = self.names(zk, path::members(group)).await?;
        let mut chunks = chunks.iter().filter_map(|name| path::parse_chunk(name)).collect::<Vec<_>>();
        chunks.sort_unstable();
        for chunk in chunks.into_iter().filter(|chunk| *chunk >= from.chunk) {
            let places = self.names(zk, path::place_chunk(group, chunk)).await?;
            let first = if chunk == from.chunk { from.from } else { 0 };
            let mut open = places.iter().filter_map(|name| path::parse_place(name)).collect::<Vec<_>>();
            open.retain(|number| *number >= first);
            open.sort_unstable();
            open.truncate(REST);
            let Some(last) = open.last() else { continue };
            let next = Cursor { chunk, from: last + 1 };
            let jobs = open.iter().filter_map(|number| JobId::member(&record.kind, group, *number).ok());
            return Ok((self.stand(zk, jobs.collect()).await?, Some(next)));
        }
        Ok((Vec::new(), None))
    }

    async fn stand(&self, zk: Zk, jobs: Vec<JobId>) -> ReadResult<Vec<Rest>> {
        let paths = jobs.iter().flat_map(|job| [path::record(job), path::queue_entry(job)]);
        let mut nodes = self.get_many(zk, paths.collect()).await?.into_iter();
        let mut rest = Vec::new();
        for job in jobs {
            let (record, queued) = (nodes.next().flatten(), nodes.next().flatten());
            let standing =
                if queued.is_some() { Standing::Waits(Waiting::Queued) } else { Standing::Nowhere };
            rest.push(Rest { job, record: stored(record), standing });
        }
        let delayed = rest.iter().enumerate().filter_map(|(at, rest)| Some((at, minute(rest)?)));
        let delayed = delayed.collect::<Vec<_>>();
        let paths = delayed.iter().map(|(at, minute)| path::delayed_entry(*minute, &rest[*at].job)).collect();
        for ((at, minute), node) in delayed.into_iter().zip(self.get_many(zk, paths).await?) {
            if node.is_some() {
                rest[at].standing = Standing::Waits(Waiting::Delayed(minute));
            }
        }
        if !rest.iter().any(sought) {
            return Ok(rest);
        }
        let holders = self.holders(zk).await?;
        let sought = rest.iter().enumerate().filter(|(_, rest)| sought(rest));
        let held = sought.filter_map(|(at, rest)| Some((at, *holders.get(&rest.job)?))).collect::<Vec<_>>();
        let paths = held.iter().map(|(at, worker)| path::assignment(*worker, &rest[*at].job)).collect();
        for ((at, worker), node) in held.into_iter().zip(self.get_many(zk, paths).await?) {
            let Some(node) = node else { continue };
            if let Ok(assignment) = wire::decode::<Assignment>(&node.data) {
                rest[at].standing = Standing::Assigned(worker, assignment, node.version);
            }
        }
        Ok(rest)
    }

    async fn holders(&self, zk: Zk) -> ReadResult<BTreeMap<JobId, WorkerId>> {
        let workers = self.names(zk, path::ASSIGNMENTS.to_owned()).await?;
        let workers = workers.iter().filter_map(|name| WorkerId::parse(name)).collect::<Vec<_>>();
        let inboxes = ask::children_many(workers.iter().map(|worker| path::inbox(*worker)));
        let lists = self.once(zk, inboxes, ask::listed_many).await?;
        let mut held = BTreeMap::new();
        for (worker, names) in workers.iter().zip(lists) {
            let jobs = names.iter().flatten().filter_map(|name| JobId::new(name).ok());
            held.extend(jobs.map(|job| (job, *worker)));
        }
        Ok(held)
    }

    /// Every group there is.
    pub(crate) async fn groups(&self, zk: Zk) -> ReadResult<Vec<GroupId>> {
        let buckets = Bucket::all().map(Bucket::groups).collect::<Vec<_>>();
        let mut groups = Vec::new();
        for buckets in buckets.chunks(MAX_READ_BATCH) {
            let lists = self.once(zk, ask::children_many(buckets.to_vec()), ask::listed_many).await?;
            groups.extend(lists.into_iter().flatten().flatten().filter_map(|name| GroupId::new(name).ok()));
        }
        Ok(groups)
    }

    async fn get(&self, zk: Zk, path: String) -> ReadResult<Option<Znode>> {
        self.once(zk, ask::get(path), ask::got).await
    }

    async fn get_many(&self, zk: Zk, paths: Vec<String>) -> ReadResult<Vec<Option<Znode>>> {
        if paths.is_empty() {
            return Ok::<_, Disconnected>(Vec::new());
        }
        self.once(zk, ask::get_many(paths), ask::got_many).await
    }

    async fn names(&self, zk: Zk, path: String) -> ReadResult<Vec<String>> {
        Ok(self.once(zk, ask::children(path), ask::listed).await?.unwrap_or_default())
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The minute of one that may be delayed.
fn minute(rest: &Rest) -> Option<u64> {
    match (&rest.standing, &rest.record) {
        (Standing::Nowhere, Stored::Value(record, _)) => match record.state {
            JobState::Open { not_before } => not_before.map(|at| at.minute()),
            JobState::Terminal { .. } => None,
        },
        (_, _) => None,
    }
}

fn sought(rest: &Rest) -> bool {
    rest.standing == Standing::Nowhere
        && matches!(&rest.record, Stored::Value(record, _) if !record.is_terminal())
}

fn stored(node: Option<Znode>) -> Stored<JobRecord> {
    match node {
        None => Stored::Absent,
        Some(node) => match wire::decode(&node.data) {
            Ok(value) => Stored::Value(value, node.version),
            Err(error) => Stored::Unreadable(error.to_string()),
        },
    }
}
