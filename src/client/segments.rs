//! Segments in lists of jobs. A segment waits, is assigned and is stored under one name; here it is replaced by its members.
//!
//! Other names that begin with `@` are foreign: no job has such an id.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::JobId;
use bellwether_core::path;
use bellwether_core::ready::RecordEntry;
use bellwether_core::segment::{ChunkEnd, Chunks, MemberId, SegmentId};
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use super::runtime::Zk;
use super::view::State;

/// Segments that are replaced together: at most 1,600 members.
pub(super) const EXPANDED_AT_ONCE: usize = 16;

/// Returns the id of a job or a segment; `None` for a foreign name.
pub(super) fn job_or_segment(name: &str) -> Option<JobId> {
    JobId::new(name).ok().filter(is_job_or_segment)
}

/// Whether a name among jobs is not foreign.
pub(super) fn is_job_or_segment(id: &JobId) -> bool {
    !id.as_str().starts_with('@') || SegmentId::of_job(id).is_some()
}

/// The number of jobs under a name. A segment has the number of its members until it leaves its place, although some of them
/// may have ended: the name does not show that.
pub(super) fn jobs_of(id: &JobId) -> usize {
    SegmentId::of_job(id).map_or(1, |segment| usize::from(segment.count()))
}

/// The same for the name of an assignment or an entry; 0 for a foreign one.
pub(super) fn jobs_of_name(name: &str) -> usize {
    let entry = || name.parse().ok().map(|entry: RecordEntry| entry.job).filter(is_job_or_segment);
    entry().or_else(|| job_or_segment(name)).map_or(0, |id| jobs_of(&id))
}

/// Where a name is in the order of ids: a segment is before its members.
pub(super) fn order(id: &JobId) -> String {
    SegmentId::of_job(id).map_or_else(|| id.as_str().to_owned(), |segment| format!("{segment}@"))
}

/// Replaces the segments among these ids by those of their members that a list of this state needs to look at. Members with records
/// are listed where their records are.
pub(super) async fn expand(zk: Zk, ids: Vec<JobId>, state: Option<State>) -> ReadResult<Vec<JobId>> {
    let segments = ids.iter().filter_map(SegmentId::of_job).collect::<Vec<_>>();
    let lists = segments
        .chunks(MAX_READ_BATCH)
        .map(|few| zk.children_many(few.iter().copied().map(path::segment).collect()));
    let mut lists = try_join_all(lists).await?.into_iter().flatten();
    let mut expanded = Vec::with_capacity(ids.len());
    for id in ids {
        match SegmentId::of_job(&id) {
            None => expanded.push(id),
            Some(segment) => {
                // Absent: removed since it was listed.
                if let Some(names) = lists.next().flatten() {
                    let chunks = Chunks::of_names(names.iter().map(String::as_str));
                    expanded.extend(members(segment, &chunks, state));
                }
            }
        }
    }
    Ok(expanded)
}

fn members(segment: SegmentId, chunks: &Chunks, state: Option<State>) -> impl Iterator<Item = JobId> + use<> {
    let open = chunks.open(segment);
    let succeeded = chunks.members(ChunkEnd::Succeeded).without(chunks.members(ChunkEnd::Extracted));
    let members = match state {
        Some(State::Queued | State::Running | State::Quarantined) => open,
        Some(State::Succeeded) => succeeded.within(segment.members()),
        Some(State::Delayed | State::Cancelled | State::Dead) => open.without(open),
        None => open.with(succeeded.within(segment.members())),
    };
    members.iter().map(move |number| MemberId { segment, number }.job())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn segment() -> SegmentId {
        SegmentId::new(Uuid::from_u128(7), 12, 1_000).unwrap()
    }

    #[test]
    fn a_segment_has_the_jobs_of_its_name_and_a_foreign_name_none() {
        let names = [segment().job().to_string(), "a".to_owned(), "@a".to_owned(), "not a job".to_owned()];
        assert_eq!(names.map(|name| jobs_of_name(&name)), [12, 1, 0, 0]);
        assert_eq!(job_or_segment("@a"), None);
    }

    #[test]
    fn a_segment_is_before_its_members_and_after_earlier_ones() {
        let member = MemberId { segment: segment(), number: 0 }.job();
        let earlier = SegmentId::new(Uuid::from_u128(6), 12, 1_000).unwrap();
        let earlier = MemberId { segment: earlier, number: 11 }.job();
        assert!(order(&earlier) < order(&segment().job()) && order(&segment().job()) < order(&member));
    }

    #[test]
    fn a_list_looks_at_the_members_that_can_be_in_its_state() {
        // 0 to 3 have succeeded, and 3 has a record too; 4 was extracted, 5 to 11 are open.
        let chunks = Chunks::of_names(["sf", "x8", "x10"]);
        let listed = |state| {
            let members = members(segment(), &chunks, state);
            members.map(|id| MemberId::of_job(&id).unwrap().number).collect::<Vec<_>>()
        };
        let open = (5..12).collect::<Vec<_>>();
        for state in [State::Queued, State::Running, State::Quarantined] {
            assert_eq!(listed(Some(state)), open, "{state}");
        }
        assert_eq!(listed(Some(State::Succeeded)), [0, 1, 2]);
        for state in [State::Delayed, State::Cancelled, State::Dead] {
            assert!(listed(Some(state)).is_empty(), "{state}");
        }
        assert_eq!(listed(None), [vec![0, 1, 2], open].concat());
    }
}
