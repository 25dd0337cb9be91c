//! The outcome of a segment, and of each of its submissions.

use std::pin::Pin;
use std::sync::Arc;

use bellwether_core::budget::MAX_BUCKET_ENTRIES;
use bellwether_core::metric::JOBS_SUBMITTED;
use bellwether_core::outcome::Reason;
use bellwether_core::path::SubBucket;
use bellwether_core::wire::decode;
use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;
use crate::client::in_memory::{Answer, DEADLINE, Link, Request, Tree, World, id, kind, turn};
use crate::client::{Accepted, Client, Job, JobHandle};

type Handles = Vec<Result<JobHandle, SubmitError>>;

fn stage() -> (Arc<World>, Client) {
    let world = World::new();
    let client = world.client();
    (world, client)
}

fn jobs(count: u32) -> Vec<Job> {
    (0..count).map(|n| Job::new("sum", &n)).collect()
}

fn submit(world: &World, client: &Client, jobs: Vec<Job>) -> Handles {
    world.run(client.submit_many(jobs, |_| {}))
}

fn writes(world: &World) -> Vec<Vec<Op>> {
    let ops = |request| match request {
        Request::Commit(ops) => Some(ops),
        Request::Get(_) | Request::List(_) | Request::Glance(_) | Request::Watch | Request::Sync => None,
    };
    world.requests().into_iter().filter_map(ops).collect()
}

/// The members of these jobs; `None` for a job with a record.
fn as_members(handles: &Handles) -> Vec<Option<MemberId>> {
    handles.iter().map(|handle| MemberId::of_job(handle.as_ref().unwrap().id())).collect()
}

/// The segment whose members these are, in this order.
fn segment_of(handles: &Handles) -> SegmentId {
    let members = as_members(handles).into_iter().map(Option::unwrap).collect::<Vec<_>>();
    let segment = members[0].segment;
    assert_eq!(members, super::members(segment).collect::<Vec<_>>());
    segment
}

fn stored(world: &World, segment: SegmentId) -> Segment {
    decode(&world.tree().get(&path::segment(segment)).unwrap().data).unwrap()
}

#[test]
fn the_plain_jobs_of_a_round_are_one_segment_with_one_entry() {
    let (world, client) = stage();
    let handles = submit(&world, &client, jobs(10));
    let id = segment_of(&handles);
    assert_eq!(id.count(), 10);
    let segment = stored(&world, id);
    let payloads = segment.members.iter().map(|member| member.payload.bytes().to_vec()).collect::<Vec<_>>();
    assert_eq!(payloads, (0..10).map(|n| n.to_string().into_bytes()).collect::<Vec<_>>());
    assert!(handles.iter().all(|handle| handle.as_ref().unwrap().accepted() == Accepted::New));
    assert_eq!(writes(&world), [txn::segment::submit(id, &segment)]);
    let entry = path::ready_entry(&segment.waits_at(id));
    assert!(world.tree().get(&entry).is_some());
}

#[test]
fn jobs_with_ids_and_segments_share_a_multi() {
    let (world, client) = stage();
    let mut mixed = jobs(8);
    mixed.insert(2, Job::new("sum", &1).id("a"));
    mixed.insert(5, Job::new("sum", &1).lane("l"));
    mixed.extend((0..4).map(|n| Job::new("mail", &n)));
    let handles = submit(&world, &client, mixed);
    let members = as_members(&handles).into_iter().map(|member| member.map(|member| member.number));
    let wanted = [0, 1, 9, 2, 3, 9, 4, 5, 6, 7, 0, 1, 2, 3].map(|number| Some(number).filter(|n| *n < 9));
    assert_eq!(members.collect::<Vec<_>>(), wanted);
    let ops = writes(&world).into_iter().max_by_key(Vec::len).unwrap();
    let records = ops.iter().filter(|op| op.path().starts_with("/jobs/")).count();
    assert_eq!(records, 4, "two segments and two records");
    assert_eq!(handles[2].as_ref().unwrap().id(), &id("a"));
}

