//! The znodes that the members of segments would have if each had been submitted alone.
//!
//! A segment is a short form of records (ADR 30). So what the invariants say of jobs holds
//! for members, once the short form is written out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::name::WorkerId;
use bellwether_core::path::{self, Place};
use bellwether_core::segment::{ChunkEnd, ChunkName, MemberId, Results, Segment, SegmentId};
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;

use super::TxnOp;

/// The data of some znodes, by path.
pub type Znodes = BTreeMap<String, Vec<u8>>;

/// All segments, as they are stored.
#[derive(Debug, Default)]
pub struct Segments(BTreeMap<SegmentId, Stored>);

impl Segments {
    /// Replays a transaction, and returns the one that has the same effect on members that were submitted alone.
    ///
    /// A member that succeeds gets a new record instead of a new version, because that is the record that an extraction
    /// would write.
    pub(super) fn write_out<'a>(&mut self, ops: &'a [TxnOp]) -> Cow<'a, [TxnOp]> {
        let touched = ops.iter().filter_map(|op| Self::of(path_of(op)?)).collect::<BTreeSet<_>>();
        if touched.is_empty() {
            return Cow::Borrowed(ops);
        }
        let all =
            |segments: &Self| touched.iter().flat_map(|id| segments.written_out(*id)).collect::<Znodes>();
        let before = all(self);
        for op in ops {
            match op {
                TxnOp::Create { path, data, .. } | TxnOp::Set { path, data, .. } => {
                    self.put(path, Some(&data.0))
                }
                TxnOp::Delete { path } => self.put(path, None),
                TxnOp::Check { .. } | TxnOp::CloseSession => {}
            }
        }
        let after = all(self);
        let (mut own, mut written) = (Vec::new(), Znodes::new());
        for op in ops.iter().filter(|op| path_of(op).and_then(Self::of).is_none()) {
            match op {
                TxnOp::Create { path, data, .. } if before.get(path).is_some_and(|was| **was == *data.0) => {
                    written.insert(path.clone(), data.0.to_vec());
                }
                _ => own.push(op.clone()),
            }
        }
        let left =
            before.iter().filter(|(path, was)| after.get(*path) != Some(was) && !written.contains_key(*path));
        let left = left.map(|(path, _)| TxnOp::Delete { path: path.clone() });
        let new = after.iter().filter(|(path, is)| before.get(*path) != Some(is));
        let new = new.map(|(path, data)| TxnOp::Create {
            path: path.clone(),
            data: data.clone().into(),
            ephemeral: false,
        });
        left.chain(own).chain(new).collect()
    }
}

fn path_of(op: &TxnOp) -> Option<&str> {
    match op {
        TxnOp::Check { path, .. }
        | TxnOp::Create { path, .. }
        | TxnOp::Set { path, .. }
        | TxnOp::Delete { path } => Some(path),
        TxnOp::CloseSession => None,
    }
}

#[derive(Debug, Default)]
struct Stored {
    segment: Option<Segment>,
    chunks: BTreeMap<ChunkName, Vec<u8>>,
    entries: Znodes,
    assignments: BTreeMap<WorkerId, Vec<u8>>,
}

impl Segments {
    /// The segment to which a znode belongs, if it belongs to one.
    #[must_use]
    pub fn of(path: &str) -> Option<SegmentId> {
        Part::of(path).map(|(id, _)| id)
    }

    /// Stores the data of a znode of a segment, or that it was deleted. Ignores other znodes.
    pub fn put(&mut self, path: &str, data: Option<&[u8]>) {
        let Some((id, part)) = Part::of(path) else { return };
        let stored = self.0.entry(id).or_default();
        match part {
            Part::Segment => stored.segment = data.and_then(|data| wire::decode(data).ok()),
            Part::Chunk(name) => put(&mut stored.chunks, name, data),
            Part::Entry => put(&mut stored.entries, path.to_owned(), data),
            Part::Assignment(worker) => put(&mut stored.assignments, worker, data),
        }
    }

    /// All segments that have, or had, a znode.
    pub fn ids(&self) -> impl Iterator<Item = SegmentId> {
        self.0.keys().copied()
    }

