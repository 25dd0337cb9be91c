use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::change::{Author, Change, ChangeKind};
use bellwether_core::failover::Failover;
use bellwether_core::name::NodeId;
use bellwether_core::port::WrappingCount;
use bellwether_core::takeover::Owner;
use bellwether_core::wire;

use super::*;
use crate::session::Made;
use crate::stage::Stage;
use crate::{Ask, Out};

/// S14: a worker never inherits the assignments of an earlier incarnation.
#[test]
fn incarnation_ids_are_unique_and_sort_by_time() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut id = |at| fresh(WallMillis(at), &mut rng).uuid();
    let (first, second, later) = (id(1_000), id(1_000), id(2_000));
    assert_ne!(first, second);
    assert!(first < later && second < later);
    assert_eq!(first.get_version_num(), 7);
}

/// A wing in its second session, which has requested its second registration in term 3.
fn in_the_second_session() -> Stage<WorkerWing> {
    let args = Args {
        info: registration(),
        drain_grace: Duration::from_secs(1),
        free_slots: Box::new(|| 4),
        takeover: None,
    };
    let (mut stage, _) = Stage::start(args);
    for event in [connected(), SessionEvent::Expired, connected()] {
        stage.handle(WorkerWingMsg::Session(event));
    }
    stage
}

fn registration() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "host".to_owned(),
        kinds: Vec::new(),
        leases: BTreeMap::new(),
        slots: 4,
        tags: Vec::new(),
        codec: wire::SCHEMA,
        started_at: WallMillis(0),
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    }
}

fn connected() -> SessionEvent {
    let timeout = Duration::from_secs(10);
    Made { session: 1, timeout, failover: Failover::default(), clock: None }.connected()
}

fn starts(out: &[Out<WorkerWing>]) -> bool {
    out.iter().any(|out| matches!(out, Out::Tell(Tell::Start { .. })))
}

/// Returns the former ids in the registration that is written.
fn former(out: &[Out<WorkerWing>]) -> Option<Vec<WorkerId>> {
    out.iter().find_map(|out| {
        let Out::Ask(Ask::Commit(commit)) = out else { return None };
        commit.ops().find_map(|op| match op {
            Op::Create { data, lifetime: txn::Lifetime::Ephemeral, .. } => {
                Some(decode::<WorkerInfo>(data).unwrap().former)
            }
            Op::Create { .. } | Op::Check { .. } | Op::Set { .. } | Op::Delete { .. } => None,
        })
    })
}

/// S20
#[test]
fn a_registration_names_the_ids_whose_session_expired() {
    let mut stage = in_the_second_session();
    let mut ids = Vec::new();
    let expire = |stage: &mut Stage<WorkerWing>| {
        stage.handle(WorkerWingMsg::Session(SessionEvent::Expired));
        former(&stage.handle(WorkerWingMsg::Session(connected()))).expect("it registers")
    };
    for n in 2..=MAX_FORMER_IDS + 3 {
        let former = expire(&mut stage);
        assert_eq!(former.len(), n.min(MAX_FORMER_IDS));
        ids.push(*former.last().unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), MAX_FORMER_IDS + 2, "the newest id is the last");
}

/// S20
#[test]
fn the_first_registration_names_the_configured_former_id() {
    let id = WorkerId::new(Uuid::from_u128(7));
    let info = WorkerInfo { former: vec![id], ..registration() };
    let args = Args { info, drain_grace: Duration::from_secs(1), free_slots: Box::new(|| 4), takeover: None };
    let (mut stage, _) = Stage::start(args);
    assert_eq!(former(&stage.handle(WorkerWingMsg::Session(connected()))), Some(vec![id]));
    stage.handle(WorkerWingMsg::Session(SessionEvent::Expired));
    let again = former(&stage.handle(WorkerWingMsg::Session(connected()))).expect("it registers");
    assert_eq!((again.len(), again[0]), (2, id));
}

/// The death of an actor may be caused by a job.
#[test]
fn a_registration_does_not_name_an_id_that_ended_otherwise() {
    let mut stage = in_the_second_session();
    stage.handle(WorkerWingMsg::Committed(3, Outcome::Applied(())));
    stage.handle(WorkerWingMsg::InboxGone(3));
    let again = stage.handle(WorkerWingMsg::Committed(4, Outcome::Applied(())));
    assert_eq!(former(&again).map(|former| former.len()), Some(1), "only the id of the first session");
}

/// S20: the leader reads the inbox when the worker begins to offer slots.
#[test]
fn a_worker_that_takes_over_registers_without_slots_and_publishes_them_afterwards() {
    let (from, owner) = (WorkerId::new(Uuid::from_u128(7)), Owner([7; 16]));
    let takeover = Takeover { from, owner, held: vec![], slots: 4, limits: BTreeMap::new() };
    let args = Args {
        info: registration(),
        drain_grace: Duration::from_secs(1),
        free_slots: Box::new(|| 4),
        takeover: Some(takeover),
    };
    let (mut stage, _) = Stage::start(args);
    let slots = |out: &[Out<WorkerWing>]| {
        out.iter().find_map(|out| {
            let Out::Ask(Ask::Commit(commit)) = out else { return None };
            commit.ops().find_map(|op| match op {
                Op::Create { path, data, .. } | Op::Set { path, data, .. }
                    if path.starts_with(path::WORKERS) =>
                {
                    Some(decode::<WorkerInfo>(data).unwrap().slots)
                }
                _ => None,
            })
        })
    };
    let registers = stage.handle(WorkerWingMsg::Session(connected()));
    assert_eq!(slots(&registers), Some(0));
    let takes = stage.handle(WorkerWingMsg::Committed(1, Outcome::Applied(())));
    assert!(!starts(&takes) && takes.iter().any(|out| matches!(out, Out::Task(_))));
    assert!(!starts(&stage.handle(WorkerWingMsg::TookOver(0, Ok(vec![])))), "of another term");
    let reads = stage.handle(WorkerWingMsg::TookOver(1, Ok(vec![])));
    assert!(!starts(&reads) && reads.iter().any(|out| matches!(out, Out::Tell(Tell::TookOver(..)))));
    let read = WorkerWingMsg::Read(1, Ok(Some(set(1, 0, WorkerSettings::default()))));
    let serves = stage.handle(read);
    assert!(starts(&serves));
    assert_eq!(slots(&serves), Some(4));
}

