//! Waits for members of segments, with watches and with polls, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::job::Ending;
use bellwether_core::name::WorkerId;
use bellwether_core::segment::Members;

use super::*;
use crate::client::error::WaitError;
use crate::client::in_memory::{Request, World, id, member, members, turn};
use crate::client::job::Job;
use crate::client::view::State;

const WITHIN: Duration = Duration::from_secs(60);

fn stage(count: u8) -> (Arc<World>, Client, WorkerId, SegmentId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    let segment = world.pack(1, count);
    world.assign_segment(segment, worker);
    (world, client, worker, segment)
}

/// Runs a wait, and `then` after its first looks.
fn during<T>(world: &World, wait: impl Future<Output = T>, then: impl FnOnce()) -> T {
    let then = async {
        for _ in 0..3 {
            turn().await;
        }
        then();
    };
    world.run(async { futures::join!(wait, then) }).0
}

#[test]
fn a_chunk_of_results_ends_the_wait_for_its_members() {
    let (world, client, worker, segment) = stage(5);
    let began = world.now();
    let job = member(segment, 2);
    let wait = client.wait_for(&job, 1, WITHIN);
    let view = during(&world, wait, || {
        assert_eq!(world.watched(), 1);
        world.succeed_members(segment, worker, Members::one(0));
        world.succeed_members(segment, worker, Members::one(2));
    });
    let view = view.unwrap();
    assert_eq!((view.state, view.result.unwrap().bytes()), (State::Succeeded, &b"20"[..]));
    assert_eq!((world.now().since(began), world.watched()), (Duration::ZERO, 0));
    assert_eq!(world.run(client.wait(&member(segment, 0), WITHIN)).unwrap().state, State::Succeeded);
}

#[test]
fn a_wait_follows_an_extracted_member_to_its_record() {
    let (world, client, worker, segment) = stage(5);
    let job = member(segment, 2);
    let view = during(&world, client.wait(&job, WITHIN), || {
        world.extract_members(segment, worker, segment.members());
        world.close(&job, worker, Ending::Invalid("bad".into()));
    });
    assert_eq!(view.unwrap().state, State::Dead);
    let open = member(segment, 1);
    let wait = async {
        let end = async {
            client.0.session.sleep(Duration::from_secs(5)).await;
            world.close(&open, worker, Ending::Invalid("bad".into()));
        };
        futures::join!(client.wait(&open, WITHIN), end).0
    };
    assert_eq!(world.run(wait).unwrap().state, State::Dead);
}

#[test]
fn the_waits_of_one_call_share_the_watch_of_a_segment() {
    let (world, client, worker, segment) = stage(40);
    let other = world.pack(2, 4);
    world.run(client.submit(Job::new("sum", &1).id("a"))).unwrap();
    let jobs = [members(segment), members(other), vec![id("a"), segment.job(), id("none")]].concat();
    let mut seen = 0;
    let answers =
        during(&world, client.wait_many(&jobs, Duration::from_secs(5), |count| seen = count), || {
            assert_eq!(world.watched(), 3, "two segments and a record");
            world.succeed_members(segment, worker, Members::below(30));
            world.extract_members(segment, worker, Members::one(30).with(Members::one(31)));
            world.close(&member(segment, 30), worker, Ending::Invalid("bad".into()));
        });
    assert_eq!(seen, jobs.len());
    let states = answers.iter().map(|answer| answer.as_ref().map(|view| view.state).ok());
    let states = states.collect::<Vec<_>>();
    assert_eq!(states[..30], [Some(State::Succeeded); 30]);
    assert_eq!(states[30..], [vec![Some(State::Dead)], vec![None; 16]].concat());
    let last = |at: usize| match &answers[at] {
        Err(WaitError::TimedOut { last: Some(view), .. }) => view.state,
        answer => panic!("{answer:?}"),
    };
    assert_eq!(
        [last(31), last(39), last(40), last(44)],
        [State::Running, State::Running, State::Queued, State::Queued]
    );
    assert!(answers[45..].iter().all(|answer| matches!(answer, Err(WaitError::Client(Error::NotFound(_))))));
}

#[test]
fn a_wait_without_a_free_watch_polls_the_segment() {
    let (world, client, worker, segment) = stage(5);
    client.0.watches.forget_permits(crate::client::MAX_WATCHED);
    let job = member(segment, 2);
    let wait = async {
        let end = async {
            client.0.session.sleep(Duration::from_secs(5)).await;
            assert_eq!(world.watched(), 0);
            world.succeed_members(segment, worker, Members::one(2));
        };
        futures::join!(client.wait(&job, WITHIN), end).0
    };
    assert_eq!(world.run(wait).unwrap().state, State::Succeeded);
}

