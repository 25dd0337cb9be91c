//! Jobs that move while their places are read, and views of each place.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::job::{Ending, Payload};
use bellwether_core::txn;

use super::*;
use crate::client::Client;
use crate::client::in_memory::{Answer, BEGINNING, Request, World, id};
use crate::client::job::Job;
use crate::client::view::{JobView, State, WaitReason};

fn stage(names: &[&str]) -> (Arc<World>, Client, WorkerId) {
    let world = World::new();
    let client = world.client();
    for name in names {
        world.run(client.submit(Job::new("sum", &1).id(name).max_attempts(3))).unwrap();
    }
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    world.requests();
    (world, client, worker)
}

fn get(world: &World, client: &Client, name: &str) -> JobView {
    world.run(client.get(&id(name))).unwrap().unwrap()
}

#[test]
fn a_view_has_the_state_of_each_place() {
    let (world, client, worker) = stage(&["a"]);
    let queued = get(&world, &client, "a");
    assert_eq!(
        (queued.state, queued.waiting, queued.attempt),
        (State::Queued, Some(WaitReason::NoLeader), 0)
    );
    world.assign(&id("a"), worker);
    let running = get(&world, &client, "a");
    assert_eq!((running.state, running.waiting, running.attempt), (State::Running, None, 1));
    assert_eq!((running.worker, running.node.unwrap().as_str()), (Some(worker), "by-hand"));
    assert_eq!((running.assigned_at, running.lease.is_some()), (Some(BEGINNING.into()), true));
    world.close(&id("a"), worker, Ending::Failed("boom".into()));
    let delayed = get(&world, &client, "a");
    assert_eq!((delayed.state, delayed.waiting), (State::Delayed, Some(WaitReason::Backoff)));
    assert!(delayed.not_before.is_some() && delayed.attempts.len() == 1);
    let record = world.record(&id("a"));
    let version = world.tree().get(&path::record(&id("a"))).unwrap().version;
    world.apply(&txn::promote(&id("a"), record.delay().unwrap(), &record.entry(version)));
    world.assign(&id("a"), worker);
    world.close(&id("a"), worker, Ending::Succeeded(Payload::json(*b"7").unwrap()));
    let done = get(&world, &client, "a");
    assert_eq!((done.state, done.attempt, done.result.unwrap().bytes()), (State::Succeeded, 2, &b"7"[..]));
    assert_eq!((done.error.as_deref(), done.failures), (Some("boom"), 1));

    world.run(client.submit(Job::new("sum", &1).id("later").delay(Duration::from_secs(60)))).unwrap();
    let later = get(&world, &client, "later");
    assert_eq!((later.state, later.waiting), (State::Delayed, Some(WaitReason::NotBefore)));
    assert_eq!(later.not_before, Some((BEGINNING + Duration::from_secs(60)).into()));
}

#[test]
fn a_running_job_has_the_parts_of_its_assignment_and_waits_if_its_worker_is_lost() {
    let (world, client, worker) = stage(&["a"]);
    world.assign(&id("a"), worker);
    let path = path::assignment(worker, &id("a"));
    world.tree().update(&path, |assignment: Assignment| Assignment { spawned: true, ..assignment });
    assert_eq!(get(&world, &client, "a").sub_jobs.len(), 1, "the record does not show it yet");
    world.tree().update(&path::record(&id("a")), |record: JobRecord| JobRecord { spawned: true, ..record });
    assert_eq!(get(&world, &client, "a").sub_jobs.len(), 1);
    world.tree().update(&path, |assignment: Assignment| Assignment { spawned: false, ..assignment });
    world.tree().update(&path::record(&id("a")), |record: JobRecord| JobRecord { spawned: false, ..record });
    assert_eq!(get(&world, &client, "a").sub_jobs.len(), 0);
    world.tree().delete(&path::worker(worker));
    let lost = get(&world, &client, "a");
    assert_eq!((lost.state, lost.waiting, lost.node), (State::Running, Some(WaitReason::WorkerLost), None));
    world.tree().put(&path, *b"?");
    let unreadable = get(&world, &client, "a");
    assert!(unreadable.error.unwrap().starts_with("its assignment cannot be read: "));
}

