use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::group::{End, Mark};
use crate::job::{AttemptOutcome, ClosedAttempt, JobState, Membership, Payload, Placement, Role, Verdict};
use crate::name::{GroupId, Kind, Lane};
use crate::outcome::{Reason, Rejection};
use crate::path;
use crate::segment::Chunks;
use crate::segment::fixture::{id, segment};
use crate::txn::Op;

const LEASE: Duration = Duration::from_secs(60);
const WALL: WallMillis = WallMillis(9);

fn key(n: u32) -> AssignmentKey {
    (WorkerId::new(Uuid::from_u128(7)), JobId::new(format!("job-{n}")).unwrap())
}

fn record() -> JobRecord {
    let payload = Payload::json(*b"{}").unwrap();
    JobRecord::new(Kind::new("sum").unwrap(), payload, Uuid::nil(), WallMillis(0))
}

fn assignment() -> Assignment {
    Assignment { lease: LEASE, ..Assignment::new(1, 3, WALL) }
}

fn stamp(version: i32) -> Stamp {
    Stamp { created: 40, version }
}

fn case(n: u32, version: i32) -> Case {
    Case {
        key: key(n),
        created: 40,
        assignment: Stored::Value(assignment(), version),
        record: Stored::Value(record(), 5),
    }
}

/// A leader with a clock.
struct Leader {
    machine: LeaseWatcher,
    now: Millis,
    out: Vec<Effect>,
}

impl Leader {
    fn new() -> Self {
        let mut leader = Self { machine: LeaseWatcher::new(3), now: Millis(0), out: Vec::new() };
        assert_eq!(leader.on(Event::Resync), [Effect::ListInboxes]);
        leader
    }

    fn on(&mut self, event: Event) -> Vec<Effect> {
        self.machine.handle(self.now, WALL, event, &mut self.out);
        std::mem::take(&mut self.out)
    }

    fn after(&mut self, wait: Duration) -> Vec<Effect> {
        self.now = self.now + wait;
        self.on(Event::Tick)
    }

    /// A leader that has just read one assignment.
    fn standing() -> Self {
        let mut leader = Self::new();
        assert_eq!((leader.machine.is_empty(), leader.machine.next_due()), (true, None));
        assert_eq!(leader.on(Event::Changed(key(1))), []);
        assert_eq!(
            (leader.machine.is_empty(), leader.machine.next_due()),
            (false, Some(leader.now + READ_AFTER))
        );
        assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key(1)])]);
        assert_eq!(leader.on(Event::AssignmentsRead(vec![(key(1), Some((stamp(0), LEASE)))])), []);
        leader
    }

    /// A leader that reads the case of one expired lease.
    fn with_expired_lease() -> Self {
        let mut leader = Self::standing();
        assert_eq!(leader.after(LEASE + LEASE_MARGIN), [Effect::ReadCases(vec![key(1)])]);
        leader
    }

    /// A leader that is closing one attempt.
    fn closing() -> (Self, Batch<Revocation>) {
        let mut leader = Self::with_expired_lease();
        let batch = committed(leader.on(Event::CasesRead(vec![case(1, 0)])));
        (leader, batch)
    }
}

fn committed(mut effects: Vec<Effect>) -> Batch<Revocation> {
    match (effects.pop(), effects.as_slice()) {
        (Some(Effect::Commit(batch)), []) => batch,
        other => panic!("expected one commit, got {other:?}"),
    }
}

