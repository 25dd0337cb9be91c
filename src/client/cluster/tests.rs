//! Views of workers and the leader, and why a queued job waits.

use bellwether_core::change::Noted;
use bellwether_core::job::Payload;
use bellwether_core::machine::assigner::SHUNNED;
use bellwether_core::time::WallMillis;
use bellwether_zk::WrappingCount;
use uuid::Uuid;

use super::*;
use crate::client::in_memory::{Answer, BEGINNING, DEADLINE, Request, World, kind};

fn worker_id(number: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(number))
}

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn registered(number: u128, assigned: usize, info: Registration) -> Registered {
    let id = worker_id(number);
    Registered { id, info: Ok(info), assigned, ended: WrappingCount::default(), shunned_until: None }
}

fn cluster(workers: Vec<Registered>) -> Cluster {
    let workers = workers.into_iter().map(|worker| (worker.id, worker)).collect();
    Cluster { workers, paused: BTreeMap::new(), led: true }
}

fn job(tags: &[&str], losses: u32) -> JobRecord {
    let payload = Payload::json(*b"1").unwrap();
    let mut job = JobRecord::new(kind("sum"), payload, Uuid::nil(), BEGINNING);
    job.placement.tags = tags.iter().map(|name| tag(name)).collect();
    job.losses = losses;
    job
}

/// A registration with one slot.
fn one(tags: &[&str]) -> Registration {
    World::registration(&["sum"], 1, tags)
}

fn paused() -> Registration {
    let settings = WorkerSettings::default().paused_kinds(vec![kind("sum")]);
    Registration { settings: Noted::unchanged(settings), ..one(&[]) }
}

#[test]
fn a_queued_job_waits_for_the_first_reason_that_an_operator_has_to_act_on() {
    let plain = job(&[], 0);
    let draining = || Registration { draining: true, ..one(&[]) };
    let other = || World::registration(&["other"], 1, &[]);
    let unreadable = || Registered { info: Err(WireError::Magic), ..registered(9, 0, one(&[])) };
    for (workers, expected) in [
        (vec![], WaitReason::UnknownKind),
        (vec![registered(1, 0, other())], WaitReason::UnknownKind),
        (vec![unreadable()], WaitReason::UnknownKind),
        (vec![registered(1, 0, paused()), registered(2, 0, other())], WaitReason::PausedOnWorkers),
        (vec![registered(1, 0, draining())], WaitReason::Draining),
        (vec![registered(1, 0, draining()), registered(2, 1, one(&[]))], WaitReason::Busy),
        (vec![registered(1, 1, one(&[]))], WaitReason::Busy),
        (vec![registered(1, 2, one(&[]))], WaitReason::Busy),
        (vec![registered(1, 0, one(&[]))], WaitReason::Assignment),
        (vec![registered(1, 0, paused()), registered(2, 0, one(&[]))], WaitReason::Assignment),
        (vec![registered(1, 1, World::registration(&["sum"], 3, &[]))], WaitReason::Assignment),
    ] {
        let cluster = cluster(workers);
        assert_eq!(cluster.why_queued(&plain), expected, "{cluster:?}");
    }
}

#[test]
fn a_queued_job_waits_for_a_worker_with_all_of_its_tags() {
    let job = job(&["eu", "gpu"], 0);
    let some = cluster(vec![registered(1, 0, one(&["eu"])), registered(2, 0, one(&["gpu", "us"]))]);
    assert_eq!(some.why_queued(&job), WaitReason::Tags);
    assert_eq!(some.missing_tags(&kind("sum"), &job.placement.tags), []);
    let none = cluster(vec![registered(1, 0, one(&["eu"]))]);
    assert_eq!(none.missing_tags(&kind("sum"), &job.placement.tags), [tag("gpu")]);
    let all = cluster(vec![registered(1, 0, one(&["eu", "gpu"]))]);
    assert_eq!(all.why_queued(&job), WaitReason::Assignment);
}

#[test]
fn a_queued_job_waits_for_the_end_of_a_pause_and_for_a_leader() {
    let mut cluster = cluster(vec![registered(1, 1, one(&[]))]);
    cluster.led = false;
    assert_eq!(cluster.why_queued(&job(&[], 0)), WaitReason::NoLeader);
    let pause = Paused { by: Some("me".into()), note: None, since: None };
    cluster.paused.insert(kind("sum"), pause.clone());
    assert_eq!(cluster.why_queued(&job(&[], 0)), WaitReason::Paused);
    assert_eq!((cluster.paused(&kind("sum")), cluster.paused(&kind("other"))), (Some(&pause), None));
}

