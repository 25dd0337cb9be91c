use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::backoff::Backoff;
use crate::budget::{
    MAX_BY_BYTES, MAX_COUNT, MAX_DEPTH, MAX_ERROR_BYTES, MAX_FORMER_IDS, MAX_KINDS, MAX_MEMBERS,
    MAX_NOTE_BYTES, MAX_PAST_ATTEMPTS, MAX_PAST_ERROR_BYTES, MAX_RECORDS, MAX_RETENTION, MAX_SLOTS, MAX_TAGS,
};
use crate::change::{Author, Change, ChangeKind, Note, Noted};
use crate::clock_report::{ClockReport, MAX_HOST_BYTES, Process};
use crate::failover::Failover;
use crate::group::{FirstGroup, GroupRecord, Idle, Parent, Stage, Stop};
use crate::job::{
    Assignment, Attempt, AttemptEnd, AttemptOutcome, Ending, Isolation, JobRecord, JobState, Membership,
    PastAttempt, Payload, Placement, Policy, Priority, Progress, QueueEntry, Role, TurnIndex, Verdict,
};
use crate::machine::election::campaign::Strategy;
use crate::name::{AffinityKey, GroupId, JobId, Kind, Lane, NodeId, Tag, WorkerId};
use crate::placement::{BuiltInStrategy, PlacementSetting};
use crate::retention::Retention;
use crate::schedule::{
    Misfire, Missed, Overlap, ScheduleRecord, ScheduleSpec, SkipReason, Skipped, Template, When,
};
use crate::segment::{Head, Member, Results, Segment};
use crate::takeover::Owner;
use crate::time::WallMillis;
use crate::trace::TraceContext;
use crate::worker::{EpochRecord, PauseRecord, WorkerInfo, WorkerSettings};

fn trace() -> TraceContext {
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap()
}

fn progress() -> Progress {
    Progress::default().with_message(Some(40), "halfway").unwrap().with_checkpoint(*b"row 7").unwrap()
}

fn past() -> PastAttempt {
    PastAttempt {
        generation: 1,
        end: AttemptEnd {
            attempt: Attempt { number: 1, worker: WorkerId::new(Uuid::from_u128(8)) },
            how: AttemptOutcome::Failed,
            at: WallMillis(1_700_000_000_200),
        },
        assigned_at: Some(WallMillis(1_700_000_000_100)),
        error: Some("no disk".into()),
    }
}

fn job() -> JobRecord {
    JobRecord {
        kind: Kind::new("sum").unwrap(),
        payload: Payload::json(*br#"{"first":1,"second":2}"#).unwrap(),
        policy: Policy {
            max_attempts: 5,
            max_losses: 3,
            backoff: Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(300) },
            timeout: Some(Duration::from_secs(30)),
            lease: Some(Duration::from_secs(60)),
            auto_renew: Some(true),
            dead_letter: true,
        },
        placement: Placement {
            tags: vec![Tag::new("eu").unwrap(), Tag::new("gpu").unwrap()],
            affinity: Some(AffinityKey::new("customer-7").unwrap()),
            lane: Some(Lane::new("account-7").unwrap()),
        },
        priority: Priority::HIGHEST,
        expires_at: Some(WallMillis(1_800_000_000_000)),
        membership: Some(Membership {
            group: GroupId::new("sum:batch-7").unwrap(),
            role: Role::Member(12),
            counted: true,
        }),
        token: Uuid::from_u128(0x0102_0304),
        submitted_at: WallMillis(1_700_000_000_000),
        generation: 1,
        attempts: 2,
        failures: 1,
        losses: 1,
        lost_workers: vec![WorkerId::new(Uuid::from_u128(9))],
        excused: 1,
        last: Some(AttemptEnd {
            attempt: Attempt { number: 2, worker: WorkerId::new(Uuid::from_u128(9)) },
            how: AttemptOutcome::Lost,
            at: WallMillis(1_700_000_000_500),
        }),
        last_error: Some("attempt 2 lost its worker".into()),
        progress: Some(progress()),
        spawned: true,
        trace: Some(trace()),
        state: JobState::Terminal {
            verdict: Verdict::Succeeded(Payload::json(*b"3").unwrap()),
            at: WallMillis(7),
        },
        assigned_at: Some(WallMillis(1_700_000_000_300)),
        history: vec![past()],
        changed: Some(change(ChangeKind::Reopened)),
        part: 3,
        released: true,
    }
}