fn was_closed(revocation: &Revocation, how: ClosedAttempt) -> bool {
    matches!(&revocation.revoked, Revoked::Attempt { closed, .. } if *closed == how)
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

#[test]
fn a_short_attempt_is_never_read() {
    let mut leader = Leader::new();
    leader.on(Event::Changed(key(1)));
    leader.on(Event::Gone(key(1)));
    assert_eq!((leader.after(LEASE * 9), leader.machine.len()), (vec![], 0));
}

#[test]
fn an_attempt_without_a_sign_of_life_is_closed_with_every_fence() {
    let mut leader = Leader::standing();
    let almost = LEASE + LEASE_MARGIN - Duration::from_millis(1);
    assert_eq!(leader.after(almost), [], "the lease has not expired yet");
    assert_eq!(leader.after(Duration::from_millis(1)), [Effect::ReadCases(vec![key(1)])]);
    let effects = leader.on(Event::CasesRead(vec![case(1, 0)]));
    let (worker, job) = key(1);
    let ending = crate::job::Ending::LeaseExpired;
    let (closed, close) = txn::reclaim(&job, worker, (&assignment(), 0), (record(), 5), ending, &[], WALL);
    assert_eq!(closed.last.unwrap().how, AttemptOutcome::LeaseExpired);
    assert!(closed.delay().is_some(), "it backs off");
    let batch = committed(effects);
    let ops: Vec<Op> = batch.ops().cloned().collect();
    assert_eq!(ops, [vec![txn::fence(3)], close, vec![txn::shun(worker)]].concat());
    let out = leader.on(Event::Committed(batch, Outcome::Applied(())));
    let closed = ClosedAttempt { how: AttemptOutcome::LeaseExpired, dead: false };
    assert!(matches!(&out[..], [Effect::Revoked(revoked)] if was_closed(revoked, closed)));
    assert!(leader.machine.is_empty());
}

#[test]
fn a_sign_of_life_restarts_the_lease() {
    let mut leader = Leader::standing();
    leader.after(LEASE);
    leader.on(Event::Changed(key(1)));
    assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key(1)])]);
    leader.on(Event::AssignmentsRead(vec![(key(1), Some((stamp(1), LEASE)))]));
    assert_eq!(leader.after(LEASE), [], "the old lease would have expired");
    assert_eq!(leader.after(LEASE_MARGIN), [Effect::ReadCases(vec![key(1)])]);
}

/// A change without a watch event, as after a reconnection.
#[test]
fn a_sign_of_life_without_a_watch_event_is_seen_before_the_close() {
    for another in [stamp(1), Stamp { created: 50, version: 0 }] {
        let mut leader = Leader::with_expired_lease();
        let renewed = Case { created: another.created, ..case(1, another.version) };
        assert_eq!(leader.on(Event::CasesRead(vec![renewed])), []);
        assert_eq!(leader.after(LEASE), []);
        assert_eq!(leader.after(LEASE_MARGIN), [Effect::ReadCases(vec![key(1)])]);
    }
}

#[test]
fn a_sign_of_life_during_a_read_causes_another_read() {
    let mut leader = Leader::with_expired_lease();
    leader.on(Event::Changed(key(1)));
    assert_eq!(leader.on(Event::CasesRead(vec![case(1, 0)])), []);
    assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key(1)])]);
    leader.on(Event::Changed(key(1)));
    assert_eq!(leader.on(Event::AssignmentsRead(vec![(key(1), Some((stamp(0), LEASE)))])), []);
    assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key(1)])]);
}

#[test]
fn a_revocation_overtaken_by_a_renewal_is_rejected_and_the_lease_restarts() {
    let (mut leader, batch) = Leader::closing();
    assert_eq!(leader.on(Event::Committed(batch, rejected(2, Reason::BadVersion))), []);
    assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key(1)])]);
    leader.on(Event::AssignmentsRead(vec![(key(1), Some((stamp(1), LEASE)))]));
    assert_eq!(leader.after(LEASE), []);
}

