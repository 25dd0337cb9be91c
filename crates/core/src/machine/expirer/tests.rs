use uuid::Uuid;

use super::*;
use crate::group::{End, Mark};
use crate::job::{JobState, Membership, Payload, Placement, Role, Verdict};
use crate::name::{GroupId, Lane};
use crate::outcome::Rejection;
use crate::txn::Op;

const EXPIRY: WallMillis = WallMillis(100);
const NOW: WallMillis = WallMillis(101);

fn job(n: u32) -> JobId {
    JobId::new(format!("j{n}")).unwrap()
}

fn record(lane: Option<&str>) -> JobRecord {
    let lane = lane.map(|lane| Lane::new(lane).unwrap());
    let kind = Kind::new("sum").unwrap();
    JobRecord {
        expires_at: Some(EXPIRY),
        placement: Placement { lane, ..Placement::default() },
        ..JobRecord::new(kind, Payload::json(*b"1").unwrap(), Uuid::nil(), WallMillis(1))
    }
}

struct Bench(Expirer);

impl Bench {
    fn new() -> Self {
        Self(Expirer::new(7))
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(NOW, event, &mut out);
        out
    }

    fn overdue(&mut self, jobs: impl IntoIterator<Item = u32>) -> Vec<Effect> {
        self.handle(Event::Overdue(jobs.into_iter().map(|n| (job(n), EXPIRY)).collect()))
    }

    fn read(&mut self, records: impl IntoIterator<Item = (u32, JobRecord)>) -> Vec<Effect> {
        self.handle(Event::Read(records.into_iter().map(|(n, record)| (job(n), Some((record, 3)))).collect()))
    }
}

