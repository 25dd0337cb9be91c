//! Cancelling and retrying with lost replies and races.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::job::Ending;
use bellwether_core::outcome::Reason;
use bellwether_core::path;
use bellwether_core::segment::{Members, SegmentId};

use super::*;
use crate::client::in_memory::{Answer, Request, World, id, member, members};
use crate::client::job::Job;

fn stage(job: Job) -> (Arc<World>, Client) {
    let world = World::new();
    let client = world.client();
    world.run(client.submit(job.id("a"))).unwrap();
    world.requests();
    (world, client)
}

fn sum() -> Job {
    Job::new("sum", &1)
}

fn cancel(world: &World, client: &Client) -> Result<Cancelled, Error> {
    world.run(client.cancel(&id("a")))
}

fn retry(world: &World, client: &Client) -> Result<Retried, Error> {
    world.run(client.retry(&id("a")))
}

#[test]
fn a_waiting_job_is_cancelled_once_and_a_lost_reply_is_read_back() {
    for job in [sum(), sum().lane("l"), sum().delay(Duration::from_secs(60))] {
        for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
            let (world, client) = stage(job.clone());
            world.once(Request::is_write, [lost]);
            assert_eq!(cancel(&world, &client), Ok(Cancelled::Cancelled));
            assert_eq!(cancel(&world, &client), Ok(Cancelled::AlreadyTerminal(State::Cancelled)));
            let changed = world.record(&id("a")).changed.unwrap();
            assert_eq!((changed.what, changed.by.to_string()), (ChangeKind::Cancelled, "tester".to_owned()));
        }
    }
}

#[test]
fn an_end_that_comes_before_an_unknown_cancel_is_reported() {
    let (world, client) = stage(sum());
    world.script(|request, tree| match request.is_write() {
        true => {
            let expired = |record: JobRecord| record.clone().expire(record.submitted_at);
            let entry = tree.entry(&id("a"));
            tree.update(&path::record(&id("a")), expired);
            tree.delete(&entry);
            Answer::LoseRequest
        }
        false => Answer::Serve,
    });
    assert_eq!(cancel(&world, &client), Ok(Cancelled::AlreadyTerminal(State::Dead)));
}

#[test]
fn a_running_job_is_asked_to_stop_once() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client) = stage(sum());
        let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
        world.assign(&id("a"), worker);
        world.once(Request::is_write, [lost]);
        assert_eq!(cancel(&world, &client), Ok(Cancelled::Requested(worker)));
        let assignment: Assignment = world.tree().decoded(&path::assignment(worker, &id("a")));
        assert!(assignment.cancel && assignment.cancelled.is_some());
        world.requests();
        assert_eq!(cancel(&world, &client), Ok(Cancelled::Requested(worker)));
        assert!(!world.requests().iter().any(Request::is_write), "it was asked already");
        world.tree().put(&path::assignment(worker, &id("a")), *b"?");
        assert!(matches!(cancel(&world, &client), Err(Error::Unreadable { .. })));
    }
}

#[test]
fn a_cancel_does_not_touch_a_later_generation() {
    let (world, client) = stage(sum());
    // Between the read and the write another client cancels the job and retries it.
    let other = world.client();
    let raced = Arc::new(std::sync::atomic::AtomicBool::new(false));
    world.script({
        let raced = Arc::clone(&raced);
        move |request, tree| {
            if request.is_write() && !raced.swap(true, std::sync::atomic::Ordering::SeqCst) {
                tree.update_waiting(&id("a"), |record| {
                    let at = record.submitted_at;
                    record.cancel(at).reopen()
                });
            }
            Answer::Serve
        }
    });
    let contended = Error::Contended { subject: Subject::Job(id("a")), tries: TRIES };
    assert_eq!(cancel(&world, &client), Err(contended));
    assert_eq!(world.requests().iter().filter(|request| request.is_write()).count(), 1);
    assert_eq!(cancel(&world, &other), Ok(Cancelled::Cancelled));
}

