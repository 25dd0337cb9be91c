use proptest::prelude::*;

use super::*;
use crate::job::Placement;
use crate::name::Kind;

fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn entry(attempt: u32) -> QueueEntry {
    let placement = Placement::default();
    QueueEntry { placement, ..QueueEntry::new(Kind::new("sum").unwrap(), attempt, 1) }
}

#[derive(Default)]
struct Bench(JobWatcher);

impl Bench {
    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(event, &mut out);
        out
    }

    /// Creates a job and answers its read.
    fn queued(&mut self, name: &str) {
        let asked = self.handle(Event::Created(job(name)));
        let ticket = ticket(&asked);
        let told = self.handle(Event::Read { ticket, entries: vec![(job(name), Some(entry(1)))] });
        assert_eq!(told, [Effect::Queued(vec![(job(name), entry(1))])]);
    }
}

fn ticket(effects: &[Effect]) -> u64 {
    match effects {
        [Effect::Read { ticket, .. }] => *ticket,
        other => panic!("expected one read, got {other:?}"),
    }
}

#[test]
fn a_new_entry_is_read_immediately_and_then_reported() {
    Bench::default().queued("a");
}

/// Found by the simulator: the assigner considered the first entry assigned, and the job waited forever.
#[test]
fn an_entry_recreated_while_unwatched_is_read_and_reported_again() {
    let mut bench = Bench::default();
    bench.queued("a");
    let bucket = Bucket::of(&job("a"));
    bench.handle(Event::Resync);
    let round = bench.0.round();
    assert_eq!(bench.handle(Event::Listed { bucket, round, jobs: vec![job("a")] }), [], "a sweep");
    bench.handle(Event::Watched);
    bench.handle(Event::Resync);
    let round = bench.0.round();
    let asked = bench.handle(Event::Listed { bucket, round, jobs: vec![job("a")] });
    assert_eq!(asked[0], Effect::Unqueued(job("a")));
    let entries = vec![(job("a"), Some(entry(2)))];
    let told = bench.handle(Event::Read { ticket: ticket(&asked[1..]), entries });
    assert_eq!(told, [Effect::Queued(vec![(job("a"), entry(2))])]);
}

#[test]
fn a_list_that_was_requested_before_a_job_became_known_does_not_report_it_again() {
    let mut bench = Bench::default();
    let (bucket, round) = (Bucket::of(&job("a")), bench.0.round());
    bench.queued("a");
    bench.handle(Event::Watched);
    assert_eq!(bench.handle(Event::Listed { bucket, round, jobs: vec![job("a")] }), []);
}

#[test]
fn entries_accumulate_while_a_read_is_in_flight() {
    let mut bench = Bench::default();
    let first = ticket(&bench.handle(Event::Created(job("a"))));
    assert_eq!(bench.handle(Event::Created(job("b"))), []);
    assert_eq!(bench.handle(Event::Created(job("c"))), []);
    let next = bench.handle(Event::Read { ticket: first, entries: vec![(job("a"), Some(entry(1)))] });
    assert!(matches!(&next[1], Effect::Read { jobs, .. } if jobs == &[job("b"), job("c")]), "{next:?}");
}

#[test]
fn a_job_deleted_during_its_read_is_not_reported() {
    let mut bench = Bench::default();
    let ticket = ticket(&bench.handle(Event::Created(job("a"))));
    assert_eq!((bench.0.len(), bench.0.is_empty()), (1, false));
    assert_eq!(bench.handle(Event::Deleted(job("a"))), []);
    assert_eq!(bench.handle(Event::Read { ticket, entries: vec![(job("a"), Some(entry(1)))] }), []);
    assert!(bench.0.is_empty());
}

