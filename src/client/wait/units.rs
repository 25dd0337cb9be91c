//! What waits read together: a record, or all members of a segment.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bellwether_core::name::JobId;
use bellwether_core::port::Glance;
use bellwether_core::segment::{Chunks, MemberId, SegmentId};
use bellwether_core::{path, wire};
use bellwether_zk::Node;

use super::super::Client;
use super::super::error::Error;
use super::super::packed::{self, Fetched, Gone, Home};
use super::super::session::Deadline;
use super::super::view::JobView;
use super::{Look, over};

/// A job that is in its segment has this generation.
const FIRST_GENERATION: u32 = 1;

/// Jobs that are read together, by their positions in the wait.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    Record([usize; 1]),
    /// Members that had no record at the last look.
    Segment {
        id: SegmentId,
        members: Vec<(usize, MemberId)>,
        /// Whether the segment's data was read, and so can be read again when members have succeeded.
        is_readable: bool,
    },
}

impl Unit {
    pub(super) fn jobs(&self) -> Vec<usize> {
        match self {
            Self::Record(at) => at.to_vec(),
            Self::Segment { members, .. } => members.iter().map(|(at, _)| *at).collect(),
        }
    }
}

/// The result of looks at units.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) over: Vec<(usize, Result<JobView, Error>)>,
    /// The jobs that have not ended.
    pub(super) left: Vec<Unit>,
}

impl Progress {
    fn failed(units: &[Unit], error: &Error) -> Self {
        let jobs = units.iter().flat_map(Unit::jobs);
        Self { over: jobs.map(|at| (at, Err(error.clone()))).collect(), left: Vec::new() }
    }
}

/// Returns the units of jobs, in the order of the first job of each, and the positions of ids that are not ids of jobs.
pub(super) fn of(jobs: &[(&JobId, u32)]) -> (Vec<Unit>, Vec<usize>) {
    let (mut units, mut not_jobs) = (Vec::<Unit>::new(), Vec::new());
    let mut segments = BTreeMap::<SegmentId, usize>::new();
    for (at, (id, _)) in jobs.iter().enumerate() {
        let Some(member) = MemberId::of_job(id) else {
            match SegmentId::of_job(id) {
                Some(_) => not_jobs.push(at),
                None => units.push(Unit::Record([at])),
            }
            continue;
        };
        match segments.entry(member.segment) {
            Entry::Vacant(first) => {
                first.insert(units.len());
                let members = vec![(at, member)];
                units.push(Unit::Segment { id: member.segment, members, is_readable: false });
            }
            Entry::Occupied(first) => {
                if let Unit::Segment { members, .. } = &mut units[*first.get()] {
                    members.push((at, member));
                }
            }
        }
    }
    (units, not_jobs)
}

impl Client {
    /// Waits until jobs of a unit have ended or have moved out of their segment.
    pub(super) async fn watch_unit(&self, jobs: &[(&JobId, u32)], unit: Unit, by: Deadline) -> Progress {
        let Unit::Segment { id, .. } = &unit else {
            let Unit::Record([at]) = unit else { return Progress::default() };
            let (id, generation) = jobs[at];
            let absent = || Error::NotFound(id.clone());
            let wished = |node: &Node| over(id, generation, wire::decode(&node.data));
            let view = self.until(&path::record(id), by, absent, wished).await;
            return Progress { over: vec![(at, view)], left: Vec::new() };
        };
        let progress = self.look_at_units(jobs, std::slice::from_ref(&unit), by).await;
        let [Unit::Segment { members, .. }] = &progress.left[..] else { return progress };
        if !progress.over.is_empty() {
            return progress;
        }
        let seen = self.until_seen(by, |watch| async move {
            let (chunks, glance) = self.list_segment(*id, watch, by).await?;
            let is_settled =
                |(at, member): &(usize, MemberId)| !is_open(jobs[*at].1, Home::of(*member, chunks.as_ref()));
            let glance = glance.filter(|_| chunks.is_some());
            Ok(if members.iter().any(is_settled) { Look::Wished(()) } else { Look::NotYet(glance) })
        });
        match seen.await {
            Ok(()) => progress,
            Err(error) => Progress::failed(&progress.left, &error),
        }
    }

    /// Looks once at up to `MAX_READ_BATCH` units. Each segment is listed once; its data and its chunks are read once if members
    /// have succeeded, and its data at the first look.
    pub(super) async fn look_at_units(
        &self,
        jobs: &[(&JobId, u32)],
        units: &[Unit],
        by: Deadline,
    ) -> Progress {
        let looked = self.try_look(jobs, units, by).await;
        looked.unwrap_or_else(|error| Progress::failed(units, &error))
    }

