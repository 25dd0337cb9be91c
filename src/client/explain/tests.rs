//! Causes of a wait, and their sentences.

use bellwether_core::change::Noted;
use bellwether_core::job::{Ending, Payload};
use bellwether_core::worker::{PauseRecord, WorkerInfo};
use bellwether_core::{path, txn};
use std::time::Duration;

use super::*;
use crate::client::cluster::WorkerSettings;
use crate::client::in_memory::{BEGINNING, World, id, kind};
use crate::client::job::Job;

const AT: &str = "2026-11-21T11:33:00.000Z";

fn at() -> SystemTime {
    BEGINNING.into()
}

fn worker() -> WorkerId {
    WorkerId::new(uuid::Uuid::from_u128(1))
}

fn tags(names: &[&str]) -> Vec<Tag> {
    names.iter().map(|name| Tag::new(name).unwrap()).collect()
}

#[test]
fn each_cause_is_a_sentence() {
    let (kind, node, worker) = (kind("sum"), NodeId::new("n").unwrap(), worker());
    let shunned = Shunned { worker, node: node.clone(), until: at() };
    let until = |losses, error: Option<&str>| Cause::Backoff {
        until: at(),
        failures: 2,
        losses,
        error: error.map(Into::into),
    };
    let tagged = |missing: &[&str]| Cause::Tags {
        kind: kind.clone(),
        tags: tags(&["a", "b"]),
        missing: tags(missing),
    };
    let pause = |by: Option<&str>, note: Option<&str>, since| Cause::Paused {
        kind: kind.clone(),
        pause: Paused { by: by.map(Into::into), note: note.map(Into::into), since },
    };
    let running = |node: Option<&NodeId>, since, cancel_requested| Cause::Running {
        worker,
        node: node.cloned(),
        attempt: 3,
        since,
        cancel_requested,
    };
    let over = |at, error: Option<&str>| Cause::Ended { at, error: error.map(Into::into) };
    for (cause, sentence) in [
        (Cause::UnknownKind { kind: kind.clone() }, "no live worker has a handler for kind sum".to_owned()),
        (tagged(&[]), "no live worker of kind sum has all of the tags a, b".into()),
        (tagged(&["b"]), "no live worker of kind sum has the tag b".into()),
        (tagged(&["a", "b"]), "no live worker of kind sum has any of the tags a, b".into()),
        (pause(None, None, None), "kind sum is paused".into()),
        (pause(Some("me"), None, Some(at())), format!("kind sum is paused since {AT} by me")),
        (pause(Some("me"), Some("deploy"), None), "kind sum is paused by me: deploy".into()),
        (
            Cause::PausedOnWorkers { kind: kind.clone(), workers: 2 },
            "kind sum is paused on each of the 2 workers that have a handler for it".into(),
        ),
        (Cause::Draining { workers: 2 }, "the 2 workers that could run it are draining".into()),
        (
            Cause::Busy { workers: 2, slots: 8 },
            "all 8 slots of the 2 workers that could run it are busy".into(),
        ),
        (
            Cause::Shunned { workers: vec![shunned.clone(), shunned] },
            format!(
                "workers that could run it did not renew a lease in time and get no jobs: {worker} of n until {AT}, \
                 {worker} of n until {AT}, unless they register again earlier"
            ),
        ),
        (
            Cause::Isolated { losses: 2, alone: true },
            "it has lost 2 workers, so it runs alone and waits for a worker without jobs".into(),
        ),
        (
            Cause::Isolated { losses: 1, alone: false },
            "it has lost a worker, so it waits for a worker without other jobs that have lost one".into(),
        ),
        (Cause::NoLeader, "there is no leader to assign it".into()),
        (Cause::NotBefore { at: at() }, format!("it may not start before {AT}")),
        (until(0, None), format!("it waits until {AT} after 2 failures")),
        (
            until(1, Some("boom")),
            format!("it waits until {AT} after 2 failures and 1 losses, the last: boom"),
        ),
        (until(2, None), format!("it waits until {AT} after 2 failures and 2 losses")),
        (Cause::Expired { at: at() }, format!("it expired at {AT}, and the leader is about to end it")),
        (
            Cause::LaneBusy { lane: Lane::new("l").unwrap(), job: id("b"), status: "queued".into() },
            "b comes first in lane l, and is queued".into(),
        ),
        (Cause::NoTurn, "its turn in its lane was deleted: cancel and retry it".into()),
        (Cause::Assignment, "the leader is about to assign it".into()),
        (running(None, None, false), format!("attempt 3 is on worker {worker}")),
        (
            running(Some(&node), Some(at()), true),
            format!("attempt 3 is on worker {worker} of n since {AT}, and was asked to stop"),
        ),
        (
            Cause::WorkerLost { worker },
            format!("its worker {worker} was lost, and the leader will requeue it"),
        ),
        (Cause::Quarantined { note: "why".into() }, "it is quarantined: why".into()),
        (over(None, None), "it ended".into()),
        (over(Some(at()), Some("boom")), format!("it ended at {AT}: boom")),
        (Cause::Nowhere, "it is in no queue and no inbox: look again".into()),
    ] {
        assert_eq!(cause.to_string(), sentence);
    }
}

