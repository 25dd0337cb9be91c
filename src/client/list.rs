//! Listing jobs, a page at a time.
//!
//! Memory is bounded by a page and by the names in a few buckets, however many jobs there are. A state with its own
//! place (queued, delayed, running) is listed from that place, so open jobs are found without reading the records of
//! all ended jobs. Jobs move during a listing: each has the state in which its page finds it, and a listing of all
//! states visits each record once. A job of a [segment](bellwether_core::segment) that gets its own record during the listing
//! may be returned twice or not at all. Nodes, and the first job of a lane, are returned as they were when the listing
//! first read them.

use std::collections::VecDeque;
use std::time::SystemTime;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::{GroupId, JobId, Kind, Lane};
use bellwether_core::path::{self, SubBucket};
use bellwether_core::ready::{ClassName, RecordEntry, Shard, Slot};
use bellwether_core::segment::SegmentId;
use bellwether_zk::ReadResult;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::future::try_join_all;

use super::Client;
use super::cluster::Cluster;
use super::error::Error;
use super::get::view;
use super::lanes::Turns;
use super::locate::{inboxes, locate};
use super::runtime::Zk;
use super::segments::{EXPANDED_AT_ONCE, expand, is_job_or_segment, job_or_segment};
use super::session::Deadline;
use super::sub_jobs::add_sub_jobs;
use super::view::{JobView, State};

/// Parents of the first list, before it is known how many names they have: 8 full ones have 40,000 names.
pub(super) const PARENTS_AT_ONCE: usize = 8;

/// Names that one list asks for, as far as the parents before predict it: as many as a full parent has.
const LISTED_NAMES: usize = 5_000;

/// Returns the number of parents for the next list, from the number of names in the last one.
pub(super) fn next_list(parents: usize, names: usize) -> usize {
    (LISTED_NAMES * parents / names.max(1)).clamp(1, MAX_READ_BATCH)
}

/// Selects the jobs to list. Default: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Only jobs in this state.
    pub state: Option<State>,
    /// Only jobs of this kind. A job whose record cannot be read has none.
    pub kind: Option<Kind>,
    /// Only jobs of this lane.
    pub lane: Option<Lane>,
    /// Only jobs of this group: its members, its join and its finished job.
    pub group: Option<GroupId>,
    /// Only jobs that were submitted at or after this instant, by the submitter's clock.
    pub submitted_after: Option<SystemTime>,
    /// Only jobs that were submitted before this instant, by the submitter's clock.
    pub submitted_before: Option<SystemTime>,
    /// Only jobs that ended at or after this instant.
    pub finished_after: Option<SystemTime>,
    /// Only jobs that ended before this instant.
    pub finished_before: Option<SystemTime>,
}

/// Whether an instant is known, not before `after`, and before `before`. Without bounds it need not be known.
fn is_within(at: Option<SystemTime>, after: Option<SystemTime>, before: Option<SystemTime>) -> bool {
    after.is_none_or(|after| at.is_some_and(|at| at >= after))
        && before.is_none_or(|before| at.is_some_and(|at| at < before))
}

impl Filter {
    /// Selects only jobs in this state.
    #[must_use]
    pub fn state(mut self, state: impl Into<Option<State>>) -> Self {
        self.state = state.into();
        self
    }

    /// Selects only jobs of this kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Option<Kind>>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Selects only jobs of this lane. All jobs are read, because lanes list only waiting jobs.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<Option<Lane>>) -> Self {
        self.lane = lane.into();
        self
    }

    /// Selects only jobs of this group. All jobs are read.
    #[must_use]
    pub fn group(mut self, group: impl Into<Option<GroupId>>) -> Self {
        self.group = group.into();
        self
    }

    /// Selects only jobs that were submitted at or after an instant. All jobs of the state are read.
    #[must_use]
    pub fn submitted_after(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.submitted_after = at.into();
        self
    }

    /// Selects only jobs that were submitted before an instant. All jobs of the state are read.
    #[must_use]
    pub fn submitted_before(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.submitted_before = at.into();
        self
    }

    /// Selects only jobs that ended at or after an instant. All jobs are read.
    #[must_use]
    pub fn finished_after(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.finished_after = at.into();
        self
    }

    /// Selects only jobs that ended before an instant. All jobs are read.
    #[must_use]
    pub fn finished_before(mut self, at: impl Into<Option<SystemTime>>) -> Self {
        self.finished_before = at.into();
        self
    }

    /// Whether it selects a job.
    pub(super) fn lets(&self, view: &JobView) -> bool {
        self.state.is_none_or(|state| view.state == state)
            && (self.kind.is_none() || view.kind == self.kind)
            && (self.lane.is_none() || view.lane == self.lane)
            && (self.group.is_none() || view.group == self.group)
            && is_within(view.submitted_at, self.submitted_after, self.submitted_before)
            && is_within(view.finished_at, self.finished_after, self.finished_before)
    }
}

