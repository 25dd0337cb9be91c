//! The outcome of each submission of a round.

use bellwether_core::budget::{MAX_BUCKET_ENTRIES, MAX_MINUTES};
use bellwether_core::job::{JobState, Payload};
use bellwether_core::path::SubBucket;
use bellwether_core::txn::Op;
use std::time::Duration;

use super::*;
use crate::client::Client;
use crate::client::in_memory::{Answer, DEADLINE, Link, Request, Tree, World, id, kind};
use crate::client::job::Job;
use bellwether_core::job::identity::IfExists;

fn job(name: &str) -> Job {
    Job::new("sum", &1).id(name)
}

fn again(name: &str) -> Job {
    job(name).if_exists(IfExists::Again)
}

fn writes(world: &World) -> Vec<Vec<String>> {
    let paths = |request: Request| match request {
        Request::Commit(ops) => Some(ops.iter().map(|op| op.path().to_owned()).collect()),
        Request::Get(_) | Request::List(_) | Request::Glance(_) | Request::Watch | Request::Sync => None,
    };
    world.requests().into_iter().filter_map(paths).collect()
}

fn ended(world: &World, client: &Client, name: &str) {
    world.run(client.submit(job(name))).unwrap();
    world.run(client.cancel(&id(name))).unwrap();
    world.requests();
}

#[test]
fn a_job_is_refused_only_if_it_was_certainly_not_applied() {
    let (mut jobs, mut answers): (Vec<_>, Vec<_>) = (0..2).map(|_| Submission::sample()).unzip();
    jobs[0].maybe = true;
    assert!(refuse(jobs, &Reason::Refused("throttled".into())).is_empty());
    answers[0].try_recv().expect_err("a job that may have been applied is not answered");
    let answer = answers[1].try_recv().unwrap();
    assert!(matches!(answer.reply, Err(SubmitError::Refused { .. })));
}

#[test]
fn at_the_end_of_the_client_a_job_is_not_sent_only_if_it_was_certainly_not_applied() {
    let (mut jobs, mut answers): (Vec<_>, Vec<_>) = (0..2).map(|_| Submission::sample()).unzip();
    jobs[0].maybe = true;
    end(Load { segments: Vec::new(), jobs }, &Unavailable::Closed);
    answers[0].try_recv().expect_err("a job that may have been applied is not answered");
    let answer = answers[1].try_recv().unwrap();
    assert!(matches!(answer.reply, Err(SubmitError::NotSent { reason: Unavailable::Closed, .. })));
}

#[test]
fn a_caller_can_give_up_a_job_that_was_not_sent_unless_an_earlier_copy_may_be_applied() {
    for (maybe, can_give_up) in [(false, true), (true, false)] {
        let (mut job, _answer) = Submission::sample();
        job.maybe = maybe;
        assert!(job.gate.send(SentAs::Record));
        job.unsent();
        assert_eq!(job.gate.abandon().is_ok(), can_give_up);
    }
}

/// S1, S11
#[test]
fn an_existing_record_is_matched_by_token_then_by_kind_and_payload() {
    type Change = fn(&mut JobRecord);
    type IsRight = fn(&super::super::submission::Reply) -> bool;
    let other = |there: &mut JobRecord| {
        there.token = uuid::Uuid::nil();
        there.payload = Payload::json(*b"2").unwrap();
    };
    let table: [(Change, IsRight); 4] = [
        (|_| {}, |reply| matches!(reply, Ok(Accepted::New))),
        (|there| there.token = uuid::Uuid::nil(), |reply| matches!(reply, Ok(Accepted::Same))),
        (other, |reply| matches!(reply, Err(SubmitError::Conflict { same_kind: true, .. }))),
        (
            |there| {
                there.token = uuid::Uuid::nil();
                there.kind = kind("product");
            },
            |reply| matches!(reply, Err(SubmitError::Conflict { same_kind: false, .. })),
        ),
    ];
    for (change, is_right) in table {
        let (job, mut answer) = Submission::sample();
        let mut there = job.record.clone();
        change(&mut there);
        assert!(decide(job, &node(&there)).is_none());
        let reply = answer.try_recv().unwrap().reply;
        assert!(is_right(&reply), "{reply:?}");
    }
}