#[test]
fn a_reply_to_an_earlier_incarnation_is_ignored() {
    let mut stage = in_the_second_session();
    assert!(!starts(&stage.handle(WorkerWingMsg::Committed(1, Outcome::Applied(())))));
    assert!(starts(&stage.handle(WorkerWingMsg::Committed(3, Outcome::Applied(())))));
}

#[test]
fn a_message_from_a_child_of_an_earlier_incarnation_is_ignored() {
    let mut stage = in_the_second_session();
    stage.handle(WorkerWingMsg::Committed(3, Outcome::Applied(())));
    let writes = |out: &[Out<WorkerWing>]| out.iter().any(|out| matches!(out, Out::Ask(_)));
    assert!(!writes(&stage.handle(WorkerWingMsg::Usable(1, 2))));
    assert!(writes(&stage.handle(WorkerWingMsg::Usable(3, 2))));
}

fn set(session: i64, version: i32, settings: WorkerSettings) -> Node {
    let info = WorkerInfo { settings: Noted { value: settings, changed: Some(by_ada()) }, ..registration() };
    Node {
        data: encode(&info),
        version,
        owner: session,
        created: 1,
        written: 1,
        modified: WallMillis(0),
        children: 0,
        children_ever: WrappingCount::default(),
    }
}

fn by_ada() -> Change {
    Change { what: ChangeKind::Set, by: Author::new("ada@host").unwrap(), at: WallMillis(7) }
}

fn two_slots() -> WorkerSettings {
    WorkerSettings::default().slots(2)
}

fn told(out: &[Out<WorkerWing>]) -> Vec<(u32, WorkerSettings)> {
    let told = |out: &Out<WorkerWing>| match out {
        Out::Tell(Tell::Settings(slots, settings)) => Some((*slots, settings.clone())),
        _ => None,
    };
    out.iter().filter_map(told).collect()
}

/// Returns the settings in the registration that is written, and the version that fences the write.
fn written(out: &[Out<WorkerWing>]) -> Option<(WorkerSettings, Option<i32>)> {
    let settings = |data: &[u8]| {
        let Noted { value, changed } = decode::<WorkerInfo>(data).unwrap().settings;
        assert_eq!(changed, Some(by_ada()), "the author stays with the settings");
        value
    };
    out.iter().find_map(|out| {
        let Out::Ask(Ask::Commit(commit)) = out else { return None };
        commit.ops().find_map(|op| match op {
            Op::Create { data, lifetime: txn::Lifetime::Ephemeral, .. } => Some((settings(data), None)),
            Op::Set { data, version, .. } => Some((settings(data), Some(*version))),
            Op::Create { .. } | Op::Check { .. } | Op::Delete { .. } => None,
        })
    })
}

/// S24
#[test]
fn an_operators_settings_are_followed_and_kept_by_every_write_of_the_registration() {
    let mut stage = in_the_second_session();
    stage.handle(WorkerWingMsg::Committed(3, Outcome::Applied(())));
    let read = |version, settings| WorkerWingMsg::Read(3, Ok(Some(set(1, version, settings))));
    assert_eq!(told(&stage.handle(read(1, two_slots()))), [(2, two_slots())]);
    assert_eq!(told(&stage.handle(read(1, two_slots()))), [], "they are followed once");
    assert_eq!(told(&stage.handle(read(0, WorkerSettings::default()))), [], "an overtaken read");
    stage.handle(read(1, two_slots()));
    let update = stage.handle(WorkerWingMsg::Usable(3, 2));
    assert_eq!(written(&update), Some((two_slots(), Some(1))));
    // The process keeps them in its next session.
    stage.handle(WorkerWingMsg::Session(SessionEvent::Expired));
    let again = stage.handle(WorkerWingMsg::Session(connected()));
    assert_eq!(written(&again), Some((two_slots(), None)));
    let started = stage.handle(WorkerWingMsg::Committed(5, Outcome::Applied(())));
    let start = started.iter().find_map(|out| match out {
        Out::Tell(Tell::Start { slots, settings, .. }) => Some((*slots, settings.clone())),
        _ => None,
    });
    assert_eq!(start, Some((2, two_slots())));
}

#[test]
fn an_attempt_that_was_handed_back_because_of_the_settings_causes_a_read() {
    let mut stage = in_the_second_session();
    stage.handle(WorkerWingMsg::Committed(3, Outcome::Applied(())));
    let reads = |out: &[Out<WorkerWing>]| out.iter().any(|out| matches!(out, Out::Ask(Ask::Get(..))));
    assert!(reads(&stage.handle(WorkerWingMsg::NotServed(3))));
    assert!(!reads(&stage.handle(WorkerWingMsg::NotServed(1))), "of an earlier incarnation");
}