#[test]
fn a_job_that_moves_during_the_look_is_found_at_its_new_place() {
    let (world, client, worker) = stage(&["a", "b"]);
    let record = world.record(&id("b"));
    let entry = world.tree().entry(&id("b"));
    let at = bellwether_core::ready::ReadyEntry::of_record(&id("b"), &record);
    let assign = txn::assign(&at, worker, &Assignment::new(1, 0, BEGINNING), record.turn().as_ref());
    // The job is assigned after the inboxes were listed, and so is in no place.
    let mut moved = false;
    world.script(move |request, tree| {
        let lists = matches!(request, Request::List(paths) if paths[0] == path::ASSIGNMENTS);
        if request.gets(&entry) && !moved {
            tree.delete(&entry);
        }
        if lists && !moved {
            moved = true;
            tree.put(&entry, *b"");
            // Served after the list was made.
            return Answer::Serve;
        }
        if moved && tree.get(&path::assignment(worker, &id("b"))).is_none() {
            tree.apply(&assign).unwrap();
        }
        Answer::Serve
    });
    let views = world.run(client.get_many(&["a", "b"].map(id))).unwrap();
    let states = views.into_iter().map(|view| view.unwrap().state).collect::<Vec<_>>();
    assert_eq!(states, [State::Queued, State::Running]);
    let reads = world.requests().into_iter().filter(|request| request.gets(&path::record(&id("a")))).count();
    assert_eq!(reads, 1, "only the job that moved is read again");
}

#[test]
fn a_job_in_no_place_is_looked_for_a_few_times() {
    let (world, client, _) = stage(&["a"]);
    let entry = world.tree().entry(&id("a"));
    world.tree().delete(&entry);
    let view = get(&world, &client, "a");
    assert_eq!((view.state, view.waiting), (State::Queued, Some(WaitReason::Nowhere)));
    let looks = world.requests().into_iter().filter(|request| request.gets(&path::record(&id("a")))).count();
    assert_eq!(looks, LOOKS as usize);
    world.tree().put(&path::quarantine(&id("a")), *b"why");
    let view = get(&world, &client, "a");
    assert_eq!((view.state, view.error.as_deref()), (State::Quarantined, Some("why")));
}

#[test]
fn an_absent_job_is_looked_for_again_after_the_server_has_caught_up() {
    let (world, client, _) = stage(&["a", "b"]);
    let record = world.tree().get(&path::record(&id("a"))).unwrap().data;
    world.script(move |request, tree| {
        if *request == Request::Sync {
            tree.put(&path::record(&id("late")), record.clone());
        }
        Answer::Serve
    });
    let all = ["late", "a", "none", "b"].map(id);
    let exist = world.run(client.exist(&all)).unwrap();
    assert_eq!(exist, [true, true, false, true]);
    world.tree().delete(&path::record(&id("late")));
    let views = world.run(client.get_many(&all)).unwrap();
    let ids = views.into_iter().map(|view| view.map(|view| view.id.to_string())).collect::<Vec<_>>();
    assert_eq!(ids, [Some("late".into()), Some("a".into()), None, Some("b".into())]);
    world.tree().delete(&path::record(&id("late")));
    assert!(world.run(client.get(&id("late"))).unwrap().is_some());
    assert_eq!(world.run(client.get(&id("none"))), Ok(None));
    world.requests();
    world.run(client.get_many(&["a", "b"].map(id))).unwrap();
    assert!(!world.requests().contains(&Request::Sync), "nothing is absent");
}

#[test]
fn a_running_job_with_a_cancel_has_its_author_and_its_progress() {
    let (world, client, worker) = stage(&["a"]);
    world.assign(&id("a"), worker);
    world.run(client.cancel(&id("a"))).unwrap();
    let progress = bellwether_core::job::Progress::default().with_message(Some(40), "loading").unwrap();
    world.tree().update(&path::assignment(worker, &id("a")), |assignment: Assignment| Assignment {
        progress: Some(progress),
        ..assignment
    });
    let view = get(&world, &client, "a");
    assert_eq!((view.cancel_requested, view.changed.clone().unwrap().by), (true, "tester".to_owned()));
    assert_eq!(view.status(), "running: 40 %: loading");
}
