//! Transactions of segments ([`crate::segment`]).
//!
//! | transaction | by | fenced by | if the reply is lost |
//! | --- | --- | --- | --- |
//! | [`submit`] | client | the segment's absence, that of each chosen id | read the segment: there ⇒ accepted; else send the same again |
//! | [`assign`] | leader | epoch, worker's version, the entry's version | read the entry: unchanged ⇒ again; else list the inboxes |
//! | [`raise`] | worker | the slice's version | read the slice |
//! | [`end`] | worker | the slice's version | read the slice: unchanged ⇒ again; our chunk is there ⇒ ours; else the members were taken away |
//! | [`give_back`] | worker | the slice's version | read the slice; begin none of these members before a later write of the slice is applied |
//! | [`extract_running`] | worker | the slice's version | as [`end`] |
//! | [`flag`] | client | the slice's version | read the slice and decide again |
//! | [`recover`] | leader | epoch, the slice's version | list the inbox |
//! | [`cancel_member`], [`end_entry`] | client, leader | the entry's version | locate the member again |
//! | [`reopen`] | client | the absence of the member's chunk `x` | read the record: our token ⇒ done |
//! | [`remove`] | leader, client | the absence of other chunks | list the chunks again |
//!
//! A chunk is never written without the slice or the entry that its members leave: a check instead of a write of the slice would let
//! a recovery and a chunk both commit.

use super::{ANY_VERSION, Op, leave, wait};
use crate::job::{Assignment, JobRecord, Next};
use crate::name::{JobId, WorkerId};
use crate::path;
use crate::segment::{
    ChunkEnd, ChunkName, EntryName, MemberId, Members, Nonce, Pointer, Results, Segment, SegmentId, Slice,
    SliceName,
};
use crate::wire::encode;

/// An entry that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WaitingEntry {
    /// The path of its slot.
    pub slot: String,
    /// Its name.
    pub name: EntryName,
    /// Its version.
    pub version: i32,
    /// The members that wait.
    pub members: Members,
}

/// A slice that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AssignedSlice {
    /// Its worker.
    pub worker: WorkerId,
    /// Its name.
    pub name: SliceName,
    /// Its version.
    pub version: i32,
    /// Its data.
    pub slice: Slice,
}

/// Where members wait after they leave a slice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Return {
    /// The path of the segment's slot.
    pub slot: String,
    /// Milliseconds in the slot's minute.
    pub millis: u16,
}

/// A member that gets a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Extracted {
    /// Its number.
    pub number: u8,
    /// Its id.
    pub job: JobId,
    /// Whether the submission chose the id, so that a pointer exists.
    pub is_named: bool,
    /// Its record, after the attempt that was closed.
    pub record: JobRecord,
    /// Where it goes.
    pub next: Next,
}

impl Extracted {
    /// The version of the record after the transaction.
    fn version(&self) -> i32 {
        i32::from(self.is_named)
    }

    /// Creates the record, or puts it in the place of the pointer.
    fn create(&self) -> Op {
        let (path, data) = (path::record(&self.job), encode(&self.record));
        if self.is_named { Op::Set { path, data, version: 0 } } else { Op::create(path, data) }
    }

    /// Creates the record, and its entry unless the job has ended.
    fn ops(&self) -> Vec<Op> {
        let mut ops = vec![self.create()];
        match self.next {
            Next::Terminal => ops.extend(leave(&self.job, &self.record)),
            Next::Queue | Next::Delay(_) => ops.push(wait(&self.job, &self.record, self.version())),
        }
        ops
    }
}

fn extracted(all: &[Extracted]) -> Members {
    all.iter().map(|member| member.number).collect()
}

/// Creates a segment, its entry, and a pointer for each member with a chosen id. The slot must exist.
#[must_use]
pub fn submit(id: SegmentId, segment: &Segment, to: &Return) -> Vec<Op> {
    let entry = EntryName { millis: to.millis, segment: id, nonce: None };
    let mut ops = vec![
        Op::create(path::segment(id), encode(segment)),
        Op::create(format!("{}/{entry}", to.slot), Vec::new()),
    ];
    let named =
        segment.members.iter().zip(0..).filter_map(|(member, number)| Some((member.name.as_ref()?, number)));
    ops.extend(named.map(|(name, number)| {
        let pointer = Pointer(MemberId { segment: id, number });
        Op::create(path::record(name), encode(&pointer))
    }));
    ops
}

