//! What a round contains, and when it is sent.

use super::*;
use crate::client::in_memory::{Answer, Request, World};
use crate::client::job::Job;
use crate::client::segments::jobs_of_name;

/// A submission with a payload of this many bytes, and whether it is awaited.
fn submission(id: &str, lane: Option<&str>, bytes: usize) -> (Submission, impl Sized) {
    let (mut job, answer) = Submission::sample();
    job.id = bellwether_core::name::JobId::new(id).unwrap();
    job.record.placement.lane = lane.map(|lane| Lane::new(lane).unwrap());
    let text = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)));
    job.record.payload = bellwether_core::job::Payload::json(text.into_bytes()).unwrap();
    (job, answer)
}

/// Submissions without a caller that awaits them.
fn jobs(jobs: &[(&str, Option<&str>)]) -> Vec<Submission> {
    jobs.iter().map(|(id, lane)| submission(id, *lane, 10).0).collect()
}

fn many(count: usize, bytes: usize) -> Vec<Submission> {
    (0..count).map(|n| submission(&format!("j{n}"), None, bytes).0).collect()
}

fn load(jobs: Vec<Submission>) -> Load {
    Load { segments: Vec::new(), jobs }
}

fn ids<'a>(jobs: impl IntoIterator<Item = &'a Submission>) -> Vec<&'a str> {
    jobs.into_iter().map(|job| job.id.as_str()).collect()
}

#[test]
fn abandoned_submissions_do_not_accumulate_while_nothing_can_be_sent() {
    let mut pending = Pending::default();
    let (waited_for, _accepted): (Vec<_>, Vec<_>) = (0..10).map(|_| Submission::sample()).unzip();
    let kept = waited_for.iter().map(|job| job.id.clone()).collect::<Vec<_>>();
    pending.gathered(waited_for);
    for _ in 0..1_000 {
        pending.gathered(vec![Submission::sample().0]);
        assert!(pending.len() < ABANDONED);
    }
    pending.gathered((0..ABANDONED).map(|_| Submission::sample().0).collect());
    assert_eq!(pending.jobs.iter().map(|job| job.id.clone()).collect::<Vec<_>>(), kept);
    assert_eq!(pending.bytes, 10, "the size of their payloads");
}

#[test]
fn abandoned_submissions_are_dropped_when_the_number_of_pending_ones_has_doubled() {
    let mut pending = Pending::default();
    let (waited_for, _accepted): (Vec<_>, Vec<_>) = (0..300).map(|_| Submission::sample()).unzip();
    pending.gathered(waited_for);
    pending.gathered(many(299, 1));
    assert_eq!(pending.len(), 599);
    pending.gathered(many(1, 1));
    assert_eq!(pending.len(), 300);
}

#[test]
fn a_round_is_full_at_its_number_of_jobs_or_of_bytes() {
    let mut pending = Pending::default();
    assert!(pending.is_empty() && !pending.fills_a_round());
    pending.extend(many(BATCH_JOBS - 1, 10));
    assert!(!pending.is_empty() && !pending.fills_a_round());
    pending.extend(many(1, 10));
    assert!(pending.fills_a_round());

    let mut pending = Pending::default();
    pending.extend(many(2, BATCH_PAYLOAD_BYTES / 2 - 1));
    assert_eq!(pending.bytes, BATCH_PAYLOAD_BYTES - 2);
    assert!(!pending.fills_a_round());
    pending.extend(many(1, 2));
    assert!(pending.fills_a_round());
}

#[test]
fn a_round_takes_jobs_in_order_up_to_its_limits() {
    let mut pending = Pending::default();
    pending.extend(many(BATCH_JOBS + 5, 10));
    assert_eq!(ids(&pending.take().0.jobs), ids(&many(BATCH_JOBS, 10)));
    assert_eq!((pending.len(), pending.bytes), (5, 50));
    assert_eq!(pending.take().0.jobs.len(), 5);
    assert_eq!((pending.len(), pending.bytes), (0, 0));

    let half = BATCH_PAYLOAD_BYTES / 2;
    pending.extend(many(3, half));
    assert_eq!(pending.take().0.jobs.len(), 2, "exactly as many bytes as fit");
    assert_eq!(pending.take().0.jobs.len(), 1);
    let rest = BATCH_PAYLOAD_BYTES - 2 * 60_000;
    for (last, round) in [(rest, &["a", "b", "c"][..]), (rest + 1, &["a", "b"])] {
        let mut pending = Pending::default();
        let sizes = [("a", 60_000), ("b", 60_000), ("c", last)];
        pending.extend(sizes.map(|(id, bytes)| submission(id, None, bytes).0));
        assert_eq!(ids(&pending.take().0.jobs), round);
    }
}

