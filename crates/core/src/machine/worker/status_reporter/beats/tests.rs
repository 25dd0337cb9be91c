use proptest::prelude::*;

use super::*;
use crate::job::Ending;
use crate::machine::worker::fixture::{assignment, job, result, start, worker};

const LEASE: Duration = Duration::from_secs(60);
const THIRD: Duration = Duration::from_secs(20);
const SECOND: Duration = Duration::from_secs(1);

/// A worker with a clock.
struct Worker {
    machine: Beats,
    now: Millis,
}

impl Worker {
    fn new() -> Self {
        Self { machine: Beats::new(worker()), now: Millis(0) }
    }

    /// A worker that runs these jobs.
    fn running(jobs: std::ops::Range<usize>, auto: bool) -> Self {
        let mut worker = Self::new();
        let begun = jobs.map(|n| begun(n, auto)).collect();
        worker.on(Event::Started(begun));
        worker
    }

    /// Handles an event and returns the effects except timers.
    fn on(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.machine.handle(self.now, event, &mut out);
        out.retain(|effect| !matches!(effect, Effect::WakeAt(_)));
        out
    }

    fn after(&mut self, wait: Duration) -> Vec<Effect> {
        self.now = self.now + wait;
        self.on(Event::Wake)
    }

    fn says(&mut self, n: usize, what: &str) -> Vec<Effect> {
        self.on(Event::Requested {
            job: job(n),
            attempt: 1,
            renew: None,
            confirm: None,
            progress: Some(said(what)),
        })
    }

    fn asks(&mut self, n: usize, lease: Duration) -> Vec<Effect> {
        self.on(Event::Requested {
            job: job(n),
            attempt: 1,
            renew: Some(lease),
            confirm: None,
            progress: None,
        })
    }

    /// The handler waits for the confirmation of a renewal.
    fn awaits(&mut self, n: usize, lease: Duration, ticket: u64) -> Vec<Effect> {
        let confirm = Some(ticket);
        self.on(Event::Requested { job: job(n), attempt: 1, renew: Some(lease), confirm, progress: None })
    }
}

fn begun(n: usize, auto: bool) -> StartedAttempt {
    let assignment = Assignment { lease: LEASE, ..assignment(1) };
    StartedAttempt { job: job(n), assignment, version: 0, auto }
}