fn node(record: &JobRecord) -> Node {
    Node {
        data: wire::encode(record),
        version: 3,
        owner: 0,
        created: 1,
        written: 1,
        modified: record.submitted_at,
        children: 0,
        children_ever: bellwether_zk::WrappingCount::default(),
    }
}

#[test]
fn stored_bytes_that_are_known_to_be_equal_are_the_payload_of_the_job() {
    let stored = Payload::json(*b"2").unwrap();
    for (equal, is_same) in
        [(Some(stored.clone()), true), (Some(Payload::json(*b"3").unwrap()), false), (None, false)]
    {
        let (mut job, mut answer) = Submission::sample();
        let there = JobRecord { token: uuid::Uuid::nil(), payload: stored.clone(), ..job.record.clone() };
        job.equal = equal;
        assert!(decide(job, &node(&there)).is_none());
        let answer = answer.try_recv().unwrap();
        assert_eq!(answer.reply.is_ok(), is_same, "{:?}", answer.reply);
        assert_eq!(answer.differs.is_some(), !is_same, "the caller compares the plain payloads");
    }
}

#[test]
fn a_record_that_cannot_be_read_is_reported_with_its_reason() {
    let world = World::new();
    let client = world.client();
    world.tree().put(&path::record(&id("a")), *b"?");
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(matches!(error, SubmitError::Unreadable { .. }), "{error:?}");
}