/// A running listing; see [`Client::list`].
#[derive(Debug)]
pub struct Listing {
    client: Client,
    filter: Filter,
    cluster: Option<Cluster>,
    turns: Turns,
    parents: Option<VecDeque<String>>,
    parents_at_once: usize,
    names: VecDeque<JobId>,
    page: VecDeque<JobView>,
}

impl Client {
    /// Lists jobs in no particular order. Nothing is read before the first [`Listing::next`].
    #[must_use]
    pub fn list(&self, filter: Filter) -> Listing {
        Listing {
            client: self.clone(),
            filter,
            cluster: None,
            turns: Turns::default(),
            parents: None,
            parents_at_once: PARENTS_AT_ONCE,
            names: VecDeque::new(),
            page: VecDeque::new(),
        }
    }
}

impl Listing {
    /// Returns the next job; `None` at the end. A job whose record cannot be read is returned as quarantined and does
    /// not stop the listing.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each page. The next call
    /// continues at the same job.
    ///
    /// # Cancellation
    /// Cancel safe: a dropped call skips no job.
    pub async fn next(&mut self) -> Result<Option<JobView>, Error> {
        loop {
            if let Some(view) = self.page.pop_front() {
                return Ok(Some(view));
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        }
    }

    /// Reads a few records, or a few more names. Returns `false` at the end.
    fn read_more(&mut self) -> BoxFuture<'_, Result<bool, Error>> {
        async move {
            if self.names.is_empty() {
                return self.read_names().await;
            }
            self.read_page().await.map(|()| true)
        }
        .boxed()
    }

    async fn read_page(&mut self) -> Result<(), Error> {
        let by = self.client.by();
        if self.cluster.is_none() {
            self.cluster = Some(self.client.cluster(by).await?);
        }
        self.expand_next(by).await?;
        let few = self.names.iter().take(MAX_READ_BATCH).take_while(|id| SegmentId::of_job(id).is_none());
        let ids = few.cloned().collect::<Vec<_>>();
        let session = &self.client.0.session;
        let found = locate(session, by, &ids).await?;
        let read = ids.len();
        let views = ids.into_iter().zip(found).filter_map(|(id, found)| {
            // Absent: deleted since it was listed.
            Some(view(id, found?, self.cluster.as_ref()))
        });
        let views = views.filter(|view| self.filter.lets(view));
        let mut views = views.collect::<Vec<_>>();
        self.turns.tell(session, by, &mut views).await?;
        add_sub_jobs(session, by, &mut views).await?;
        // Last, and without an await in between: after an earlier error or a drop this page is read again.
        self.names.drain(..read);
        self.page.extend(views);
        Ok(())
    }

    /// Replaces segments at the front of the names by their members.
    async fn expand_next(&mut self, by: Deadline) -> Result<(), Error> {
        let few = self.names.iter().take_while(|id| SegmentId::of_job(id).is_some()).take(EXPANDED_AT_ONCE);
        let few = few.cloned().collect::<Vec<_>>();
        if !few.is_empty() {
            let state = self.filter.state;
            let session = &self.client.0.session;
            let members = session.read(by, |zk| expand(zk.clone(), few.clone(), state)).await?;
            self.names.drain(..few.len());
            members.into_iter().rev().for_each(|id| self.names.push_front(id));
        }
        Ok(())
    }