#[test]
fn members_are_counted_as_jobs() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (world, client) = stage();
    metrics::with_local_recorder(&recorder, || submit(&world, &client, jobs(10)));
    let text = recorder.handle().render();
    let line = text.lines().find(|line| line.starts_with(JOBS_SUBMITTED)).unwrap();
    assert!(line.ends_with(" 10"), "{line}");
}

#[test]
fn a_lost_reply_is_resolved_by_reading_the_segment() {
    let (world, client) = stage();
    world.once(Request::is_write, [Answer::LoseReply]);
    let handles = submit(&world, &client, jobs(5));
    let segment = segment_of(&handles);
    assert_eq!(writes(&world).len(), 1);
    assert_eq!(stored(&world, segment).members.len(), 5);
}

#[test]
fn a_segment_that_was_lost_is_sent_again_unchanged() {
    let (world, client) = stage();
    world.once(Request::is_write, [Answer::LoseRequest]);
    let handles = submit(&world, &client, jobs(5));
    segment_of(&handles);
    let writes = writes(&world);
    assert_eq!(writes.len(), 2);
    assert_eq!(writes[0], writes[1]);
}

/// The first copy is applied when it was read back already: as a message that was in the network.
#[test]
fn a_late_first_copy_rejects_the_second_one_and_is_found() {
    let (world, client) = stage();
    let (mut first, mut read) = (None, false);
    world.script(move |request, tree: &mut Tree| match request {
        Request::Commit(ops) if first.is_none() => {
            first = Some(ops.clone());
            Answer::LoseRequest
        }
        Request::Commit(_) if !read => {
            read = true;
            tree.apply(first.as_ref().unwrap()).unwrap();
            Answer::Serve
        }
        _ => Answer::Serve,
    });
    let handles = submit(&world, &client, jobs(5));
    let segment = segment_of(&handles);
    assert_eq!(writes(&world).len(), 2);
    assert_eq!(stored(&world, segment).members.len(), 5);
}

#[test]
fn a_segment_that_exists_and_cannot_be_found_is_unknown_after_a_few_tries() {
    let (world, client) = stage();
    world.once(Request::is_write, vec![Answer::Refuse(0, Reason::NodeExists); 100]);
    let handles = submit(&world, &client, jobs(5));
    assert!(handles.iter().all(|handle| matches!(handle, Err(SubmitError::Unknown { .. }))), "{handles:?}");
    assert_eq!(writes(&world).len(), 5);
}

#[test]
fn jobs_without_a_reply_are_unknown_under_the_ids_of_their_members() {
    let (world, client) = stage();
    world.once(Request::is_write, [Answer::Hang]);
    let handles = submit(&world, &client, jobs(5));
    let [ops] = &writes(&world)[..] else { panic!("one multi") };
    for (number, handle) in handles.into_iter().enumerate() {
        let Err(SubmitError::Unknown { id, repeatable: false, within: DEADLINE }) = handle else {
            panic!("{handle:?}")
        };
        let member = MemberId::of_job(&id).unwrap();
        assert_eq!(usize::from(member.number), number);
        assert_eq!(ops[0].path(), path::segment(member.segment));
    }
}

#[test]
fn abandoned_jobs_are_left_out_and_the_others_are_packed_without_them() {
    let (world, client) = stage();
    let submissions = async {
        let mut abandoned = Box::pin(client.submit(Job::new("sum", &9)));
        assert!(futures::poll!(&mut abandoned).is_pending());
        drop(abandoned);
        client.submit_many(jobs(5), |_| {}).await
    };
    let handles = world.run(submissions);
    assert_eq!(stored(&world, segment_of(&handles)).members.len(), 5);
}

type Abandoned = Arc<std::sync::Mutex<Option<Pin<Box<dyn Future<Output = Result<(), SubmitError>> + Send>>>>>;

