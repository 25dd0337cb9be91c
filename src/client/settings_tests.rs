//! Settings of the namespace and pauses of kinds: lost replies and races.

use std::time::Duration;

use bellwether_core::change::Noted;
use bellwether_core::name::{Kind, StrategyName};
use bellwether_core::placement::PlacementSetting;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::retention::Retention;
use bellwether_core::worker::PauseRecord;
use bellwether_core::{path, wire};

use super::RetentionChange;
use super::error::{Error, Subject};
use super::in_memory::{Answer, BEGINNING, Request, World, kind};

fn writes(world: &World) -> usize {
    world.requests().iter().filter(|request| request.is_write()).count()
}

/// The bytes of a record of a newer schema.
fn newer(mut data: Vec<u8>) -> Vec<u8> {
    data[4] = 9;
    data
}

const TWO_DAYS: Duration = Duration::from_secs(2 * 86_400);

fn two_days() -> Retention {
    Retention::default().succeeded(TWO_DAYS)
}

fn succeeded() -> RetentionChange {
    RetentionChange::new().succeeded(TWO_DAYS)
}

#[test]
fn a_retention_is_written_once_and_read_back_after_a_lost_reply() {
    for (lost, copies) in [(Answer::Serve, 1), (Answer::LoseReply, 1), (Answer::LoseRequest, 2)] {
        let world = World::new();
        let client = world.client();
        assert_eq!(world.run(client.retention()), Ok(None));
        world.once(Request::is_write, [lost]);
        assert_eq!(world.run(client.change_retention(&succeeded())).unwrap().value, two_days());
        assert_eq!(writes(&world), copies);
        assert_eq!(world.run(client.retention()).unwrap().unwrap().value, two_days());
        world.run(client.change_retention(&succeeded())).unwrap();
        assert_eq!(writes(&world), 0, "it is so already");
        let records = RetentionChange::new().records(7);
        assert_eq!(world.run(client.change_retention(&records)).unwrap().value, two_days().records(7));
        assert_eq!(world.tree().get(path::RETENTION).unwrap().version, 1);
    }
}

#[test]
fn a_retention_that_cannot_be_read_is_replaced_unless_a_newer_build_wrote_it() {
    let world = World::new();
    let client = world.client();
    world.tree().put(path::RETENTION, *b"?");
    let unreadable = world.run(client.retention()).unwrap_err();
    assert!(matches!(&unreadable, Error::Settings { path: path::RETENTION, .. }));
    assert_eq!(
        world.run(client.change_retention(&RetentionChange::new())).unwrap().value,
        Retention::default()
    );
    world.tree().put(path::RETENTION, newer(wire::encode(&Noted::unchanged(two_days()))));
    let error = world.run(client.change_retention(&succeeded())).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreadable);
    let short = RetentionChange::new().dead(Duration::ZERO);
    world.tree().put(path::RETENTION, *b"?");
    assert_eq!(world.run(client.change_retention(&short)).unwrap_err().class(), ErrorClass::Invalid);
}

#[test]
fn a_setting_that_changes_at_each_try_is_contended() {
    let world = World::new();
    let client = world.client();
    world.tree().put(path::RETENTION, wire::encode(&Noted::<Retention>::default()));
    let strategy = || StrategyName::new("other").unwrap();
    let setting = PlacementSetting { strategy: StrategyName::new("one").unwrap() };
    world.tree().put(path::PLACEMENT, wire::encode(&Noted::unchanged(setting)));
    world.script(|request, tree| {
        if request.is_write() {
            for path in [path::RETENTION, path::PLACEMENT] {
                tree.stat(path, |node| node.version += 1);
            }
        }
        Answer::Serve
    });
    let contended = |subject| Error::Contended { subject, tries: 16 };
    assert_eq!(world.run(client.change_retention(&succeeded())), Err(contended(Subject::Retention).into()));
    assert_eq!(writes(&world), 16);
    assert_eq!(world.run(client.set_placement_strategy(strategy())), Err(contended(Subject::Placement)));
    assert_eq!(writes(&world), 16);
}

#[test]
fn a_placement_strategy_is_written_once_and_read_back_after_a_lost_reply() {
    let strategy = || StrategyName::new("other").unwrap();
    for (lost, copies) in [(Answer::Serve, 1), (Answer::LoseReply, 1), (Answer::LoseRequest, 2)] {
        let world = World::new();
        let client = world.client();
        assert_eq!(world.run(client.placement_strategy()), Ok(None));
        world.once(Request::is_write, [lost]);
        world.run(client.set_placement_strategy(strategy())).unwrap();
        assert_eq!(writes(&world), copies);
        assert_eq!(world.run(client.placement_strategy()).unwrap().unwrap().value, strategy());
        world.run(client.set_placement_strategy(strategy())).unwrap();
        assert_eq!(writes(&world), 0, "it is so already");
        let one = StrategyName::new("one").unwrap();
        world.run(client.set_placement_strategy(one.clone())).unwrap();
        assert_eq!(world.run(client.placement_strategy()).unwrap().unwrap().value, one);
    }
}

