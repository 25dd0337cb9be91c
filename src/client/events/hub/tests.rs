//! The hub: its pending jobs, its events and its watch.

use bellwether_core::job::{Assignment, Attempt, Ending, Payload, QueueEntry, Verdict};
use bellwether_core::name::Kind;
use bellwether_core::outcome::Reason;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::segment::Members;
use bellwether_core::time::WallMillis;
use uuid::Uuid;

use super::*;
use crate::client::in_memory::{Answer, Link, Request, World, id, member};
use crate::client::job::Job;

fn job(n: usize) -> JobId {
    JobId::new(format!("job-{n}")).unwrap()
}

fn change(path: &str, kind: ChangeKind) -> Change {
    Change { place: path::parse(path), kind }
}

fn stored(record: &JobRecord) -> Option<Node> {
    Some(Node {
        data: wire::encode(record),
        version: 0,
        owner: 0,
        created: 1,
        written: 1,
        modified: WallMillis(1),
        children: 0,
        children_ever: bellwether_zk::WrappingCount::default(),
    })
}

/// The event of a job whose record was read.
fn event(job: JobId, seen: Seen, node: Option<Node>) -> Option<Event> {
    events(Subject::Job(job), seen, vec![node]).pop()
}

fn ready(n: usize) -> String {
    let entry = QueueEntry::new(Kind::new("sum").unwrap(), 1, 1);
    path::ready_entry(&ReadyEntry::of(&job(n), &entry))
}

#[test]
fn a_job_is_reported_at_its_last_seen_place() {
    let worker = WorkerId::new(Uuid::from_u128(7));
    let mut pending = Pending::default();
    let (queued, assigned) = (ready(1), path::assignment(worker, &job(1)));
    let assign = [change(&queued, ChangeKind::Deleted), change(&assigned, ChangeKind::Created)];
    assert!(pending.note(&change(&queued, ChangeKind::Created)));
    assert!(pending.note(&change(&ready(2), ChangeKind::Created)));
    assert!(assign.iter().all(|change| pending.note(change)));
    assert!(pending.note(&change(&path::record(&job(3)), ChangeKind::DataChanged)));
    let of = |n| Subject::Job(job(n));
    assert_eq!(pending.take(), [(of(1), Seen::Running(worker)), (of(2), Seen::Queued)]);
    assert_eq!(pending.take(), []);
}

#[test]
fn pending_jobs_are_limited_and_a_repeated_job_counts_once() {
    let mut pending = Pending::default();
    let created = |n: usize| change(&ready(n), ChangeKind::Created);
    for _ in 0..2 {
        assert!((0..EVENT_BACKLOG).all(|n| pending.note(&created(n))));
    }
    assert!(!pending.note(&created(EVENT_BACKLOG)));
}

#[test]
fn an_event_matches_the_stored_record() {
    let kind = Kind::new("sum").unwrap();
    let payload = Payload::json(b"1".as_slice()).unwrap();
    let open = JobRecord::new(kind, payload, Uuid::from_u128(1), WallMillis(1));
    let worker = WorkerId::new(Uuid::from_u128(7));
    let running = event(job(1), Seen::Running(worker), stored(&open)).unwrap();
    assert_eq!((running.state, running.worker, running.attempt), (State::Running, Some(worker), 1));
    assert_eq!(event(job(1), Seen::Delayed, stored(&open)).unwrap().state, State::Delayed);
    let ending = Ending::Succeeded(Payload::json(b"2".as_slice()).unwrap());
    let assigned = open.clone().carry(&Assignment::new(1, 1, WallMillis(1_000)));
    let (done, _) = assigned.close(Attempt { number: 1, worker }, ending, WallMillis(3_500), 0);
    let run_time = event(job(1), Seen::Left, stored(&done)).unwrap().run_time;
    assert_eq!(run_time, Some(Duration::from_millis(2_500)));
    // Between two places, or removed.
    assert_eq!(event(job(1), Seen::Left, stored(&open)), None);
    assert_eq!(event(job(1), Seen::Left, None), None);
    let over = open.cancel(WallMillis(2));
    assert!(matches!(
        over.state,
        bellwether_core::job::JobState::Terminal { verdict: Verdict::Cancelled, .. }
    ));
    for seen in [Seen::Left, Seen::Queued, Seen::Running(worker)] {
        let told = event(job(1), seen, stored(&over)).unwrap();
        assert_eq!((told.state, told.worker), (State::Cancelled, None));
    }
}