#[test]
fn a_later_generation_of_a_succeeded_member_has_not_ended() {
    let (world, client, worker, segment) = stage(5);
    world.succeed_members(segment, worker, Members::one(2));
    let job = member(segment, 2);
    let error = world.run(client.wait_for(&job, 2, WITHIN)).unwrap_err();
    assert!(matches!(&error, WaitError::TimedOut { last: None, .. }), "{error:?}");
}

#[test]
fn many_members_cost_a_list_per_segment_and_look() {
    let (world, client, worker, first) = stage(100);
    let rest = (2..=20).map(|unique| world.pack(unique, 100)).collect::<Vec<_>>();
    rest.iter().for_each(|segment| world.assign_segment(*segment, worker));
    let segments = [vec![first], rest].concat();
    let jobs = segments.iter().flat_map(|segment| members(*segment)).collect::<Vec<_>>();
    world.requests();
    let mut seen = 0;
    let wait = async {
        let ends = async {
            client.0.session.sleep(Duration::from_secs(5)).await;
            assert_eq!(world.watched(), 0);
            let requests = world.requests();
            let lists = requests
                .iter()
                .filter(|request| matches!(request, Request::List(paths) if paths.len() == 20));
            assert_eq!(requests.len() - lists.count(), 1, "the segments are read at the first look");
            assert!(requests.len() < 40, "{} requests", requests.len());
            for segment in &segments {
                world.succeed_members(*segment, worker, Members::below(70));
                world.extract_members(*segment, worker, Members::one(70));
                world.succeed_members(*segment, worker, segment.members().without(Members::below(71)));
                world.close(&member(*segment, 70), worker, Ending::Invalid("bad".into()));
            }
        };
        futures::join!(client.wait_many(&jobs, WITHIN, |count| seen = count), ends).0
    };
    let views = world.run(wait);
    assert_eq!((views.len(), seen), (2_000, 2_000));
    for (answer, job) in views.iter().zip(&jobs) {
        let view = answer.as_ref().unwrap();
        let number = MemberId::of_job(job).unwrap().number;
        let state = if number == 70 { State::Dead } else { State::Succeeded };
        assert_eq!((&view.id, view.state), (job, state));
    }
    // At most one pause passed before the look: a list, two batches of 20 segments and 40 chunks, and 20 records.
    let requests = world.requests();
    assert!(requests.len() < 10, "{requests:?}");
}

#[test]
fn members_of_an_absent_segment_are_not_found_and_a_late_segment_is_found() {
    let (world, client, worker, segment) = stage(100);
    let late = members(segment);
    let absent = SegmentId::new(uuid::Uuid::from_u128(9), 100, 1_000).unwrap();
    world.succeed_members(segment, worker, segment.members());
    let tree = path::segment(segment);
    let chunk = path::segment_chunk(segment, world.chunks(segment).of(0).unwrap());
    let body = world.tree().get(&tree).unwrap().data;
    let results = world.tree().get(&chunk).unwrap().data;
    for jobs in [vec![late[0].clone(), member(absent, 0)], [late.clone(), members(absent)].concat()] {
        world.tree().remove_all(&tree);
        // The server lags behind until it is synced.
        world.script({
            let (tree_path, chunk, body, results) =
                (tree.clone(), chunk.clone(), body.clone(), results.clone());
            move |request, tree| {
                if *request == Request::Sync && tree.get(&tree_path).is_none() {
                    tree.put(&tree_path, body.clone());
                    tree.put(&chunk, results.clone());
                }
                crate::client::in_memory::Answer::Serve
            }
        });
        let answers = world.run(client.wait_many(&jobs, WITHIN, |_| {}));
        let (found, lost) = answers.split_at(jobs.len() / 2);
        assert!(found.iter().all(|answer| answer.as_ref().unwrap().state == State::Succeeded));
        assert!(lost.iter().all(|answer| matches!(answer, Err(WaitError::Client(Error::NotFound(_))))));
    }
}

#[test]
fn a_segment_that_cannot_be_read_ends_the_waits_for_its_members() {
    let (world, client, _, segment) = stage(100);
    let mut newer = world.tree().get(&path::segment(segment)).unwrap().data;
    world.tree().put(&path::segment(segment), *b"?");
    for jobs in [members(segment), members(segment)[..3].to_vec()] {
        let answers = world.run(client.wait_many(&jobs, WITHIN, |_| {}));
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap().state == State::Quarantined));
    }
    // The version of the schema.
    newer[4] = 9;
    world.tree().put(&path::segment(segment), newer);
    let error = world.run(client.wait(&member(segment, 0), WITHIN)).unwrap_err();
    assert!(matches!(&error, WaitError::Client(Error::Unreadable { .. })), "{error:?}");
}