#[test]
fn a_queued_job_waits_for_workers_that_are_shunned_only_if_all_with_a_free_slot_are() {
    let until = Some(BEGINNING);
    let shunned =
        |number, assigned| Registered { shunned_until: until, ..registered(number, assigned, one(&[])) };
    let full = cluster(vec![shunned(1, 0), registered(2, 1, one(&[]))]);
    assert_eq!(full.why_queued(&job(&[], 0)), WaitReason::Shunned);
    let free = cluster(vec![shunned(1, 0), registered(2, 0, one(&[]))]);
    assert_eq!(free.why_queued(&job(&[], 0)), WaitReason::Assignment);

    let draining = Registration { draining: true, ..one(&[]) };
    let mixed = cluster(vec![
        shunned(1, 0),
        registered(2, 0, one(&[])),
        Registered { info: Ok(draining), ..shunned(3, 0) },
        Registered { info: Ok(paused()), ..shunned(4, 0) },
    ]);
    let expected =
        Shunned { worker: worker_id(1), node: NodeId::new("by-hand").unwrap(), until: BEGINNING.into() };
    assert_eq!(mixed.shunned(&job(&[], 0)), [expected]);
}

#[test]
fn a_job_that_has_lost_workers_waits_for_a_worker_without_jobs() {
    let slots = || World::registration(&["sum"], 4, &[]);
    let lossy = job(&[], 1);
    assert_ne!(lossy.isolation(), Isolation::Shared);
    let busy = cluster(vec![registered(1, 1, slots()), registered(2, 3, slots())]);
    assert_eq!(busy.why_queued(&lossy), WaitReason::Isolated);
    assert_eq!(busy.why_queued(&job(&[], 0)), WaitReason::Assignment);
    let idle = cluster(vec![registered(1, 1, slots()), registered(2, 0, slots())]);
    assert_eq!(idle.why_queued(&lossy), WaitReason::Assignment);
}

#[test]
fn the_workers_and_slots_for_a_job_are_counted() {
    let infos = [World::registration(&["sum"], 3, &[]), World::registration(&["sum"], 4, &["eu"]), paused()];
    let infos = infos.into_iter().zip(1..).map(|(info, number)| registered(number, 0, info));
    let cluster = cluster(infos.collect());
    assert_eq!(cluster.room(&job(&[], 0)), (2, 7));
    assert_eq!(cluster.room(&job(&["eu"], 0)), (1, 4));
    assert_eq!((cluster.handlers(&kind("sum")), cluster.handlers(&kind("other"))), (3, 0));
    assert!(cluster.lives(worker_id(1)) && !cluster.lives(worker_id(9)));
    assert_eq!(cluster.node(worker_id(1)).unwrap().as_str(), "by-hand");
    assert_eq!(cluster.node(worker_id(9)), None);
}

fn node(version: i32, written: i64) -> Node {
    Node {
        data: Vec::new(),
        version,
        owner: 0,
        created: 1,
        written,
        modified: BEGINNING,
        children: 0,
        children_ever: WrappingCount::default(),
    }
}

#[test]
fn a_worker_is_shunned_after_the_leader_set_its_inbox_until_it_registers_again_or_the_leader_changes() {
    let until = BEGINNING + SHUNNED;
    let look =
        |inbox: Node, epoch: Option<Node>, now| shunned_until(&node(0, 10), &inbox, epoch.as_ref(), now);
    assert_eq!(look(node(1, 12), Some(node(1, 11)), BEGINNING), Some(until));
    assert_eq!(look(node(2, 12), None, BEGINNING), Some(until));
    assert_eq!(look(node(0, 12), None, BEGINNING), None, "the inbox was never set");
    assert_eq!(look(node(1, 9), None, BEGINNING), None, "the worker has registered again");
    assert_eq!(look(node(1, 10), None, BEGINNING), None, "in the same transaction as its registration");
    assert_eq!(look(node(1, 12), Some(node(1, 13)), BEGINNING), None, "another leader");
    assert_eq!(look(node(1, 12), None, WallMillis(until.0 - 1)), Some(until));
    assert_eq!(look(node(1, 12), None, until), None, "the time is over");
    assert_eq!(look(node(1, 12), None, until + SHUNNED), None, "the time is long over");
}