/// A namespace with one job, and what explains it.
struct Stage {
    world: std::sync::Arc<World>,
    client: Client,
}

impl Stage {
    fn new(job: Job) -> Self {
        let world = World::new();
        let client = world.client();
        world.run(client.submit(job.id("a"))).unwrap();
        Self { world, client }
    }

    fn cause(&self) -> Cause {
        let explained = self.world.run(self.client.explain(&id("a"))).unwrap();
        assert_eq!(explained.id, id("a"));
        explained.cause
    }
}

fn sum() -> Job {
    Job::new("sum", &1)
}

fn registration() -> WorkerInfo {
    World::registration(&["sum"], 1, &["eu"])
}

#[test]
fn a_queued_job_is_explained_with_what_its_workers_lack() {
    let stage = Stage::new(sum().tags(["eu", "gpu"]));
    assert_eq!(stage.cause(), Cause::UnknownKind { kind: kind("sum") });
    stage.world.worker(1, &registration());
    assert_eq!(
        stage.cause(),
        Cause::Tags { kind: kind("sum"), tags: tags(&["eu", "gpu"]), missing: tags(&["gpu"]) }
    );
    let pause = PauseRecord {
        by: Some(bellwether_core::change::Author::cut("me")),
        note: bellwether_core::change::Note::default(),
        since: BEGINNING,
    };
    stage.world.apply(&[txn::pause(&kind("sum"), &pause)]);
    let pause = Paused { by: Some("me".into()), note: None, since: Some(at()) };
    assert_eq!(stage.cause(), Cause::Paused { kind: kind("sum"), pause });

    let stage = Stage::new(sum());
    stage.world.worker(1, &registration());
    assert_eq!(stage.cause(), Cause::NoLeader);
    let settings = WorkerSettings::default().paused_kinds(vec![kind("sum")]);
    let stage = Stage::new(sum());
    stage.world.worker(1, &WorkerInfo { settings: Noted::unchanged(settings), ..registration() });
    assert_eq!(stage.cause(), Cause::PausedOnWorkers { kind: kind("sum"), workers: 1 });
    let stage = Stage::new(sum());
    stage.world.worker(1, &WorkerInfo { draining: true, ..registration() });
    assert_eq!(stage.cause(), Cause::Draining { workers: 1 });
}

#[test]
fn a_delayed_job_is_explained_with_its_start_or_its_backoff() {
    let hour = Duration::from_secs(3_600);
    let stage = Stage::new(sum().delay(hour));
    assert_eq!(stage.cause(), Cause::NotBefore { at: (BEGINNING + hour).into() });
    let stage = Stage::new(sum().max_attempts(3));
    let worker = stage.world.worker(1, &registration());
    stage.world.assign(&id("a"), worker);
    stage.world.close(&id("a"), worker, Ending::Failed("boom".into()));
    let Cause::Backoff { until, failures, losses, error } = stage.cause() else { panic!("a backoff") };
    assert!(until > at());
    assert_eq!((failures, losses, error.as_deref()), (1, 0, Some("boom")));
}

#[test]
fn a_queued_job_is_overdue_after_its_expiry() {
    let minute = Duration::from_secs(60);
    let stage = Stage::new(sum().expires_in(minute));
    assert_eq!(stage.cause(), Cause::UnknownKind { kind: kind("sum") });
    stage.world.pass(minute);
    assert_eq!(stage.cause(), Cause::UnknownKind { kind: kind("sum") });
    stage.world.pass(Duration::from_millis(1));
    assert_eq!(stage.cause(), Cause::Expired { at: (BEGINNING + minute).into() });
}

#[test]
fn a_running_job_is_explained_with_its_attempt_until_its_worker_is_lost() {
    let stage = Stage::new(sum());
    let worker = stage.world.worker(1, &registration());
    stage.world.assign(&id("a"), worker);
    let running = |attempt, since, cancel_requested| Cause::Running {
        worker,
        node: Some(NodeId::new("by-hand").unwrap()),
        attempt,
        since,
        cancel_requested,
    };
    assert_eq!(stage.cause(), running(1, Some(at()), false));
    stage.world.run(stage.client.cancel(&id("a"))).unwrap();
    assert_eq!(stage.cause(), running(1, Some(at()), true));
    stage.world.tree().put(&path::assignment(worker, &id("a")), *b"?");
    assert_eq!(stage.cause(), running(1, None, false), "the attempt after those of the record");
    stage.world.tree().delete(&path::worker(worker));
    assert_eq!(stage.cause(), Cause::WorkerLost { worker });
}