#[test]
fn parts_of_an_end_that_are_done_are_left_out_of_a_cancel() {
    // An operator has deleted the turn of the job, or the lane.
    let (world, client) = stage(sum().lane("l"));
    let turn = path::turn(&world.record(&id("a")).turn().unwrap(), &id("a"));
    world.tree().delete(&turn);
    assert_eq!(cancel(&world, &client), Ok(Cancelled::Cancelled));
    let (world, client) = stage(sum().lane("l"));
    world.tree().delete(&turn);
    let lane = turn.rsplit_once('/').unwrap().0;
    world.tree().delete(lane);
    assert_eq!(cancel(&world, &client), Ok(Cancelled::Cancelled));

    // A member whose place was removed, whose mark exists, or whose group was removed.
    let member = |change: &dyn Fn(&World)| {
        let world = World::new();
        let client = world.client();
        let group = world.run(client.group(crate::Group::new("sum", "g"))).unwrap();
        let job = world.run(group.submit(0, sum())).unwrap().id().clone();
        change(&world);
        assert_eq!(world.run(client.cancel(&job)), Ok(Cancelled::Cancelled));
        assert!(world.record(&job).is_terminal());
        world
    };
    let ops = |world: &World| {
        let job = bellwether_core::name::JobId::member(
            &crate::client::in_memory::kind("sum"),
            &bellwether_core::name::GroupId::new("g").unwrap(),
            0,
        );
        let record = world.record(&job.clone().unwrap());
        txn::leave_group(&job.unwrap(), &record.cancel(world.wall()))
    };
    let plain = member(&|_| {});
    let group = bellwether_core::name::GroupId::new("g").unwrap();
    let view = plain.run(plain.client().get_group(&group)).unwrap().unwrap();
    assert_eq!((view.open, view.cancelled), (0, 1));
    member(&|world| {
        for op in ops(world) {
            if let Op::Delete { path, .. } = op {
                world.tree().delete(&path);
            }
        }
    });
    member(&|world| {
        for op in ops(world) {
            if let Op::Create { path, data, .. } = op {
                world.tree().put(&path, data);
            }
        }
    });
    member(&|world| {
        for op in ops(world) {
            if let Op::Create { path, .. } = op {
                world.tree().remove_all(path.rsplit_once('/').unwrap().0);
            }
        }
    });
}

#[test]
fn a_job_in_no_place_or_in_quarantine_is_not_cancelled() {
    let (world, client) = stage(sum());
    let entry = world.tree().entry(&id("a"));
    world.tree().delete(&entry);
    let contended = Error::Contended { subject: Subject::Job(id("a")), tries: TRIES };
    assert_eq!(cancel(&world, &client), Err(contended));
    world.tree().put(&path::quarantine(&id("a")), *b"why");
    assert_eq!(cancel(&world, &client), Err(Error::Quarantined(id("a"))));
    assert_eq!(world.run(client.cancel(&id("none"))), Err(Error::NotFound(id("none"))));
    world.tree().put(&path::record(&id("a")), *b"?");
    assert!(matches!(cancel(&world, &client), Err(Error::Unreadable { .. })));
}

#[test]
fn an_ended_job_is_opened_again_once_and_a_lost_reply_is_read_back() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client) = stage(sum());
        cancel(&world, &client).unwrap();
        world.once(Request::is_write, [lost]);
        assert_eq!(retry(&world, &client), Ok(Retried::Reopened(2)));
        assert_eq!(world.record(&id("a")).changed.unwrap().what, ChangeKind::Reopened);
        assert_eq!(retry(&world, &client), Ok(Retried::StillOpen));
        let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
        world.succeed(&id("a"), worker, "1");
        assert_eq!(retry(&world, &client), Ok(Retried::Succeeded));
    }
}

#[test]
fn a_later_generation_resolves_an_unknown_retry() {
    let (world, client) = stage(sum());
    cancel(&world, &client).unwrap();
    // The reply is lost, and two other retries follow.
    world.script(|request, tree| match request.is_write() {
        true => {
            tree.update(&path::record(&id("a")), |record: JobRecord| JobRecord { generation: 4, ..record });
            Answer::LoseRequest
        }
        false => Answer::Serve,
    });
    assert_eq!(retry(&world, &client), Ok(Retried::Reopened(4)));
}

#[test]
fn a_quarantined_job_is_released_after_a_second_look() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client) = stage(sum());
        let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
        world.assign(&id("a"), worker);
        world.apply(&txn::quarantine(&id("a"), worker, "why"));
        world.once(Request::is_write, [lost]);
        world.requests();
        assert_eq!(retry(&world, &client), Ok(Retried::Released));
        let looks = world.requests().iter().filter(|request| request.gets(&path::record(&id("a")))).count();
        assert!(looks >= 2);
        assert_eq!(world.record(&id("a")).changed.unwrap().what, ChangeKind::Released);
        assert!(world.tree().get(&path::quarantine(&id("a"))).is_none());
        let entry = world.tree().entry(&id("a"));
        assert!(world.tree().get(&entry).is_some());
    }
}