/// Submits a job and gives it up at the first read, which reads how many jobs there are: its segment is formed and not sent yet.
fn abandon_at_the_first_read(world: &World, client: &Client) -> Abandoned {
    let client = client.clone();
    let mut submission: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(async move { client.submit(Job::new("sum", &9)).await.map(drop) });
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(submission.as_mut().poll(&mut cx).is_pending());
    let abandoned = Arc::new(std::sync::Mutex::new(Some(submission)));
    let dropped = Arc::clone(&abandoned);
    world.script(move |request, _| {
        if !request.is_write() {
            drop(dropped.lock().unwrap().take());
        }
        Answer::Serve
    });
    abandoned
}

#[test]
fn a_job_that_is_abandoned_while_its_segment_is_formed_does_not_delay_the_others() {
    let (world, client) = stage();
    let abandoned = abandon_at_the_first_read(&world, &client);
    let mut all = jobs(5);
    all.push(Job::new("sum", &1).id("a"));
    let mut handles = submit(&world, &client, all);
    assert!(abandoned.lock().unwrap().is_none());
    handles.pop().unwrap().unwrap();
    assert_eq!(stored(&world, segment_of(&handles)).members.len(), 5);
    assert_eq!(writes(&world).len(), 1, "the segment and the record share a multi");
}

#[test]
fn the_jobs_of_a_segment_become_records_if_too_few_callers_still_wait() {
    let (world, client) = stage();
    let abandoned = abandon_at_the_first_read(&world, &client);
    let handles = submit(&world, &client, jobs(3));
    assert!(abandoned.lock().unwrap().is_none());
    assert_eq!(as_members(&handles), [None; 3]);
}

#[test]
fn a_job_that_is_abandoned_after_it_was_sent_stays_in_its_segment() {
    let (world, client) = stage();
    let (losing, mut lost) = (Arc::clone(&world), false);
    world.script(move |request, _| match request.is_write() && !std::mem::replace(&mut lost, true) {
        true => {
            losing.link(Link::Down);
            Answer::LoseRequest
        }
        false => Answer::Serve,
    });
    let submissions = async {
        let mut all = jobs(5).into_iter().map(|job| Box::pin(client.submit(job))).collect::<Vec<_>>();
        for submission in &mut all {
            assert!(futures::poll!(submission).is_pending());
        }
        // The batcher sends the first copy, which is lost with the connection.
        turn().await;
        drop(all.pop());
        world.link(Link::Up);
        futures::future::join_all(all).await
    };
    let handles = world.run(submissions);
    let members = as_members(&handles);
    let segment = stored(&world, members[0].unwrap().segment);
    let writes = writes(&world);
    assert_eq!(writes.len(), 2, "{writes:#?}");
    assert_eq!(writes[0], writes[1]);
    assert_eq!(segment.members.len(), 5);
}

#[test]
fn a_segment_that_no_caller_waits_for_is_not_sent_again() {
    let (world, client) = stage();
    let losing = Arc::clone(&world);
    world.script(move |request, _| {
        if request.is_write() {
            losing.link(Link::Down);
            return Answer::LoseRequest;
        }
        Answer::Serve
    });
    let submissions = async {
        let mut all = Box::pin(client.submit_many(jobs(5), |_| {}));
        assert!(futures::poll!(&mut all).is_pending());
        turn().await;
        drop(all);
        world.link(Link::Up);
        turn().await;
    };
    world.run(submissions);
    assert_eq!(writes(&world).len(), 1);
}

#[test]
fn a_segment_that_is_rejected_because_of_a_job_is_taken_apart_and_packed_again() {
    let (world, client) = stage();
    world.run(client.submit(Job::new("product", &1).id("a"))).unwrap();
    let mut mixed = jobs(5);
    mixed.push(Job::new("sum", &1).id("a"));
    let mut handles = submit(&world, &client, mixed);
    let conflict = handles.pop().unwrap();
    assert!(matches!(conflict, Err(SubmitError::Conflict { .. })), "{conflict:?}");
    assert_eq!(stored(&world, segment_of(&handles)).members.len(), 5);
    assert_eq!(world.tree().decoded::<JobRecord>(&path::record(&id("a"))).kind, kind("product"));
}

