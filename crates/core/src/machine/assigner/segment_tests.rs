//! Tests of segments, which wait and are assigned as one job.

use uuid::Uuid;

use super::*;
use crate::change::Noted;
use crate::job::QueueEntry;
use crate::name::NodeId;
use crate::segment::SegmentId;
use crate::worker::WorkerInfo;

fn kind() -> Kind {
    Kind::new("sum").unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(1))
}

fn sized(n: u128, members: u8) -> JobId {
    SegmentId::new(Uuid::from_u128(n), members, 9_000).unwrap().job()
}

fn segment(n: u128) -> JobId {
    sized(n, 100)
}

fn waiting(job: &JobId) -> Waiting {
    Waiting::new(job, QueueEntry::new(kind(), 1, 1))
}

fn handle(machine: &mut Assigner, event: Event) -> Vec<Effect> {
    let mut out = Vec::new();
    machine.handle(Millis(0), WallMillis(0), event, &mut out);
    out
}

fn info(slots: u32) -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![kind()],
        leases: BTreeMap::new(),
        slots,
        tags: Vec::new(),
        codec: 1,
        started_at: WallMillis(0),
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    }
}

/// A leader with one worker, whose inbox contains these names.
fn leader(slots: u32, names: Vec<String>) -> Assigner {
    let mut machine = Assigner::new(7, OwnStrategies::default(), 1);
    handle(&mut machine, Event::Settings(Some(Settings::default())));
    handle(&mut machine, Event::Worker(worker(), info(slots), 0));
    let contents = InboxContents { names, ..InboxContents::default() };
    handle(&mut machine, Event::InboxRead(worker(), Some(contents)));
    machine
}

fn sent(effects: &[Effect]) -> Vec<JobId> {
    let batches = effects.iter().filter_map(|effect| match effect {
        Effect::Commit(batch) => Some(batch),
        _ => None,
    });
    batches.flat_map(|batch| batch.keys().map(|job| job.id.clone())).collect()
}

#[test]
fn a_worker_holds_two_segments_with_more_members_than_it_has_slots() {
    let mut machine = leader(4, Vec::new());
    let queued = handle(&mut machine, Event::Queued((1..=3).map(|n| waiting(&segment(n))).collect()));
    assert_eq!(sent(&queued), [segment(1), segment(2)]);
    assert_eq!((machine.waiting(), machine.waiting_of(&kind())), (100, 100), "a segment counts its members");
    assert_eq!(machine.slots(), (4, 4));
}

#[test]
fn a_large_segment_in_an_inbox_uses_half_of_the_slots() {
    let mut machine = leader(4, vec![segment(1).to_string(), "a".to_owned()]);
    assert_eq!(machine.slots(), (4, 3));
    let queued = handle(&mut machine, Event::Queued(vec![waiting(&segment(2)), waiting(&segment(3))]));
    assert_eq!(sent(&queued), [segment(2)], "one slot is free");
}

#[test]
fn a_small_segment_uses_a_slot_for_each_member() {
    let mut machine = leader(64, vec![sized(1, 10).to_string(), "a".to_owned()]);
    assert_eq!(machine.slots(), (64, 11));
    let queued = handle(&mut machine, Event::Queued((2..=8).map(|n| waiting(&sized(n, 10))).collect()));
    assert_eq!(sent(&queued).len(), 6, "after five of them, three slots are free");
    assert_eq!(machine.slots(), (64, 64));
    handle(&mut machine, Event::InboxChanged(worker()));
    handle(&mut machine, Event::Inbox(worker(), Some(vec![sized(1, 10).to_string()])));
    assert_eq!(machine.slots(), (64, 10), "the list covers the plans");
}

#[test]
fn a_worker_with_fewer_slots_than_before_is_counted_again() {
    let mut machine = leader(64, vec![sized(1, 10).to_string()]);
    handle(&mut machine, Event::Queued(vec![waiting(&sized(2, 10))]));
    assert_eq!(machine.slots(), (64, 20));
    handle(&mut machine, Event::Worker(worker(), info(8), 1));
    assert_eq!(machine.slots(), (8, 8), "each counts as half");
}

#[test]
fn the_members_of_a_segment_that_cannot_be_assigned_wait_again() {
    let mut machine = leader(4, Vec::new());
    let sent = handle(&mut machine, Event::Queued(vec![waiting(&segment(1))]));
    let Some(Effect::Commit(batch)) = sent.into_iter().next() else { panic!("it is assigned") };
    assert_eq!(machine.waiting(), 0);
    let rejection = Rejection { at: 1, reason: Reason::BadVersion };
    handle(&mut machine, Event::Committed(batch, Outcome::Rejected(rejection)));
    assert_eq!(machine.waiting(), 100);
    handle(&mut machine, Event::Unqueued(waiting(&segment(1)).at));
    assert_eq!(machine.waiting(), 0);
}

#[test]
fn jobs_that_the_assigner_does_not_know_count_as_waiting() {
    let mut machine = leader(4, Vec::new());
    let other = Kind::new("other").unwrap();
    handle(&mut machine, Event::Beyond(vec![(kind(), 5), (other, 0)]));
    assert_eq!((machine.waiting(), machine.waiting_of(&kind())), (5, 5));
    assert_eq!(machine.waiting_kinds().collect::<Vec<_>>(), [&kind()]);
}
