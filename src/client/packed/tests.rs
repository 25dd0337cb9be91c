//! Members of segments in each state, and members that move between two reads.

use bellwether_core::job::Ending;
use bellwether_core::name::WorkerId;
use bellwether_core::segment::Members;
use bellwether_core::txn;

use super::*;
use crate::client::in_memory::{Answer, Request, World, id, member, members};
use crate::client::view::{JobView, State};
use crate::client::{Client, Retried};

fn stage() -> (Arc<World>, Client, WorkerId, SegmentId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    let segment = world.pack(1, 5);
    (world, client, worker, segment)
}

fn get(world: &World, client: &Client, job: &JobId) -> Option<JobView> {
    world.run(client.get(job)).unwrap()
}

fn lists(requests: &[Request]) -> usize {
    requests.iter().filter(|request| matches!(request, Request::List(_))).count()
}

#[test]
fn a_member_of_a_waiting_segment_is_queued() {
    let (world, client, _, segment) = stage();
    let view = get(&world, &client, &member(segment, 3)).unwrap();
    assert_eq!((view.state, view.generation, view.attempt), (State::Queued, 1, 0));
    assert_eq!(view.payload.unwrap().bytes(), b"3");
    assert!(view.waiting.is_some_and(|waiting| waiting == crate::client::WaitReason::NoLeader));
}

#[test]
fn a_member_of_an_assigned_segment_is_running() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    let view = get(&world, &client, &member(segment, 3)).unwrap();
    assert_eq!((view.state, view.attempt, view.worker), (State::Running, 1, Some(worker)));
    assert_eq!((view.assigned_at, view.waiting), (Some(world.wall().into()), None));
}

#[test]
fn a_member_with_a_result_has_succeeded() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::below(2));
    let view = get(&world, &client, &member(segment, 1)).unwrap();
    assert_eq!((view.state, view.attempt, view.worker), (State::Succeeded, 1, Some(worker)));
    assert_eq!(view.result.unwrap().bytes(), b"10");
    assert_eq!(get(&world, &client, &member(segment, 2)).unwrap().state, State::Running);
}

#[test]
fn an_extracted_member_is_read_from_its_record() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    world.extract_members(segment, worker, Members::below(3));
    let job = member(segment, 0);
    assert_eq!(get(&world, &client, &job).unwrap().state, State::Running);
    world.close(&job, worker, Ending::Failed("boom".into()));
    let view = get(&world, &client, &job).unwrap();
    assert_eq!((view.state, view.error.as_deref()), (State::Delayed, Some("boom")));
}

#[test]
fn a_removed_member_and_a_member_of_no_segment_are_absent() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::below(3));
    world.extract_members(segment, worker, Members::one(3).with(Members::one(4)));
    world.tree().delete(&path::record(&member(segment, 3)));
    let exist = world.run(client.exist(&members(segment))).unwrap();
    assert_eq!(exist, [true, true, true, false, true]);
    assert_eq!(get(&world, &client, &member(segment, 3)), None);
    world.remove_segment(segment);
    assert_eq!(get(&world, &client, &member(segment, 0)), None);
    assert_eq!(
        get(&world, &client, &member(segment, 4)).unwrap().state,
        State::Running,
        "its record is left"
    );
    let exist = world.run(client.exist(&members(segment))).unwrap();
    assert_eq!(exist, [false, false, false, false, true]);
}

#[test]
fn the_id_of_a_segment_is_not_that_of_a_job() {
    let (world, client, _, segment) = stage();
    assert_eq!(get(&world, &client, &segment.job()), None);
    assert_eq!(world.run(client.exist(&[segment.job(), member(segment, 0)])).unwrap(), [false, true]);
    let error = world.run(client.cancel(&segment.job())).unwrap_err();
    assert_eq!(error, crate::client::Error::NotFound(segment.job()));
}

#[test]
fn a_segment_is_read_once_for_all_its_members() {
    let (world, client, worker, segment) = stage();
    let other = world.pack(2, 100);
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::below(3));
    let jobs = members(segment).into_iter().chain(members(other).into_iter().take(90)).collect::<Vec<_>>();
    world.requests();
    let read = world.run(read(&world.zk(), &jobs)).unwrap();
    assert!(read.iter().all(|job| matches!(job, Some(Ok(_)))));
    let requests = world.requests();
    assert_eq!((requests.len(), lists(&requests)), (2, 1), "{requests:?}");
    let views = world.run(client.get_many(&jobs)).unwrap();
    let states = views.into_iter().map(|view| view.unwrap().state).collect::<Vec<_>>();
    assert_eq!(
        states[..6],
        [[State::Succeeded; 3], [State::Running, State::Running, State::Queued]].concat()
    );
    let entry = path::ready_entry(&world.segment(other).waits_at(other));
    let gets = world.requests().into_iter().filter_map(|request| match request {
        Request::Get(paths) => Some(paths.into_iter().filter(|path| *path == entry).count()),
        Request::Commit(_) | Request::List(_) | Request::Glance(_) | Request::Watch | Request::Sync => None,
    });
    assert_eq!(gets.sum::<usize>(), 1, "the entry of a segment is read once");
}

