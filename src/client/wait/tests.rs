//! Waits with watches and with polls, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether_core::job::Payload;
use bellwether_core::outcome::Reason;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::wire::WireError;

use super::*;
use crate::client::in_memory::{Answer, Link, Request, World, id};
use crate::client::job::Job;

const WITHIN: Duration = Duration::from_secs(60);

fn submitted(world: &World, client: &Client, count: usize) -> Vec<JobId> {
    let jobs = (0..count).map(|n| Job::new("sum", &n).id(format!("j{n}")));
    let answers = world.run(client.submit_many(jobs, |_| {}));
    let ids = answers.into_iter().map(|job| job.unwrap().id().clone()).collect();
    world.requests();
    ids
}

fn end(world: &World, job: &JobId) {
    let entry = world.tree().entry(job);
    world.tree().update(&path::record(job), |record: JobRecord| record.cancel(WallMillis(2_000)));
    world.tree().delete(&entry);
    world.notify();
}

fn reads(world: &World) -> usize {
    world.requests().iter().filter(|request| matches!(request, Request::Get(_) | Request::Glance(_))).count()
}

#[test]
fn a_view_belongs_to_a_wait_for_its_generation_or_an_earlier_one() {
    let record = JobRecord::new(
        crate::client::in_memory::kind("sum"),
        Payload::json(*b"1").unwrap(),
        uuid::Uuid::nil(),
        WallMillis(1),
    );
    let view = |generation| JobView::of(id("a"), JobRecord { generation, ..record.clone() });
    assert_eq!([1, 2, 3].map(|generation| is_of(&view(generation), 2)), [false, true, true]);
    assert!(is_of(&JobView::unreadable(id("a"), &WireError::Magic), 2), "its generation is not known");
}

#[test]
fn a_round_over_all_open_jobs_takes_a_second() {
    let second = Duration::from_secs(1);
    assert_eq!(turn(400, 400), second);
    assert_eq!(turn(400, 401), second / 2);
    assert_eq!(turn(400, 4_000), second / 10);
    assert_eq!(turn(400, 100), second);
    assert_eq!(turn(0, 5), second / 5);
    assert_eq!(turn(0, 0), second);
    assert_eq!(turn(1, 10_000_000), Duration::from_millis(1));
}

#[test]
fn an_end_is_seen_through_the_watch_at_once() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 2);
    let began = world.now();
    let wait = async {
        let both = async {
            // After the first looks.
            crate::client::in_memory::turn().await;
            assert_eq!(world.watched(), 2);
            jobs.iter().for_each(|job| end(&world, job));
        };
        let mut seen = Vec::new();
        let (views, ()) = futures::join!(client.wait_many(&jobs, WITHIN, |count| seen.push(count)), both);
        (views, seen)
    };
    let (views, seen) = world.run(wait);
    assert!(views.iter().all(|view| view.as_ref().unwrap().state == State::Cancelled));
    assert_eq!((seen, world.now().since(began), world.watched()), (vec![1, 2], Duration::ZERO, 0));
}

#[test]
fn a_wait_reports_the_last_state_of_an_open_job_at_its_end() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 1);
    let began = world.now();
    let error = world.run(client.wait(&jobs[0], WITHIN)).unwrap_err();
    assert_eq!(world.now().since(began), WITHIN);
    let WaitError::TimedOut { last: Some(last), within, .. } = &error else { panic!("{error:?}") };
    assert_eq!((last.state, *within), (State::Queued, WITHIN));
    let errors = world.run(client.wait_many(&jobs, WITHIN, |_| {}));
    assert!(matches!(&errors[0], Err(WaitError::TimedOut { last: Some(_), .. })));
    let absent = world.run(client.wait(&id("none"), WITHIN)).unwrap_err();
    assert!(matches!(&absent, WaitError::Client(Error::NotFound(_))), "{absent:?}");
    world.link(Link::Down);
    let error = world.run(client.wait(&jobs[0], WITHIN)).unwrap_err();
    assert!(
        matches!(&error, WaitError::Client(Error::Unavailable(_))),
        "the job was not looked at: {error:?}"
    );
}

