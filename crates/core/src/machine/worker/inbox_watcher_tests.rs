use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::fixture::{assignment, job, record, worker};
use super::*;
use crate::job::{Assignment, Attempt, Ending, JobRecord, Membership, Placement, Role};
use crate::name::{GroupId, Lane};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::segment::MAX_PACKED_BYTES;
use crate::segment::fixture::{id, segment};
use crate::time::WallMillis;
use crate::txn::Op;

fn handle(machine: &mut InboxWatcher, event: Event) -> Vec<Effect> {
    handle_at(Millis(0), machine, event)
}

fn handle_at(now: Millis, machine: &mut InboxWatcher, event: Event) -> Vec<Effect> {
    let mut out = Vec::new();
    machine.handle(now, event, &mut out);
    out
}

fn there(attempt: u32, record: JobRecord) -> Found {
    Found { assignment: Lookup::Found(assignment(attempt), 4), record: Lookup::Found(record, 5) }
}

/// An assignment of the second generation, to which the record was set at version 7.
fn of_generation_2(attempt: u32) -> Assignment {
    Assignment { generation: 2, fencing_token: 7, ..assignment(attempt) }
}

fn closed(ending: Ending) -> JobRecord {
    record().close(Attempt { number: 1, worker: worker() }, ending, WallMillis(9), 0).0
}

fn first_read(found: Found) -> Vec<Effect> {
    let mut machine = InboxWatcher::new();
    assert_eq!(handle(&mut machine, Event::Created(vec![job(0)])), [Effect::Read(vec![job(0)])]);
    handle(&mut machine, Event::Read(vec![(job(0), found)]))
}

#[test]
fn the_data_of_a_read_decide() {
    let unreadable = |newer| Lookup::Unreadable { why: "rubbish".into(), newer, version: 5 };
    let discard = |record| vec![Effect::Discard { job: job(0), assignment: 4, record }];
    let note = |note: &str| vec![Effect::Quarantine { job: job(0), note: note.into() }];
    let assigned = Lookup::Found(assignment(1), 4);
    assert!(matches!(&first_read(there(1, record()))[..], [Effect::Start(start)] if start.version == 5));
    let gone = Found { assignment: Lookup::Absent, record: Lookup::Found(record(), 5) };
    assert_eq!(first_read(gone), [Effect::Missed(job(0))]);
    assert_eq!(first_read(there(1, closed(Ending::Cancelled))), discard(Some(5)));
    for disagree in [there(1, closed(Ending::Released)), there(3, record())] {
        let effects = first_read(disagree);
        assert!(matches!(&effects[..], [Effect::Requeue(back)] if back.start().version == 5), "{effects:?}");
    }
    assert_eq!(first_read(Found { assignment: assigned.clone(), record: Lookup::Absent }), discard(None));
    for newer in [true, false] {
        let found = Found { assignment: assigned.clone(), record: unreadable(newer) };
        assert_eq!(first_read(found), note("record unreadable: rubbish"));
    }
}

fn handed() -> InboxWatcher {
    let mut machine = InboxWatcher::new();
    handle(&mut machine, Event::Created(vec![job(0)]));
    handle(&mut machine, Event::Read(vec![(job(0), there(1, record()))]));
    assert_eq!(machine.handed(), 1);
    machine
}

#[test]
fn a_closed_attempt_is_not_read_again_unless_the_job_was_assigned_again() {
    let mut machine = handed();
    assert_eq!(handle(&mut machine, Event::Closed(vec![job(0)])), []);
    assert_eq!(machine.handed(), 0);
}