#[test]
fn a_job_that_changes_at_each_try_is_contended() {
    let race = |world: &World| {
        world.script(|request, tree| {
            if request.is_write() {
                tree.update(&path::record(&id("a")), |record: JobRecord| record);
            }
            Answer::Serve
        });
    };
    let contended = Error::Contended { subject: Subject::Job(id("a")), tries: TRIES };
    let (world, client) = stage(sum());
    race(&world);
    assert_eq!(cancel(&world, &client), Err(contended.clone()));
    assert_eq!(world.requests().iter().filter(|request| request.is_write()).count(), TRIES as usize);
    let (world, client) = stage(sum());
    cancel(&world, &client).unwrap();
    race(&world);
    assert_eq!(retry(&world, &client), Err(contended));
    let (world, client) = stage(sum().max_attempts(1));
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    world.assign(&id("a"), worker);
    world.close(&id("a"), worker, Ending::Failed("boom".into()));
    world.once(Request::is_write, [Answer::Refuse(0, Reason::NoAuth)]);
    assert_eq!(retry(&world, &client), Err(Error::Refused(Reason::NoAuth)));
}

/// A segment of five jobs, and the worker that may get it.
fn packed() -> (Arc<World>, Client, WorkerId, SegmentId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    let segment = world.pack(1, 5);
    (world, client, worker, segment)
}

#[test]
fn a_member_of_a_waiting_segment_is_extracted_and_cancelled() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client, _, segment) = packed();
        let job = member(segment, 2);
        let is_served = matches!(lost, Answer::Serve);
        world.once(Request::is_write, [lost]);
        let began = world.now();
        assert_eq!(world.run(client.cancel(&job)), Ok(Cancelled::Cancelled));
        if is_served {
            assert_eq!(world.now(), began, "an extracted member is cancelled without a pause");
        }
        assert!(world.record(&job).is_terminal());
        let views = world.run(client.get_many(&members(segment))).unwrap();
        let states = views.into_iter().map(|view| view.unwrap().state).collect::<Vec<_>>();
        let open = State::Queued;
        assert_eq!(states, [open, open, State::Cancelled, open, open]);
        assert_eq!(world.run(client.cancel(&job)), Ok(Cancelled::AlreadyTerminal(State::Cancelled)));
        assert_eq!(world.run(client.retry(&job)), Ok(Retried::Reopened(2)));
        assert_eq!(world.run(client.retry(&member(segment, 0))), Ok(Retried::StillOpen));
    }
}

#[test]
fn a_cancel_waits_until_a_member_of_an_assigned_segment_has_a_record() {
    let (world, client, worker, segment) = packed();
    let job = member(segment, 2);
    let extract = txn::segment::extract_assigned;
    // The segment is assigned between the look and the extraction.
    let assign = Assignment::new(1, 0, world.wall());
    let assign = txn::assign(&world.segment(segment).waits_at(segment), worker, &assign, None);
    let mut assign = Some(assign);
    world.script(move |request, tree| {
        if request.is_write()
            && let Some(ops) = assign.take()
        {
            tree.apply(&ops).unwrap();
        }
        Answer::Serve
    });
    let began = world.now();
    let cancel = async {
        let extracted = async {
            client.0.session.sleep(Duration::from_secs(10)).await;
            let ops = extract(
                &world.held(segment, worker),
                &world.segment(segment),
                segment.members(),
                Members::NONE,
            );
            world.apply(&ops);
        };
        futures::join!(client.cancel(&job), extracted).0
    };
    assert_eq!(world.run(cancel), Ok(Cancelled::Requested(worker)));
    let took = world.now().since(began);
    assert!(took < Duration::from_secs(10) + 2 * LONGEST_PAUSE, "{took:?}");
    let assignment: Assignment = world.tree().decoded(&path::assignment(worker, &job));
    assert!(assignment.cancel);
}

#[test]
fn a_member_that_succeeds_during_a_cancel_keeps_its_result() {
    let (world, client, worker, segment) = packed();
    world.assign_segment(segment, worker);
    let job = member(segment, 2);
    let cancel = async {
        let ended = async {
            client.0.session.sleep(Duration::from_millis(100)).await;
            world.succeed_members(segment, worker, Members::one(2));
        };
        futures::join!(client.cancel(&job), ended).0
    };
    assert_eq!(world.run(cancel), Ok(Cancelled::AlreadyTerminal(State::Succeeded)));
    assert!(world.tree().get(&path::record(&job)).is_none(), "nothing was extracted");
    assert_eq!(world.run(client.retry(&job)), Ok(Retried::Succeeded));
}

#[test]
fn a_cancel_of_a_member_that_is_never_extracted_ends_at_its_deadline() {
    let (world, client, worker, segment) = packed();
    world.assign_segment(segment, worker);
    let began = world.now();
    let error = world.run(client.cancel(&member(segment, 2))).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert_eq!(world.now().since(began), crate::client::in_memory::DEADLINE);
}