    /// Writes a segment out: the records, entries and assignments of the members that were not extracted. Without the segment
    /// itself, its entry and its assignments are left as they are: then they belong to no job.
    #[must_use]
    pub fn written_out(&self, id: SegmentId) -> Znodes {
        let Some(stored) = self.0.get(&id) else { return Znodes::new() };
        let Some(segment) = &stored.segment else {
            let left = stored.assignments.iter();
            let left = left.map(|(worker, data)| (path::assignment(*worker, &id.job()), data.clone()));
            return stored.entries.clone().into_iter().chain(left).collect();
        };
        id.members()
            .iter()
            .flat_map(|number| stored.member(segment, MemberId { segment: id, number }))
            .collect()
    }
}

impl Stored {
    fn member(&self, segment: &Segment, member: MemberId) -> Znodes {
        let (job, number) = (member.job(), member.number);
        let chunk = self.chunks.iter().filter(|(name, _)| name.members.contains(number));
        let Some((name, data)) = chunk.max_by_key(|(name, _)| name.end) else {
            let Some(record) = segment.record(number) else { return Znodes::new() };
            let waits = !self.entries.is_empty();
            let submitted = txn::submit(&job, &record, 0);
            let created = submitted.into_iter().filter_map(|op| match op {
                Op::Create { path, data, .. } => Some((path, data)),
                Op::Check { .. } | Op::Set { .. } | Op::Delete { .. } => None,
            });
            let is_record = |at: &str| at == path::record(&job);
            let created = created.filter(|(at, _)| waits || is_record(at));
            let assigned = self.assignments.iter();
            let assigned = assigned.map(|(worker, data)| (path::assignment(*worker, &job), data.clone()));
            return created.chain(assigned).collect();
        };
        let results = match name.end {
            ChunkEnd::Succeeded => wire::decode::<Results>(data).ok(),
            ChunkEnd::Extracted => None,
        };
        let record = results.and_then(|results| segment.succeeded(number, &results));
        record.map(|record| (path::record(&job), wire::encode(&record))).into_iter().collect()
    }
}

fn put<K: Ord>(into: &mut BTreeMap<K, Vec<u8>>, key: K, data: Option<&[u8]>) {
    match data {
        Some(data) => drop(into.insert(key, data.to_vec())),
        None => drop(into.remove(&key)),
    }
}

/// A znode of a segment.
enum Part {
    Segment,
    Chunk(ChunkName),
    Entry,
    Assignment(WorkerId),
}