fn epoch(world: &World) {
    let (node, token) = (NodeId::new("n").unwrap(), Uuid::nil());
    let record = EpochRecord { node, session: 5, token, since: BEGINNING };
    world.tree().put(path::EPOCH, wire::encode(&record));
}

#[test]
fn a_leader_stands_while_its_session_owns_a_candidate() {
    let world = World::new();
    let client = world.client();
    let leader = || world.run(client.leader()).unwrap();
    assert_eq!(leader(), None, "no epoch was claimed");
    epoch(&world);
    let view = leader().unwrap();
    assert_eq!((view.epoch, view.session, view.standing, view.beat_at), (1, 5, false, None));

    world.tree().put(&path::candidate("a"), *b"");
    world.tree().stat(&path::candidate("a"), |node| node.owner = 4);
    assert!(!leader().unwrap().standing, "a candidate of another session");
    world.tree().put(&path::candidate("b"), *b"");
    world.tree().stat(&path::candidate("b"), |node| node.owner = 5);
    assert!(leader().unwrap().standing);
    world.tree().delete(&path::candidate("b"));
    world.tree().put(path::LEADER, *b"");
    world.tree().stat(path::LEADER, |node| node.owner = 5);
    world.requests();
    assert!(leader().unwrap().standing, "the only candidate of the strategy `single`");
    assert_eq!(world.requests().len(), 1, "the candidates need not be listed");

    world.tree().put(path::LEADING, *b"");
    assert_eq!(leader().unwrap().beat_at, Some(BEGINNING.into()));
    world.tree().stat(path::LEADING, |node| node.version = 9);
    assert_eq!(leader().unwrap().beat_at, Some(BEGINNING.into()));
}

#[test]
fn workers_are_listed_with_their_jobs() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 3, &["eu"]));
    for n in 0..2 {
        let submitted = world.run(client.submit(crate::Job::new("sum", &n).id(format!("j{n}")))).unwrap();
        world.assign(submitted.id(), worker);
    }
    world.close(
        &crate::client::in_memory::id("j0"),
        worker,
        bellwether_core::job::Ending::Succeeded(Payload::json(*b"1").unwrap()),
    );
    let views = world.run(client.workers()).unwrap();
    let [view] = &views[..] else { panic!("{views:?}") };
    assert_eq!(
        (view.id, view.assigned, view.ended, view.shunned_until),
        (worker, 1, WrappingCount::of(1), None)
    );
    let info = view.info.as_ref().unwrap();
    assert_eq!((info.slots, &info.tags[..], info.draining), (3, &[tag("eu")][..], false));
    // The leader takes an attempt from it.
    world.apply(&[bellwether_core::txn::shun(worker)]);
    assert_eq!(world.run(client.workers()).unwrap()[0].shunned_until, Some((BEGINNING + SHUNNED).into()));
}

#[test]
fn a_drain_whose_reply_is_lost_is_seen_in_the_registration() {
    for lost in [Answer::LoseReply, Answer::LoseRequest] {
        let world = World::new();
        let client = world.client();
        let worker = world.worker(1, &one(&[]));
        world.once(Request::is_write, [lost]);
        assert_eq!(world.run(client.drain_worker(worker)).unwrap(), DrainedWorker::Marked);
        assert!(world.tree().decoded::<Registration>(&path::worker(worker)).draining);
        assert_eq!(world.run(client.drain_worker(worker)).unwrap(), DrainedWorker::Already);
        assert_eq!(world.run(client.drain_worker(worker_id(9))).unwrap(), DrainedWorker::NotFound);
    }
}

#[test]
fn a_worker_that_left_after_a_write_with_an_unknown_outcome_was_changed() {
    let (world, client, worker) = leaving();
    assert_eq!(world.run(client.drain_worker(worker)).unwrap(), DrainedWorker::Marked);
    let (world, client, worker) = leaving();
    let change = WorkerChange::new().slots(0);
    let set = world.run(client.change_worker(worker, &change)).unwrap().unwrap();
    assert_eq!(set.value, WorkerSettings::default().slots(0));
}