fn said(what: &str) -> Progress {
    Progress::default().with_message(None, what).unwrap()
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

/// Returns the only batch among the effects.
fn sent(effects: Vec<Effect>) -> Batch<Beat> {
    let mut batches = effects.into_iter().filter_map(|effect| match effect {
        Effect::Commit(batch) => Some(batch),
        _ => None,
    });
    let batch = batches.next().expect("a batch");
    assert_eq!(batches.next(), None, "one in flight");
    batch
}

/// Returns the content of a batch: job, lease, message and version of each beat.
fn written(batch: &Batch<Beat>) -> Vec<(String, u64, String, i32)> {
    let ops = batch.ops().map(|op| match op {
        Op::Set { path, data, version } => {
            let assignment = wire::decode::<Assignment>(data).unwrap();
            let message = assignment.progress.as_ref().map(|p| p.message().to_owned()).unwrap_or_default();
            let name = path.rsplit('/').next().unwrap().to_owned();
            (name, assignment.lease.as_secs(), message, *version)
        }
        Op::Check { .. } | Op::Create { .. } | Op::Delete { .. } => panic!("a beat only sets"),
    });
    ops.collect()
}

fn beat(n: usize, lease: u64, message: &str, version: i32) -> (String, u64, String, i32) {
    (job(n).to_string(), lease, message.to_owned(), version)
}

fn finished(n: usize) -> Event {
    let start = crate::machine::worker::Start { assignment: begun(n, false).assignment, ..start(n) };
    Event::Finished(Box::new(Finished { start, ending: Ending::Succeeded(result()) }))
}

#[test]
fn a_job_shorter_than_a_third_of_its_lease_writes_no_beat() {
    let mut worker = Worker::running(0..2, true);
    assert_eq!(worker.asks(0, LEASE * 5), []);
    assert_eq!(worker.after(THIRD - SECOND), []);
    assert!(matches!(&worker.on(finished(0))[..], [Effect::Close(_)]));
    assert!(matches!(&worker.on(finished(1))[..], [Effect::Close(_)]));
    assert_eq!((worker.after(LEASE * 9), worker.machine.len()), (vec![], 0));
}

#[test]
fn due_renewals_share_one_multi_and_the_lease_runs_from_its_sending() {
    let mut worker = Worker::running(0..150, true);
    let out = worker.after(THIRD);
    assert_eq!(out.iter().filter(|e| matches!(e, Effect::Third(..))).count(), 150);
    let batch = sent(out);
    assert_eq!(batch.len(), BATCH);
    worker.now = worker.now + SECOND;
    let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
    let until = Millis(0) + THIRD + LEASE;
    assert!(
        out.contains(&Effect::Until(job(0), 1, until)),
        "the lease runs from the sending of the beat, not from its answer"
    );
    assert_eq!(sent(out).len(), 50);
}

#[test]
fn a_lease_without_renewals_is_reported_at_a_third_and_at_its_end() {
    let mut worker = Worker::running(0..1, false);
    assert_eq!(worker.after(THIRD), [Effect::Third(job(0), 1)]);
    assert_eq!(worker.after(LEASE - THIRD - SECOND), []);
    assert_eq!(worker.after(SECOND), [Effect::Lapsed(job(0), 1)]);
    assert_eq!(worker.after(LEASE), [], "once");
}

#[test]
fn a_requested_renewal_is_written_after_a_third_of_the_lease_for_its_remaining_time() {
    let mut worker = Worker::running(0..1, false);
    worker.after(SECOND);
    assert_eq!(worker.asks(0, 5 * LEASE), []);
    let batch = sent(worker.after(THIRD));
    assert_eq!(written(&batch), [beat(0, 300 - 20, "", 0)]);
    let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
    assert_eq!(out, [Effect::Until(job(0), 1, Millis(301_000))]);
    assert_eq!(worker.asks(0, SECOND), [], "a lease is never shortened");
    assert_eq!(worker.after(2 * LEASE), [], "nothing more was requested");
}

#[test]
fn a_renewal_that_does_not_move_the_end_of_the_lease_is_not_written() {
    let mut worker = Worker::running(0..1, false);
    assert_eq!(worker.asks(0, LEASE), []);
    assert_eq!(worker.after(THIRD), [Effect::Third(job(0), 1)]);
    assert_eq!(worker.after(THIRD), []);
}

#[test]
fn a_longer_renewal_that_is_requested_during_a_beat_is_written_after_it() {
    let mut worker = Worker::running(0..1, false);
    worker.asks(0, 2 * LEASE);
    let batch = sent(worker.after(THIRD));
    assert_eq!(worker.asks(0, 4 * LEASE), []);
    worker.on(Event::Committed(batch, Outcome::Applied(())));
    // The lease of 100 s began at 20 s; the request at 20 s was for 240 s.
    let batch = sent(worker.after(Duration::from_secs(34)));
    assert_eq!(written(&batch), [beat(0, 240 - 34, "", 1)]);
}

#[test]
fn an_attempt_that_begins_learns_the_end_of_its_lease() {
    let mut worker = Worker::new();
    let out = worker.on(Event::Started(vec![begun(0, true)]));
    assert_eq!(out, [Effect::Until(job(0), 1, Millis(0) + LEASE)]);
}

/// Neither the reply to a beat nor its read-back was answered.
#[test]
fn the_assignments_of_lost_beats_are_read_in_requests_of_bounded_size() {
    let mut worker = Worker::running(0..150, true);
    let batch = sent(worker.after(THIRD));
    let out = worker.on(Event::Committed(batch, Outcome::Unknown));
    let [Effect::Read(jobs), Effect::Commit(rest)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(worker.on(Event::Committed(rest.clone(), Outcome::Unknown)), []);
    assert_eq!(worker.on(Event::ReadFailed(jobs.clone())), []);
    let out = worker.after(RETRY);
    assert!(matches!(&out[..], [Effect::Read(jobs)] if jobs.len() == MAX_READ_BATCH), "{out:?}");
}

#[test]
fn a_renewal_requested_after_a_third_is_written_immediately() {
    let mut worker = Worker::running(0..1, false);
    worker.after(2 * THIRD);
    assert_eq!(written(&sent(worker.asks(0, LEASE))), [beat(0, 60, "", 0)]);
}

#[test]
fn an_awaited_renewal_is_written_immediately_and_confirmed_by_its_reply() {
    let mut worker = Worker::running(0..1, false);
    worker.after(SECOND);
    let batch = sent(worker.awaits(0, 5 * LEASE, 1));
    assert_eq!(written(&batch), [beat(0, 300, "", 0)]);
    assert_eq!(worker.awaits(0, SECOND, 2), [], "one beat of the attempt is in flight");
    let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
    assert_eq!(
        out[..2],
        [
            Effect::Until(job(0), 1, Millis(301_000)),
            Effect::Confirmed(job(0), 1, 1), // The second request came after this beat was sent.
        ]
    );
    let batch = sent(out);
    assert_eq!(written(&batch), [beat(0, 300, "", 1)], "a lease is never shortened");
    let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
    assert!(out.contains(&Effect::Confirmed(job(0), 1, 2)), "{out:?}");
    assert_eq!(worker.after(SECOND), [], "nothing is left to write");
}

#[test]
fn a_lost_reply_does_not_confirm_a_renewal_and_another_beat_does() {
    for applied in [true, false] {
        let mut worker = Worker::running(0..1, false);
        let batch = sent(worker.awaits(0, LEASE, 1));
        assert_eq!(worker.on(Event::Committed(batch, Outcome::Unknown)), [Effect::Read(vec![job(0)])]);
        let stands = Lookup::Found(begun(0, true).assignment, i32::from(applied));
        let out = worker.on(Event::Read(vec![(job(0), stands)]));
        assert!(!out.iter().any(|effect| matches!(effect, Effect::Confirmed(..))), "{out:?}");
        let batch = sent(out);
        let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
        assert!(out.contains(&Effect::Confirmed(job(0), 1, 1)), "{out:?}");
    }
}

#[test]
fn a_rejected_or_unsent_renewal_is_not_confirmed_before_it_is_written() {
    for reason in [Reason::NotSent, Reason::NoAuth] {
        let mut worker = Worker::running(0..1, false);
        let batch = sent(worker.awaits(0, LEASE, 1));
        assert_eq!(worker.on(Event::Committed(batch, rejected(0, reason))), []);
        let batch = sent(worker.after(SECOND));
        let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
        assert!(out.contains(&Effect::Confirmed(job(0), 1, 1)), "{out:?}");
    }
}

#[test]
fn the_newest_progress_is_written_once_a_second() {
    let mut worker = Worker::running(0..1, false);
    assert_eq!(worker.says(0, "one"), []);
    assert_eq!(worker.says(0, "two"), []);
    let batch = sent(worker.after(SECOND));
    assert_eq!(written(&batch), [beat(0, 59, "two", 0)]);
    assert_eq!(worker.says(0, "three"), [], "one batch is in flight");
    let out = worker.on(Event::Committed(batch, Outcome::Applied(())));
    assert_eq!(
        out,
        [Effect::Until(job(0), 1, Millis(60_000))],
        "progress does not move the end of the lease"
    );
    assert_eq!(worker.after(SECOND / 2), []);
    assert_eq!(written(&sent(worker.after(SECOND / 2))), [beat(0, 58, "three", 1)]);
}

#[test]
fn the_close_carries_the_last_progress_written_or_not() {
    let mut worker = Worker::running(0..1, false);
    worker.says(0, "one");
    let batch = sent(worker.after(SECOND));
    worker.on(Event::Committed(batch, Outcome::Applied(())));
    worker.says(0, "two");
    let out = worker.on(finished(0));
    let [Effect::Close(closed)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(closed.start.assignment_version, 1, "the stored version");
    assert_eq!(closed.start.assignment.progress, Some(said("two")));
}

/// A client set the cancel flag, or the handler created sub-jobs: the executor has a newer assignment.
#[test]
fn a_newer_assignment_of_the_executor_is_not_replaced_by_an_older_one() {
    let mut worker = Worker::running(0..1, false);
    worker.says(0, "one");
    let start = crate::machine::worker::Start {
        assignment: Assignment { cancel: true, spawned: true, ..begun(0, false).assignment },
        assignment_version: 2,
        ..start(0)
    };
    let out = worker.on(Event::Finished(Box::new(Finished { start, ending: Ending::Cancelled })));
    let [Effect::Close(closed)] = &out[..] else { panic!("{out:?}") };
    let left = &closed.start.assignment;
    assert_eq!((closed.start.assignment_version, left.cancel, left.spawned), (2, true, true));
    assert_eq!(left.progress, Some(said("one")));
}

#[test]
fn a_cancel_flag_that_only_the_executor_has_seen_is_not_lost() {
    let mut worker = Worker::running(0..1, true);
    let batch = sent(worker.after(THIRD));
    worker.on(Event::Committed(batch, Outcome::Applied(())));
    let assignment = Assignment { cancel: true, ..begun(0, true).assignment };
    let start = crate::machine::worker::Start { assignment, ..start(0) };
    let out = worker.on(Event::Finished(Box::new(Finished { start, ending: Ending::Cancelled })));
    let [Effect::Close(closed)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((closed.start.assignment_version, closed.start.assignment.cancel), (1, true));
}

/// A lost reply.
#[test]
fn a_beat_without_a_reply_is_read_back_before_anything_else_is_written() {
    for applied in [true, false] {
        let mut worker = Worker::running(0..1, true);
        let batch = sent(worker.after(THIRD));
        worker.on(Event::Hold);
        assert_eq!(worker.on(Event::Committed(batch, Outcome::Unknown)), []);
        worker.now = worker.now + SECOND;
        assert_eq!(worker.on(Event::Resume), [Effect::Read(vec![job(0)])]);
        let stands = Lookup::Found(begun(0, true).assignment, i32::from(applied));
        let out = worker.on(Event::Read(vec![(job(0), stands)]));
        assert_eq!(out[0], Effect::Until(job(0), 1, Millis(0) + LEASE), "only a confirmed renewal counts");
        assert_eq!(written(&sent(out)), [beat(0, 60, "", i32::from(applied))], "the beat is sent again");
    }
}

/// A cancel changes the version as a renewal does, and leaves the rest of the assignment unchanged.
#[test]
fn a_cancel_that_is_read_back_does_not_count_as_a_renewal() {
    let mut worker = Worker::running(0..1, true);
    let batch = sent(worker.after(THIRD));
    worker.on(Event::Committed(batch, Outcome::Unknown));
    let flagged = Assignment { cancel: true, ..begun(0, true).assignment };
    let out = worker.on(Event::Read(vec![(job(0), Lookup::Found(flagged, 1))]));
    assert!(out.contains(&Effect::Until(job(0), 1, Millis(0) + LEASE)), "{out:?}");
}

#[test]
fn a_read_without_an_answer_is_sent_again() {
    let mut worker = Worker::running(0..1, true);
    let batch = sent(worker.after(THIRD));
    let out = worker.on(Event::Committed(batch, rejected(0, Reason::BadVersion)));
    assert_eq!(out, [Effect::Read(vec![job(0)])]);
    assert_eq!(worker.on(Event::ReadFailed(vec![job(0)])), []);
    assert_eq!(worker.after(RETRY), [Effect::Read(vec![job(0)])]);
}

#[test]
fn a_beat_rejected_by_a_cancel_reports_the_cancel_and_keeps_its_progress() {
    let mut worker = Worker::running(0..2, true);
    let batch = sent(worker.after(THIRD));
    let out = worker.on(Event::Committed(batch, rejected(0, Reason::BadVersion)));
    assert_eq!(out[0], Effect::Read(vec![job(0)]));
    let rest = sent(out);
    assert_eq!(written(&rest), [beat(1, 60, "", 0)], "the other beat is sent immediately");
    let flagged = Assignment { cancel: true, ..begun(0, true).assignment };
    let out = worker.on(Event::Read(vec![(job(0), Lookup::Found(flagged.clone(), 1))]));
    let cancel = Effect::Cancel { job: job(0), attempt: 1, assignment: flagged, version: 1 };
    assert!(out.contains(&cancel), "{out:?}");
    assert!(out.contains(&Effect::Until(job(0), 1, Millis(0) + LEASE)), "the lease was not renewed: {out:?}");
    let flagged = Assignment { cancel: true, ..begun(0, true).assignment };
    let again = sent(worker.on(Event::Committed(rest, Outcome::Applied(()))));
    worker.on(Event::Committed(again, rejected(0, Reason::BadVersion)));
    let out = worker.on(Event::Read(vec![(job(0), Lookup::Found(flagged, 2))]));
    assert!(!out.iter().any(|effect| matches!(effect, Effect::Cancel { .. })), "once: {out:?}");
}

#[test]
fn a_beat_of_an_attempt_closed_by_another_process_makes_it_a_zombie() {
    let another = Lookup::Found(assignment(2), 0);
    let later_generation = Lookup::Found(Assignment { generation: 2, ..assignment(1) }, 0);
    for found in [Lookup::Absent, another, later_generation] {
        let mut worker = Worker::running(0..1, true);
        let batch = sent(worker.after(THIRD));
        worker.on(Event::Committed(batch, rejected(0, Reason::NoNode)));
        assert_eq!(worker.on(Event::Read(vec![(job(0), found)])), [Effect::Zombie(job(0), 1)]);
        assert!(worker.machine.is_empty());
    }
}

#[test]
fn nothing_is_sent_while_disconnected_but_a_lease_lapses() {
    let mut worker = Worker::running(0..1, true);
    worker.on(Event::Hold);
    assert_eq!(worker.after(THIRD), [Effect::Third(job(0), 1)]);
    assert_eq!(worker.after(LEASE), [Effect::Lapsed(job(0), 1)]);
    assert_eq!(worker.on(Event::Resume), [], "an expired lease is not renewed");
}

#[test]
fn an_unsent_beat_is_sent_again_after_a_delay_or_with_the_session() {
    let mut worker = Worker::running(0..1, true);
    let batch = sent(worker.after(THIRD));
    assert_eq!(worker.on(Event::Committed(batch, rejected(0, Reason::NotSent))), []);
    assert_eq!(written(&sent(worker.after(RETRY))), [beat(0, 60, "", 0)]);
}

#[test]
fn an_assignment_that_cannot_be_read_is_left_alone() {
    let mut worker = Worker::running(0..1, true);
    let batch = sent(worker.after(THIRD));
    worker.says(0, "one");
    worker.on(Event::Committed(batch, rejected(0, Reason::BadVersion)));
    let odd = Lookup::Unreadable { why: "x".into(), newer: true, version: 4 };
    assert_eq!(worker.on(Event::Read(vec![(job(0), odd)])), []);
    assert_eq!(worker.after(SECOND), [], "progress would erase it");
    assert_eq!(worker.awaits(0, LEASE, 1), []);
    assert_eq!(worker.after(LEASE), [Effect::Lapsed(job(0), 1)]);
    let out = worker.on(finished(0));
    let [Effect::Close(closed)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(closed.start.assignment_version, 4, "the close deletes the version that was found");
}

#[test]
fn answers_for_an_earlier_attempt_are_dropped() {
    let mut worker = Worker::running(0..1, true);
    let batch = sent(worker.after(THIRD));
    assert!(!worker.machine.is_empty());
    worker.on(Event::Over(job(0), 1));
    assert_eq!(worker.machine.len(), 0);
    let again = Assignment { attempt: 2, ..begun(0, true).assignment };
    worker.on(Event::Started(vec![StartedAttempt { assignment: again, ..begun(0, true) }]));
    assert_eq!(worker.on(Event::Committed(batch, Outcome::Applied(()))), []);
    assert_eq!(worker.on(Event::Over(job(0), 1)), []);
    assert_eq!(worker.machine.len(), 1);
}

#[test]
fn the_timer_is_armed_only_for_the_earliest_time() {
    let mut worker = Worker::new();
    let mut armed = 0;
    for n in 0..1_000 {
        worker.now = Millis(n as u64);
        let mut out = Vec::new();
        worker.machine.handle(worker.now, Event::Started(vec![begun(n, true)]), &mut out);
        armed += out.iter().filter(|effect| matches!(effect, Effect::WakeAt(_))).count();
        worker.on(finished(n));
    }
    assert_eq!(armed, 1);
}

#[test]
fn the_timer_is_armed_again_only_for_an_earlier_time() {
    let mut machine = Beats::new(worker());
    let mut armed = |event| {
        let mut out = Vec::new();
        machine.handle(Millis(0), event, &mut out);
        out.retain(|effect| matches!(effect, Effect::WakeAt(_)));
        out
    };
    assert_eq!(armed(Event::Started(vec![begun(0, true)])), [Effect::WakeAt(Millis(0) + THIRD)]);
    assert_eq!(armed(Event::Started(vec![begun(1, true)])), [], "for the same time");
    let progress = Some(said("one"));
    let requested = Event::Requested { job: job(0), attempt: 1, renew: None, confirm: None, progress };
    assert_eq!(armed(requested), [Effect::WakeAt(Millis(0) + PROGRESS_EVERY)]);
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u16),
    Say(u8),
    Renew(u16),
    Flag,
    Apply,
    Lose(bool),
    NotSent,
    Cut,
    Back,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..40_000_u16).prop_map(Step::Wait),
        2 => any::<u8>().prop_map(Step::Say),
        1 => (1_000..60_000_u16).prop_map(Step::Renew),
        1 => Just(Step::Flag),
        6 => Just(Step::Apply),
        1 => any::<bool>().prop_map(Step::Lose),
        1 => Just(Step::NotSent),
        1 => Just(Step::Cut),
        2 => Just(Step::Back),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// A model with one znode: the worker never assumes that its lease ends later than the stored lease, no beat
    /// erases a cancel flag, and the last progress is in the assignment at the end.
    #[test]
    fn a_worker_never_assumes_a_longer_lease_than_the_stored_one(steps in steps(), auto: bool) {
        let mut worker = Worker::running(0..1, auto);
        let (mut stands, mut version, mut changed) = (begun(0, auto).assignment, 0, Millis(0));
        let (mut asked, mut told) = (Vec::new(), Millis(0) + LEASE);
        let mut last = None;
        for step in steps {
            let mut apply = |batch: &Batch<Beat>, now: Millis| {
                let Some(Op::Set { data, version: v, .. }) = batch.ops().next() else { unreachable!() };
                let fits = *v == version;
                if fits {
                    stands = wire::decode(data).unwrap();
                    (version, changed) = (version + 1, now);
                }
                fits
            };
            let out = match step {
                Step::Wait(wait) => worker.after(Duration::from_millis(wait.into())),
                Step::Say(n) => {
                    last = Some(said(&n.to_string()));
                    worker.says(0, &n.to_string())
                }
                Step::Renew(lease) => worker.asks(0, Duration::from_millis(lease.into())),
                Step::Flag => {
                    stands.cancel = true;
                    (version, changed) = (version + 1, worker.now);
                    vec![]
                }
                Step::Cut => worker.on(Event::Hold),
                Step::Back => worker.on(Event::Resume),
                Step::Apply | Step::Lose(_) | Step::NotSent => match (asked.pop(), step) {
                    (Some(Effect::Commit(batch)), Step::NotSent) => {
                        worker.on(Event::Committed(batch, rejected(0, Reason::NotSent)))
                    }
                    (Some(Effect::Commit(batch)), Step::Lose(applied)) => {
                        if applied {
                            apply(&batch, worker.now);
                        }
                        worker.on(Event::Hold);
                        worker.on(Event::Committed(batch, Outcome::Unknown))
                    }
                    (Some(Effect::Commit(batch)), _) => {
                        let fits = apply(&batch, worker.now);
                        let outcome = if fits { Outcome::Applied(()) } else { rejected(0, Reason::BadVersion) };
                        worker.on(Event::Committed(batch, outcome))
                    }
                    (Some(Effect::Read(jobs)), Step::Apply) => {
                        let found = jobs.into_iter().map(|job| (job, Lookup::Found(stands.clone(), version)));
                        worker.on(Event::Read(found.collect()))
                    }
                    (Some(Effect::Read(jobs)), _) => worker.on(Event::ReadFailed(jobs)),
                    _ => vec![],
                },
            };
            for effect in out {
                match effect {
                    Effect::Until(_, _, until) => told = until,
                    effect @ (Effect::Commit(_) | Effect::Read(_)) => asked.push(effect),
                    Effect::Third(..) | Effect::Lapsed(..) | Effect::Cancel { .. } | Effect::Confirmed(..) => {}
                    Effect::Zombie(..) | Effect::Close(_) | Effect::WakeAt(_) => prop_assert!(false),
                }
            }
            prop_assert!(told <= changed + stands.lease, "{told:?} is beyond {changed:?} and {stands:?}");
            prop_assert!(asked.len() <= 2, "one batch and one read");
        }
        let out = worker.on(finished(0));
        let [Effect::Close(closed)] = &out[..] else { panic!("{out:?}") };
        prop_assert_eq!(&closed.start.assignment.progress, &last);
        prop_assert!(closed.start.assignment_version <= version);
    }
}