#[test]
fn a_concurrently_closed_attempt_does_not_block_the_others() {
    let mut leader = Leader::new();
    (1..=3).for_each(|n| drop(leader.on(Event::Changed(key(n)))));
    leader.after(READ_AFTER);
    leader.on(Event::AssignmentsRead((1..=3).map(|n| (key(n), Some((stamp(0), LEASE)))).collect()));
    leader.after(LEASE + LEASE_MARGIN);
    let batch = committed(leader.on(Event::CasesRead((1..=3).map(|n| case(n, 0)).collect())));
    // The fence, then four operations per revocation.
    let rest = committed(leader.on(Event::Committed(batch, rejected(1 + 4, Reason::BadVersion))));
    assert_eq!(rest.keys().map(|r| r.job.as_str()).collect::<Vec<_>>(), ["job-1", "job-3"]);
    assert_eq!(leader.on(Event::Committed(rest, Outcome::Applied(()))).len(), 2);
    assert_eq!(leader.machine.len(), 1);
}

/// A lost reply.
#[test]
fn a_revocation_without_a_reply_is_read_again_once_the_session_is_back() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NotSent)] {
        let (mut leader, batch) = Leader::closing();
        assert_eq!(leader.on(Event::Committed(batch, outcome.clone())), []);
        assert_eq!(leader.after(LEASE), [], "nothing is sent while the session is disturbed");
        let out = leader.on(Event::Resync);
        assert_eq!(out, [Effect::ListInboxes, Effect::ReadCases(vec![key(1)])]);
        let applied = Case { assignment: Stored::Absent, created: 0, ..case(1, 0) };
        assert_eq!(leader.on(Event::CasesRead(vec![applied])), []);
        assert!(leader.machine.is_empty(), "the revocation was applied");
    }
}

#[test]
fn a_read_without_an_answer_is_sent_again_once_the_session_is_back() {
    let mut leader = Leader::with_expired_lease();
    assert_eq!(leader.on(Event::ReadFailed(vec![key(1)])), []);
    assert_eq!(leader.on(Event::Resync), [Effect::ListInboxes, Effect::ReadCases(vec![key(1)])]);
}

#[test]
fn a_revocation_whose_entry_exists_or_may_not_be_created_reads_the_assignment_again() {
    for reason in [Reason::NodeExists, Reason::NoNode, Reason::NoAuth] {
        let (mut leader, batch) = Leader::closing();
        let entry = batch.ops().position(|op| op.path().starts_with(path::DELAYED)).unwrap();
        assert_eq!(leader.on(Event::Committed(batch, rejected(entry, reason))), []);
        assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key(1)])]);
    }
}

#[test]
fn a_claim_by_another_ends_the_term() {
    let (mut leader, batch) = Leader::closing();
    assert_eq!(leader.on(Event::Committed(batch, rejected(0, Reason::BadVersion))), [Effect::FencedOut]);
    assert_eq!(leader.after(LEASE * 9), []);
}

/// S12
#[test]
fn a_revoked_attempt_with_a_cancel_flag_ends_as_cancelled() {
    let mut leader = Leader::with_expired_lease();
    let flagged = Assignment { cancel: true, ..assignment() };
    let case = Case { assignment: Stored::Value(flagged, 0), ..case(1, 0) };
    let batch = committed(leader.on(Event::CasesRead(vec![case])));
    let out = leader.on(Event::Committed(batch, Outcome::Applied(())));
    let closed = ClosedAttempt { how: AttemptOutcome::Cancelled, dead: false };
    assert!(matches!(&out[..], [Effect::Revoked(revoked)] if was_closed(revoked, closed)));
}

#[test]
fn the_last_allowed_loss_makes_the_job_dead_and_keeps_its_progress() {
    let mut leader = Leader::with_expired_lease();
    let said = crate::job::Progress::default().with_checkpoint(*b"7").unwrap();
    let left = Assignment { progress: Some(said.clone()), ..assignment() };
    let policy = crate::job::Policy { max_losses: 1, ..Default::default() };
    let case = Case {
        assignment: Stored::Value(left, 0),
        record: Stored::Value(JobRecord { policy, ..record() }, 5),
        ..case(1, 0)
    };
    let batch = committed(leader.on(Event::CasesRead(vec![case])));
    let set = batch.ops().find_map(|op| match op {
        Op::Set { data, .. } => crate::wire::decode::<JobRecord>(data).ok(),
        Op::Check { .. } | Op::Create { .. } | Op::Delete { .. } => None,
    });
    let closed = set.unwrap();
    assert_eq!(closed.state, JobState::Terminal { verdict: Verdict::Dead, at: WALL });
    assert_eq!(closed.progress, Some(said));
}

