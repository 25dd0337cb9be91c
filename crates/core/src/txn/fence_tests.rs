//! The fences of each transaction as ZooKeeper sees them: one test per row of the module's table.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::change::Noted;
use crate::job::{Attempt, Ending, Payload, Placement, Policy, Priority};
use crate::name::{Kind, Lane, ScheduleId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::schedule::{Misfire, Overlap, ScheduleRecord, ScheduleSpec, Template, When};
use crate::zookeeper::ZooKeeper;

const NOW: WallMillis = WallMillis(120_000);

const DELAY: Delay = Delay { minute: 2, generation: 1, attempt: 2 };

fn job() -> JobId {
    JobId::new("a").unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(7))
}

fn record() -> JobRecord {
    JobRecord {
        placement: Placement { lane: Some(Lane::new("a").unwrap()), ..Placement::default() },
        attempts: 1,
        ..JobRecord::new(
            Kind::new("sum").unwrap(),
            Payload::json(*b"{}").unwrap(),
            Uuid::nil(),
            WallMillis(0),
        )
    }
}

/// The path of the entry of a record that is ready.
fn entry(record: &JobRecord) -> String {
    path::ready_entry(&ReadyEntry::of_record(&job(), record))
}

fn assignment() -> Assignment {
    Assignment::new(2, 5, NOW)
}

/// One line per operation: its type, path and version.
fn shape(ops: &[Op]) -> Vec<String> {
    let short = |path: &str| path.replace(&worker().to_string(), "W");
    let lines = ops.iter().map(|op| match op {
        Op::Check { path, version } => format!("check {} at {version}", short(path)),
        Op::Create { path, lifetime: Lifetime::Persistent, .. } => format!("create {}", short(path)),
        Op::Create { path, lifetime: Lifetime::Ephemeral, .. } => format!("create {} for us", short(path)),
        Op::Create { path, lifetime: Lifetime::Container, .. } => format!("create container {}", short(path)),
        Op::Set { path, version, .. } => format!("set {} at {version}", short(path)),
        Op::Delete { path, version: Some(version) } => format!("delete {} at {version}", short(path)),
        Op::Delete { path, version: None } => format!("delete {}", short(path)),
    });
    lines.collect()
}

fn closed(ending: Ending, assignment: Option<i32>) -> Vec<Op> {
    let (record, next) = record().close(Attempt { number: 2, worker: worker() }, ending, NOW, 0);
    close(&job(), worker(), 3, assignment, &record, &next)
}

#[test]
fn a_leader_is_fenced_by_its_epoch_and_the_workers_version() {
    assert_eq!(shape(&[fence(5), check_worker(worker(), 1)]), ["check /epoch at 5", "check /workers/W at 1"]);
}

/// S5: each of the two checks rejects the beat alone.
#[test]
fn a_beat_is_rejected_under_another_epoch_and_without_its_candidate() {
    let candidate = "/election/c";
    assert_eq!(
        shape(&beat(5, candidate.to_owned())),
        ["check /epoch at 5", "check /election/c at 0", "set /leading at -1"]
    );
    let table = [
        (5, true, Outcome::Applied(())),
        (6, true, Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion })),
        (5, false, Outcome::Rejected(Rejection { at: 1, reason: Reason::NoNode })),
    ];
    for (epoch, stands, expected) in table {
        let mut zookeeper = ZooKeeper::new();
        let operator = zookeeper.operator;
        zookeeper.put(path::EPOCH, Vec::new(), epoch);
        zookeeper.put(path::LEADING, Vec::new(), 0);
        if stands {
            zookeeper.put(candidate, Vec::new(), 0);
        }
        assert_eq!(zookeeper.commit(operator, &beat(5, candidate.to_owned())), expected, "{epoch} {stands}");
    }
}

#[test]
fn a_submission_creates_record_entry_and_turn() {
    let made = [
        "create /jobs/1f/e/a".to_owned(),
        format!("create {}", entry(&record())),
        "create /lanes/1f/a/1-a".into(),
    ];
    assert_eq!(shape(&submit(&job(), &record(), 0)), made);
}