#[test]
fn a_wait_for_a_generation_does_not_end_with_an_earlier_one() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 1);
    end(&world, &jobs[0]);
    assert_eq!(world.run(client.wait_for(&jobs[0], 1, WITHIN)).unwrap().generation, 1);
    let error = world.run(client.wait_for(&jobs[0], 2, WITHIN)).unwrap_err();
    assert!(matches!(&error, WaitError::TimedOut { last: None, .. }), "{error:?}");
    let again = Job::new("sum", &0).id("j0").if_exists(crate::client::IfExists::Again);
    let handle = world.run(client.submit(again)).unwrap();
    end(&world, &jobs[0]);
    let views = world.run(client.wait_for_many(&[handle], WITHIN, |_| {}));
    assert_eq!(views[0].as_ref().unwrap().generation, 2);
}

#[test]
fn a_wait_looks_for_an_absent_job_again_after_the_server_has_caught_up() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 1);
    end(&world, &jobs[0]);
    let ended = world.tree().get(&path::record(&jobs[0])).unwrap().data;
    let late = path::record(&id("late"));
    world.script({
        let late = late.clone();
        move |request, tree| {
            if *request == Request::Sync {
                tree.put(&late, ended.clone());
            }
            Answer::Serve
        }
    });
    let watched = world.run(client.wait(&id("late"), WITHIN)).unwrap();
    assert_eq!(watched.state, State::Cancelled);
    world.tree().delete(&late);
    // Without a free watch the wait polls.
    client.0.watches.forget_permits(MAX_WATCHED);
    let polled = world.run(client.wait(&id("late"), WITHIN)).unwrap();
    assert_eq!(polled.state, State::Cancelled);
}

#[test]
fn a_record_that_cannot_be_read_ends_a_wait_unless_a_newer_build_wrote_it() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 1);
    let mut newer = world.tree().get(&path::record(&jobs[0])).unwrap().data;
    world.tree().put(&path::record(&jobs[0]), *b"?");
    assert_eq!(world.run(client.wait(&jobs[0], WITHIN)).unwrap().state, State::Quarantined);
    // The version of the schema.
    newer[4] = 9;
    world.tree().put(&path::record(&jobs[0]), newer);
    let error = world.run(client.wait(&jobs[0], WITHIN)).unwrap_err();
    let WaitError::Client(Error::Unreadable { reason, .. }) = &error else { panic!("{error:?}") };
    assert!(reason.is_newer(), "{reason}");
}

#[test]
fn more_waits_than_watches_poll_until_one_is_free() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, MAX_WATCHED + 1);
    let waits = jobs.iter().map(|job| client.wait(job, WITHIN)).collect::<Vec<_>>();
    let looks = Arc::new(AtomicUsize::new(0));
    let late = path::record(&jobs[MAX_WATCHED]);
    world.script({
        let looks = Arc::clone(&looks);
        move |request, _| {
            looks.fetch_add(usize::from(request.gets(&late)), Ordering::SeqCst);
            Answer::Serve
        }
    });
    let ending = async {
        client.0.session.sleep(Duration::from_secs(10)).await;
        assert_eq!(world.watched(), MAX_WATCHED);
        jobs.iter().for_each(|job| end(&world, job));
    };
    let (views, ()) = world.run(async { futures::join!(join_all(waits), ending) });
    assert!(views.iter().all(|view| view.as_ref().unwrap().state == State::Cancelled));
    // The pauses double from 5 ms up to 250 ms.
    let looks = looks.load(Ordering::SeqCst);
    assert!((40..60).contains(&looks), "{looks} looks in ten seconds");
}