#[test]
fn ordinary_jobs_cost_one_read_as_before() {
    let (world, client, ..) = stage();
    let jobs = ["a", "b"].map(|name| crate::client::job::Job::new("sum", &1).id(name));
    world.run(client.submit_many(jobs, |_| {}));
    world.requests();
    let read = world.run(read(&world.zk(), &["a", "b", "none"].map(id))).unwrap();
    assert_eq!(read.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(world.requests().len(), 1);
}

#[test]
fn a_member_that_is_extracted_after_its_segment_was_listed_is_shown_as_it_was() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    let held = world.held(segment, worker);
    let extract =
        txn::segment::extract_assigned(&held, &world.segment(segment), segment.members(), Members::NONE);
    let mut ops = Some(extract);
    world.script(move |request, tree| {
        if request.gets(&path::segment(segment))
            && let Some(ops) = ops.take()
        {
            tree.apply(&ops).unwrap();
        }
        Answer::Serve
    });
    let view = get(&world, &client, &member(segment, 2)).unwrap();
    assert_eq!(
        (view.state, view.worker),
        (State::Running, Some(worker)),
        "found at its record in a second look"
    );
    assert!(world.requests().iter().any(|request| request.gets(&path::record(&member(segment, 2)))));
}

#[test]
fn a_segment_that_is_removed_between_two_reads_is_looked_for_again() {
    let (world, _, worker, segment) = stage();
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, segment.members());
    let mut once = true;
    world.script(move |request, tree| {
        if request.gets(&path::segment(segment)) && std::mem::take(&mut once) {
            tree.remove_all(&path::segment(segment));
        }
        Answer::Serve
    });
    let read = world.run(read(&world.zk(), &[member(segment, 0), member(segment, 1)])).unwrap();
    assert_eq!(read.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false]);
}

#[test]
fn a_segment_or_chunk_that_cannot_be_read_makes_its_members_unreadable() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::one(0));
    let chunk = world.chunks(segment).of(0).unwrap();
    world.tree().put(&path::segment_chunk(segment, chunk), *b"?");
    let states = |world: &World| {
        let views = [0, 1].map(|number| get(world, &client, &member(segment, number)).unwrap());
        views.map(|view| view.state)
    };
    assert_eq!(states(&world), [State::Quarantined, State::Running]);
    world.tree().put(&path::segment(segment), *b"?");
    assert_eq!(states(&world), [State::Quarantined, State::Quarantined]);
}

#[test]
fn the_members_of_a_quarantined_segment_are_quarantined() {
    let (world, client, worker, segment) = stage();
    world.assign_segment(segment, worker);
    world.apply(&txn::quarantine(&segment.job(), worker, "why"));
    let job = member(segment, 0);
    let view = get(&world, &client, &job).unwrap();
    assert_eq!((view.state, view.error.as_deref()), (State::Quarantined, Some("why")));
    let refused = crate::client::Error::Quarantined(job.clone());
    assert_eq!(world.run(client.cancel(&job)), Err(refused));
    assert_eq!(world.run(client.depths()).unwrap().quarantined, usize::from(segment.count()));
}

#[test]
fn a_retry_releases_all_members_of_a_quarantined_segment() {
    for answer in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client, worker, segment) = stage();
        world.assign_segment(segment, worker);
        world.succeed_members(segment, worker, Members::one(1));
        world.apply(&txn::quarantine(&segment.job(), worker, "why"));
        world.once(Request::is_write, [answer]);
        assert_eq!(world.run(client.retry(&member(segment, 0))), Ok(Retried::Released));
        let states = members(segment).into_iter().map(|job| get(&world, &client, &job).unwrap().state);
        let states = states.collect::<Vec<_>>();
        let queued = states.iter().filter(|state| **state == State::Queued).count();
        assert_eq!((states[1], queued), (State::Succeeded, states.len() - 1));
        assert_eq!(world.tree().get(&path::quarantine(&segment.job())), None);
    }
}