/// Moves members from an entry to slices, which must be distinct parts of the entry. The transaction of the leader also
/// checks the epoch and the workers.
#[must_use]
pub fn assign(entry: &WaitingEntry, slices: &[(WorkerId, SliceName, Slice)]) -> Vec<Op> {
    let given = slices.iter().fold(Members::NONE, |all, (_, _, slice)| all.with(slice.given));
    let mut ops = vec![leave_entry(entry, given)];
    ops.extend(
        slices.iter().map(|(worker, name, slice)| Op::create(path::slice(*worker, *name), encode(slice))),
    );
    ops
}

/// Allows the worker to begin members below a higher number, or extends the lease if it is the same.
#[must_use]
pub fn raise(held: &AssignedSlice, begun: u8) -> Op {
    set_slice(held, &Slice { begun: held.slice.begun.max(begun), ..held.slice })
}

/// Ends members of a slice: succeeded with results, cancelled, or extracted.
#[must_use]
pub fn end(held: &AssignedSlice, results: &Results, cancelled: Members, moved: &[Extracted]) -> Vec<Op> {
    let succeeded = results.0.iter().map(|(number, _, _)| *number).collect::<Members>();
    let over = succeeded.with(cancelled).with(extracted(moved));
    let mut ops = vec![leave_slice(held, held.slice.after(over))];
    let chunks = [
        (ChunkEnd::Succeeded, succeeded, encode(results)),
        (ChunkEnd::Cancelled, cancelled, Vec::new()),
        (ChunkEnd::Extracted, extracted(moved), Vec::new()),
    ];
    let chunks = chunks.into_iter().filter(|(_, members, _)| !members.is_empty());
    ops.extend(chunks.map(|(end, members, data)| {
        chunk(held.name.segment, ChunkName::of_slice(end, members, held.name), data)
    }));
    ops.extend(moved.iter().flat_map(Extracted::ops));
    ops
}

/// Moves members that the worker has not begun back to the segment's slot. A member that a client asked to cancel must end instead:
/// an entry does not keep the request.
#[must_use]
pub fn give_back(held: &AssignedSlice, back: Members, to: &Return) -> Vec<Op> {
    debug_assert!(back.within(held.slice.cancel).is_empty(), "a cancelled member does not wait again");
    vec![leave_slice(held, held.slice.without(back)), return_entry(held, back, to)]
}

/// Moves a running member to a record and an assignment of the same worker, where its attempt continues.
#[must_use]
pub fn extract_running(held: &AssignedSlice, member: &Extracted, assignment: &Assignment) -> Vec<Op> {
    let members = Members::one(member.number);
    vec![
        leave_slice(held, held.slice.after(members)),
        member.create(),
        Op::create(path::assignment(held.worker, &member.job), encode(assignment)),
        chunk(held.name.segment, ChunkName::of_slice(ChunkEnd::Extracted, members, held.name), Vec::new()),
    ]
}

/// Asks the worker to cancel members.
#[must_use]
pub fn flag(held: &AssignedSlice, members: Members) -> Op {
    set_slice(held, &Slice { cancel: held.slice.cancel.with(members.within(held.slice.given)), ..held.slice })
}

/// Takes a slice away from a worker that is lost or hangs. Members that it has not begun wait again, or end if a client asked to
/// cancel them. `closed` are the others, whose first attempt is closed.
#[must_use]
pub fn recover(held: &AssignedSlice, closed: &[Extracted], to: &Return) -> Vec<Op> {
    let (moved, cancelled) = (extracted(closed), held.slice.cancelled_unbegun());
    debug_assert_eq!(moved, held.slice.may_have_begun(), "each member that may have begun is closed");
    let back = held.slice.unbegun().without(cancelled);
    let mut ops = vec![Op::Delete { path: path::slice(held.worker, held.name), version: Some(held.version) }];
    if !back.is_empty() {
        ops.push(return_entry(held, back, to));
    }
    let chunks = [(ChunkEnd::Cancelled, cancelled), (ChunkEnd::Extracted, moved)];
    let chunks = chunks.into_iter().filter(|(_, members)| !members.is_empty());
    ops.extend(chunks.map(|(end, members)| {
        chunk(held.name.segment, ChunkName::of_slice(end, members, held.name), Vec::new())
    }));
    ops.extend(closed.iter().flat_map(Extracted::ops));
    ops
}