fn entry() -> QueueEntry {
    QueueEntry {
        kind: Kind::new("sum").unwrap(),
        attempt: 3,
        generation: 2,
        fencing_token: 6,
        placement: job().placement,
        not_before: WallMillis(9),
        priority: Priority::HIGHEST,
        submitted_at: WallMillis(8),
        part: 3,
        expires_at: Some(WallMillis(10)),
        lease: Some(Duration::from_secs(60)),
        isolation: Isolation::Apart,
        trace: Some(trace()),
    }
}

fn worker() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n1").unwrap(),
        host: "host".into(),
        kinds: vec![Kind::new("echo").unwrap(), Kind::new("sum").unwrap()],
        leases: BTreeMap::from([(Kind::new("sum").unwrap(), Duration::from_secs(60))]),
        slots: 8,
        tags: vec![],
        codec: SCHEMA,
        started_at: WallMillis(5),
        former: vec![WorkerId::new(Uuid::from_u128(8))],
        owner: Some(Owner([7; 16])),
        draining: false,
        settings: Noted {
            value: WorkerSettings {
                slots: Some(3),
                tags: Some(vec![Tag::new("gpu").unwrap()]),
                paused_kinds: vec![Kind::new("sum").unwrap()],
            },
            changed: Some(change(ChangeKind::Set)),
        },
    }
}

fn retention() -> Noted<Retention> {
    Noted { value: Retention::default(), changed: Some(change(ChangeKind::Set)) }
}

fn placement() -> Noted<PlacementSetting> {
    Noted::unchanged(PlacementSetting { strategy: BuiltInStrategy::Rendezvous.into() })
}

fn group() -> GroupRecord {
    let outer = Membership { group: GroupId::new("outer").unwrap(), role: Role::Member(7), counted: true };
    GroupRecord {
        total: Some(100),
        fail_fast: true,
        closed: true,
        parent: Some(Parent {
            job: JobId::new("p:x").unwrap(),
            kind: Kind::new("p").unwrap(),
            generation: 2,
            finish: true,
            first: Some(FirstGroup { group: GroupId::new("p:x@2.7a").unwrap(), number: 14 }),
            membership: Some(outer),
            depth: 3,
            lane: Some(Lane::new("x").unwrap()),
            outer_lanes: vec![Lane::new("y").unwrap()],
        }),
        stage: Stage::Done { at: WallMillis(9) },
        stopped: Some(Stop::Member(5)),
        trace: Some(trace()),
        idle: Some(Idle { members: 3, since: Some(WallMillis(7)) }),
        further: vec![Kind::new("more").unwrap()],
        changed: Some(change(ChangeKind::Abandoned)),
        ..GroupRecord::new(Kind::new("sum").unwrap(), Uuid::from_u128(4), WallMillis(8))
    }
}

#[test]
fn every_stage_and_stop_of_a_group_survives_a_round_trip_and_bounds_are_checked() {
    for stage in [Stage::Open, Stage::Joining, Stage::Finishing] {
        for stopped in [None, Some(Stop::Parent), Some(Stop::Outer), Some(Stop::Abandoned)] {
            let group = GroupRecord { stage, stopped, ..group() };
            assert_eq!(stored(&group), Ok(group.clone()));
        }
    }
    let total = GroupRecord { total: Some(MAX_MEMBERS + 1), ..group() };
    let deep = Parent { depth: MAX_DEPTH + 1, ..group().parent.unwrap() };
    let deep = GroupRecord { parent: Some(deep), ..group() };
    let lanes = vec![Lane::new("y").unwrap(); MAX_DEPTH as usize + 1];
    let lanes = Parent { outer_lanes: lanes, ..group().parent.unwrap() };
    let further = GroupRecord { further: vec![Kind::new("more").unwrap(); 16], ..group() };
    assert!(decode::<GroupRecord>(&encode(&further)).is_err(), "a parent has at most 16 groups");
    let first = Some(FirstGroup { group: GroupId::new("g").unwrap(), number: 15 });
    let first = GroupRecord { parent: Some(Parent { first, ..group().parent.unwrap() }), ..group() };
    assert!(decode::<GroupRecord>(&encode(&first)).is_err(), "the last further group has number 14");
    let lanes = GroupRecord { parent: Some(lanes), ..group() };
    for wrong in [total, deep, lanes] {
        assert!(matches!(stored(&wrong), Err(WireError::Value(_))), "{wrong:?}");
    }
}

fn epoch() -> EpochRecord {
    EpochRecord {
        node: NodeId::new("n1").unwrap(),
        session: -5,
        token: Uuid::from_u128(3),
        since: WallMillis(8),
    }
}