impl Part {
    fn of(at: &str) -> Option<(SegmentId, Self)> {
        if !at.contains('@') {
            return None;
        }
        match path::parse(at) {
            Place::Ready(entry) => return Some((SegmentId::of_job(entry.job())?, Self::Entry)),
            Place::Assignment(worker, job) => {
                return Some((SegmentId::of_job(&job)?, Self::Assignment(worker)));
            }
            _ => {}
        }
        let (parent, name) = at.rsplit_once('/')?;
        let id = |name: &str| name.strip_prefix('@')?.parse::<SegmentId>().ok();
        if let Some(id) = id(name) {
            return (path::segment(id) == at).then_some((id, Self::Segment));
        }
        let segment = id(parent.rsplit_once('/')?.1)?;
        let chunk = name.parse::<ChunkName>().ok()?;
        (path::segment(segment) == parent).then_some((segment, Self::Chunk(chunk)))
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::job::{Assignment, Payload, Placement, Policy, Priority};
    use bellwether_core::name::Kind;
    use bellwether_core::segment::{Head, Member, Members};
    use bellwether_core::time::WallMillis;
    use bellwether_core::txn::segment::{AssignedSegment, extract_assigned, submit, succeed};
    use uuid::Uuid;

    use super::*;

    const AT: WallMillis = WallMillis(1);

    fn segment() -> (SegmentId, Segment) {
        let head = Head {
            kind: Kind::new("k").unwrap(),
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::default(),
            submitted_at: AT,
            part: 0,
            token: Uuid::from_u128(2),
        };
        let member = Member { payload: Payload::json(*b"1").unwrap(), trace: None };
        let id = SegmentId::new(Uuid::from_u128(1), 3, 100).unwrap();
        (id, Segment { head, members: vec![member; 3] })
    }

    fn apply(segments: &mut Segments, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Create { path, data, .. } | Op::Set { path, data, .. } => segments.put(path, Some(data)),
                Op::Delete { path, .. } => segments.put(path, None),
                Op::Check { .. } => {}
            }
        }
    }

    #[test]
    fn a_segment_that_waits_is_as_many_jobs_that_wait() {
        let (mut segments, (id, segment)) = (Segments::default(), segment());
        apply(&mut segments, &submit(id, &segment));
        let alone = (0..3).flat_map(|number| {
            let job = MemberId { segment: id, number }.job();
            txn::submit(&job, &segment.record(number).unwrap(), 0)
        });
        let alone = alone.filter_map(|op| match op {
            Op::Create { path, data, .. } => Some((path, data)),
            _ => None,
        });
        assert_eq!(segments.written_out(id), alone.collect());
    }

    #[test]
    fn an_assigned_segment_is_as_many_assignments_as_it_has_open_members() {
        let (mut segments, (id, segment)) = (Segments::default(), segment());
        let (worker, assignment) = (WorkerId::new(Uuid::nil()), Assignment::new(1, 1, AT));
        let assign = txn::assign(&segment.waits_at(id), worker, &assignment, None);
        let held = AssignedSegment { id, worker, assignment, version: 0, open: id.members() };
        let results = vec![(1, AT, Payload::json(*b"2").unwrap())];
        let results = Results { worker, assigned_at: AT, results };
        let rest = held.clone().without(Members::one(1)).unwrap();
        let steps = [submit(id, &segment), assign, succeed(&held, &results)];
        for ops in
            steps.into_iter().chain([extract_assigned(&rest, &segment, Members::one(2), Members::NONE)])
        {
            apply(&mut segments, &ops);
        }
        let at = |number: u8| MemberId { segment: id, number }.job();
        let expected = [path::record(&at(0)), path::assignment(worker, &at(0)), path::record(&at(1))];
        let paths = segments.written_out(id).into_keys().collect::<BTreeSet<_>>();
        assert_eq!(paths, expected.into());
    }

    fn replayed(segments: &mut Segments, ops: &[Op]) -> Vec<TxnOp> {
        let ops = ops.iter().map(|op| match op.clone() {
            Op::Create { path, data, .. } => TxnOp::Create { path, data: data.into(), ephemeral: false },
            Op::Set { path, data, version } => TxnOp::Set { path, data: data.into(), version: version + 1 },
            Op::Delete { path, .. } => TxnOp::Delete { path },
            Op::Check { path, version } => TxnOp::Check { path, version },
        });
        segments.write_out(&ops.collect::<Vec<_>>()).into_owned()
    }

    #[test]
    fn a_transaction_is_replayed_as_those_of_single_jobs_and_an_extraction_as_nothing() {
        let (mut segments, (id, segment)) = (Segments::default(), segment());
        let (worker, assignment) = (WorkerId::new(Uuid::nil()), Assignment::new(1, 1, AT));
        assert_eq!(replayed(&mut segments, &submit(id, &segment)).len(), 2 * 3);
        let mut assign = txn::assign(&segment.waits_at(id), worker, &assignment, None);
        assign.insert(0, txn::fence(1));
        let ops = replayed(&mut segments, &assign);
        assert_eq!(ops.len(), 1 + 2 * 3);
        assert!(ops.contains(&TxnOp::Check { path: path::EPOCH.to_owned(), version: 1 }));
        let held = AssignedSegment { id, worker, assignment, version: 0, open: id.members() };
        assert_eq!(
            replayed(&mut segments, &extract_assigned(&held, &segment, Members::one(0), Members::NONE)),
            []
        );
        let rest = held.without(Members::one(0)).unwrap();
        let results = vec![(1, AT, Payload::json(*b"2").unwrap())];
        let results = Results { worker, assigned_at: AT, results };
        let job = MemberId { segment: id, number: 1 }.job();
        let ops = replayed(&mut segments, &succeed(&rest, &results));
        let paths = ops.iter().filter_map(path_of).collect::<Vec<_>>();
        let (record, assigned) = (path::record(&job), path::assignment(worker, &job));
        assert_eq!(paths, [&*assigned, &*record, &*record]);
    }

    #[test]
    fn an_entry_without_a_segment_stays_as_it_is() {
        let (mut segments, (id, segment)) = (Segments::default(), segment());
        let ops = submit(id, &segment);
        apply(&mut segments, &ops[1..]);
        assert_eq!(segments.written_out(id).into_keys().collect::<Vec<_>>(), [ops[1].path()]);
    }
}