#[test]
fn a_reassigned_job_is_read_after_its_last_attempt_is_closed() {
    let mut machine = handed();
    assert_eq!(handle(&mut machine, Event::Deleted(vec![job(0)])), [Effect::Vanished(job(0))]);
    assert_eq!(handle(&mut machine, Event::Created(vec![job(0)])), []);
    assert_eq!(handle(&mut machine, Event::Closed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
    let effects = handle(&mut machine, Event::Read(vec![(job(0), there(2, closed(Ending::Released)))]));
    assert!(matches!(&effects[..], [Effect::Start(start)] if start.assignment.attempt == 2), "{effects:?}");
}

#[test]
fn an_assignment_deleted_before_it_was_read_is_reported_as_missed() {
    let absent = || Found { assignment: Lookup::Absent, record: Lookup::Found(record(), 5) };
    let mut machine = InboxWatcher::new();
    handle(&mut machine, Event::Created(vec![job(0)]));
    let out = handle(&mut machine, Event::Read(vec![(job(0), absent())]));
    assert_eq!(out, [Effect::Missed(job(0))]);
    handle(&mut machine, Event::Listed(vec![job(0)]));
    assert_eq!(handle(&mut machine, Event::Read(vec![(job(0), absent())])), [], "a list may be outdated");
}

/// Every watch event of the job was lost.
#[test]
fn a_job_without_events_is_decided_at_the_next_list() {
    let mut machine = InboxWatcher::new();
    let unreadable = Lookup::Unreadable { why: "rubbish".into(), newer: true, version: 1 };
    let unreadable = Found { assignment: Lookup::Found(assignment(1), 0), record: unreadable };
    let note = "record unreadable: rubbish".to_owned();
    for (found, decision) in
        [(unreadable, Some(Effect::Quarantine { job: job(0), note })), (there(1, record()), None)]
    {
        assert_eq!(handle(&mut machine, Event::Listed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
        let effects = handle(&mut machine, Event::Read(vec![(job(0), found)]));
        match decision {
            Some(set_aside) => assert_eq!(effects, [set_aside]),
            None => assert!(matches!(&effects[..], [Effect::Start(_)]), "the job is restored: {effects:?}"),
        }
    }
}

#[test]
fn a_read_sent_before_the_close_starts_no_attempt() {
    let mut machine = handed();
    assert_eq!(handle(&mut machine, Event::Listed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
    assert_eq!(handle(&mut machine, Event::Closed(vec![job(0)])), []);
    let outdated = Event::Read(vec![(job(0), there(1, record()))]);
    assert_eq!(handle(&mut machine, outdated), [Effect::Read(vec![job(0)])], "the job is read again");
}

/// S9: while the worker hung, the leader assigned the first attempt of the next generation to it.
#[test]
fn an_attempt_does_not_adopt_the_assignment_of_a_later_generation() {
    let mut machine = handed();
    handle(&mut machine, Event::Changed(vec![job(0)]));
    let again = record().cancel(WallMillis(9)).reopen();
    let found = |record| Found { assignment: Lookup::Found(of_generation_2(1), 0), record };
    let read = Event::Read(vec![(job(0), found(Lookup::Found(again.clone(), 7)))]);
    assert_eq!(handle(&mut machine, read), [Effect::Zombie(job(0), 1)]);
    // The new attempt starts once the executor has dropped the old one.
    assert_eq!(handle(&mut machine, Event::Closed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
    let effects = handle(&mut machine, Event::Read(vec![(job(0), found(Lookup::Found(again, 7)))]));
    let [Effect::Start(start)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((start.record.generation, start.version), (2, 7));
}

#[test]
fn a_recheck_distinguishes_a_cancel_from_a_zombie() {
    let flagged = Assignment { cancel: true, ..assignment(1) };
    for (found, effects) in [
        (Lookup::Found(assignment(1), 4), vec![]),
        (
            Lookup::Found(flagged.clone(), 5),
            vec![Effect::Cancel { job: job(0), attempt: 1, assignment: flagged, version: 5 }],
        ),
        (Lookup::Absent, vec![Effect::Zombie(job(0), 1)]),
        (Lookup::Found(assignment(2), 0), vec![Effect::Zombie(job(0), 1)]),
        (Lookup::Found(of_generation_2(1), 0), vec![Effect::Zombie(job(0), 1)]),
    ] {
        let mut machine = handed();
        assert_eq!(handle(&mut machine, Event::Changed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
        let found = Found { assignment: found, record: Lookup::Found(record(), 5) };
        assert_eq!(handle(&mut machine, Event::Read(vec![(job(0), found)])), effects);
    }
}

#[test]
fn jobs_accumulate_while_a_read_is_in_flight_and_reads_are_bounded() {
    let mut machine = InboxWatcher::new();
    assert_eq!(handle(&mut machine, Event::Created(vec![job(0)])).len(), 1);
    assert_eq!(handle(&mut machine, Event::Created(vec![job(1)])), [], "gathered");
    let many = handle(&mut machine, Event::Created((2..1_000).map(job).collect()));
    assert_eq!(many.len(), READ_WINDOW - 1);
    for read in many {
        let Effect::Read(jobs) = read else { panic!("{read:?}") };
        assert_eq!(2 * jobs.len(), MAX_READ_BATCH, "an assignment and a record each");
    }
}

#[test]
fn no_job_is_read_while_disconnected_and_the_next_list_finds_all() {
    let mut machine = InboxWatcher::new();
    handle(&mut machine, Event::Created(vec![job(0)]));
    handle(&mut machine, Event::Hold);
    assert_eq!(handle(&mut machine, Event::Created(vec![job(1)])), []);
    assert_eq!(handle(&mut machine, Event::ReadFailed(vec![job(0)])), []);
    handle(&mut machine, Event::Resume);
    handle(&mut machine, Event::Read(vec![(job(1), there(1, record()))]));
    assert_eq!(handle(&mut machine, Event::Listed(vec![job(0), job(1)])).len(), 1);
}

/// S9, S13: the worker hung between the request and the answer. Since then the job may have ended elsewhere, its record
/// may have been removed after its retention, and the id submitted again, with versions and attempts that start from
/// zero.
#[test]
fn an_answer_to_an_old_read_is_discarded() {
    let mut machine = InboxWatcher::new();
    handle(&mut machine, Event::Created(vec![job(0)]));
    let late = Millis(0) + BELIEVED;
    let answer = || Event::Read(vec![(job(0), there(1, record()))]);
    assert_eq!(
        handle_at(late, &mut machine, answer()),
        [Effect::Read(vec![job(0)])],
        "the read is sent again"
    );
    let effects = handle_at(late, &mut machine, answer());
    assert!(matches!(&effects[..], [Effect::Start(start)] if start.asked == late), "{effects:?}");
}

/// A cancelled member in a lane, assigned under another attempt number than its record's.
fn cancelled_of_old() -> Found {
    let lane = Some(Lane::new("lane").unwrap());
    let group = GroupId::new("group").unwrap();
    let membership = Some(Membership { group, role: Role::Member(3), counted: true });
    let placement = Placement { lane, ..Placement::default() };
    let assignment = Assignment { cancel: true, ..assignment(2) };
    let record = JobRecord { membership, placement, ..record() };
    Found { assignment: Lookup::Found(assignment, 4), record: Lookup::Found(record, 5) }
}

fn handing_back() -> (InboxWatcher, Box<Requeue>, Vec<Op>) {
    let mut machine = InboxWatcher::new();
    handle(&mut machine, Event::Listed(vec![job(0)]));
    let effects = handle(&mut machine, Event::Read(vec![(job(0), cancelled_of_old())]));
    let (requeue, ops) = handed_back(effects);
    (machine, requeue, ops)
}

fn handed_back(effects: Vec<Effect>) -> (Box<Requeue>, Vec<Op>) {
    let Ok([Effect::Requeue(requeue)]) = <[Effect; 1]>::try_from(effects) else {
        panic!("the job is not handed back")
    };
    let ops = requeue.ops(worker(), WallMillis(9));
    (requeue, ops)
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

/// S6, S7, L3: otherwise the hand-back would be rejected as long as the worker lives.
#[test]
fn a_hand_back_omits_the_parts_that_an_operator_changed() {
    let (mut machine, mut requeue, whole) = handing_back();
    let parts = whole.iter().filter(|op| op.is_part_of_end()).count();
    assert_eq!(parts, 3, "the turn, the place and the mark: {whole:?}");
    let mut ops = whole.clone();
    for left in (0..parts).rev() {
        let at = ops.iter().position(Op::is_part_of_end).unwrap();
        let reason = if left == 0 { Reason::NodeExists } else { Reason::NoNode };
        let instead = requeue.answered(&ops, &rejected(at, reason)).expect("a hand-back without that part");
        (requeue, ops) = handed_back(handle(&mut machine, Event::Refused(instead)));
        assert_eq!(ops.iter().filter(|op| op.is_part_of_end()).count(), left);
    }
    assert_eq!(ops, whole[..2], "record and assignment, each at the version that was read");
}

#[test]
fn a_stale_or_unanswered_hand_back_is_left_to_the_next_list() {
    let unreached = [
        Outcome::Applied(()),
        Outcome::Unknown,
        rejected(0, Reason::BadVersion),
        rejected(1, Reason::BadVersion),
        rejected(1, Reason::NoNode),
        rejected(0, Reason::NotSent),
        rejected(2, Reason::NoAuth),
    ];
    for outcome in unreached {
        let (mut machine, requeue, ops) = handing_back();
        assert_eq!(requeue.answered(&ops, &outcome), None, "{outcome:?}");
        assert_eq!(handle(&mut machine, Event::Listed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
    }
}

/// S9: as for a read, another job may have the same versions.
#[test]
fn an_old_hand_back_or_one_while_disconnected_is_not_sent_again() {
    let refused = || {
        let (machine, requeue, ops) = handing_back();
        (machine, requeue.answered(&ops, &rejected(2, Reason::NoNode)).unwrap())
    };
    let (mut machine, instead) = refused();
    let late = handle_at(Millis(0) + BELIEVED, &mut machine, Event::Refused(instead));
    assert_eq!(late, [Effect::Read(vec![job(0)])]);
    let (mut machine, instead) = refused();
    handle(&mut machine, Event::Hold);
    assert_eq!(handle(&mut machine, Event::Refused(instead)), []);
    handle(&mut machine, Event::Resume);
    assert_eq!(handle(&mut machine, Event::Listed(vec![job(0)])), [Effect::Read(vec![job(0)])]);
}

#[derive(Debug, Clone)]
enum Step {
    Assign(usize),
    Answer,
    Fail,
    /// The executor's attempt is closed, and the executor reports it.
    Close(usize),
    List,
    Hint(usize),
    Vanish(usize),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4usize).prop_map(Step::Assign),
        6 => Just(Step::Answer),
        1 => Just(Step::Fail),
        4 => (0..4usize).prop_map(Step::Close),
        1 => Just(Step::List),
        1 => (0..4usize).prop_map(Step::Hint),
        1 => (0..4usize).prop_map(Step::Vanish),
    ]
}

proptest! {
    /// S9: no attempt is handed out twice, whatever the order of hints, lists and answers, and every assigned attempt
    /// is handed out.
    #[test]
    fn every_attempt_is_handed_out_once(steps in prop::collection::vec(steps(), 0..100)) {
        let mut machine = InboxWatcher::new();
        // The assigned attempt, if any, and the closed attempts of each job, as read when the request was sent.
        let mut world: BTreeMap<usize, (Option<u32>, u32)> = (0..4).map(|n| (n, (None, 0))).collect();
        let mut wire: Vec<Vec<(JobId, Found)>> = Vec::new();
        let mut handed: BTreeMap<(usize, u32), u32> = BTreeMap::new();
        let mut open = [0u32; 4];
        let number = |id: &JobId| id.as_str()["job-".len()..].parse::<usize>().unwrap();
        let mut steps = steps;
        steps.push(Step::List);
        steps.extend(std::iter::repeat_n(Step::Answer, 50));
        for step in steps {
            let events = match step {
                Step::Assign(n) => {
                    let (assigned, attempts) = world.get_mut(&n).unwrap();
                    if assigned.is_some() {
                        continue;
                    }
                    *assigned = Some(*attempts + 1);
                    vec![Event::Created(vec![job(n)])]
                }
                Step::Answer | Step::Fail if wire.is_empty() => continue,
                Step::Answer => vec![Event::Read(wire.remove(0))],
                Step::Fail => vec![Event::ReadFailed(wire.remove(0).into_iter().map(|(id, _)| id).collect())],
                Step::Close(n) => {
                    let (assigned, attempts) = world.get_mut(&n).unwrap();
                    if open[n] == 0 {
                        continue;
                    }
                    *attempts = open[n];
                    *assigned = None;
                    open[n] = 0;
                    // The event comes before, after, or (in a gap) not at all.
                    vec![Event::Deleted(vec![job(n)]), Event::Closed(vec![job(n)])]
                }
                Step::List => {
                    let assigned = world.iter().filter(|(_, (assigned, _))| assigned.is_some());
                    vec![Event::Listed(assigned.map(|(n, _)| job(*n)).collect())]
                }
                Step::Hint(n) => vec![Event::Changed(vec![job(n)]), Event::Created(vec![job(n)])],
                Step::Vanish(n) => vec![Event::Deleted(vec![job(n)]), Event::Recheck(job(n))],
            };
            for event in events {
                for effect in handle(&mut machine, event) {
                    match effect {
                        Effect::Read(jobs) => wire.push(jobs.into_iter().map(|id| {
                            let (assigned, attempts) = world[&number(&id)];
                            let record = JobRecord { attempts, ..record() };
                            let assignment = assigned.map_or(Lookup::Absent, |n| Lookup::Found(assignment(n), 0));
                            (id, Found { assignment, record: Lookup::Found(record, 0) })
                        }).collect()),
                        Effect::Start(start) => {
                            let (n, attempt) = (number(&start.job), start.assignment.attempt);
                            *handed.entry((n, attempt)).or_default() += 1;
                            prop_assert_eq!(open[n], 0, "an attempt was handed out while another is open");
                            open[n] = attempt;
                        }
                        Effect::ReadSegments(_) | Effect::StartSegment(_) => {
                            prop_assert!(false, "no segment was assigned");
                        }
                        Effect::Zombie(id, attempt) => {
                            prop_assert_ne!(open[number(&id)], attempt, "the zombie's attempt is still assigned");
                        }
                        Effect::Discard { .. }
                        | Effect::Requeue(_)
                        | Effect::Quarantine { .. }
                        | Effect::Cancel { .. } => {
                            prop_assert!(false, "no znode was tampered with: {:?}", effect);
                        }
                        // A hint may be older than the close.
                        Effect::Missed(_) | Effect::Vanished(_) => {}
                    }
                }
            }
        }
        prop_assert!(handed.values().all(|times| *times == 1), "{:?}", handed);
        for (n, (assigned, _)) in world {
            prop_assert_eq!(assigned.unwrap_or(0), open[n], "job {} is held by the executor as assigned", n);
        }
    }
}

fn read_segment(assignment: Lookup<Assignment>, segment: Lookup<Segment>) -> Vec<Effect> {
    let mut machine = InboxWatcher::new();
    let created = handle(&mut machine, Event::Created(vec![id().job()]));
    assert_eq!(created, [Effect::ReadSegments(vec![id().job()])]);
    handle(&mut machine, Event::SegmentsRead(vec![(id().job(), assignment, segment)]))
}

fn with_segment() -> InboxWatcher {
    let mut machine = InboxWatcher::new();
    handle(&mut machine, Event::Created(vec![id().job()]));
    let (assignment, segment) = (Lookup::Found(assignment(1), 4), Lookup::Found(segment(), 0));
    let started = handle(&mut machine, Event::SegmentsRead(vec![(id().job(), assignment, segment)]));
    assert!(matches!(&started[..], [Effect::StartSegment(packed)] if packed.version == 4), "{started:?}");
    machine
}

fn member(number: u8) -> JobId {
    MemberId { segment: id(), number }.job()
}

#[test]
fn the_data_of_a_segment_decide() {
    let (assigned, there) = (|| Lookup::Found(assignment(1), 4), || Lookup::Found(segment(), 0));
    assert_eq!(read_segment(Lookup::Absent, there()), []);
    let discard = Effect::Discard { job: id().job(), assignment: 4, record: None };
    assert_eq!(read_segment(assigned(), Lookup::Absent), [discard]);
    let bad = Lookup::Unreadable { why: "rubbish".into(), newer: true, version: 0 };
    let shorter = Segment { members: Vec::new(), ..segment() };
    let note = "the segment has another number of members than its name says".into();
    let note = Effect::Quarantine { job: id().job(), note };
    assert_eq!(read_segment(assigned(), Lookup::Found(shorter, 0)), [note]);
    let note = Effect::Quarantine { job: id().job(), note: "segment unreadable: rubbish".into() };
    assert_eq!(read_segment(assigned(), bad), [note]);
}

/// A member has no own assignment yet, so a list without it does not show that another process has taken it.
#[test]
fn a_list_reads_no_member_that_is_not_extracted() {
    let mut machine = with_segment();
    let listed = handle(&mut machine, Event::Listed(vec![id().job()]));
    assert_eq!(listed, [Effect::ReadSegments(vec![id().job()])]);
    let (assignment, segment) = (Lookup::Found(assignment(1), 4), Lookup::Found(segment(), 0));
    assert_eq!(
        handle(&mut machine, Event::SegmentsRead(vec![(id().job(), assignment, segment)])),
        [],
        "handed once"
    );
}

#[test]
fn an_extracted_member_that_runs_is_not_started_again() {
    let mut machine = with_segment();
    assert_eq!(handle(&mut machine, Event::Created(vec![member(1)])), []);
    let listed = handle(&mut machine, Event::Listed(vec![member(1)]));
    assert_eq!(listed, [Effect::Read(vec![member(1)])], "from now on it is a job");
    let found = there(1, segment().record(1).unwrap());
    assert_eq!(handle(&mut machine, Event::Read(vec![(member(1), found)])), []);
    let closed = handle(&mut machine, Event::Closed(vec![member(1)]));
    assert_eq!(closed, [Effect::Read(vec![member(1)])], "it may have been assigned again");
}

#[test]
fn a_member_that_was_handed_back_and_is_in_the_inbox_is_started_from_there() {
    let mut machine = with_segment();
    // The leader has extracted it into the inbox, and its executor has handed it back.
    handle(&mut machine, Event::Created(vec![member(1)]));
    let closed = handle(&mut machine, Event::Closed(vec![member(1)]));
    assert_eq!(closed, [Effect::Read(vec![member(1)])]);
    let found = there(1, segment().record(1).unwrap());
    let read = handle(&mut machine, Event::Read(vec![(member(1), found)]));
    assert!(matches!(&read[..], [Effect::Start(start)] if start.job == member(1)), "{read:?}");
}

/// The events of a watch and the replies to writes reach the worker through different tasks.
#[test]
fn a_member_that_was_closed_before_the_event_of_its_extraction_is_not_taken_for_revoked() {
    let mut machine = with_segment();
    assert_eq!(handle(&mut machine, Event::Closed(vec![member(1)])), []);
    let created = handle(&mut machine, Event::Created(vec![member(1)]));
    assert_eq!(created, [Effect::Read(vec![member(1)])], "it may be a later attempt");
    let closed = Found { assignment: Lookup::Absent, record: Lookup::Found(record(), 5) };
    assert_eq!(handle(&mut machine, Event::Read(vec![(member(1), closed)])), []);
    assert!(!machine.entries.contains_key(&member(1)));
    // Much later it can only be an assignment of the leader.
    let later = Millis(10_000);
    let mut on = |event| {
        let mut out = Vec::new();
        machine.handle(later, event, &mut out);
        out
    };
    on(Event::Created(vec![member(2)]));
    on(Event::Closed(vec![member(1)]));
    on(Event::Created(vec![member(1)]));
    let revoked = Found { assignment: Lookup::Absent, record: Lookup::Found(record(), 5) };
    assert_eq!(on(Event::Read(vec![(member(1), revoked)])), [Effect::Missed(member(1))]);
}

#[test]
fn the_segments_that_were_handed_out_lately_are_remembered() {
    let mut machine = with_segment();
    let mut next = |now, unique| {
        let job = SegmentId::new(uuid::Uuid::from_u128(unique), 4, 100).unwrap().job();
        handle_at(now, &mut machine, Event::Created(vec![job.clone()]));
        let (assignment, segment) = (Lookup::Found(assignment(1), 4), Lookup::Found(segment(), 0));
        handle_at(now, &mut machine, Event::SegmentsRead(vec![(job, assignment, segment)]));
        machine.begun.0.len()
    };
    assert_eq!([(9_999, 2), (10_000, 3)].map(|(now, unique)| next(Millis(now), unique)), [2, 2]);
}

#[test]
fn segments_and_records_are_not_read_together() {
    let mut machine = InboxWatcher::new();
    let created = handle(&mut machine, Event::Created(vec![job(0), id().job(), job(1)]));
    assert_eq!(created, [Effect::Read(vec![job(0)])], "the others are few");
    let read = handle(&mut machine, Event::Read(vec![(job(0), there(1, record()))]));
    assert_eq!(read.last(), Some(&Effect::ReadSegments(vec![id().job()])));
}

#[test]
fn segments_are_read_together_within_the_members_and_bytes_of_one() {
    let named = |n: usize, count, bytes| {
        SegmentId::new(uuid::Uuid::from_u128(n as u128), count, bytes).unwrap().job()
    };
    // The first one is sent immediately, so the others gather.
    let reads = |count, bytes| {
        let mut machine = InboxWatcher::new();
        handle(&mut machine, Event::Created(vec![named(0, 4, 1)]));
        let sent = handle(&mut machine, Event::Created((1..=6).map(|n| named(n, count, bytes)).collect()));
        let size = |effect| match effect {
            Effect::ReadSegments(jobs) => jobs.len(),
            other => panic!("{other:?}"),
        };
        sent.into_iter().map(size).collect::<Vec<_>>()
    };
    assert_eq!(reads(4, 1), [] as [usize; 0], "24 members are not worth a second read");
    assert_eq!(reads(10, 1), [6]);
    assert_eq!(reads(40, 1), [2, 2, 2]);
    assert_eq!(reads(100, MAX_PACKED_BYTES), [1, 1, 1], "at most four reads are in flight");
    assert_eq!(reads(5, MAX_PACKED_BYTES / 4), [4], "four of them fit, and two wait for more");
}