fn assignment() -> Assignment {
    let lease = Duration::from_secs(60);
    Assignment {
        cancel: true,
        lease,
        progress: Some(progress()),
        spawned: true,
        generation: 2,
        fencing_token: 6,
        isolation: Isolation::Alone,
        moved_from: Some(5),
        cancelled: Some(change(ChangeKind::Cancelled)),
        ..Assignment::new(3, 12, WallMillis(77))
    }
}

fn change(what: ChangeKind) -> Change {
    Change { what, by: Author::new("ops@example").unwrap(), at: WallMillis(5) }
}

fn clock_report() -> ClockReport {
    let process = Process { node: Some(NodeId::new("n1").unwrap()), host: "host".into() };
    ClockReport { process, ahead: -31 }
}

#[test]
fn a_clock_report_is_bounded() {
    let client = Process { node: None, host: "x".repeat(MAX_HOST_BYTES) };
    let client = ClockReport { process: client, ahead: i64::MAX };
    assert_eq!(stored(&client), Ok(client.clone()));
    let long = Process { node: None, host: "x".repeat(MAX_HOST_BYTES + 1) };
    let long = ClockReport { process: long, ahead: 6 };
    assert!(stored(&long).unwrap_err().to_string().starts_with("a host name of 256 bytes"));
}

fn pause() -> PauseRecord {
    let note = Note::new("deploy").unwrap();
    PauseRecord { by: Some(change(ChangeKind::Paused).by), note, since: WallMillis(6) }
}

fn schedule() -> ScheduleRecord {
    let ticks =
        Missed { from: WallMillis(1_795_226_400_000), through: WallMillis(1_795_312_800_000), count: 2 };
    let template = Template {
        kind: job().kind,
        payload: job().payload,
        policy: job().policy,
        placement: Placement { lane: None, ..job().placement },
        priority: Priority::HIGHEST,
        expires_after: Some(Duration::from_secs(600)),
        job_id: Some(JobId::new("reindex").unwrap()),
    };
    let spec = ScheduleSpec {
        when: When::cron("30 2 * * MON-FRI", "Europe/Berlin").unwrap(),
        misfire: Misfire::CatchUp { limit: 3, within: Duration::from_secs(86_400) },
        grace: Duration::from_secs(60),
        overlap: Overlap::Forbid,
        template,
    };
    ScheduleRecord {
        spec_version: 2,
        paused: true,
        cursor: WallMillis(1_795_312_800_000),
        ticked: 7,
        skipped: 2,
        last_tick: Some(WallMillis(1_795_140_000_000)),
        last_skipped: Some(Skipped { reason: SkipReason::Misfire, ticks }),
        changed: Some(change(ChangeKind::Paused)),
        ..ScheduleRecord::new(spec, WallMillis(1_790_000_000_000))
    }
}