#[test]
fn the_backlog_holds_its_limit_of_jobs_and_is_taken_in_batches() {
    let mut pending = Pending::default();
    let created = |n: usize| change(&ready(n), ChangeKind::Created);
    for n in 0..MAX_READ_BATCH + 5 {
        assert!(pending.note(&created(n)));
    }
    let first = pending.take().into_iter().map(|(subject, _)| subject).collect::<Vec<_>>();
    assert_eq!(first, (0..MAX_READ_BATCH).map(|n| Subject::Job(job(n))).collect::<Vec<_>>());
    assert_eq!(pending.take().len(), 5);
    let all = (0..EVENT_BACKLOG).map(|n| pending.note(&created(n))).collect::<Vec<_>>();
    assert!(all.into_iter().all(|fits| fits));
    assert!(!pending.note(&created(EVENT_BACKLOG)), "one more");
}

#[test]
fn an_event_has_the_attempt_and_the_error_of_its_state() {
    let kind = Kind::new("sum").unwrap();
    let payload = Payload::json(b"1".as_slice()).unwrap();
    let open = JobRecord::new(kind, payload, Uuid::from_u128(1), WallMillis(1));
    let worker = WorkerId::new(Uuid::from_u128(7));
    let failed = |record: JobRecord| {
        let number = record.attempts + 1;
        let carried = record.carry(&Assignment::new(number, 1, WallMillis(1_000)));
        carried.close(Attempt { number, worker }, Ending::Failed("boom".into()), WallMillis(2_000), 0).0
    };
    let once = failed(open);
    let delayed = event(job(1), Seen::Delayed, stored(&once)).unwrap();
    assert_eq!((delayed.attempt, delayed.error.as_deref(), delayed.run_time), (1, Some("boom"), None));
    let running = event(job(1), Seen::Running(worker), stored(&once)).unwrap();
    assert_eq!((running.attempt, running.error.as_deref()), (2, Some("boom")));
    let carried = once.clone().carry(&Assignment::new(2, 1, WallMillis(3_000)));
    let ending = Ending::Succeeded(Payload::json(b"2".as_slice()).unwrap());
    let (done, _) = carried.close(Attempt { number: 2, worker }, ending, WallMillis(3_100), 0);
    let done = event(job(1), Seen::Left, stored(&done)).unwrap();
    assert_eq!((done.attempt, done.error, done.run_time), (2, None, Some(Duration::from_millis(100))));
    let unreadable = event(job(1), Seen::Left, Some(Node { data: b"?".to_vec(), ..stored(&once).unwrap() }));
    assert_eq!(unreadable.unwrap().state, State::Quarantined);
}

/// A namespace with a follower of its events.
fn followed() -> (Arc<World>, crate::Client, crate::client::Events) {
    let world = World::new();
    let client = world.client();
    let mut events = client.events();
    assert!(world.run(events.watching()));
    (world, client, events)
}

fn states(world: &World, events: &mut crate::client::Events) -> Vec<(String, State)> {
    // The changes are collected, read, and then reported.
    (0..5).for_each(|_| world.turn());
    world.pass(READ_EVERY);
    (0..5).for_each(|_| world.turn());
    let mut seen = Vec::new();
    while let Some(Notification::Event(event)) = events.try_next() {
        seen.push((event.job.to_string(), event.state));
    }
    seen
}