/// The last allowed loss of a job that is a member, has sub-jobs, and has a lane.
fn last_loss() -> Case {
    let membership =
        Membership { group: GroupId::new("outer").unwrap(), role: Role::Member(3), counted: true };
    let policy = crate::job::Policy { max_losses: 1, ..Default::default() };
    let placement = Placement { lane: Some(Lane::new("l").unwrap()), ..Placement::default() };
    let record = JobRecord { membership: Some(membership), spawned: true, placement, policy, ..record() };
    Case { record: Stored::Value(record, 5), ..case(1, 0) }
}

/// S6, S7: the group of the sub-jobs, the turn, or the job's own place and mark were changed. None of them keeps the
/// job at a hung worker.
#[test]
fn a_close_omits_the_turn_or_group_parts_that_an_operator_changed() {
    let mut leader = Leader::with_expired_lease();
    let mut batch = committed(leader.on(Event::CasesRead(vec![last_loss()])));
    let mut gone = Vec::new();
    for left in (0..4).rev() {
        let at = batch.ops().position(Op::is_part_of_end).unwrap();
        gone.push(batch.ops().nth(at).unwrap().path().to_owned());
        let reason = if left == 0 { Reason::NodeExists } else { Reason::NoNode };
        let out = leader.on(Event::Committed(batch, rejected(at, reason)));
        assert_eq!(out, [Effect::ReadCases(vec![key(1)])], "the lease is still expired");
        batch = committed(leader.on(Event::CasesRead(vec![last_loss()])));
    }
    let (_, job) = key(1);
    let Stored::Value(record, _) = last_loss().record else { unreachable!() };
    let (sub_jobs, outer) = (GroupId::of_sub_jobs(&job, &record), GroupId::new("outer").unwrap());
    let expected = [
        crate::path::mark(&sub_jobs, Mark::Parent, End::Dead),
        crate::path::turn(&record.turn().unwrap(), &job),
        crate::path::place(&outer, 3),
        crate::path::mark(&outer, Mark::Member(3), End::Dead),
    ];
    assert_eq!(gone, expected);
    assert_eq!(batch.ops().count(), 4, "the fence, the record, the assignment and the inbox");
    let out = leader.on(Event::Committed(batch, Outcome::Applied(())));
    let closed = ClosedAttempt { how: AttemptOutcome::LeaseExpired, dead: true };
    assert!(matches!(&out[..], [Effect::Revoked(revoked)] if was_closed(revoked, closed)));
}

#[test]
fn an_unreadable_or_stale_assignment_is_left_to_its_worker() {
    let over = record().cancel(WALL);
    let odd = [
        Case { assignment: Stored::Unreadable("x".into()), ..case(1, 0) },
        Case { record: Stored::Unreadable("x".into()), ..case(1, 0) },
        Case { record: Stored::Absent, ..case(1, 0) },
        Case { record: Stored::Value(over, 5), ..case(1, 0) },
        Case { record: Stored::Value(JobRecord { attempts: 1, ..record() }, 5), ..case(1, 0) },
    ];
    for odd in odd {
        let mut leader = Leader::with_expired_lease();
        assert_eq!(leader.on(Event::CasesRead(vec![odd])), []);
        assert_eq!(leader.after(LEASE * 9), []);
        leader.on(Event::Seen(key(1)));
        assert_eq!(
            leader.after(READ_AFTER),
            [Effect::ReadAssignments(vec![key(1)])],
            "the next sweep reads it again"
        );
    }
}

