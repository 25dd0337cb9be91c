//! Tests of priorities, expiry and pauses.

use std::time::Duration;

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use uuid::Uuid;

use super::*;
use crate::budget::AGEING;
use crate::change::Noted;
use crate::job::{Payload, Priority, QueueEntry, Turn};
use crate::name::{Kind, Lane, NodeId};
use crate::worker::WorkerInfo;

const HOUR: u64 = 3_600_000;
const NOW: u64 = 100 * HOUR;

fn job(n: u32) -> JobId {
    JobId::new(format!("j{n:03}")).unwrap()
}

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(1))
}

fn entry(priority: u8, submitted_at: u64) -> QueueEntry {
    QueueEntry {
        priority: Priority::new(priority).unwrap(),
        submitted_at: WallMillis(submitted_at),
        ..QueueEntry::new(kind("sum"), 1, 1)
    }
}

/// A leader with one worker of one slot, so that jobs are assigned one after the other.
struct Bench {
    machine: Assigner,
    wall: u64,
}

impl Bench {
    /// A leader that knows that no kind is paused.
    fn new() -> Self {
        let mut bench = Self::unsure();
        bench.handle(Event::Settings(Some(Settings::default())));
        bench
    }

    fn unsure() -> Self {
        Self { machine: Assigner::new(7, OwnStrategies::default(), 1), wall: NOW }
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.machine.handle(Millis(0), WallMillis(self.wall), event, &mut out);
        out
    }

    fn queue(&mut self, jobs: impl IntoIterator<Item = (u32, QueueEntry)>) -> Vec<Effect> {
        self.handle(Event::Queued(jobs.into_iter().map(|(n, entry)| Waiting::new(&job(n), entry)).collect()))
    }

    fn worker(&mut self, slots: u32) -> Vec<Effect> {
        let info = WorkerInfo {
            node: NodeId::new("n").unwrap(),
            host: "h".into(),
            kinds: vec![kind("echo"), kind("sum")],
            leases: BTreeMap::new(),
            slots,
            tags: Vec::new(),
            codec: 1,
            started_at: WallMillis(0),
            former: vec![],
            owner: None,
            draining: false,
            settings: Noted::default(),
        };
        let mut effects = self.handle(Event::Worker(worker(), info, 0));
        effects.retain(|effect| *effect != Effect::ReadInbox(worker()));
        effects.extend(self.handle(Event::InboxRead(worker(), Some(InboxContents::default()))));
        effects
    }

    /// Runs the sent job and all jobs after it; returns the order of the assignments.
    fn order(&mut self, mut effects: Vec<Effect>) -> Vec<JobId> {
        let mut order = Vec::new();
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Commit(batch) => {
                    order.extend(batch.keys().map(|job| job.id.clone()));
                    effects.extend(self.handle(Event::Committed(batch, Outcome::Applied(()))));
                    effects.extend(self.handle(Event::InboxChanged(worker())));
                }
                Effect::ListInbox(id) => effects.extend(self.handle(Event::Inbox(id, Some(vec![])))),
                Effect::ReadInbox(_)
                | Effect::Resolve(_)
                | Effect::ListLanes { .. }
                | Effect::ReadTurns { .. }
                | Effect::ReadSettings
                | Effect::Fallback(_)
                | Effect::Overdue(_)
                | Effect::FencedOut
                | Effect::Assigned { .. } => {}
            }
        }
        order
    }
}

#[test]
fn the_highest_priority_is_first_and_equal_priorities_go_by_waiting_time() {
    let mut bench = Bench::new();
    bench.queue([(1, entry(0, NOW)), (2, entry(5, NOW)), (3, entry(9, NOW)), (4, entry(5, NOW - 1))]);
    bench.queue([(5, entry(5, NOW - 1))]);
    let sent = bench.worker(1);
    assert_eq!(bench.order(sent), [3, 4, 5, 2, 1].map(job));
}

#[test]
fn a_step_of_priority_is_worth_an_hour_of_waiting() {
    assert_eq!(AGEING, Duration::from_millis(HOUR));
    let mut bench = Bench::new();
    bench.queue([
        (1, entry(9, NOW)),
        (2, entry(5, NOW - 4 * HOUR - 1)),
        (3, entry(5, NOW - 4 * HOUR + 1)),
        (4, entry(0, NOW - 9 * HOUR - 1)),
    ]);
    let sent = bench.worker(1);
    assert_eq!(bench.order(sent), [2, 4, 1, 3].map(job));
}