#[test]
fn followers_hear_of_each_change_of_a_job() {
    let (world, client, mut events) = followed();
    let mut other = client.events();
    world.run(client.submit(Job::new("sum", &1).id("a"))).unwrap();
    let queued = ("a".to_owned(), State::Queued);
    assert_eq!(states(&world, &mut events), std::slice::from_ref(&queued));
    let worker = world.worker(1, &World::registration(&["sum"], 1, &[]));
    world.assign(&id("a"), worker);
    assert_eq!(states(&world, &mut events), [("a".to_owned(), State::Running)]);
    assert_eq!(states(&world, &mut other).first(), Some(&queued), "one hub serves all followers");
    world.close(&id("a"), worker, Ending::Succeeded(Payload::json(b"2".as_slice()).unwrap()));
    assert_eq!(states(&world, &mut events), [("a".to_owned(), State::Succeeded)]);
    assert_eq!(states(&world, &mut events), []);
    let watches = world.requests().into_iter().filter(|request| *request == Request::Watch).count();
    assert_eq!(watches, 1);
}

#[test]
fn followers_hear_of_each_change_of_the_members_of_a_segment() {
    let (world, _client, mut events) = followed();
    let of = |segment, state, members: &[u8]| {
        members.iter().map(|n| (member(segment, *n).to_string(), state)).collect::<Vec<_>>()
    };
    let segment = world.pack(7, 4);
    assert_eq!(states(&world, &mut events), of(segment, State::Queued, &[0, 1, 2, 3]));
    let worker = world.worker(1, &World::registration(&["sum"], 1, &[]));
    world.assign_segment(segment, worker);
    assert_eq!(states(&world, &mut events), of(segment, State::Running, &[0, 1, 2, 3]));
    world.succeed_members(segment, worker, Members::below(2));
    assert_eq!(states(&world, &mut events), of(segment, State::Succeeded, &[0, 1]));
    world.extract_members(segment, worker, Members::one(2));
    assert_eq!(states(&world, &mut events), of(segment, State::Running, &[2]));
    let ending = Ending::Succeeded(Payload::json(b"2".as_slice()).unwrap());
    world.close(&member(segment, 2), worker, ending);
    assert_eq!(states(&world, &mut events), of(segment, State::Succeeded, &[2]));
    world.succeed_members(segment, worker, Members::one(3));
    assert_eq!(states(&world, &mut events), of(segment, State::Succeeded, &[3]));
    assert_eq!(states(&world, &mut events), []);
}

#[test]
fn members_that_succeed_before_the_hub_reads_their_segment_are_reported_as_succeeded_last() {
    let (world, _client, mut events) = followed();
    let worker = world.worker(1, &World::registration(&["sum"], 1, &[]));
    // The first change is read immediately.
    world.pack(1, 4);
    assert_eq!(states(&world, &mut events).len(), 4);
    let segment = world.pack(7, 4);
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::below(3));
    world.succeed_members(segment, worker, Members::one(3));
    let heard = states(&world, &mut events);
    let last = (0..4).map(|n| heard.iter().rfind(|(job, _)| *job == member(segment, n).to_string()).unwrap());
    assert!(last.map(|(_, state)| *state).all(|state| state == State::Succeeded), "{heard:?}");
    let ends = heard.iter().filter(|(_, state)| *state == State::Succeeded).count();
    assert_eq!(ends, 4, "each end once");
}

#[test]
fn a_succeeded_member_has_the_attempt_and_the_time_of_its_chunk() {
    let (world, _client, mut events) = followed();
    let worker = world.worker(1, &World::registration(&["sum"], 1, &[]));
    let segment = world.pack(7, 4);
    world.assign_segment(segment, worker);
    world.pass(Duration::from_millis(1_500));
    world.succeed_members(segment, worker, Members::one(1));
    world.pass(READ_EVERY);
    let last = loop {
        (0..5).for_each(|_| world.turn());
        world.pass(READ_EVERY);
        match events.try_next() {
            Some(Notification::Event(event)) if event.state == State::Succeeded => break event,
            Some(_) | None => {}
        }
    };
    assert_eq!((&last.job, last.kind.as_ref()), (&member(segment, 1), Kind::new("sum").ok().as_ref()));
    assert_eq!((last.attempt, last.generation, last.run_time), (1, 1, Some(Duration::from_millis(1_500))));
}