#[test]
fn a_placement_strategy_that_cannot_be_read_is_replaced_unless_a_newer_build_wrote_it() {
    let world = World::new();
    let client = world.client();
    let strategy = || StrategyName::new("other").unwrap();
    world.tree().put(path::PLACEMENT, *b"?");
    let unreadable = world.run(client.placement_strategy()).unwrap_err();
    assert!(matches!(&unreadable, Error::Settings { path: path::PLACEMENT, .. }));
    world.run(client.set_placement_strategy(strategy())).unwrap();
    let setting = PlacementSetting { strategy: strategy() };
    world.tree().put(path::PLACEMENT, newer(wire::encode(&Noted::unchanged(setting))));
    let error = world.run(client.set_placement_strategy(strategy())).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreadable);
}

#[test]
fn a_pause_is_made_by_one_client_and_a_lost_reply_is_read_back() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let world = World::new();
        let client = world.client();
        world.once(Request::is_write, [lost.clone()]);
        assert_eq!(world.run(client.pause_kind(&kind("sum"), "me")), Ok(true));
        assert_eq!(world.run(client.pause_kind(&kind("sum"), "me")), Ok(false), "it was paused");
        let there: PauseRecord = world.tree().decoded(&path::pause(&kind("sum")));
        assert_eq!((there.note.as_str(), there.since), ("me", BEGINNING));
        world.once(Request::is_write, [lost]);
        assert_eq!(world.run(client.resume_kind(&kind("sum"))), Ok(true));
        assert_eq!(world.run(client.resume_kind(&kind("sum"))), Ok(false));
    }
}

#[test]
fn the_pause_of_another_client_is_not_the_own_one_after_a_lost_request() {
    let world = World::new();
    let client = world.client();
    let note = bellwether_core::change::Note::new("other").unwrap();
    let other = wire::encode(&PauseRecord { by: None, note, since: BEGINNING });
    world.script(move |request, tree| match request.is_write() {
        true => {
            tree.put(&path::pause(&kind("sum")), other.clone());
            Answer::LoseRequest
        }
        false => Answer::Serve,
    });
    assert_eq!(world.run(client.pause_kind(&kind("sum"), "me")), Ok(false));
    let long = "x".repeat(257);
    let error = world.run(client.pause_kind(&kind("sum"), &long)).unwrap_err();
    assert_eq!(error.to_string(), "note must be at most 256 bytes, not 257 bytes");
}

#[test]
fn kinds_are_listed_with_their_workers_slots_and_pauses() {
    let world = World::new();
    let client = world.client();
    let first = world.worker(1, &World::registration(&["mail", "sum"], 3, &[]));
    let paused = super::WorkerSettings::default().paused_kinds(vec![kind("sum")]);
    let registration = World::registration(&["sum"], 5, &[]);
    let second = world.worker(
        2,
        &bellwether_core::worker::WorkerInfo { settings: Noted::unchanged(paused), ..registration },
    );
    let third = world.worker(3, &World::registration(&["sum"], 4, &[]));
    for n in 0..3 {
        let job = world.run(client.submit(crate::Job::new("sum", &n))).unwrap();
        world.assign(job.id(), if n == 0 { third } else { first });
    }
    world.run(client.pause_kind(&kind("later"), "me")).unwrap();
    world.tree().put(&path::pause(&kind("odd")), *b"?");
    let kinds = world.run(client.kinds()).unwrap();
    let rows = kinds.iter().map(|view| {
        let paused = view.paused.as_ref().map(|pause| (pause.since.is_some(), pause.note.as_deref()));
        (view.kind.as_str(), view.workers.len(), view.paused_on.clone(), view.slots, view.assigned, paused)
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("later", 0, vec![], 0, 0, Some((true, Some("me")))),
            ("mail", 1, vec![], 3, 2, None),
            ("odd", 0, vec![], 0, 0, Some((false, None))),
            ("sum", 3, vec![second], 7, 3, None),
        ]
    );
    let none = Kind::new("none").unwrap();
    assert_eq!(world.run(client.resume_kind(&none)), Ok(false));
}