#[test]
fn an_ended_job_is_explained_with_its_error_unless_it_succeeded() {
    for succeeds in [true, false] {
        let stage = Stage::new(sum().max_attempts(2).backoff(Duration::from_secs(1), Duration::from_secs(1)));
        let worker = stage.world.worker(1, &registration());
        stage.world.assign(&id("a"), worker);
        let ending = match succeeds {
            true => Ending::Succeeded(Payload::json(*b"1").unwrap()),
            false => Ending::Invalid("boom".into()),
        };
        stage.world.tree().update(&path::record(&id("a")), |record: JobRecord| JobRecord {
            last_error: Some("earlier".into()),
            ..record
        });
        stage.world.close(&id("a"), worker, ending);
        let error = (!succeeds).then(|| "boom".to_owned());
        assert_eq!(stage.cause(), Cause::Ended { at: Some(at()), error });
    }
}

#[test]
fn a_job_of_a_lane_is_explained_with_the_first_job_and_its_status() {
    let stage = Stage::new(sum().lane("l"));
    stage.world.run(stage.client.submit(sum().lane("l").id("b"))).unwrap();
    let explained = stage.world.run(stage.client.explain(&id("b"))).unwrap();
    let status = "queued: no live worker has a handler for its kind".to_owned();
    assert_eq!(explained.cause, Cause::LaneBusy { lane: Lane::new("l").unwrap(), job: id("a"), status });
    stage.world.tree().delete(&path::record(&id("a")));
    let explained = stage.world.run(stage.client.explain(&id("b"))).unwrap();
    let status = "no longer stored".to_owned();
    assert_eq!(explained.cause, Cause::LaneBusy { lane: Lane::new("l").unwrap(), job: id("a"), status });
}

#[test]
fn a_quarantined_job_is_explained_with_its_note_or_the_reason_why_it_cannot_be_read() {
    let stage = Stage::new(sum());
    let worker = stage.world.worker(1, &registration());
    stage.world.assign(&id("a"), worker);
    stage.world.apply(&txn::quarantine(&id("a"), worker, "why"));
    assert_eq!(stage.cause(), Cause::Quarantined { note: "why".into() });
    stage.world.tree().put(&path::record(&id("a")), *b"?");
    let note = "its stored record cannot be read: not a Bellwether record".to_owned();
    assert_eq!(stage.cause(), Cause::Quarantined { note });
    let absent = stage.world.run(stage.client.explain(&id("none"))).unwrap_err();
    assert_eq!(absent, Error::NotFound(id("none")));
}

#[test]
fn the_first_job_of_a_lane_may_wait_for_its_sub_jobs() {
    let record = JobRecord::new(kind("sum"), Payload::json(*b"1").unwrap(), uuid::Uuid::nil(), BEGINNING);
    let view = |over: bool, groups: &[&str]| {
        let record = if over { record.clone().cancel(BEGINNING) } else { record.clone() };
        let sub_jobs = groups.iter().map(|group| GroupId::new(group).unwrap()).collect();
        status_of_first(&JobView { sub_jobs, ..JobView::of(id("a"), record) })
    };
    assert_eq!(view(false, &[]), "queued");
    assert_eq!(view(false, &["g"]), "queued");
    assert_eq!(view(true, &[]), "cancelled");
    assert_eq!(view(true, &["g"]), "cancelled, but group g of its sub-jobs is not done");
    assert_eq!(view(true, &["g", "h"]), "cancelled, but not all of the groups g, h of its sub-jobs are done");
}

#[test]
fn an_isolated_job_is_alone_after_its_second_loss() {
    for (losses, alone) in [(1, false), (2, true)] {
        let stage = Stage::new(sum());
        let worker = stage.world.worker(1, &World::registration(&["sum"], 9, &[]));
        stage.world.run(stage.client.submit(sum().id("other"))).unwrap();
        stage.world.assign(&id("other"), worker);
        stage.world.tree().update_waiting(&id("a"), |record| JobRecord { losses, ..record });
        stage.world.lead();
        assert_eq!(stage.cause(), Cause::Isolated { losses, alone });
    }
}

#[test]
fn a_job_that_a_full_or_shunned_worker_could_run_is_explained_with_it() {
    let stage = Stage::new(sum());
    let worker = stage.world.worker(1, &registration());
    stage.world.lead();
    assert_eq!(stage.cause(), Cause::Assignment);
    stage.world.apply(&[txn::shun(worker)]);
    let Cause::Shunned { workers } = stage.cause() else { panic!("shunned") };
    assert_eq!(workers[0].worker, worker);
    stage.world.run(stage.client.submit(sum().id("other"))).unwrap();
    stage.world.assign(&id("other"), worker);
    assert_eq!(stage.cause(), Cause::Busy { workers: 1, slots: 1 });
}