/// A time from a clock that is ahead would delay the job until that time; a time of zero only makes the job first.
#[test]
fn a_submission_time_in_the_future_counts_as_now() {
    let mut bench = Bench::new();
    bench.queue([(1, entry(5, u64::MAX)), (2, entry(9, 0))]);
    bench.wall += HOUR;
    bench.queue([(3, entry(5, NOW + HOUR))]);
    let sent = bench.worker(1);
    assert_eq!(bench.order(sent), [2, 1, 3].map(job));
}

#[test]
fn a_job_that_was_put_back_keeps_its_place() {
    let mut bench = Bench::new();
    bench.queue([(1, entry(5, NOW)), (2, entry(5, NOW)), (3, entry(1, NOW))]);
    let sent = bench.worker(1);
    let Some(Effect::Commit(batch)) = sent.into_iter().find(|e| matches!(e, Effect::Commit(_))) else {
        panic!("no batch was sent")
    };
    let refused = crate::outcome::Rejection { at: 0, reason: Reason::NotSent };
    bench.handle(Event::Committed(batch, Outcome::Rejected(refused)));
    bench.queue([(4, entry(5, NOW))]);
    let sent = bench.handle(Event::Resume);
    assert_eq!(bench.order(sent), [1, 2, 4, 3].map(job));
}

proptest! {
    /// L3: no job starves. However many urgent jobs arrive, jobs submitted more than nine steps later come after it.
    #[test]
    fn a_job_is_delayed_by_at_most_nine_steps_of_later_jobs(
        jobs in prop::collection::vec((0u8..=9, 0u64..40), 1..60),
    ) {
        let mut bench = Bench::new();
        let entries = jobs.iter().map(|(priority, hours)| entry(*priority, hours * HOUR));
        bench.queue((0..).zip(entries));
        let sent = bench.worker(1);
        let order = bench.order(sent);
        prop_assert_eq!(order.len(), jobs.len());
        let of = |id: &JobId| jobs[id.as_str()[1..].parse::<usize>().unwrap()];
        for (at, before) in order.iter().enumerate() {
            for after in &order[at + 1..] {
                let ((p, t), (q, u)) = (of(before), of(after));
                prop_assert!(t <= u + 9, "a job of hour {t} came before a job of hour {u}");
                prop_assert!(t < u || p >= q || t * HOUR + u64::from(q) < u * HOUR + HOUR * u64::from(q));
            }
        }
    }
}

fn expiring(at: u64) -> QueueEntry {
    QueueEntry { expires_at: Some(WallMillis(at)), ..entry(5, NOW) }
}

#[test]
fn a_job_is_assigned_until_its_last_millisecond_and_overdue_after_it() {
    let mut bench = Bench::new();
    bench.worker(1);
    let sent = bench.queue([(1, expiring(NOW))]);
    assert_eq!(bench.order(sent), [job(1)]);
    let mut bench = Bench::new();
    assert_eq!(bench.queue([(1, expiring(NOW + 5)), (2, expiring(NOW + 9)), (3, entry(5, NOW))]), []);
    assert_eq!(bench.machine.next_overdue(), Some(WallMillis(NOW + 5)));
    bench.wall = NOW + 6;
    assert_eq!(bench.handle(Event::Tick), [Effect::Overdue(vec![(job(1), WallMillis(NOW + 5))])]);
    assert_eq!(bench.machine.waiting(), 2);
    assert_eq!(bench.machine.next_overdue(), Some(WallMillis(NOW + 9)));
    bench.wall = NOW + 100;
    let sent = bench.worker(3);
    assert_eq!(
        sent[0],
        Effect::Overdue(vec![(job(2), WallMillis(NOW + 9))]),
        "overdue jobs are reported before any planning"
    );
    assert_eq!(bench.order(sent), [job(3)]);
    assert_eq!(bench.machine.next_overdue(), None);
}

#[test]
fn a_job_that_waits_for_its_lane_expires_and_an_unqueued_job_does_not() {
    let mut bench = Bench::new();
    let mut laned = expiring(NOW + 5);
    laned.placement.lane = Some(Lane::new("l").unwrap());
    bench.queue([(1, laned), (2, expiring(NOW + 5)), (3, expiring(NOW + 5))]);
    bench.handle(Event::Unqueued(Waiting::new(&job(2), expiring(NOW + 5)).at));
    bench.queue([(3, entry(5, NOW))]);
    bench.wall = NOW + 6;
    assert_eq!(bench.handle(Event::Tick), [Effect::Overdue(vec![(job(1), WallMillis(NOW + 5))])]);
    assert_eq!(bench.machine.waiting(), 1);
}