#[test]
fn jobs_of_a_lane_are_held_while_a_round_with_the_lane_is_in_flight() {
    let (a, b) = (Some("a"), Some("b"));
    let mut pending = Pending::default();
    pending.extend(jobs(&[("a1", a), ("a2", a)]));
    let (round, lanes) = pending.take();
    assert_eq!((ids(&round.jobs), lanes.len()), (vec!["a1", "a2"], 1), "in one round they keep their order");
    pending.extend(jobs(&[("a3", a), ("b1", b), ("n1", None), ("a4", a)]));
    assert_eq!((ids(&pending.jobs), ids(&pending.held)), (vec!["b1", "n1"], vec!["a3", "a4"]));
    assert_eq!((pending.len(), pending.bytes), (4, 20));

    let (other, other_lanes) = pending.take();
    assert_eq!(ids(&other.jobs), ["b1", "n1"]);
    pending.extend(jobs(&[("b2", b)]));
    // The first round is to be sent again.
    pending.put_back(round, lanes);
    assert_eq!((ids(&pending.jobs), ids(&pending.held)), (vec!["a1", "a2", "a3", "a4"], vec!["b2"]));
    assert_eq!(pending.bytes, 40);
    pending.put_back(Load::default(), other_lanes);
    assert_eq!((ids(&pending.jobs).len(), pending.held.len(), pending.bytes), (5, 0, 50));
}

#[test]
fn jobs_that_a_full_round_leaves_are_held_if_their_lane_is_in_it() {
    let mut pending = Pending::default();
    pending.extend(many(BATCH_JOBS - 1, 10));
    pending.extend(jobs(&[("a1", Some("a")), ("a2", Some("a")), ("n", None)]));
    let (_, lanes) = pending.take();
    assert_eq!((ids(&pending.jobs), ids(&pending.held), pending.bytes), (vec!["n"], vec!["a2"], 10));
    pending.put_back(load(jobs(&[("n0", None)])), BTreeSet::new());
    assert_eq!((ids(&pending.jobs), pending.held.len(), pending.bytes), (vec!["n0", "n"], 1, 20));
    pending.put_back(Load::default(), lanes);
    assert_eq!((ids(&pending.jobs), pending.held.len(), pending.bytes), (vec!["n0", "n", "a2"], 0, 30));
}

fn segment(count: usize, bytes: usize) -> Packed {
    let uuid = uuid::Uuid::now_v7;
    Packed::new(uuid(), uuid(), many(count, bytes), |_| 0)
}

#[test]
fn segments_that_may_have_been_sent_come_first_and_count_as_their_jobs() {
    let mut pending = Pending::default();
    let segments = vec![segment(60, 10), segment(30, 10), segment(60, 10)];
    pending.put_back(Load { segments, jobs: Vec::new() }, BTreeSet::new());
    assert!(!pending.is_empty());
    pending.extend(many(50, 10));
    let mut take = || {
        let Load { segments, jobs } = pending.take().0;
        (segments.iter().map(|segment| segment.jobs().len()).collect::<Vec<_>>(), jobs.len())
    };
    assert_eq!(take(), (vec![60, 30], 0), "a third one does not fit, and no job goes before it");
    assert_eq!(take(), (vec![60], 40));
    assert_eq!(take(), (vec![], 10));
    assert!(pending.is_empty());

    let half = BATCH_PAYLOAD_BYTES / 2;
    let segments = vec![segment(4, half / 4), segment(4, half / 4)];
    pending.put_back(Load { segments, jobs: many(1, 10) }, BTreeSet::new());
    let (Load { segments, jobs }, _) = pending.take();
    assert_eq!((segments.len(), jobs.len()), (2, 0), "the payloads of segments count");
}

fn submitted(request: &Request) -> usize {
    let Request::Commit(ops) = request else { return 0 };
    let names = ops.iter().filter_map(|op| op.path().strip_prefix("/jobs/")?.rsplit('/').next());
    names.map(jobs_of_name).sum()
}

#[test]
fn a_window_of_full_rounds_is_in_flight_at_most() {
    let world = World::new();
    let client = world.client();
    world.once(Request::is_write, vec![Answer::Hang; 100]);
    let jobs = (0..MANY).map(|n| Job::new("sum", &n));
    let answers = world.run(client.submit_many(jobs, |_| {}));
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), MANY);
    let sizes =
        world.requests().iter().filter(|request| request.is_write()).map(submitted).collect::<Vec<_>>();
    assert_eq!(sizes, [BATCH_JOBS; WINDOW]);
}

/// More than a window.
const MANY: usize = (WINDOW + 2) * BATCH_JOBS;

#[test]
fn jobs_that_come_while_a_round_is_in_flight_are_sent_together() {
    let world = World::new();
    let client = world.client();
    let jobs = (0..MANY).map(|n| Job::new("sum", &n));
    let mut seen = Vec::new();
    let answers = world.run(client.submit_many(jobs, |count| seen.push(count)));
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(seen, (1..=MANY).collect::<Vec<_>>());
    let sizes = world.requests().iter().map(submitted).filter(|size| *size > 0).collect::<Vec<_>>();
    assert_eq!(sizes, [BATCH_JOBS; MANY / BATCH_JOBS]);
}

#[test]
fn the_batcher_ends_with_its_client() {
    let world = World::new();
    let client = world.client();
    world.run(client.submit(Job::new("sum", &1))).unwrap();
    assert_eq!(world.tasks(), 1);
    drop(client);
    world.turn();
    assert_eq!(world.tasks(), 0);
}