    async fn try_look(
        &self,
        jobs: &[(&JobId, u32)],
        units: &[Unit],
        by: Deadline,
    ) -> Result<Progress, Error> {
        let lists = self.lists(units, by).await?;
        let mut progress = Progress::default();
        let mut wanted = Vec::new();
        // The members of each segment that stay in it, by the segment's position.
        let mut open = units.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        for (unit, number) in units.iter().zip(0..) {
            match unit {
                Unit::Record([at]) => wanted.push((*at, number, Home::Record)),
                Unit::Segment { id, members, is_readable } => {
                    let chunks = lists.get(id).and_then(Option::as_ref);
                    for (at, member) in members {
                        let home = Home::of(*member, chunks);
                        match home {
                            Home::Record => progress.left.push(Unit::Record([*at])),
                            home if *is_readable && is_open(jobs[*at].1, home) => {
                                open[number].push((*at, *member))
                            }
                            home => wanted.push((*at, number, home)),
                        }
                    }
                }
            }
        }
        let homes = wanted.iter().map(|(at, _, home)| (jobs[*at].0.clone(), *home)).collect();
        for ((at, number, home), fetched) in wanted.into_iter().zip(self.fetch(homes, by).await?) {
            let (id, generation) = jobs[at];
            let view = match fetched {
                Ok(Some(stored)) => over(id, generation, stored.map(|stored| stored.record)),
                Ok(None) => Err(Error::NotFound(id.clone())),
                Err(Gone) => Ok(None),
            };
            match (view.transpose(), home) {
                (Some(view), _) => progress.over.push((at, view)),
                (None, Home::Segment(member) | Home::Chunk(member, _)) => open[number].push((at, member)),
                (None, Home::Record | Home::NoJob) => progress.left.push(Unit::Record([at])),
            }
        }
        for (unit, members) in units.iter().zip(open) {
            if let Unit::Segment { id, .. } = unit
                && !members.is_empty()
            {
                progress.left.push(Unit::Segment { id: *id, members, is_readable: true });
            }
        }
        Ok(progress)
    }

    /// Lists the segments of units. Absent ones are listed again after the server has caught up.
    async fn lists(
        &self,
        units: &[Unit],
        by: Deadline,
    ) -> Result<BTreeMap<SegmentId, Option<Chunks>>, Error> {
        let segments = units.iter().filter_map(|unit| match unit {
            Unit::Segment { id, .. } => Some(*id),
            Unit::Record(_) => None,
        });
        let segments = segments.collect::<Vec<_>>();
        let look = |zk, segments: Vec<SegmentId>| async move { packed::list(&zk, &segments).await };
        let lists = self.0.session.read_each(by, segments.clone(), Option::is_none, look).await?;
        Ok(segments.into_iter().zip(lists).collect())
    }

    /// Lists a segment, with a watch if asked for. One that is absent may be absent only on this server: the next look decides.
    async fn list_segment(
        &self,
        id: SegmentId,
        watch: bool,
        by: Deadline,
    ) -> Result<(Option<Chunks>, Option<Glance>), Error> {
        let session = &self.0.session;
        let read = if watch {
            let read = session.read(by, |zk| zk.children_and_glance(path::segment(id))).await?;
            read.map(|(names, glance)| (names, Some(glance)))
        } else {
            session.read(by, |zk| zk.children(path::segment(id))).await?.map(|names| (names, None))
        };
        Ok(read.map_or((None, None), |(names, glance)| (Some(packed::chunks(&names)), glance)))
    }

    /// Reads jobs at their homes. Absent records are read again after the server has caught up.
    async fn fetch(&self, homes: Vec<(JobId, Home)>, by: Deadline) -> Result<Vec<Fetched>, Error> {
        let look = |zk, homes: Vec<(JobId, Home)>| async move { packed::fetch(&zk, &homes).await };
        let is_absent = |fetched: &Fetched| matches!(fetched, Ok(None));
        self.0.session.read_each(by, homes, is_absent, look).await
    }
}

/// Whether a wait for this generation continues at this home: generations after the first are in records.
fn is_open(generation: u32, home: Home) -> bool {
    match home {
        Home::Segment(_) => true,
        Home::Chunk(..) => generation > FIRST_GENERATION,
        Home::Record | Home::NoJob => false,
    }
}

#[cfg(test)]
mod tests;