/// S9: an assignment in flight is not ended here; after a rejection the job is overdue.
#[test]
fn an_assignment_in_flight_is_overdue_only_after_it_is_put_back() {
    let mut bench = Bench::new();
    bench.worker(1);
    let sent = bench.queue([(1, expiring(NOW + 5))]);
    let [Effect::Commit(batch)] = &sent[..] else { panic!("{sent:?}") };
    bench.wall = NOW + 6;
    assert_eq!(bench.handle(Event::Tick), []);
    bench.handle(Event::Committed(batch.clone(), Outcome::Unknown));
    bench.handle(Event::Resume);
    let at = Waiting::new(&job(1), expiring(NOW + 5)).at;
    let back = bench.handle(Event::Resolved(Some(vec![(at, true)])));
    assert!(back.contains(&Effect::Overdue(vec![(job(1), WallMillis(NOW + 5))])), "{back:?}");
}

#[test]
fn a_stray_with_an_entry_of_a_later_generation_does_not_expire_with_the_old_entry() {
    let mut bench = Bench::new();
    let lane = Lane::new("l").unwrap();
    let mut laned = expiring(NOW + 5);
    laned.placement.lane = Some(lane.clone());
    let at = Waiting::new(&job(1), laned.clone()).at;
    let asked = bench.queue([(1, laned)]);
    let Some(Effect::ListLanes { ticket, .. }) = asked.first() else { panic!("{asked:?}") };
    let listed = bench.handle(Event::LanesListed {
        ticket: *ticket,
        lanes: vec![lane.clone()],
        lists: Some(vec![vec![(2, job(1))]]),
    });
    assert!(listed.contains(&Effect::Resolve(vec![at.clone()])), "{listed:?}");
    let mut retried = QueueEntry { generation: 2, ..entry(5, NOW) };
    retried.placement.lane = Some(lane.clone());
    assert_eq!(retried.turn(), Some(Turn { lane, generation: 2 }));
    bench.queue([(1, retried)]);
    bench.handle(Event::Resolved(Some(vec![(at, false)])));
    bench.wall = NOW + 6;
    assert_eq!(bench.handle(Event::Tick), []);
    assert_eq!(bench.machine.waiting(), 1);
}

fn paused(name: &str) -> Event {
    Event::Settings(Some(Settings { paused: BTreeSet::from([kind(name)]), ..Settings::default() }))
}

fn echo() -> QueueEntry {
    QueueEntry { submitted_at: WallMillis(NOW), ..QueueEntry::new(kind("echo"), 1, 1) }
}

#[test]
fn no_job_of_a_paused_kind_is_assigned_until_it_is_resumed() {
    let mut bench = Bench::new();
    bench.handle(paused("sum"));
    bench.queue([(1, entry(9, NOW)), (2, echo()), (3, entry(9, NOW))]);
    let sent = bench.worker(1);
    assert_eq!(bench.order(sent), [job(2)], "jobs of other kinds are assigned");
    let sent = bench.handle(Event::Settings(Some(Settings::default())));
    assert_eq!(bench.order(sent), [job(1), job(3)]);
}

#[test]
fn a_new_leader_assigns_no_job_before_it_knows_the_settings() {
    let mut bench = Bench::unsure();
    bench.queue([(1, entry(9, NOW)), (2, echo())]);
    let sent = bench.worker(2);
    assert_eq!(bench.order(sent), []);
    let sent = bench.handle(paused("sum"));
    assert_eq!(bench.order(sent), [job(2)]);
}

#[test]
fn only_one_read_of_the_settings_is_in_flight_at_a_time() {
    let mut bench = Bench::unsure();
    assert_eq!(bench.handle(Event::SettingsChanged), [Effect::ReadSettings]);
    assert_eq!(bench.handle(Event::SettingsChanged), [], "a read is in flight");
    let again = bench.handle(Event::Settings(Some(Settings::default())));
    assert_eq!(again, [Effect::ReadSettings], "a change during a read causes another read");
    assert_eq!(bench.handle(Event::Settings(None)), [], "no answer: the session is disturbed");
    assert_eq!(bench.handle(Event::Resume), [Effect::ReadSettings]);
}

/// The leader does not read the payload.
#[test]
fn an_entry_waits_since_its_submission_or_its_start_time() {
    let payload = Payload::json(*b"1").unwrap();
    let record = crate::job::JobRecord::new(kind("sum"), payload, Uuid::nil(), WallMillis(10));
    assert_eq!(record.entry(0).submitted_at, WallMillis(10));
    let delayed = crate::job::JobRecord {
        state: crate::job::JobState::Open { not_before: Some(WallMillis(90)) },
        ..record
    };
    assert_eq!(delayed.entry(0).submitted_at, WallMillis(90));
}