#[test]
fn the_members_of_a_segment_that_cannot_be_read_are_reported_as_quarantined() {
    let (world, _client, mut events) = followed();
    let segment = world.pack(7, 4);
    world.tree().put(&path::segment(segment), *b"?");
    let heard = states(&world, &mut events);
    assert_eq!(heard.into_iter().map(|(_, state)| state).collect::<Vec<_>>(), [State::Quarantined; 4]);
}

#[test]
fn segments_and_chunks_count_as_their_jobs_in_the_backlog() {
    let segments = (0..164).map(|n| SegmentId::new(Uuid::from_u128(n), 100, 1_000).unwrap());
    let segments = segments.collect::<Vec<_>>();
    let mut pending = Pending::default();
    let changes = segments
        .iter()
        .map(|id| change(&path::segment_chunk(*id, "sffff".parse().unwrap()), ChangeKind::Created));
    assert!(changes.take(50).all(|change| pending.note(&change)));
    assert_eq!((pending.jobs, pending.take().len(), pending.jobs), (800, 50, 0), "two reads each");
    let entry = |id: &SegmentId| {
        let entry = QueueEntry::new(Kind::new("sum").unwrap(), 1, 1);
        change(&path::ready_entry(&ReadyEntry::of(&id.job(), &entry)), ChangeKind::Created)
    };
    let fits = segments.iter().map(|id| pending.note(&entry(id))).filter(|fits| *fits).count();
    assert_eq!(fits, EVENT_BACKLOG / 100);
    assert_eq!(pending.take().len(), EVENTS_AT_ONCE / 100);
}

/// Their members are reported because of their own changes.
#[test]
fn segments_that_left_a_place_are_not_read_and_take_no_place_of_a_read() {
    let mut pending = Pending::default();
    for n in 0..3 {
        let id = SegmentId::new(Uuid::from_u128(n), 100, 1_000).unwrap();
        let entry = QueueEntry::new(Kind::new("sum").unwrap(), 1, 1);
        let left = change(&path::ready_entry(&ReadyEntry::of(&id.job(), &entry)), ChangeKind::Deleted);
        assert!(pending.note(&left));
    }
    for n in 0..MAX_READ_BATCH {
        assert!(pending.note(&change(&ready(n), ChangeKind::Created)));
    }
    assert_eq!(pending.take().len(), MAX_READ_BATCH);
    assert_eq!((pending.jobs, pending.take()), (0, vec![]));
}

#[test]
fn the_first_change_is_read_immediately_and_the_following_ones_together() {
    let (world, client, mut events) = followed();
    // Submits so many jobs.
    let submit = |name: &str, jobs: usize| {
        let names = (0..jobs).map(|n| id(format!("{name}-{n}"))).collect::<Vec<_>>();
        for name in &names {
            world.run(client.submit(Job::new("sum", &1).id(name.as_str()))).map(drop).unwrap();
        }
        names
    };
    // How many requests read the first of these jobs, and whether they read all of them.
    let reads = |jobs: &[JobId]| {
        (0..5).for_each(|_| world.turn());
        let gets = |request: &Request, job: &JobId| request.gets(&path::record(job));
        let requests =
            world.requests().into_iter().filter(|request| gets(request, &jobs[0])).collect::<Vec<_>>();
        let all = requests.iter().all(|request| jobs.iter().all(|job| gets(request, job)));
        (requests.len(), all)
    };
    let mut heard = || std::iter::from_fn(|| events.try_next()).count();
    assert_eq!((reads(&submit("first", 1)), heard()), ((1, true), 1), "without a pause");
    let next = submit("next", 20);
    assert_eq!((reads(&next).0, heard()), (0, 0), "changes are collected");
    world.pass(READ_EVERY);
    assert_eq!((reads(&next), heard()), ((1, true), 20));
    let many = submit("many", MAX_READ_BATCH);
    assert_eq!((reads(&many), heard()), ((1, true), MAX_READ_BATCH), "a full batch is read without a pause");
}

