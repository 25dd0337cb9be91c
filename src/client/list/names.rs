//! The names of jobs in the places of a state.
//!
//! A state with its own place (queued, delayed, running) is listed from that place, so open jobs are found without
//! reading the records of all ended jobs.

use std::collections::VecDeque;
use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::JobId;
use bellwether_core::path::{self, SubBucket};
use bellwether_core::ready::{ClassName, RecordEntry, Shard, Slot};
use bellwether_core::segment::SegmentId;
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use super::{Cursor, Filter};
use crate::client::Client;
use crate::client::error::Error;
use crate::client::locate::inboxes;
use crate::client::runtime::Zk;
use crate::client::segments::{is_job_or_segment, job_or_segment, order};
use crate::client::view::State;

/// Parents of the first list, before it is known how many names they have: 8 full ones have 40,000 names.
pub(in crate::client) const PARENTS_AT_ONCE: usize = 8;

/// Names that one list asks for, as far as the parents before predict it: as many as a full parent has.
const LISTED_NAMES: usize = 5_000;

/// Returns the number of parents for the next list, from the number of names in the last one.
pub(super) fn next_list(parents: usize, names: usize) -> usize {
    (LISTED_NAMES * parents / names.max(1)).clamp(1, MAX_READ_BATCH)
}

/// A job or a segment in a parent.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) parent: Arc<str>,
    pub(super) id: JobId,
}

impl Name {
    pub(super) fn is_segment(&self) -> bool {
        SegmentId::of_job(&self.id).is_some()
    }
}

impl Client {
    /// Returns the remaining parents, by the last component of their paths.
    pub(super) async fn parents(
        &self,
        filter: &Filter,
        from: Option<&Cursor>,
    ) -> Result<VecDeque<String>, Error> {
        let parents = || SubBucket::all().map(SubBucket::name).collect::<Vec<_>>();
        let all = match filter.state {
            Some(State::Running) => vec![INBOXES.to_owned()],
            Some(State::Delayed) => {
                let paths = self.0.session.read(self.by(), |zk| minutes(zk.clone())).await?;
                paths.iter().map(|path| last_component(path)).collect()
            }
            Some(State::Queued) => {
                let slots = self.0.session.read(self.by(), |zk| ready_slots(zk.clone())).await?;
                slots.iter().map(|(class, slot)| format!("{class}:{slot}")).collect()
            }
            Some(State::Succeeded | State::Cancelled | State::Dead | State::Quarantined) | None => parents(),
        };
        // Minutes are numbers of different lengths. Sub-buckets are three digits, whose order is that of their text.
        let order = |name: &str| (name.len(), name.to_owned());
        let first = from.map(|from| order(&from.parent));
        let left = all.into_iter().filter(|name| first.as_ref().is_none_or(|first| order(name) >= *first));
        let mut left = left.collect::<Vec<_>>();
        left.sort_by_cached_key(|name| order(name));
        Ok(left.into())
    }

    /// Returns the names in these parents, without those up to the cursor.
    pub(super) async fn names(
        &self,
        filter: &Filter,
        parents: &[String],
        from: Option<&Cursor>,
    ) -> Result<Vec<Name>, Error> {
        let session = &self.0.session;
        let lists = if filter.state == Some(State::Running) {
            vec![session.read(self.by(), |zk| running(zk.clone())).await?]
        } else {
            let path = |name: &String| match filter.state {
                Some(State::Queued) => slot_path(name),
                Some(State::Delayed) => format!("{}/{name}", path::DELAYED),
                Some(
                    State::Running | State::Succeeded | State::Cancelled | State::Dead | State::Quarantined,
                )
                | None => {
                    SubBucket::from_name(name).map(SubBucket::path).expect("the names are of sub-buckets")
                }
            };
            let paths = parents.iter().map(path).collect::<Vec<_>>();
            let lists = session.read(self.by(), |zk| zk.children_many(paths.clone())).await?;
            let ids = |names: Vec<String>| {
                names.iter().filter_map(|name| job_of(filter.state, name)).collect::<Vec<_>>()
            };
            lists.into_iter().map(|names| ids(names.unwrap_or_default())).collect()
        };
        let names = parents.iter().zip(lists).flat_map(|(parent, mut ids)| {
            ids.sort_by_cached_key(order);
            if let Some(Cursor { after, .. }) = from.filter(|from| from.parent == *parent) {
                // The cursor may be inside a segment.
                ids.retain(|id| {
                    let order = order(id);
                    *order > *after.as_str()
                        || SegmentId::of_job(id).is_some() && after.as_str().starts_with(&order)
                });
            }
            let parent = Arc::<str>::from(parent.as_str());
            ids.into_iter().map(move |id| Name { parent: Arc::clone(&parent), id })
        });
        Ok(names.collect())
    }
}

/// Represents all inboxes, which are read together: they hold as many jobs as there are slots.
const INBOXES: &str = "inboxes";

/// The path of a slot from its class and its name.
fn slot_path(name: &str) -> String {
    let parsed =
        name.rsplit_once(':').and_then(|(class, slot)| Some((class.parse().ok()?, slot.parse().ok()?)));
    let (class, slot) = parsed.expect("the names were made of listed slots");
    path::ready_slot(&class, slot)
}

fn last_component(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Returns the job or segment of a name in the parents of this state. Other znodes are ignored: their names denote no jobs.
fn job_of(state: Option<State>, name: &str) -> Option<JobId> {
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
async fn running(zk: Zk) -> ReadResult<Vec<JobId>> {
    let mut held = inboxes(&zk).await?.into_keys().filter(is_job_or_segment).collect::<Vec<_>>();
    held.sort();
    Ok(held)
}

/// Returns the slots of all classes of waiting jobs: one request, and one per 100 classes.
pub(in crate::client) async fn ready_slots(zk: Zk) -> ReadResult<Vec<(ClassName, Slot)>> {
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

pub(in crate::client) async fn minutes(zk: Zk) -> ReadResult<VecDeque<String>> {
    let minutes = zk.children(path::DELAYED.to_owned()).await?.unwrap_or_default();
    let mut minutes = minutes.iter().filter_map(|minute| path::parse_minute(minute)).collect::<Vec<u64>>();
    minutes.sort_unstable();
    Ok(minutes.into_iter().map(path::delayed_minute).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_parent_in_a_cursor_is_the_last_part_of_its_path() {
        assert_eq!([last_component("/jobs/0a"), last_component("inboxes")], ["0a", "inboxes"]);
    }
}