#[test]
fn a_job_requeued_during_its_read_is_reported_only_with_its_new_entry() {
    let mut bench = Bench::default();
    let old = ticket(&bench.handle(Event::Created(job("a"))));
    bench.handle(Event::Deleted(job("a")));
    bench.handle(Event::Created(job("a")));
    let after = bench.handle(Event::Read { ticket: old, entries: vec![(job("a"), Some(entry(1)))] });
    let new = ticket(&after);
    let told = bench.handle(Event::Read { ticket: new, entries: vec![(job("a"), Some(entry(2)))] });
    assert_eq!(told, [Effect::Queued(vec![(job("a"), entry(2))])]);
}

#[test]
fn a_list_forgets_only_jobs_known_before_it_was_requested() {
    let mut bench = Bench::default();
    bench.queued("old");
    bench.handle(Event::Resync);
    let round = bench.0.round();
    bench.queued("new");
    for name in ["old", "new"] {
        let told = bench.handle(Event::Listed { bucket: Bucket::of(&job(name)), round, jobs: vec![] });
        let expected = if name == "old" { vec![Effect::Unqueued(job("old"))] } else { vec![] };
        assert_eq!(told, expected, "{name}");
    }
    assert_eq!(bench.0.len(), 1);
}

#[test]
fn a_list_reads_only_unknown_jobs() {
    let mut bench = Bench::default();
    bench.queued("a");
    bench.handle(Event::Resync);
    let (bucket, round) = (Bucket::of(&job("a")), bench.0.round());
    assert_eq!(bench.handle(Event::Listed { bucket, round, jobs: vec![job("a")] }), []);
    assert_eq!(bench.0.len(), 1);
}

#[test]
fn unanswered_reads_are_repeated_after_the_resync() {
    let mut bench = Bench::default();
    let ticket = ticket(&bench.handle(Event::Created(job("a"))));
    assert_eq!(bench.handle(Event::ReadFailed { ticket, jobs: vec![job("a")] }), []);
    let asked = bench.handle(Event::Resync);
    assert!(matches!(&asked[..], [Effect::Read { jobs, .. }] if jobs == &[job("a")]), "{asked:?}");
}

#[test]
fn an_unreadable_entry_is_forgotten_and_does_not_block_others() {
    let mut bench = Bench::default();
    let ticket = ticket(&bench.handle(Event::Created(job("bad"))));
    bench.handle(Event::Read { ticket, entries: vec![(job("bad"), None)] });
    bench.queued("good");
}

/// Creates this many jobs during the read of another one. Returns the reads that follow its answer.
fn reads_of(bench: &mut Bench, jobs: usize) -> Vec<(u64, Vec<JobId>)> {
    let ticket = ticket(&bench.handle(Event::Created(job("first"))));
    bench.handle(Event::Resync);
    let listed = (0..jobs).map(|n| job(&format!("j{n:04}"))).collect();
    let (bucket, round) = (Bucket::of(&job("first")), bench.0.round());
    let asked = bench.handle(Event::Listed { bucket, round, jobs: listed });
    let after = bench.handle(Event::Read { ticket, entries: vec![(job("first"), None)] });
    let reads = asked.into_iter().chain(after).map(|effect| match effect {
        Effect::Read { ticket, jobs } => (ticket, jobs),
        other => panic!("expected reads, got {other:?}"),
    });
    reads.collect()
}

#[test]
fn a_long_queue_is_read_in_full_batches_within_the_window() {
    let mut bench = Bench::default();
    let reads = reads_of(&mut bench, MAX_READ_BATCH * (READ_WINDOW + 1));
    assert_eq!(bench.0.len(), MAX_READ_BATCH * (READ_WINDOW + 1));
    assert!(reads.iter().all(|(_, jobs)| jobs.len() == MAX_READ_BATCH));
    // One more than the window: the read of the first job was answered in between.
    assert_eq!(reads.len(), READ_WINDOW);
    let tickets = reads.iter().map(|(ticket, _)| *ticket).collect::<BTreeSet<_>>();
    assert_eq!(tickets.len(), reads.len(), "each read has its own ticket");
}