#[test]
fn jobs_with_one_id_are_sent_one_after_the_other() {
    let world = World::new();
    let client = world.client();
    let jobs = [job("a").lane("l"), job("a").lane("l"), job("b").lane("l"), job("c")];
    let accepted = world.run(client.submit_many(jobs, |_| {}));
    let accepted = accepted.into_iter().map(|job| job.unwrap().accepted()).collect::<Vec<_>>();
    assert_eq!(accepted, [Accepted::New, Accepted::Same, Accepted::New, Accepted::New]);
    let records = |paths: &Vec<String>| {
        let records = paths.iter().filter(|path| path.starts_with("/jobs/"));
        records.map(|path| path.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let writes = writes(&world).iter().map(records).collect::<Vec<_>>();
    assert_eq!(writes[0], ["a", "c"], "the lane waits for the second job with the id");
    assert_eq!(writes.last().unwrap(), &["b"]);
}

#[test]
fn a_lost_reply_is_resolved_by_reading_back() {
    for (lost, copies) in [(Answer::LoseReply, 1), (Answer::LoseRequest, 2)] {
        let world = World::new();
        let client = world.client();
        world.once(Request::is_write, [lost]);
        let submitted = world.run(client.submit(job("a"))).unwrap();
        assert_eq!((submitted.accepted(), submitted.generation()), (Accepted::New, 1));
        assert_eq!(writes(&world).len(), copies);
        let entry = world.tree().entry(&id("a"));
        assert!(world.tree().get(&entry).is_some());
    }
}

#[test]
fn a_read_back_that_is_lost_is_repeated_and_one_that_is_refused_leaves_the_outcome_unknown() {
    let world = World::new();
    let client = world.client();
    let answers = [Answer::LoseReply, Answer::LoseReply, Answer::LoseRequest];
    world.once(|request| request.is_write() || request.gets(&path::record(&id("a"))), answers);
    assert_eq!(world.run(client.submit(job("a"))).unwrap().accepted(), Accepted::New);

    let refused = Answer::Refuse(0, Reason::NoAuth);
    world.once(
        |request| request.is_write() || request.gets(&path::record(&id("b"))),
        [Answer::LoseReply, refused],
    );
    let error = world.run(client.submit(job("b"))).unwrap_err();
    assert!(matches!(error, SubmitError::Unknown { repeatable: true, .. }), "{error:?}");
}

#[test]
fn a_job_is_refused_with_the_reason_of_the_server_and_others_of_its_round_are_sent_again() {
    let world = World::new();
    let client = world.client();
    world.once(Request::is_write, [Answer::Refuse(3, Reason::NoAuth)]);
    let answers = world.run(client.submit_many([job("a"), job("b"), job("c")], |_| {}));
    let [Ok(_), Err(SubmitError::Refused { id: refused, reason: Reason::NoAuth }), Ok(_)] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert_eq!(refused, &id("b"));
    assert!(world.tree().get(&path::record(&id("b"))).is_none());
    assert!(world.tree().get(&path::record(&id("c"))).is_some());
}

#[test]
fn a_bucket_that_was_deleted_refuses_the_job() {
    let world = World::new();
    let client = world.client();
    world.tree().delete(&SubBucket::of(&id("a")).path());
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(matches!(error, SubmitError::Refused { reason: Reason::NoNode, .. }), "{error:?}");
}

#[test]
fn a_record_that_exists_and_cannot_be_found_is_refused_after_a_few_tries() {
    let world = World::new();
    let client = world.client();
    world.once(Request::is_write, vec![Answer::Refuse(0, Reason::NodeExists); 100]);
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(matches!(error, SubmitError::Refused { reason: Reason::NodeExists, .. }), "{error:?}");
    assert_eq!(writes(&world).len(), MAX_UNEXPLAINED as usize);
}

#[test]
fn an_ended_job_is_opened_again_at_the_version_that_it_has() {
    let world = World::new();
    let client = world.client();
    ended(&world, &client, "a");
    let mut rewritten = false;
    world.script(move |request, tree: &mut Tree| {
        let is_reopening =
            matches!(request, Request::Commit(ops) if ops.iter().any(|op| matches!(op, Op::Set { .. })));
        if is_reopening && !std::mem::replace(&mut rewritten, true) {
            tree.update(&path::record(&id("a")), |record: JobRecord| record);
        }
        Answer::Serve
    });
    let submitted = world.run(client.submit(again("a"))).unwrap();
    assert_eq!((submitted.accepted(), submitted.generation()), (Accepted::Again(2), 2));
    assert_eq!(world.record(&id("a")).generation, 2);
    assert_eq!(writes(&world).len(), 3, "as a new job, at the version that was read, and at the newer one");
}

#[test]
fn an_ended_job_that_is_removed_before_it_is_opened_again_is_a_new_job() {
    let world = World::new();
    let client = world.client();
    ended(&world, &client, "a");
    let mut removed = false;
    world.script(move |request, tree: &mut Tree| {
        let is_reopening =
            matches!(request, Request::Commit(ops) if ops.iter().any(|op| matches!(op, Op::Set { .. })));
        if is_reopening && !std::mem::replace(&mut removed, true) {
            tree.delete(&path::record(&id("a")));
        }
        Answer::Serve
    });
    let submitted = world.run(client.submit(again("a"))).unwrap();
    assert_eq!((submitted.accepted(), submitted.generation()), (Accepted::New, 1));
    assert_eq!(world.record(&id("a")).generation, 1);
}

#[test]
fn a_full_bucket_refuses_new_jobs_but_not_those_that_may_be_in_it() {
    let world = World::new();
    let client = world.client();
    let fill = |tree: &mut Tree| {
        tree.stat(&SubBucket::of(&id("a")).path(), |node| node.children = MAX_BUCKET_ENTRIES)
    };
    let mut sent = false;
    world.script(move |request, tree| match request.is_write() && !std::mem::replace(&mut sent, true) {
        true => {
            fill(tree);
            Answer::LoseRequest
        }
        false => Answer::Serve,
    });
    // The counts are read again when they are old.
    let submission = async {
        let submitted = client.submit(job("a")).await;
        submitted.unwrap().accepted()
    };
    assert_eq!(world.run(submission), Accepted::New);

    let world = World::new();
    let client = world.client();
    fill(&mut world.tree());
    let error = world.run(client.submit(job("a"))).unwrap_err();
    let SubmitError::Overloaded { entries, .. } = error else { panic!("{error:?}") };
    assert_eq!(entries, MAX_BUCKET_ENTRIES);
    assert!(writes(&world).is_empty());
}

#[test]
fn an_ended_job_in_a_full_bucket_is_opened_again() {
    let world = World::new();
    let client = world.client();
    ended(&world, &client, "a");
    // An older copy of the counts would be used otherwise.
    world.pass(Duration::from_secs(60));
    world.tree().stat(&SubBucket::of(&id("a")).path(), |node| node.children = MAX_BUCKET_ENTRIES - 1);
    assert_eq!(world.run(client.submit(again("a"))).unwrap().accepted(), Accepted::Again(2));
}

#[test]
fn a_full_minute_refuses_more_jobs_and_a_further_minute_is_refused_at_the_limit_of_minutes() {
    let hour = Duration::from_secs(3_600);
    let later = || job("a").delay(hour);
    let minute = |world: &World| (world.wall() + hour).minute();

    let world = World::new();
    let client = world.client();
    let path = path::delayed_minute(minute(&world));
    world.tree().put(&path, *b"");
    world.tree().stat(&path, |node| node.children = MAX_BUCKET_ENTRIES);
    let error = world.run(client.submit(later())).unwrap_err();
    assert!(matches!(error, SubmitError::MinuteFull { entries: MAX_BUCKET_ENTRIES, .. }), "{error:?}");

    let world = World::new();
    let client = world.client();
    world.tree().stat(path::DELAYED, |node| node.children = MAX_MINUTES);
    let error = world.run(client.submit(later())).unwrap_err();
    assert!(matches!(error, SubmitError::TooManyMinutes { minutes: MAX_MINUTES, .. }), "{error:?}");
    let path = path::delayed_minute(minute(&world));
    let world = World::new();
    let client = world.client();
    world.tree().put(&path, *b"");
    world.tree().stat(path::DELAYED, |node| node.children = MAX_MINUTES);
    world.run(client.submit(later())).unwrap();
    assert_eq!(world.record(&id("a")).state, JobState::Open { not_before: Some(world.wall() + hour) });
}

#[test]
fn a_submission_without_a_session_is_not_sent_and_one_without_a_reply_is_unknown() {
    let world = World::new();
    let client = world.client();
    world.link(Link::Down);
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(
        matches!(&error, SubmitError::NotSent { reason: Unavailable::NotInTime { .. }, .. }),
        "{error:?}"
    );
    world.link(Link::Up);
    world.turn();
    assert!(writes(&world).is_empty(), "and is never sent");

    world.once(Request::is_write, [Answer::Hang]);
    for (submission, repeatable) in [(job("a"), true), (again("b"), false), (Job::new("sum", &1), false)] {
        let world = World::new();
        let client = world.client();
        world.once(Request::is_write, [Answer::Hang]);
        let error = world.run(client.submit(submission)).unwrap_err();
        let SubmitError::Unknown { repeatable: said, within, .. } = error else { panic!("{error:?}") };
        assert_eq!((said, within), (repeatable, DEADLINE));
    }
}

#[test]
fn a_closed_client_sends_nothing() {
    let world = World::new();
    let client = world.client();
    world.link(Link::Closed);
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(matches!(error, SubmitError::NotSent { reason: Unavailable::Closed, .. }), "{error:?}");
}

#[test]
fn a_refused_read_of_the_counts_refuses_the_round_and_a_lost_one_is_repeated() {
    let world = World::new();
    let client = world.client();
    let counts = |request: &Request| request.gets(&SubBucket::of(&id("a")).path());
    world.once(counts, [Answer::LoseRequest]);
    world.run(client.submit(job("a"))).unwrap();

    let world = World::new();
    let client = world.client();
    world.once(counts, [Answer::Refuse(0, Reason::NoAuth)]);
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(matches!(error, SubmitError::Refused { reason: Reason::NoAuth, .. }), "{error:?}");
}

#[test]
fn an_abandoned_submission_is_not_sent() {
    let world = World::new();
    let client = world.client();
    let abandoned = client.submit(job("a"));
    let both = async {
        let mut abandoned = Box::pin(abandoned);
        assert!(futures::poll!(&mut abandoned).is_pending());
        drop(abandoned);
        client.submit(job("b")).await.unwrap();
    };
    world.run(both);
    assert!(world.tree().get(&path::record(&id("a"))).is_none());
}