/// A worker that leaves after the first write, whose reply is lost.
fn leaving() -> (std::sync::Arc<World>, Client, WorkerId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &one(&[]));
    let mut written = false;
    world.script(move |request, tree| {
        if written && request.gets(&path::worker(worker)) {
            tree.delete(&path::worker(worker));
        }
        match request.is_write() {
            true => {
                written = true;
                Answer::LoseReply
            }
            false => Answer::Serve,
        }
    });
    (world, client, worker)
}

#[test]
fn a_registration_that_changes_during_every_try_is_contended() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &one(&[]));
    world.script(move |request, tree| {
        if request.is_write() {
            tree.stat(&path::worker(worker), |node| node.version += 1);
        }
        Answer::Serve
    });
    let contended = Error::Contended { subject: Subject::Worker(worker), tries: TRIES };
    assert_eq!(world.run(client.drain_worker(worker)), Err(contended.clone()));
    assert_eq!(world.requests().iter().filter(|request| request.is_write()).count(), TRIES as usize);
    let change = &WorkerChange::new().slots(0);
    assert_eq!(world.run(client.change_worker(worker, change)), Err(contended.into()));
}

#[test]
fn settings_of_a_worker_are_written_once_and_only_if_they_change() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &one(&[]));
    let wanted = WorkerSettings::default().slots(0);
    let change = &WorkerChange::new().slots(0);
    world.once(Request::is_write, [Answer::LoseReply]);
    let set = world.run(client.change_worker(worker, change)).unwrap().unwrap();
    assert_eq!(set.value, wanted);
    assert_eq!(world.tree().decoded::<Registration>(&path::worker(worker)).settings.value, wanted);
    assert_eq!(world.tree().get(&path::worker(worker)).unwrap().version, 1);
    assert_eq!(world.run(client.change_worker(worker, change)), Ok(Some(set)));
    assert_eq!(world.tree().get(&path::worker(worker)).unwrap().version, 1, "nothing has changed");
    assert_eq!(world.run(client.change_worker(worker_id(9), change)), Ok(None));

    let invalid = &WorkerChange::new().pause_kinds([kind("other")]);
    let error = world.run(client.change_worker(worker, invalid)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    world.tree().put(&path::worker(worker), *b"?");
    let error = world.run(client.change_worker(worker, change)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreadable);
}

#[test]
fn a_catch_up_waits_for_the_reply_of_the_server() {
    let world = World::new();
    let client = world.client();
    world.run(client.caught_up()).unwrap();
    assert_eq!(world.requests(), [Request::Sync]);
    world.once(|request| *request == Request::Sync, [Answer::Hang]);
    let began = world.now();
    world.run(client.caught_up()).unwrap_err();
    assert_eq!(world.now().since(began), DEADLINE);
}

#[test]
fn the_candidates_are_listed_in_their_order_with_the_leader() {
    let world = World::new();
    let client = world.client();
    let name = |n: u128, sequence: &str| format!("{}-n-{sequence}", Uuid::from_u128(n).hyphenated());
    let names =
        [(name(1, "0000000002"), "b"), (name(2, "0000000001"), "a"), (name(3, "0000000003"), "not a name")];
    for ((name, node), session) in names.into_iter().zip(5..) {
        world.tree().put(&path::candidate(&name), node.as_bytes());
        world.tree().stat(&path::candidate(&name), |node| node.owner = session);
    }
    for foreign in ["foreign", "other"] {
        world.tree().put(&path::candidate(foreign), *b"");
    }
    let list = || world.run(client.candidates()).unwrap();
    let rows = |candidates: &Candidates| {
        let rows = candidates.list.iter().map(|candidate| {
            let node = candidate.node.as_ref().map(ToString::to_string);
            (node, candidate.session, candidate.leads)
        });
        rows.collect::<Vec<_>>()
    };
    let row = |node: Option<&str>, session, leads| (node.map(str::to_owned), session, leads);
    let nobody = list();
    assert_eq!(rows(&nobody), [row(Some("a"), 6, false), row(Some("b"), 5, false), row(None, 7, false)]);
    assert_eq!(nobody.unreadable, 2);
    epoch(&world);
    assert_eq!(rows(&list()), [row(Some("a"), 6, false), row(Some("b"), 5, true), row(None, 7, false)]);
    world.tree().put(path::LEADER, *b"single");
    let with_single = list();
    assert_eq!((with_single.list.len(), with_single.list[0].session), (4, 0));
}