#[test]
fn the_answer_to_an_earlier_read_of_a_requeued_job_is_ignored() {
    let mut bench = Bench::default();
    let old = ticket(&bench.handle(Event::Created(job("a"))));
    bench.handle(Event::Deleted(job("a")));
    bench.handle(Event::Created(job("a")));
    let others = (1..MAX_READ_BATCH).flat_map(|n| bench.handle(Event::Created(job(&format!("b{n}")))));
    let later = others.collect::<Vec<_>>();
    let new = ticket(&later);
    let answer = |ticket, attempt| Event::Read { ticket, entries: vec![(job("a"), Some(entry(attempt)))] };
    assert_eq!(bench.handle(answer(old, 1)), []);
    assert_eq!(bench.handle(answer(new, 2)), [Effect::Queued(vec![(job("a"), entry(2))])]);
}

type Reads = VecDeque<(u64, Vec<(JobId, Option<QueueEntry>)>)>;

#[derive(Debug, Clone)]
enum Step {
    Queue(u8),
    Take(u8),
    Answer(bool),
    Resync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0u8..6).prop_map(Step::Queue),
        (0u8..6).prop_map(Step::Take),
        any::<bool>().prop_map(Step::Answer),
        Just(Step::Resync),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Whatever the order of creations, deletions, answers and losses: once every request is answered, the assigner
    /// knows exactly the jobs in the queue, each with its latest entry.
    #[test]
    fn the_backlog_converges_to_the_queue(steps in steps()) {
        let mut bench = Bench::default();
        let mut queue: BTreeMap<JobId, u32> = BTreeMap::new();
        let mut told: BTreeMap<JobId, u32> = BTreeMap::new();
        let mut reads: Reads = VecDeque::new();
        let mut attempt = 0;
        let drive = |bench: &mut Bench, event, queue: &BTreeMap<JobId, u32>, told: &mut BTreeMap<JobId, u32>,
                     reads: &mut Reads| {
            for effect in bench.handle(event) {
                match effect {
                    // The answer contains the queue at the time of the request.
                    Effect::Read { ticket, jobs } => reads.push_back((
                        ticket,
                        jobs.into_iter().map(|job| { let e = queue.get(&job).map(|n| entry(*n)); (job, e) }).collect(),
                    )),
                    Effect::Queued(jobs) => told.extend(jobs.into_iter().map(|(job, entry)| (job, entry.attempt))),
                    Effect::Unqueued(job) => { told.remove(&job); }
                }
            }
        };
        for step in steps.into_iter().chain([Step::Resync]).chain((0..200).map(|_| Step::Answer(true))) {
            match step {
                Step::Queue(n) => {
                    let job = job(&format!("j{n}"));
                    if !queue.contains_key(&job) {
                        attempt += 1;
                        queue.insert(job.clone(), attempt);
                        drive(&mut bench, Event::Created(job), &queue, &mut told, &mut reads);
                    }
                }
                Step::Take(n) => {
                    let job = job(&format!("j{n}"));
                    if queue.remove(&job).is_some() {
                        drive(&mut bench, Event::Deleted(job), &queue, &mut told, &mut reads);
                    }
                }
                Step::Answer(true) => {
                    if let Some((ticket, entries)) = reads.pop_front() {
                        drive(&mut bench, Event::Read { ticket, entries }, &queue, &mut told, &mut reads);
                    }
                }
                Step::Answer(false) => {
                    if let Some((ticket, entries)) = reads.pop_front() {
                        let jobs = entries.into_iter().map(|(job, _)| job).collect();
                        drive(&mut bench, Event::ReadFailed { ticket, jobs }, &queue, &mut told, &mut reads);
                    }
                }
                Step::Resync => {
                    drive(&mut bench, Event::Resync, &queue, &mut told, &mut reads);
                    let round = bench.0.round();
                    for bucket in Bucket::all() {
                        let jobs = queue.keys().filter(|job| Bucket::of(job) == bucket).cloned().collect();
                        drive(&mut bench, Event::Listed { bucket, round, jobs }, &queue, &mut told, &mut reads);
                    }
                }
            }
        }
        prop_assert_eq!(told, queue);
    }
}