#[test]
fn a_watch_that_ends_is_a_gap_and_is_set_again() {
    let (world, client, mut events) = followed();
    world.end_watches();
    assert_eq!(world.run(events.next()), Some(Notification::Gap));
    world.run(client.submit(Job::new("sum", &1).id("a"))).unwrap();
    assert_eq!(states(&world, &mut events), [("a".to_owned(), State::Queued)]);
    // A read whose reply is lost ends the watch, too.
    world.once(|request| request.gets(&path::record(&id("b"))), [Answer::LoseReply]);
    world.run(client.submit(Job::new("sum", &1).id("b"))).unwrap();
    assert_eq!(world.run(events.next()), Some(Notification::Gap));
}

#[test]
fn a_watch_that_is_refused_is_set_again_after_a_while() {
    let world = World::new();
    let client = world.client();
    world.once(|request| *request == Request::Watch, [Answer::Refuse(0, Reason::NoAuth)]);
    let began = world.now();
    let mut events = client.events();
    assert!(world.run(events.watching()));
    assert_eq!(world.now().since(began), RETRY);
    assert_eq!(events.try_next(), None, "the first watch is no gap");
}

#[test]
fn events_end_with_the_client_and_a_later_follower_has_a_new_hub() {
    let (world, client, mut events) = followed();
    let follower = world.client();
    world.link(Link::Closed);
    assert_eq!(world.run(events.next()), None);
    assert_eq!(world.run(events.next()), None);
    world.turn();
    let mut late = follower.events();
    assert!(!world.run(late.watching()));
    drop(client);
    let (world, client, mut events) = followed();
    world.link(Link::Closed);
    (0..5).for_each(|_| world.turn());
    world.pass(RETRY);
    (0..5).for_each(|_| world.turn());
    assert_eq!(events.try_next(), None);
    assert_eq!(world.run(events.next()), None);
    world.link(Link::Up);
    let mut again = client.events();
    assert!(world.run(again.watching()), "the hub that has ended is replaced");
}

#[test]
fn the_hub_ends_with_its_last_follower() {
    let (world, _client, events) = followed();
    let tasks = world.tasks();
    drop(events);
    world.turn();
    world.turn();
    assert_eq!(world.tasks(), tasks - 1);
}

#[test]
fn more_changes_than_the_backlog_are_a_gap() {
    let (world, client, mut events) = followed();
    world.run(client.submit(Job::new("sum", &1).id("a"))).unwrap();
    assert_eq!(states(&world, &mut events).len(), 1);
    for n in 0..=EVENT_BACKLOG {
        world.tree().put(&ready(n), *b"");
    }
    world.notify();
    (0..5).for_each(|_| world.turn());
    assert_eq!(events.try_next(), Some(Notification::Gap));
}

/// The job had ended before the read that followed the deletion of its entry. The deletion of its assignment comes later.
#[test]
fn an_end_is_reported_once() {
    let kind = Kind::new("sum").unwrap();
    let open = JobRecord::new(kind, Payload::json(b"1".as_slice()).unwrap(), Uuid::nil(), WallMillis(1));
    let over = |generation| JobRecord { generation, ..open.clone().cancel(WallMillis(2)) };
    let ended = |n, generation| event(job(n), Seen::Left, stored(&over(generation))).unwrap();
    let queued = event(job(1), Seen::Queued, stored(&open)).unwrap();
    let mut ends = Ends::default();
    let mut is_new = |ms, event: &Event| ends.is_new(Millis(ms), event);
    assert!(is_new(0, &queued) && is_new(0, &queued));
    assert!(is_new(0, &ended(1, 1)) && is_new(0, &ended(2, 1)));
    assert!(!is_new(4_999, &ended(1, 1)));
    assert!(is_new(4_999, &ended(1, 2)), "it was opened again");
    assert!(is_new(5_000, &ended(2, 1)), "another job may have the id of a removed one");
}