#[test]
fn a_new_leader_restarts_every_lease() {
    let mut leader = Leader::new();
    leader.now = Millis(1_000_000);
    assert_eq!(leader.on(Event::Inboxes(vec![key(1).0])), [Effect::List(key(1).0)]);
    assert_eq!(leader.on(Event::Seen(key(1))), []);
    leader.after(READ_AFTER);
    leader.on(Event::AssignmentsRead(vec![(key(1), Some((stamp(9), LEASE)))]));
    assert_eq!(leader.after(LEASE), []);
}

#[test]
fn reads_are_bounded_and_one_at_a_time() {
    let mut leader = Leader::new();
    (0..250).for_each(|n| drop(leader.on(Event::Changed(key(n)))));
    let first = leader.after(READ_AFTER);
    assert!(matches!(&first[..], [Effect::ReadAssignments(keys)] if keys.len() == MAX_READ_BATCH));
    assert_eq!(leader.after(READ_AFTER), []);
    let Some(Effect::ReadAssignments(keys)) = first.into_iter().next() else { unreachable!() };
    let out =
        leader.on(Event::AssignmentsRead(keys.into_iter().map(|p| (p, Some((stamp(0), LEASE)))).collect()));
    assert!(matches!(&out[..], [Effect::ReadAssignments(keys)] if keys.len() == MAX_READ_BATCH));
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u16),
    Renew,
    /// Renewed without a watch event.
    RenewUnseen,
    Answer,
    Lose,
    Resync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..65_000_u16).prop_map(Step::Wait),
        2 => Just(Step::Renew),
        1 => Just(Step::RenewUnseen),
        6 => Just(Step::Answer),
        1 => Just(Step::Lose),
        1 => Just(Step::Resync),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Whatever is seen or lost: no attempt is closed before its lease has passed since its last change, and each
    /// commit names the stored version or is rejected.
    #[test]
    fn no_attempt_is_revoked_within_its_lease(steps in steps()) {
        let mut leader = Leader::new();
        let (mut version, mut changed_at) = (0, leader.now);
        leader.on(Event::Changed(key(1)));
        let mut asked = Vec::new();
        for step in steps {
            let out = match step {
                Step::Wait(wait) => leader.after(Duration::from_millis(wait.into())),
                Step::Renew | Step::RenewUnseen => {
                    (version, changed_at) = (version + 1, leader.now);
                    if matches!(step, Step::Renew) { leader.on(Event::Changed(key(1))) } else { vec![] }
                }
                Step::Resync => leader.on(Event::Resync),
                Step::Answer | Step::Lose => match (asked.pop(), step) {
                    (Some(Effect::ReadAssignments(keys) | Effect::ReadCases(keys)), Step::Lose) => {
                        leader.on(Event::ReadFailed(keys))
                    }
                    (Some(Effect::ReadAssignments(_)), _) => {
                        leader.on(Event::AssignmentsRead(vec![(key(1), Some((stamp(version), LEASE)))]))
                    }
                    (Some(Effect::ReadCases(_)), _) => leader.on(Event::CasesRead(vec![case(1, version)])),
                    (Some(Effect::Commit(batch)), Step::Lose) => {
                        leader.on(Event::Committed(batch, Outcome::Unknown))
                    }
                    (Some(Effect::Commit(batch)), _) => {
                        let fits = batch.ops().any(|op| matches!(op, Op::Delete { version: Some(v), .. } if *v == version));
                        if fits {
                            prop_assert!(leader.now.since(changed_at) >= LEASE + LEASE_MARGIN);
                            return Ok(());
                        }
                        leader.on(Event::Committed(batch, rejected(2, Reason::BadVersion)))
                    }
                    _ => vec![],
                },
            };
            asked.extend(out.into_iter().filter(|effect| {
                matches!(effect, Effect::ReadAssignments(_) | Effect::ReadCases(_) | Effect::Commit(_))
            }));
            prop_assert!(asked.len() <= 1, "one request at a time");
        }
    }
}