#[test]
fn an_assignment_deletes_the_entry_and_checks_the_turn() {
    let turn = record().turn();
    let at = ReadyEntry::of_record(&job(), &record());
    let moved = [
        format!("delete {}", entry(&record())),
        "create /assignments/W/a".into(),
        "check /lanes/1f/a/1-a at 0".into(),
    ];
    assert_eq!(shape(&assign(&at, worker(), &assignment(), turn.as_ref())), moved);
    assert_eq!(shape(&assign(&at, worker(), &assignment(), None)), moved[..2]);
}

#[test]
fn a_close_checks_the_record_version_and_deletes_the_assignment() {
    let succeeded = closed(Ending::Succeeded(Payload::json(*b"1").unwrap()), None);
    assert_eq!(
        shape(&succeeded),
        ["set /jobs/1f/e/a at 3", "delete /assignments/W/a", "delete /lanes/1f/a/1-a"]
    );
    let next = JobRecord { attempts: 2, ..record() };
    let released = [
        "set /jobs/1f/e/a at 3".to_owned(),
        "delete /assignments/W/a at 4".into(),
        format!("create {}", entry(&next)),
    ];
    assert_eq!(shape(&closed(Ending::Released, Some(4))), released);
    for ending in [Ending::Failed("x".into()), Ending::Lost] {
        let delayed = shape(&closed(ending, Some(4)));
        assert_eq!(delayed[..2], released[..2]);
        assert_eq!(delayed[2..], ["create /delayed/2/1.3-a"]);
    }
}

#[test]
fn a_promotion_deletes_the_delayed_entry_of_its_attempt() {
    let moved = ["delete /delayed/2/1.2-a".to_owned(), format!("create {}", entry(&record()))];
    assert_eq!(shape(&promote(&job(), DELAY, &record().entry(1))), moved);
}

/// S9: the reply to the promotion of the first backoff was lost, and the request arrives after the second failure of the
/// same minute.
#[test]
fn a_late_promotion_does_not_queue_a_later_attempt_early() {
    let mut zookeeper = ZooKeeper::new();
    let operator = zookeeper.operator;
    let failed = |record: &JobRecord, number| {
        let attempt = Attempt { number, worker: worker() };
        record.clone().close(attempt, Ending::Failed("x".into()), NOW, 0).0
    };
    let first = failed(&JobRecord { attempts: 0, ..record() }, 1);
    let second = failed(&first, 2);
    let late = promote(&job(), first.delay().unwrap(), &first.entry(1));
    assert_eq!(
        first.delay().unwrap().minute,
        second.delay().unwrap().minute,
        "both backoffs end in one minute"
    );
    let entry = path::delayed_entry(second.delay().unwrap(), &job());
    let shard = path::ready_entry(&ReadyEntry::of_record(&job(), &first));
    zookeeper.make_parents(&shard);
    zookeeper.put(&entry, encode(&second.entry(2)), 0);
    assert!(matches!(zookeeper.commit(operator, &late), Outcome::Rejected(_)));
    assert!(zookeeper.get(&entry).is_some());
    assert!(!zookeeper.znodes().keys().any(|path| matches!(path::parse(path), path::Place::Ready(_))));
    let due = promote(&job(), second.delay().unwrap(), &second.entry(2));
    assert_eq!(zookeeper.commit(operator, &due), Outcome::Applied(()));
}

/// S1: the reply to a removal was lost, another process removed the record, and the id was submitted again.
#[test]
fn a_late_removal_does_not_delete_a_new_job_with_the_same_id() {
    let mut zookeeper = ZooKeeper::new();
    let (operator, bucket, path) = (zookeeper.operator, Bucket::of(&job()), path::record(&job()));
    zookeeper.make_parents(&path);
    let removals = zookeeper.get(&bucket.jobs()).unwrap().version;
    zookeeper.put(&path, encode(&record().cancel(NOW)), 1);
    let removal = [count_removal(bucket, removals, None), remove_record(&job(), 1)];
    assert_eq!(zookeeper.commit(operator, &removal), Outcome::Applied(()));
    // The new job has failed once, so its version is the same.
    zookeeper.put(&path, encode(&record()), 1);
    assert!(matches!(zookeeper.commit(operator, &removal), Outcome::Rejected(_)));
    assert!(zookeeper.get(&path).is_some());
}