#[test]
fn a_segment_is_refused_with_the_reason_of_the_server_and_others_of_its_round_are_sent_again() {
    let (world, client) = stage();
    world.once(Request::is_write, [Answer::Refuse(0, Reason::NoAuth)]);
    let mut mixed = jobs(5);
    mixed.extend((0..5).map(|n| Job::new("mail", &n)));
    let mut handles = submit(&world, &client, mixed);
    let others = handles.split_off(5);
    for handle in handles {
        assert!(matches!(handle, Err(SubmitError::Refused { reason: Reason::NoAuth, .. })), "{handle:?}");
    }
    assert_eq!(stored(&world, segment_of(&others)).head.kind, kind("mail"));
}

fn fill_buckets(tree: &mut Tree, entries: usize) {
    for bucket in SubBucket::all() {
        tree.stat(&bucket.path(), |node| node.children = entries);
    }
}

#[test]
fn a_full_bucket_refuses_all_jobs_of_a_segment() {
    let (world, client) = stage();
    fill_buckets(&mut world.tree(), MAX_BUCKET_ENTRIES);
    let handles = submit(&world, &client, jobs(5));
    assert!(
        handles.iter().all(|handle| matches!(handle, Err(SubmitError::Overloaded { .. }))),
        "{handles:?}"
    );
    assert!(writes(&world).is_empty());
}

/// It cannot be reported as not submitted.
#[test]
fn a_full_bucket_does_not_refuse_a_segment_that_may_have_been_applied() {
    let (world, client) = stage();
    // Nearly full buckets are counted before each batch.
    fill_buckets(&mut world.tree(), MAX_BUCKET_ENTRIES - 1);
    let mut sent = false;
    world.script(move |request, tree: &mut Tree| {
        if !request.is_write() || std::mem::replace(&mut sent, true) {
            return Answer::Serve;
        }
        fill_buckets(tree, MAX_BUCKET_ENTRIES);
        Answer::LoseRequest
    });
    let handles = submit(&world, &client, jobs(5));
    assert_eq!(stored(&world, segment_of(&handles)).members.len(), 5);
}

#[test]
fn all_are_refused_if_the_rejection_names_no_operation() {
    let (world, client) = stage();
    world.once(Request::is_write, [Answer::Refuse(99, Reason::NoAuth)]);
    let mut mixed = jobs(5);
    mixed.push(Job::new("sum", &1).id("a"));
    for handle in submit(&world, &client, mixed) {
        assert!(matches!(handle, Err(SubmitError::Refused { reason: Reason::NoAuth, .. })), "{handle:?}");
    }
    assert_eq!(writes(&world).len(), 1);
}

#[test]
fn all_are_sent_again_if_the_multi_was_not_sent() {
    let (world, client) = stage();
    world.once(Request::is_write, [Answer::Refuse(0, Reason::NotSent)]);
    let mut mixed = jobs(5);
    mixed.push(Job::new("sum", &1).id("a"));
    let mut handles = submit(&world, &client, mixed);
    handles.pop().unwrap().unwrap();
    segment_of(&handles);
    assert_eq!(writes(&world).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn a_client_that_was_closed_after_a_lost_reply_does_not_answer_members() {
    let (world, client) = stage();
    let closing = Arc::clone(&world);
    world.script(move |request, _| {
        if !request.is_write() {
            return Answer::Serve;
        }
        closing.link(Link::Closed);
        Answer::LoseReply
    });
    let handles = submit(&world, &client, jobs(5));
    assert!(handles.iter().all(|handle| matches!(handle, Err(SubmitError::Unknown { .. }))), "{handles:?}");
}