#[test]
fn assignments_and_cases_are_read_in_full_batches() {
    let mut leader = Leader::new();
    for n in 0..=2 * MAX_READ_BATCH {
        leader.on(Event::Changed(key(u32::try_from(n).unwrap())));
    }
    let [Effect::ReadAssignments(keys)] = &leader.after(READ_AFTER)[..] else { panic!("one read") };
    assert_eq!(keys.len(), MAX_READ_BATCH);
    let stand = |keys: &[AssignmentKey]| {
        let read = keys.iter().map(|key| (key.clone(), Some((stamp(0), LEASE))));
        Event::AssignmentsRead(read.collect())
    };
    let [Effect::ReadAssignments(more)] = &leader.on(stand(keys))[..] else { panic!("one read") };
    assert_eq!(more.len(), MAX_READ_BATCH);
    let [Effect::ReadAssignments(last)] = &leader.on(stand(more))[..] else { panic!("one read") };
    assert_eq!(leader.on(stand(last)), []);
    let [Effect::ReadCases(cases)] = &leader.after(LEASE + LEASE_MARGIN)[..] else { panic!("one read") };
    assert_eq!(cases.len(), MAX_READ_BATCH / 2, "an assignment and a record each");
}

#[test]
fn a_batch_that_was_not_sent_is_sent_after_the_resync() {
    for at in [0, 1] {
        let (mut leader, batch) = Leader::closing();
        assert_eq!(leader.on(Event::Committed(batch, rejected(at, Reason::NotSent))), []);
        assert_eq!(leader.on(Event::Resync), [Effect::ListInboxes, Effect::ReadCases(vec![key(1)])]);
    }
}

/// The members get the lease of a job. Until then nothing is closed, so the worker may still report results.
#[test]
fn the_members_of_a_silent_segment_are_extracted_after_a_short_lease() {
    let key = (key(1).0, id().job());
    let mut leader = Leader::new();
    leader.on(Event::Changed(key.clone()));
    assert_eq!(leader.after(READ_AFTER), [Effect::ReadAssignments(vec![key.clone()])]);
    leader.on(Event::AssignmentsRead(vec![(key.clone(), Some((stamp(0), LEASE)))]));
    let expired = leader.after(SEGMENT_LEASE + LEASE_MARGIN);
    assert_eq!(expired, [Effect::ReadSegment(key.clone(), id())]);
    let found = |version| InboxSegment {
        assignment: Stored::Value(assignment(), version),
        segment: Stored::Value(segment(), 0),
        chunks: Chunks::of_names(["s1"]),
    };
    let case = |version| SegmentCase { key: key.clone(), id: id(), created: 40, found: found(version) };
    let batch = committed(leader.on(Event::SegmentRead(Box::new(case(0)))));
    assert_eq!(batch.ops().next(), Some(&txn::fence(3)));
    assert_eq!(batch.ops().count(), 1 + 2 + 2 * 3, "three members are open");
    let out = leader.on(Event::Committed(batch, Outcome::Applied(())));
    assert!(
        matches!(&out[..], [Effect::Revoked(Revocation { revoked: Revoked::Members(3), .. })]),
        "{out:?}"
    );
    assert!(leader.machine.is_empty());
}

#[test]
fn a_segment_whose_assignment_was_set_is_given_more_time() {
    let key = (key(1).0, id().job());
    let mut leader = Leader::new();
    leader.on(Event::Changed(key.clone()));
    leader.after(READ_AFTER);
    leader.on(Event::AssignmentsRead(vec![(key.clone(), Some((stamp(0), LEASE)))]));
    leader.after(SEGMENT_LEASE + LEASE_MARGIN);
    let found = InboxSegment {
        assignment: Stored::Value(assignment(), 1),
        segment: Stored::Value(segment(), 0),
        chunks: Chunks::default(),
    };
    let case = SegmentCase { key: key.clone(), id: id(), created: 40, found };
    assert_eq!(leader.on(Event::SegmentRead(Box::new(case))), []);
    assert_eq!(leader.machine.next_due(), Some(leader.now + SEGMENT_LEASE + LEASE_MARGIN));
}