/// Extracts a waiting member that a client cancels: its record is terminal.
#[must_use]
pub fn cancel_member(entry: &WaitingEntry, member: &Extracted) -> Vec<Op> {
    let members = Members::one(member.number);
    let mut ops = vec![leave_entry(entry, members)];
    ops.push(chunk(entry.name.segment, ChunkName::alone(ChunkEnd::Extracted, members), Vec::new()));
    ops.extend(member.ops());
    ops
}

/// Ends all members of an entry, cancelled or expired.
#[must_use]
pub fn end_entry(entry: &WaitingEntry, end: ChunkEnd) -> Vec<Op> {
    vec![
        leave_entry(entry, entry.members),
        chunk(entry.name.segment, ChunkName::alone(end, entry.members), Vec::new()),
    ]
}

/// Opens a member that has ended as a new generation. Its chunk has no other name, so a second reopening is rejected.
#[must_use]
pub fn reopen(segment: SegmentId, member: &Extracted) -> Vec<Op> {
    let mut ops = member.ops();
    ops.push(chunk(segment, ChunkName::alone(ChunkEnd::Extracted, Members::one(member.number)), Vec::new()));
    ops
}

/// Removes a segment whose members have all ended or were extracted, and the pointers of those that have no record. Rejected as a
/// whole if a chunk was created since `chunks` were listed: a member that is opened again keeps its segment.
#[must_use]
pub fn remove(id: SegmentId, segment: &Segment, chunks: &[ChunkName]) -> Vec<Op> {
    let moved = chunks.iter().filter(|name| name.end == ChunkEnd::Extracted).map(|name| name.members);
    let moved = moved.fold(Members::NONE, Members::with);
    let delete = |path| Op::Delete { path, version: Some(0) };
    let named = segment.members.iter().zip(0..).filter(|(_, number)| !moved.contains(*number));
    let pointers = named.filter_map(|(member, _)| member.name.as_ref()).map(|job| delete(path::record(job)));
    let chunks = chunks.iter().map(|name| delete(path::segment_chunk(id, *name)));
    chunks.chain(pointers).chain([delete(path::segment(id))]).collect()
}

fn chunk(segment: SegmentId, name: ChunkName, data: Vec<u8>) -> Op {
    Op::create(path::segment_chunk(segment, name), data)
}

fn set_slice(held: &AssignedSlice, slice: &Slice) -> Op {
    Op::Set { path: path::slice(held.worker, held.name), data: encode(slice), version: held.version }
}

/// Writes the rest of a slice, or deletes it if no member is left.
fn leave_slice(held: &AssignedSlice, rest: Option<Slice>) -> Op {
    match rest {
        Some(slice) => set_slice(held, &slice),
        None => Op::Delete { path: path::slice(held.worker, held.name), version: Some(held.version) },
    }
}

/// Writes the rest of an entry, or deletes it if no member is left.
fn leave_entry(entry: &WaitingEntry, members: Members) -> Op {
    let (path, version) = (format!("{}/{}", entry.slot, entry.name), entry.version);
    let rest = entry.members.without(members);
    debug_assert_ne!(version, ANY_VERSION, "an entry is left at the version that was read");
    if rest.is_empty() {
        Op::Delete { path, version: Some(version) }
    } else {
        Op::Set { path, data: encode(&rest), version }
    }
}

/// Creates the entry of members that leave a slice.
fn return_entry(held: &AssignedSlice, members: Members, to: &Return) -> Op {
    let nonce = Some(Nonce::of(held.name, held.version));
    let name = EntryName { millis: to.millis, segment: held.name.segment, nonce };
    Op::create(format!("{}/{name}", to.slot), encode(&members))
}

#[cfg(test)]
mod tests;