#[test]
fn many_jobs_are_polled_in_batches_without_watches() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 450);
    let mut seen = 0;
    let ending = async {
        client.0.session.sleep(Duration::from_secs(5)).await;
        assert_eq!(world.watched(), 0);
        // Two pages at least: half of the jobs, then the rest.
        jobs.iter().take(200).for_each(|job| end(&world, job));
        client.0.session.sleep(Duration::from_secs(5)).await;
        jobs.iter().skip(200).for_each(|job| end(&world, job));
    };
    let began = world.now();
    let (views, ()) =
        world.run(async { futures::join!(client.wait_many(&jobs, WITHIN, |count| seen = count), ending) });
    assert_eq!((views.len(), seen), (450, 450));
    assert!(views.iter().all(|view| view.as_ref().unwrap().state == State::Cancelled));
    let ids = views.iter().map(|view| view.as_ref().unwrap().id.clone()).collect::<Vec<_>>();
    assert_eq!(ids, jobs, "in the order of the request");
    assert!(world.now().since(began) <= Duration::from_secs(11));
    let sizes = world.requests().into_iter().filter_map(|request| match request {
        Request::Get(paths) => Some(paths.len()),
        Request::Commit(_) | Request::List(_) | Request::Glance(_) | Request::Watch | Request::Sync => None,
    });
    let sizes = sizes.collect::<Vec<_>>();
    assert_eq!(sizes[..5], [100, 100, 100, 100, 100], "four pages, and the next look");
    // A look of four pages each 250 ms, for ten seconds.
    assert!((150..260).contains(&sizes.len()), "{} reads", sizes.len());
}

#[test]
fn polled_jobs_that_do_not_end_in_time_have_timed_out() {
    let world = World::new();
    let client = world.client();
    let mut jobs = submitted(&world, &client, MAX_WATCHED + 1);
    end(&world, &jobs[0]);
    jobs.push(id("none"));
    let began = world.now();
    let mut seen = Vec::new();
    let answers = world.run(client.wait_many(&jobs, WITHIN, |count| seen.push(count)));
    assert_eq!(world.now().since(began), WITHIN);
    assert_eq!(seen, [1, 2], "the ended and the absent one");
    assert!(matches!(&answers[0], Ok(view) if view.state == State::Cancelled));
    assert!(matches!(&answers[1], Err(WaitError::TimedOut { last: None, .. })), "{:?}", answers[1]);
    assert!(matches!(&answers[MAX_WATCHED + 1], Err(WaitError::Client(Error::NotFound(_)))));
    world.once(|request| matches!(request, Request::Get(_)), [Answer::Refuse(0, Reason::NoAuth)]);
    let refused = world.run(client.wait_many(&jobs, WITHIN, |_| {}));
    assert!(refused.iter().all(|answer| matches!(answer, Err(WaitError::Client(Error::Refused(_))))));
}

#[test]
fn jobs_of_many_that_end_one_after_the_other_are_looked_for_without_pause() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 450);
    // Most of a page end before each look.
    let mut next = 0;
    world.script(move |request, tree| {
        if matches!(request, Request::Get(paths) if paths[0].starts_with("/jobs/")) {
            for n in next..(next + 90).min(450) {
                tree.update(&path::record(&id(format!("j{n}"))), |record: JobRecord| {
                    record.cancel(WallMillis(2_000))
                });
            }
            next += 90;
        }
        Answer::Serve
    });
    let began = world.now();
    world.run(client.wait_many(&jobs, WITHIN, |_| {}));
    assert!(world.now().since(began) <= 3 * SHORTEST_PAUSE, "{:?}", world.now().since(began));
    assert!(reads(&world) < 20);
}

#[test]
fn jobs_of_which_few_end_are_looked_for_with_pauses() {
    let world = World::new();
    let client = world.client();
    let jobs = submitted(&world, &client, 450);
    // A tenth of each page ends before its look.
    let mut next = 0;
    world.script(move |request, tree| {
        if matches!(request, Request::Get(paths) if paths[0].starts_with("/jobs/")) {
            for n in next..(next + 10).min(450) {
                tree.update(&path::record(&id(format!("j{n}"))), |record: JobRecord| {
                    record.cancel(WallMillis(2_000))
                });
            }
            next += 10;
        }
        Answer::Serve
    });
    let began = world.now();
    let answers = world.run(client.wait_many(&jobs, WITHIN, |_| {}));
    assert!(answers.iter().all(Result::is_ok));
    assert!(world.now().since(began) >= 5 * SHORTEST_PAUSE, "{:?}", world.now().since(began));
}