fn batch(effects: &[Effect]) -> Batch<Item> {
    match effects {
        [Effect::Commit(batch)] => batch.clone(),
        other => panic!("{other:?}"),
    }
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

#[test]
fn an_overdue_job_is_read_and_ended_with_the_fence_its_entry_and_its_turn() {
    let mut bench = Bench::new();
    assert!(bench.0.is_empty());
    assert_eq!(bench.overdue([1]), [Effect::Read(vec![job(1)])]);
    assert_eq!((bench.0.len(), bench.0.is_empty()), (1, false));
    let sent = batch(&bench.read([(1, record(Some("l")))]));
    let ops = sent.ops().collect::<Vec<_>>();
    assert_eq!(ops[0], &txn::fence(7));
    let Op::Set { path, data, version: 3 } = ops[1] else { panic!("{ops:?}") };
    assert_eq!(path, &crate::path::record(&job(1)));
    let ended = crate::wire::decode::<JobRecord>(data).unwrap();
    assert_eq!(ended.state, JobState::Terminal { verdict: Verdict::Dead, at: NOW });
    assert!(ended.last_error.unwrap().contains("expired"));
    let at = ReadyEntry::of_record(&job(1), &record(Some("l")));
    assert_eq!(ops[2].path(), crate::path::ready_entry(&at));
    assert!(ops[3].leaves_turn());
    let told = bench.handle(Event::Committed(sent, Outcome::Applied(())));
    assert!(matches!(&told[..], [Effect::Ended(Item { .. })]), "{told:?}");
    assert!(bench.0.is_empty());
}

/// S2, S12: a job that was concurrently assigned, cancelled or retried is not ended.
#[test]
fn a_concurrently_changed_job_is_not_ended() {
    let over = record(None).expire(NOW);
    let later = JobRecord { expires_at: Some(WallMillis(500)), ..record(None) };
    let reopened = JobRecord { expires_at: None, generation: 2, ..record(None) };
    for there in [over, later, reopened] {
        let mut bench = Bench::new();
        bench.overdue([1]);
        assert_eq!(bench.read([(1, there.clone())]), [], "{there:?}");
        assert!(bench.0.is_empty());
    }
    for (at, reason) in [(1, Reason::BadVersion), (2, Reason::NoNode)] {
        let mut bench = Bench::new();
        bench.overdue([1, 2]);
        let sent = batch(&bench.read([(1, record(None)), (2, record(None))]));
        let again = bench.handle(Event::Committed(sent, rejected(at, reason)));
        assert_eq!(again, [Effect::Read(vec![job(2)])], "the remaining job is read again");
        assert_eq!(bench.0.len(), 1, "the changed job is forgotten");
    }
}

/// A lost reply.
#[test]
fn a_lost_reply_is_resolved_by_reading_the_record_once_the_session_is_back() {
    let mut bench = Bench::new();
    bench.overdue([1, 2]);
    let sent = batch(&bench.read([(1, record(None)), (2, record(None))]));
    assert_eq!(bench.handle(Event::Committed(sent, Outcome::Unknown)), []);
    assert_eq!(bench.overdue([3]), [], "no request is sent while the session is disturbed");
    assert_eq!(bench.handle(Event::Resync), [Effect::Read(vec![job(1), job(2), job(3)])]);
    let sent = batch(&bench.read([(1, record(None).expire(NOW)), (2, record(None)), (3, record(None))]));
    assert_eq!(sent.keys().map(|item| item.job.clone()).collect::<Vec<_>>(), [job(2), job(3)]);
}

#[test]
fn a_job_whose_turn_an_operator_deleted_is_ended_without_it() {
    let mut bench = Bench::new();
    bench.overdue([1]);
    let sent = batch(&bench.read([(1, record(Some("l")))]));
    let again = bench.handle(Event::Committed(sent, rejected(3, Reason::NoNode)));
    assert_eq!(again, [Effect::Read(vec![job(1)])]);
    let sent = batch(&bench.read([(1, record(Some("l")))]));
    assert!(!sent.ops().any(Op::leaves_turn));
}

/// S7: the other parts of the end are written.
#[test]
fn a_member_whose_place_an_operator_deleted_still_leaves_its_mark() {
    let mut bench = Bench::new();
    bench.overdue([1]);
    let membership = Membership { group: GroupId::new("g").unwrap(), role: Role::Member(3), counted: true };
    let member = || JobRecord { membership: Some(membership.clone()), ..record(None) };
    let sent = batch(&bench.read([(1, member())]));
    let left = |batch: &Batch<Item>| batch.ops().filter(|op| op.leaves_group()).cloned().collect::<Vec<_>>();
    let [place, mark] = &left(&sent)[..] else { panic!("{sent:?}") };
    let at = sent.ops().position(|op| op == place).unwrap();
    bench.handle(Event::Committed(sent.clone(), rejected(at, Reason::NoNode)));
    let sent = batch(&bench.read([(1, member())]));
    assert_eq!(left(&sent), std::slice::from_ref(mark));
    let at = sent.ops().position(|op| op == mark).unwrap();
    bench.handle(Event::Committed(sent.clone(), rejected(at, Reason::NodeExists)));
    let sent = batch(&bench.read([(1, member())]));
    assert_eq!(
        (left(&sent).len(), sent.ops().count()),
        (0, 3),
        "the batch has the fence, the record and the entry"
    );
}

/// S7: a retried parent expires after an operator deleted its sub-jobs' group: its own group learns of its end.
#[test]
fn a_parent_whose_sub_jobs_group_an_operator_deleted_ends_its_own_place() {
    let mut bench = Bench::new();
    bench.overdue([1]);
    let membership = Membership { group: GroupId::new("g").unwrap(), role: Role::Member(3), counted: true };
    let parent = || JobRecord { membership: Some(membership.clone()), spawned: true, ..record(None) };
    let sent = batch(&bench.read([(1, parent())]));
    let left = |batch: &Batch<Item>| {
        batch.ops().filter(|op| op.leaves_group()).map(|op| op.path().to_owned()).collect::<Vec<_>>()
    };
    let sub_jobs = GroupId::of_sub_jobs(&job(1), &parent());
    assert_eq!(left(&sent), [crate::path::mark(&sub_jobs, Mark::Parent, End::Dead)]);
    let at = sent.ops().position(Op::leaves_group).unwrap();
    bench.handle(Event::Committed(sent, rejected(at, Reason::NoNode)));
    let sent = batch(&bench.read([(1, parent())]));
    let own = [
        crate::path::place(&membership.group, 3),
        crate::path::mark(&membership.group, Mark::Member(3), End::Dead),
    ];
    assert_eq!(left(&sent), own);
}

/// S3
#[test]
fn another_epoch_ends_the_term_and_a_failed_read_waits_for_the_session() {
    let mut bench = Bench::new();
    bench.overdue([1]);
    assert_eq!(bench.handle(Event::ReadFailed(vec![job(1)])), []);
    assert_eq!(bench.handle(Event::Resync), [Effect::Read(vec![job(1)])]);
    let sent = batch(&bench.read([(1, record(None))]));
    let out = bench.handle(Event::Committed(sent, rejected(0, Reason::BadVersion)));
    assert_eq!(out, [Effect::FencedOut]);
}

#[test]
fn a_rejected_end_is_tried_again_at_the_next_sweep() {
    let mut bench = Bench::new();
    bench.overdue([1, 2]);
    let sent = batch(&bench.read([(1, record(None)), (2, record(None))]));
    let rest = bench.handle(Event::Committed(sent, rejected(1, Reason::NoAuth)));
    assert_eq!(rest, [Effect::Read(vec![job(2)])]);
    bench.read([(2, record(None).expire(NOW))]);
    assert_eq!(bench.0.len(), 1);
    assert_eq!(bench.handle(Event::Resync), [Effect::Read(vec![job(1)])]);
}

#[test]
fn few_records_are_held_at_a_time() {
    let mut bench = Bench::new();
    let asked = bench.overdue(0..250);
    let [Effect::Read(jobs)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(jobs.len(), MAX_READ_BATCH);
    assert_eq!(bench.overdue([900]), [], "one read at a time");
}

/// The position means nothing in such a rejection.
#[test]
fn a_batch_that_was_not_sent_is_read_again_after_the_resync() {
    let mut bench = Bench::new();
    assert_eq!(bench.overdue([1, 2]), [Effect::Read(vec![job(1), job(2)])]);
    assert_eq!(bench.0.len(), 2);
    let sent = batch(&bench.read([(1, record(None)), (2, record(None))]));
    for at in [0, 1] {
        let mut bench = Bench(bench.0.clone());
        assert_eq!(bench.handle(Event::Committed(sent.clone(), rejected(at, Reason::NotSent))), []);
        assert_eq!(bench.handle(Event::Resync), [Effect::Read(vec![job(1), job(2)])]);
    }
}

/// The new report may belong to another generation of the job.
#[test]
fn a_job_that_was_reported_again_during_a_rejected_write_is_read_again() {
    let mut bench = Bench::new();
    bench.overdue([1]);
    let sent = batch(&bench.read([(1, record(None))]));
    assert_eq!(bench.overdue([1]), []);
    let after = bench.handle(Event::Committed(sent, rejected(1, Reason::BadVersion)));
    assert_eq!(after, [Effect::Read(vec![job(1)])]);
}