#[test]
fn a_cancel_is_fenced_by_record_and_entry_or_by_the_assignment() {
    let cancelled = |waiting| shape(&cancel(&job(), 3, &record().cancel(NOW), &waiting));
    let ends = |entry: &str| {
        ["set /jobs/1f/e/a at 3".to_owned(), format!("delete {entry}"), "delete /lanes/1f/a/1-a".into()]
    };
    let at = ReadyEntry::of_record(&job(), &record());
    assert_eq!(cancelled(EntryLocation::Ready(at)), ends(&entry(&record())));
    assert_eq!(cancelled(EntryLocation::Delayed(DELAY)), ends("/delayed/2/1.2-a"));
    let asked = flag_cancel(&job(), worker(), 4, &assignment());
    assert_eq!(shape(&[asked]), ["set /assignments/W/a at 4"]);
}

#[test]
fn a_retry_and_a_release_are_fenced_by_the_record_version() {
    let again = record().cancel(NOW).reopen();
    let reopened = [
        "set /jobs/1f/e/a at 3".to_owned(),
        format!("create {}", entry(&again)),
        "create /lanes/1f/a/2-a".into(),
    ];
    assert_eq!(shape(&reopen(&job(), 3, &again, 0)), reopened);
    let released = [
        "delete /quarantine/a".to_owned(),
        "set /jobs/1f/e/a at 3".into(),
        format!("create {}", entry(&record())),
    ];
    assert_eq!(shape(&release(&job(), 3, &record())), released);
}

/// S8: another schedule, or a client, may have opened the job in the meantime.
#[test]
fn a_tick_that_opens_a_job_again_is_fenced_by_the_record_version() {
    let template = Template {
        kind: record().kind,
        payload: record().payload,
        policy: Policy::default(),
        placement: Placement::default(),
        priority: Priority::default(),
        expires_after: None,
        job_id: Some(job()),
    };
    let when = When::cron("0 * * * *", "UTC").unwrap();
    let (misfire, grace, overlap) = (Misfire::Skip, Duration::from_secs(60), Overlap::Allow);
    let spec = ScheduleSpec { when, misfire, grace, overlap, template };
    let (schedule, ticked) = (ScheduleId::new("s").unwrap(), ScheduleRecord::new(spec, NOW));
    let again = record().cancel(NOW).reopen();
    let ops = tick(&schedule, 4, &ticked, (&job(), &again), Prior::Reopened(7));
    assert_eq!(shape(&ops)[..2], ["set /schedules/s at 4", "set /jobs/1f/e/a at 7"]);
}

#[test]
fn a_worker_registers_with_its_inbox_and_retires_only_with_an_empty_one() {
    let info = WorkerInfo {
        node: crate::name::NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![],
        leases: BTreeMap::new(),
        slots: 1,
        tags: vec![],
        codec: 1,
        started_at: NOW,
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    };
    assert_eq!(shape(&register(worker(), &info)), ["create /assignments/W", "create /workers/W for us"]);
    assert_eq!(shape(&retire(worker())), ["delete /assignments/W", "delete /workers/W"]);
    assert_eq!(shape(&remove_inbox(worker())), ["delete /assignments/W"]);
}

#[test]
fn orphans_are_deleted_only_while_the_record_is_unchanged() {
    let dropped = |record| shape(&discard(&job(), worker(), 4, record));
    assert_eq!(dropped(Some(3)), ["check /jobs/1f/e/a at 3", "delete /assignments/W/a at 4"]);
    let absent = ["create /jobs/1f/e/a", "delete /jobs/1f/e/a", "delete /assignments/W/a at 4"];
    assert_eq!(dropped(None), absent);
    let note = ["create /jobs/1f/e/a", "delete /jobs/1f/e/a", "delete /quarantine/a"];
    assert_eq!(shape(&remove_note(&job())), note);
    assert_eq!(
        shape(&quarantine(&job(), worker(), "why")),
        ["delete /assignments/W/a", "create /quarantine/a"]
    );
}