    /// Lists a few more parents. Returns `false` at the end.
    async fn read_names(&mut self) -> Result<bool, Error> {
        let by = self.client.by();
        let session = &self.client.0.session;
        if self.parents.is_none() {
            if self.filter.state == Some(State::Running) {
                let held = session.read(by, |zk| running(zk.clone())).await?;
                self.names.extend(held);
                self.parents = Some(VecDeque::new());
                return Ok(!self.names.is_empty());
            }
            self.parents = Some(match self.filter.state {
                Some(State::Queued) => session.read(by, |zk| slots(zk.clone())).await?,
                Some(State::Delayed) => session.read(by, |zk| minutes(zk.clone())).await?,
                Some(
                    State::Running | State::Succeeded | State::Cancelled | State::Dead | State::Quarantined,
                )
                | None => SubBucket::all().map(SubBucket::path).collect(),
            });
        }
        let parents = self.parents.get_or_insert_default();
        let few = parents.iter().take(self.parents_at_once).cloned().collect::<Vec<_>>();
        if few.is_empty() {
            return Ok(false);
        }
        let lists = session.read(by, |zk| zk.children_many(few.clone())).await?;
        parents.drain(..few.len());
        let names = lists.into_iter().flatten().flatten().collect::<Vec<_>>();
        self.parents_at_once = next_list(few.len(), names.len());
        self.names.extend(names.iter().filter_map(|name| job_of(self.filter.state, name)));
        Ok(true)
    }
}

/// Returns the job or segment of a name in the parents of this state. Other znodes are ignored: their names denote no jobs.
pub(super) fn job_of(state: Option<State>, name: &str) -> Option<JobId> {
    match state {
        Some(State::Delayed) => path::parse_delayed_job(name),
        Some(State::Queued) => {
            name.parse().ok().map(|entry: RecordEntry| entry.job).filter(is_job_or_segment)
        }
        Some(State::Running | State::Succeeded | State::Quarantined) | None => job_or_segment(name),
        // Those have records.
        Some(State::Cancelled | State::Dead) => {
            job_or_segment(name).filter(|id| SegmentId::of_job(id).is_none())
        }
    }
}

/// Returns the jobs and segments that are assigned.
pub(super) async fn running(zk: Zk) -> ReadResult<Vec<JobId>> {
    let mut held = inboxes(&zk).await?.into_keys().filter(is_job_or_segment).collect::<Vec<_>>();
    held.sort();
    Ok(held)
}

async fn slots(zk: Zk) -> ReadResult<VecDeque<String>> {
    let slots = ready_slots(zk).await?;
    Ok(slots.iter().map(|(class, slot)| path::ready_slot(class, *slot)).collect())
}

/// Returns the slots of all classes of waiting jobs: one request, and one per 100 classes.
pub(super) async fn ready_slots(zk: Zk) -> ReadResult<Vec<(ClassName, Slot)>> {
    let shards = zk.children_many(Shard::all().map(path::ready_shard).collect()).await?;
    let names = shards.into_iter().flatten().flatten();
    let classes = names.filter_map(|name| name.parse::<ClassName>().ok()).collect::<Vec<_>>();
    let lists = classes
        .chunks(MAX_READ_BATCH)
        .map(|classes| zk.children_many(classes.iter().map(path::ready_class).collect()));
    let lists = try_join_all(lists).await?.into_iter().flatten();
    let slots = classes.into_iter().zip(lists).flat_map(|(class, slots)| {
        let slots = slots.into_iter().flatten().filter_map(|slot| slot.parse::<Slot>().ok());
        slots.map(move |slot| (class.clone(), slot))
    });
    Ok(slots.collect())
}

pub(super) async fn minutes(zk: Zk) -> ReadResult<VecDeque<String>> {
    let minutes = zk.children(path::DELAYED.to_owned()).await?.unwrap_or_default();
    let mut minutes = minutes.iter().filter_map(|minute| path::parse_minute(minute)).collect::<Vec<u64>>();
    minutes.sort_unstable();
    Ok(minutes.into_iter().map(path::delayed_minute).collect())
}

#[cfg(test)]
mod tests;