/// One schedule for each other variant of the parts of a schedule.
fn schedules() -> [(ScheduleRecord, &'static str); 4] {
    let with = |when, misfire, overlap, reason| {
        let spec = ScheduleSpec { when, misfire, overlap, ..schedule().spec };
        let skipped = schedule().last_skipped.map(|skipped| Skipped { reason, ..skipped });
        ScheduleRecord { spec, last_skipped: skipped, ..schedule() }
    };
    let every = When::Every { interval: Duration::from_secs(90), anchor: WallMillis(30_000) };
    let once = When::At(WallMillis(1_795_226_400_000));
    [
        (
            with(every.clone(), Misfire::Skip, Overlap::Allow, SkipReason::Overlap),
            include_str!("golden/schedule_every.v1.hex"),
        ),
        (
            with(once, Misfire::Once, Overlap::Forbid, SkipReason::Pause),
            include_str!("golden/schedule_once.v1.hex"),
        ),
        (
            with(every.clone(), Misfire::Skip, Overlap::Allow, SkipReason::Replacement),
            include_str!("golden/schedule_replaced.v1.hex"),
        ),
        (
            with(every, Misfire::Skip, Overlap::Allow, SkipReason::Taken),
            include_str!("golden/schedule_taken.v1.hex"),
        ),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// One record for each variant of a state and of an attempt's end. bincode encodes variants by their position: a
/// variant that moved would be decoded as another one.
fn forms() -> [(JobRecord, &'static str); 10] {
    let ended = |how| Some(AttemptEnd { how, ..job().last.unwrap() });
    let ends = |verdict| JobState::Terminal { verdict, at: WallMillis(7) };
    let open = |not_before| JobState::Open { not_before };
    let plain = JobRecord {
        policy: Policy { timeout: None, lease: None, auto_renew: None, dead_letter: false, ..job().policy },
        placement: Placement::default(),
        expires_at: None,
        membership: None,
        progress: None,
        spawned: false,
        trace: None,
        attempts: 0,
        failures: 0,
        losses: 0,
        lost_workers: vec![],
        excused: 0,
        last: None,
        last_error: None,
        assigned_at: None,
        history: vec![],
        changed: None,
        state: open(None),
        ..job()
    };
    let member = |role| Some(Membership { role, counted: false, ..job().membership.unwrap() });
    let last = |how, state| JobRecord { last: ended(how), state, ..job() };
    [
        (plain, include_str!("golden/job_record_fresh.v1.hex")),
        (
            last(AttemptOutcome::Failed, open(Some(WallMillis(9)))),
            include_str!("golden/job_record_delayed.v1.hex"),
        ),
        (last(AttemptOutcome::Released, open(None)), include_str!("golden/job_record_released.v1.hex")),
        (last(AttemptOutcome::Lost, ends(Verdict::Dead)), include_str!("golden/job_record_dead.v1.hex")),
        (
            last(AttemptOutcome::Cancelled, ends(Verdict::Cancelled)),
            include_str!("golden/job_record_cancelled.v1.hex"),
        ),
        (
            last(AttemptOutcome::Succeeded, ends(Verdict::Succeeded(job().payload))),
            include_str!("golden/job_record_succeeded.v1.hex"),
        ),
        (
            last(AttemptOutcome::Invalid, ends(Verdict::Dead)),
            include_str!("golden/job_record_invalid.v1.hex"),
        ),
        (
            last(AttemptOutcome::Snoozed, open(Some(WallMillis(9)))),
            include_str!("golden/job_record_deferred.v1.hex"),
        ),
        (
            JobRecord { membership: member(Role::Join), ..last(AttemptOutcome::LeaseExpired, open(None)) },
            include_str!("golden/job_record_lease_expired.v1.hex"),
        ),
        (
            JobRecord {
                membership: member(Role::Finish),
                ..last(AttemptOutcome::Expired, ends(Verdict::Dead))
            },
            include_str!("golden/job_record_overdue.v1.hex"),
        ),
    ]
}

fn segment() -> Segment {
    let member = Member { payload: Payload::json(*b"[1]").unwrap(), trace: Some(trace()) };
    let head = Head {
        kind: Kind::new("sum").unwrap(),
        policy: Policy::default(),
        placement: Placement { lane: None, ..job().placement },
        priority: Priority::HIGHEST,
        submitted_at: WallMillis(1_700_000_000_000),
        part: 3,
        token: Uuid::from_u128(7),
    };
    Segment { head, members: vec![member.clone(), Member { trace: None, ..member }] }
}

fn results() -> Results {
    Results {
        worker: WorkerId::new(Uuid::from_u128(9)),
        assigned_at: WallMillis(1_700_000_000_000),
        results: vec![(1, WallMillis(1_700_000_000_123), Payload::json(*b"3").unwrap())],
    }
}

#[test]
fn an_invalid_stored_segment_is_refused() {
    let wrong = |change: fn(&mut Segment)| {
        let mut segment = segment();
        change(&mut segment);
        decode::<Segment>(&encode(&segment)).unwrap_err().to_string()
    };
    assert!(wrong(|segment| segment.members.clear()).starts_with("a segment of 0 jobs"));
    assert!(
        wrong(|segment| segment.members = vec![segment.members[0].clone(); 101])
            .starts_with("a segment of 101 jobs")
    );
    assert!(
        wrong(|segment| segment.head.placement.lane = Some(Lane::new("a").unwrap()))
            .starts_with("a segment with a lane")
    );
    let mut twice = results();
    twice.results.extend(results().results);
    assert!(decode::<Results>(&encode(&twice)).is_err());
    let mut beyond = results();
    beyond.results[0].0 = 100;
    assert!(decode::<Results>(&encode(&beyond)).is_err());
}

/// Values that a released build wrote must stay readable: a change here requires a new schema version.
#[test]
fn version_1_has_the_golden_bytes() {
    let golden = [
        ("job record", hex(&encode(&job())), include_str!("golden/job_record.v1.hex")),
        ("queue entry", hex(&encode(&entry())), include_str!("golden/queue_entry.v1.hex")),
        ("assignment", hex(&encode(&assignment())), include_str!("golden/assignment.v1.hex")),
        ("worker", hex(&encode(&worker())), include_str!("golden/worker.v1.hex")),
        ("epoch", hex(&encode(&epoch())), include_str!("golden/epoch.v1.hex")),
        ("group", hex(&encode(&group())), include_str!("golden/group.v1.hex")),
        ("turn", hex(&encode(&TurnIndex(99))), include_str!("golden/turn.v1.hex")),
        ("pause", hex(&encode(&pause())), include_str!("golden/pause.v1.hex")),
        ("schedule", hex(&encode(&schedule())), include_str!("golden/schedule.v1.hex")),
        (
            "layout",
            hex(&encode(&Layout { election: Some(Strategy::Single), ..Layout::new(LAYOUT_VERSION) })),
            include_str!("golden/layout.v1.hex"),
        ),
        ("retention", hex(&encode(&retention())), include_str!("golden/retention.v1.hex")),
        ("failover", hex(&encode(&Failover::default())), include_str!("golden/failover.v1.hex")),
        ("placement", hex(&encode(&placement())), include_str!("golden/placement.v1.hex")),
        ("segment", hex(&encode(&segment())), include_str!("golden/segment.v1.hex")),
        ("results", hex(&encode(&results())), include_str!("golden/results.v1.hex")),
        ("clock report", hex(&encode(&clock_report())), include_str!("golden/clock_report.v1.hex")),
        ("removal", hex(&encode(&change(ChangeKind::Removed))), include_str!("golden/removal.v1.hex")),
        ("older layout", hex(&encode(&Layout::new(1))), include_str!("golden/layout_1.v1.hex")),
    ];
    for (what, encoded, golden) in golden {
        assert_eq!(encoded, golden.trim(), "{what}");
    }
    for (job, golden) in forms() {
        assert_eq!(hex(&encode(&job)), golden.trim(), "{job:?}");
        assert_eq!(decode::<JobRecord>(&encode(&job)), Ok(job));
    }
    for (schedule, golden) in schedules() {
        assert_eq!(hex(&encode(&schedule)), golden.trim(), "{schedule:?}");
        assert_eq!(decode::<ScheduleRecord>(&encode(&schedule)), Ok(schedule));
    }
}

#[test]
fn an_invalid_stored_schedule_is_refused() {
    let wrong = |change: fn(&mut ScheduleRecord)| {
        let mut schedule = schedule();
        change(&mut schedule);
        stored(&schedule).unwrap_err().to_string()
    };
    assert!(wrong(|schedule| schedule.spec.grace = Duration::ZERO).starts_with("grace must be"));
    assert!(wrong(|schedule| schedule.ticked = u64::MAX).contains("ticks"));
    assert!(wrong(|schedule| schedule.spec_version = u32::MAX).starts_with("spec version"));
    assert!(
        wrong(|schedule| schedule.last_skipped.as_mut().unwrap().ticks.count = 0)
            .starts_with("0 ticks skipped")
    );
    let every = |schedule: &mut ScheduleRecord| {
        schedule.spec.when = When::Every { interval: Duration::from_millis(1), anchor: WallMillis(0) };
    };
    assert!(wrong(every).starts_with("every must be"));
}

#[test]
fn every_kind_of_change_survives_a_round_trip() {
    for what in [
        ChangeKind::Added,
        ChangeKind::Cancelled,
        ChangeKind::Reopened,
        ChangeKind::Released,
        ChangeKind::Replaced,
        ChangeKind::Paused,
        ChangeKind::Resumed,
        ChangeKind::Abandoned,
        ChangeKind::Set,
        ChangeKind::Removed,
    ] {
        let job = JobRecord { changed: Some(change(what)), ..job() };
        assert_eq!(stored(&job), Ok(job.clone()), "{}", what.as_str());
    }
}

#[test]
fn every_type_survives_a_round_trip() {
    assert_eq!(decode::<JobRecord>(&encode(&job())), Ok(job()));
    assert_eq!(decode::<QueueEntry>(&encode(&entry())), Ok(entry()));
    assert_eq!(decode::<Assignment>(&encode(&assignment())), Ok(assignment()));
    assert_eq!(decode::<WorkerInfo>(&encode(&worker())), Ok(worker()));
    assert_eq!(decode::<EpochRecord>(&encode(&epoch())), Ok(epoch()));
    assert_eq!(decode::<Noted<Retention>>(&encode(&retention())), Ok(retention()));
    assert_eq!(decode::<Failover>(&encode(&Failover::default())), Ok(Failover::default()));
    assert_eq!(decode::<Noted<PlacementSetting>>(&encode(&placement())), Ok(placement()));
    assert_eq!(decode::<PauseRecord>(&encode(&pause())), Ok(pause()));
    assert_eq!(decode::<ScheduleRecord>(&encode(&schedule())), Ok(schedule()));
    assert_eq!(decode::<GroupRecord>(&encode(&group())), Ok(group()));
    assert_eq!(decode::<TurnIndex>(&encode(&TurnIndex(99))), Ok(TurnIndex(99)));
    assert_eq!(decode::<Segment>(&encode(&segment())), Ok(segment()));
    assert_eq!(decode::<Results>(&encode(&results())), Ok(results()));
    assert_eq!(decode::<ClockReport>(&encode(&clock_report())), Ok(clock_report()));
    let removal = change(ChangeKind::Removed);
    assert_eq!(decode::<Change>(&encode(&removal)), Ok(removal));
    assert_eq!(decode::<Layout>(&encode(&Layout::new(7))), Ok(Layout::new(7)));
}

#[test]
fn foreign_newer_and_truncated_bytes_are_different_errors() {
    let good = encode(&assignment());
    let mut newer = good.clone();
    newer[4] = 2;
    let mut format = good.clone();
    format[2] = 9;
    let mut trailing = good.clone();
    trailing.push(0);
    assert_eq!(decode::<Assignment>(b"hello znode"), Err(WireError::Magic));
    assert_eq!(decode::<Assignment>(b""), Err(WireError::Magic));
    assert_eq!(
        decode::<Assignment>(&newer).unwrap_err().to_string(),
        "schema version 2: this build reads up to 1"
    );
    assert!(decode::<Assignment>(&newer).unwrap_err().is_newer());
    assert!(decode::<Assignment>(&format).unwrap_err().is_newer());
    assert_eq!(decode::<QueueEntry>(&good), Err(WireError::Kind { expected: 2, found: 3 }));
    assert_eq!(decode::<Assignment>(&trailing), Err(WireError::Trailing(1)));
    assert!(matches!(decode::<Assignment>(&good[..good.len() - 1]), Err(WireError::Body(_))));
    assert!(matches!(decode::<Assignment>(&vec![0; MAX_RECORD_BYTES + 1]), Err(WireError::TooLarge { .. })));
}

#[test]
fn a_decoded_name_is_checked_again() {
    let mut bytes = encode(&entry());
    let at = bytes.windows(3).position(|w| w == b"sum").unwrap();
    bytes[at] = b'/';
    assert!(matches!(decode::<QueueEntry>(&bytes), Err(WireError::Value(_))));
}

/// Encodes and decodes a value.
fn stored<T: Stored>(value: &T) -> Result<T, WireError> {
    decode(&encode(value))
}

#[test]
fn a_count_that_could_overflow_is_refused() {
    let counts: [fn(&mut JobRecord) -> &mut u32; 6] = [
        |job| &mut job.generation,
        |job| &mut job.attempts,
        |job| &mut job.failures,
        |job| &mut job.losses,
        |job| &mut job.excused,
        |job| &mut job.last.as_mut().unwrap().attempt.number,
    ];
    for count in counts {
        let mut job = job();
        *count(&mut job) = MAX_COUNT;
        assert_eq!(stored(&job), Ok(job.clone()));
        *count(&mut job) += 1;
        assert!(matches!(stored(&job), Err(WireError::Value(_))), "{job:?}");
    }
    let turn = QueueEntry { generation: MAX_COUNT + 1, ..entry() };
    assert!(matches!(stored(&turn), Err(WireError::Value(_))));
    let entry = |attempt| QueueEntry { attempt, ..entry() };
    assert_eq!(stored(&entry(MAX_COUNT)), Ok(entry(MAX_COUNT)));
    assert!(matches!(stored(&entry(MAX_COUNT + 1)), Err(WireError::Value(_))));
    let later = Assignment { generation: MAX_COUNT + 1, ..assignment() };
    assert!(matches!(stored(&later), Err(WireError::Value(_))));
    let assignment = |attempt| Assignment { attempt, ..assignment() };
    assert_eq!(stored(&assignment(MAX_COUNT)), Ok(assignment(MAX_COUNT)));
    assert_eq!(
        stored(&assignment(u32::MAX)).unwrap_err().to_string(),
        "attempt 4294967295: at most 2147483647 is allowed"
    );
}

#[test]
fn the_highest_accepted_counts_can_be_incremented() {
    let open = JobState::Open { not_before: None };
    let full = JobRecord {
        generation: MAX_COUNT,
        attempts: MAX_COUNT,
        failures: MAX_COUNT,
        losses: MAX_COUNT,
        state: open,
        ..job()
    };
    let full = stored(&full).unwrap();
    let attempt = Attempt { number: full.entry(0).attempt, worker: WorkerId::new(Uuid::nil()) };
    for ending in [Ending::Failed("x".into()), Ending::Lost, Ending::Released] {
        let (closed, _) = full.clone().close(attempt, ending, WallMillis(1), 0);
        assert_eq!(closed.attempts, MAX_COUNT + 1);
    }
    assert_eq!(full.reopen().generation, MAX_COUNT + 1);
}

/// Such bytes are foreign or damaged: no build writes an id of zeros or undefined flags.
#[test]
fn an_invalid_stored_trace_context_is_refused_in_every_record() {
    let good = [trace().trace().as_slice(), trace().span().as_slice(), &[1]].concat();
    let wrong = [
        (
            [[0; 16].as_slice(), &trace().span(), &[1]].concat(),
            "the trace id of a trace context must not be zero",
        ),
        (
            [trace().trace().as_slice(), &[0; 8], &[1]].concat(),
            "the span id of a trace context must not be zero",
        ),
        (
            [trace().trace().as_slice(), &trace().span(), &[0x80]].concat(),
            "trace flags 0x80: at most 0x03 is allowed",
        ),
    ];
    for (bad, said) in wrong {
        let damaged = |encoded: Vec<u8>| {
            let at = encoded.windows(good.len()).position(|bytes| bytes == good).unwrap();
            [&encoded[..at], &bad, &encoded[at + good.len()..]].concat()
        };
        assert_eq!(decode::<JobRecord>(&damaged(encode(&job()))), Err(WireError::Value(said.into())));
        assert_eq!(decode::<QueueEntry>(&damaged(encode(&entry()))), Err(WireError::Value(said.into())));
        assert_eq!(decode::<GroupRecord>(&damaged(encode(&group()))), Err(WireError::Value(said.into())));
    }
}

#[test]
fn a_stored_error_over_the_bound_is_refused() {
    let job = |len| JobRecord { last_error: Some("x".repeat(len)), ..job() };
    assert_eq!(stored(&job(MAX_ERROR_BYTES)), Ok(job(MAX_ERROR_BYTES)));
    assert!(matches!(stored(&job(MAX_ERROR_BYTES + 1)), Err(WireError::Value(_))));
}

#[test]
fn a_stored_history_over_its_bounds_is_refused() {
    let listed = |count| JobRecord { history: vec![past(); count], ..job() };
    assert_eq!(stored(&listed(MAX_PAST_ATTEMPTS)), Ok(listed(MAX_PAST_ATTEMPTS)));
    assert!(matches!(stored(&listed(MAX_PAST_ATTEMPTS + 1)), Err(WireError::Value(_))));
    let error =
        |len| JobRecord { history: vec![PastAttempt { error: Some("x".repeat(len)), ..past() }], ..job() };
    assert_eq!(stored(&error(MAX_PAST_ERROR_BYTES)), Ok(error(MAX_PAST_ERROR_BYTES)));
    assert!(matches!(stored(&error(MAX_PAST_ERROR_BYTES + 1)), Err(WireError::Value(_))));
    let generation = |generation| JobRecord { history: vec![PastAttempt { generation, ..past() }], ..job() };
    assert!(matches!(stored(&generation(MAX_COUNT + 1)), Err(WireError::Value(_))));
}

#[test]
fn only_bytes_over_the_bound_are_too_large() {
    let read = |len| decode::<JobRecord>(&vec![0; len]);
    assert_eq!(read(MAX_RECORD_BYTES), Err(WireError::Magic));
    assert_eq!(read(MAX_RECORD_BYTES + 1), Err(WireError::TooLarge { len: MAX_RECORD_BYTES + 1 }));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = decode::<JobRecord>(&bytes).is_ok();
        let _ = decode::<WorkerInfo>(&bytes).is_ok();
    }

    #[test]
    fn any_flipped_byte_is_an_error_or_another_valid_value(at in 0usize..1000, with: u8) {
        let mut bytes = encode(&job());
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(read) = decode::<JobRecord>(&bytes) {
            prop_assert_eq!(decode::<JobRecord>(&encode(&read)), Ok(read));
        }
    }
}

#[test]
fn lists_and_numbers_are_accepted_up_to_their_bounds() {
    fn worker_with(change: impl FnOnce(&mut WorkerInfo)) -> bool {
        let mut info = WorkerInfo { leases: BTreeMap::new(), settings: Noted::default(), ..worker() };
        change(&mut info);
        stored(&info) == Ok(info)
    }
    let kinds = |n: usize| (0..n).map(|n| Kind::new(format!("k{n:03}")).unwrap()).collect::<Vec<_>>();
    let tags = |n: usize| (0..n).map(|n| Tag::new(format!("t{n:03}")).unwrap()).collect::<Vec<_>>();
    for (over, accepted) in [(0, true), (1, false), (2, false)] {
        assert_eq!(worker_with(|info| info.kinds = kinds(MAX_KINDS + over)), accepted, "kinds");
        assert_eq!(worker_with(|info| info.tags = tags(MAX_TAGS + over)), accepted, "tags");
        assert_eq!(
            worker_with(|info| info.former = vec![WorkerId::new(Uuid::nil()); MAX_FORMER_IDS + over]),
            accepted,
            "former ids"
        );
        let count = u32::try_from(over).unwrap();
        let losers = vec![WorkerId::new(Uuid::nil()); MAX_FORMER_IDS + over];
        let lost = JobRecord { lost_workers: losers, losses: 1_000, ..job() };
        assert_eq!(stored(&lost) == Ok(lost), accepted, "lost workers");
        let losers = vec![WorkerId::new(Uuid::nil()); 3 + over];
        let lost = JobRecord { lost_workers: losers, losses: 3, ..job() };
        assert_eq!(stored(&lost) == Ok(lost), accepted, "lost workers for three losses");
        let slots = MAX_SLOTS + count;
        assert_eq!(worker_with(|info| info.slots = slots), accepted, "slots");
        assert_eq!(
            worker_with(|info| info.settings.value.slots = Some(slots)),
            accepted,
            "slots of an operator"
        );
        let by = Author::unchecked("x".repeat(MAX_BY_BYTES + over));
        let cancelled = Some(Change { by: by.clone(), ..change(ChangeKind::Cancelled) });
        let noted = JobRecord { changed: cancelled, ..job() };
        assert_eq!(stored(&noted) == Ok(noted), accepted, "author of a change");
        let paused = PauseRecord { by: Some(by), ..pause() };
        assert_eq!(stored(&paused) == Ok(paused), accepted, "by");
        let note = Note::unchecked("x".repeat(MAX_NOTE_BYTES + over));
        let paused = PauseRecord { note, ..pause() };
        assert_eq!(stored(&paused) == Ok(paused), accepted, "note");
        let over = u64::try_from(over).unwrap();
        let ticked = ScheduleRecord { ticked: u64::MAX / 2 + over, ..schedule() };
        assert_eq!(stored(&ticked) == Ok(ticked), accepted, "ticks");
        let dead = MAX_RETENTION + Duration::from_millis(over);
        let records = Noted::unchanged(Retention { dead, ..Retention::default() });
        assert_eq!(stored(&records) == Ok(records), accepted, "retention");
        let number = MAX_RECORDS + u32::try_from(over).unwrap();
        let records = Noted::unchanged(Retention { records: number, ..Retention::default() });
        assert_eq!(stored(&records) == Ok(records), accepted, "records");
        let role = Role::Member(MAX_MEMBERS - 1 + u32::try_from(over).unwrap());
        let member =
            JobRecord { membership: Some(Membership { role, ..job().membership.unwrap() }), ..job() };
        assert_eq!(stored(&member) == Ok(member), accepted, "members");
    }
    let Err(WireError::Body(why)) = stored(&WorkerInfo { kinds: kinds(MAX_KINDS + 1), ..worker() }) else {
        panic!("they are too many")
    };
    assert!(why.contains("at most 256 items"), "{why}");
    let twice = vec![Tag::new("eu").unwrap(); 2];
    assert!(!worker_with(|info| info.tags = twice), "a set has no item twice");
}

#[test]
fn settings_that_are_not_the_defaults_survive_a_round_trip() {
    let failover = Failover { wait: Duration::from_secs(9), ..Failover::default() };
    assert_eq!(stored(&failover), Ok(failover));
    let value = Retention { records: 7, dead: Duration::from_secs(86_400), ..Retention::default() };
    assert_eq!(stored(&Noted::unchanged(value)), Ok(Noted::unchanged(value)));
}

#[test]
fn only_an_unknown_version_may_be_of_a_newer_build() {
    let mut trailing = encode(&assignment());
    trailing.extend([0; 3]);
    let error = decode::<Assignment>(&trailing).unwrap_err();
    assert_eq!(error, WireError::Trailing(3));
    for error in [error, WireError::Magic, WireError::Value(String::new())] {
        assert!(!error.is_newer(), "{error:?}");
    }
}
