//! Unreadable stored bytes: random bytes, and bytes of a future version. Each is logged and counted, and left unchanged
//! or quarantined. Other jobs continue.

use std::time::Duration;

use bellwether::{Job, JobId, State, WorkerId};
use bellwether_core::job::Delay;
use bellwether_core::outcome::Outcome;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire;
use bellwether_core::{metric, path};
use bellwether_testkit::eventually;
use serde_json::json;
use uuid::Uuid;

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage};

/// The replacement of stored bytes.
#[derive(Clone, Copy)]
enum Damage {
    Random,
    /// The same bytes with a higher schema version in the header.
    Future,
}

const DAMAGES: [(&str, Damage); 2] = [("random", Damage::Random), ("future", Damage::Future)];

impl Damage {
    fn of(self, stored: &[u8]) -> Vec<u8> {
        match self {
            Self::Random => {
                let seed = fastrand::u64(..);
                eprintln!("seed {seed}");
                let mut random = fastrand::Rng::with_seed(seed);
                (0..stored.len()).map(|_| random.u8(..)).collect()
            }
            Self::Future => {
                // `BW`, format, kind, schema, body.
                let mut future = stored.to_vec();
                future[4..6].fill(0x7f);
                future
            }
        }
    }
}

impl Stage {
    async fn stored(&self, path: &str) -> (Vec<u8>, i32) {
        let node =
            self.zk.get(path.to_owned()).await.unwrap().unwrap_or_else(|| panic!("{path} does not exist"));
        (node.data, node.version)
    }

    /// The path of the entry of a job that is ready.
    async fn entry(&self, job: &JobId) -> String {
        let record = wire::decode(&self.stored(&path::record(job)).await.0).unwrap();
        path::ready_entry(&ReadyEntry::of_record(job, &record))
    }

    async fn write(&self, path: &str, data: Vec<u8>) {
        let version = self.stored(path).await.1;
        let set = Op::Set { path: path.to_owned(), data, version };
        assert_eq!(self.zk.commit(vec![set]).await, Outcome::Applied(()));
    }

    /// Damages a znode. Returns its old and its new bytes.
    async fn damage(&self, path: &str, damage: Damage) -> (Vec<u8>, Vec<u8>) {
        let (stored, _) = self.stored(path).await;
        let damaged = damage.of(&stored);
        self.write(path, damaged.clone()).await;
        (stored, damaged)
    }

    async fn other_jobs_run(&self, prefix: &str) {
        let ids = self.submit((0..20).map(|n| self.runs.job(&format!("{prefix}-{n}")))).await;
        let jobs = self.over(&ids).await;
        assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
        self.runs.explain(&jobs);
    }
}

async fn told(node: &NodeProcess, what: &str, times: u32) {
    eventually(&format!("{} logs and counts: {what}", node.name()), SOON, async || {
        let counted = node.metric(metric::ZNODES_QUARANTINED).is_some_and(|count| count >= f64::from(times));
        counted && node.said().contains(what)
    })
    .await;
    assert_eq!(node.metric(metric::ACTOR_RESTARTS), Some(0.0), "{}", node.said());
}

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

#[tokio::test]
async fn a_job_with_an_unreadable_record_is_quarantined_and_its_record_is_unchanged() {
    let stage = Stage::set("bad-record").await;
    let ids = stage.submit(DAMAGES.map(|(name, _)| stage.runs.job(name))).await;
    let mut damaged = Vec::new();
    for (job, (_, damage)) in ids.iter().zip(DAMAGES) {
        damaged.push(stage.damage(&path::record(job), damage).await.1);
    }
    let _leader = stage.node("leader").candidate().start();
    let worker = stage.node("worker").worker().start();
    stage.other_jobs_run("other").await;
    told(&worker, "its stored bytes cannot be used", 2).await;
    for (job, damaged) in ids.iter().zip(damaged) {
        assert_eq!(stage.stored(&path::record(job)).await.0, damaged, "the record is unchanged");
        assert_eq!(stage.job(job.as_str()).await.state, State::Quarantined);
        assert_eq!(stage.runs.begun().get(job.as_str()), None);
        stage.stored(&path::quarantine(job)).await;
    }
    stage.settled(1).await;
}

#[tokio::test]
async fn an_unreadable_queue_entry_is_left_unchanged_until_it_is_repaired() {
    let stage = Stage::set("bad-entry").await;
    // A job with an affinity has an entry with data.
    let ids = stage.submit(DAMAGES.map(|(name, _)| stage.runs.job(name).affinity("key"))).await;
    let mut intact = Vec::new();
    for (job, (_, damage)) in ids.iter().zip(DAMAGES) {
        intact.push(stage.damage(&stage.entry(job).await, damage).await.0);
    }
    let leader = stage.node("leader").candidate().start();
    let _worker = stage.node("worker").worker().start();
    stage.other_jobs_run("other").await;
    told(&leader, "the node cannot read a znode and leaves it unchanged path=\"/ready", 2).await;
    assert!(ids.iter().all(|job| !stage.runs.begun().contains_key(job.as_str())));

    for (job, intact) in ids.iter().zip(intact) {
        stage.write(&stage.entry(job).await, intact).await;
    }
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    stage.settled(1).await;
}

#[tokio::test]
async fn an_unreadable_delayed_entry_is_left_unchanged_until_it_is_repaired() {
    let stage = Stage::set("bad-delayed").await;
    let backoff = Duration::from_secs(3);
    let failing = Job::new("fail", &json!({ "message": "once", "times": 1 })).backoff(backoff, backoff);
    let ids = stage.submit(DAMAGES.map(|(name, _)| failing.clone().id(name))).await;
    let mut first = stage.node("first").start();
    let mut at = Vec::new();
    for job in &ids {
        eventually("the job is delayed", SOON, async || {
            stage.job(job.as_str()).await.state == State::Delayed
        })
        .await;
        let due = stage.job(job.as_str()).await.not_before.unwrap();
        let delay = Delay { minute: WallMillis::from(due).minute(), generation: 1, attempt: 2 };
        at.push(path::delayed_entry(delay, job));
    }
    // The leader does not read known entries again, so another leader must read them.
    first.kill();
    let mut intact = Vec::new();
    for (path, (_, damage)) in at.iter().zip(DAMAGES) {
        intact.push(stage.damage(path, damage).await.0);
    }
    let leader = stage.node("second").start();
    stage.led_by(&leader).await;
    stage.other_jobs_run("other").await;
    told(&leader, "the node cannot read a znode and leaves it unchanged path=\"/delayed", 2).await;
    for (path, intact) in at.iter().zip(intact) {
        stage.write(path, intact).await;
    }
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| (job.state, job.failures) == (State::Succeeded, 1)), "{jobs:?}");
    stage.settled(1).await;
}

#[tokio::test]
async fn a_job_with_an_unreadable_assignment_is_quarantined() {
    let stage = Stage::set("bad-assignment").await;
    let _leader = stage.node("leader").candidate().start();
    let worker = stage.node("worker").worker().start();
    let held = stage.worker(&worker, None).await;
    // As if a leader of another version had written it. No worker has the tag, so this leader does not assign the jobs.
    for (name, damage) in DAMAGES {
        let job = id(&format!("bad-{name}"));
        stage.submit([stage.runs.job(job.as_str()).tags(["nobody"])]).await;
        let at = stage.entry(&job).await;
        let entry = stage.stored(&at).await.0;
        let data = damage.of(&entry);
        let create = Op::Create { path: path::assignment(held, &job), data, lifetime: Lifetime::Persistent };
        let assign = vec![Op::Delete { path: at, version: None }, create];
        assert_eq!(stage.zk.commit(assign).await, Outcome::Applied(()));
    }
    told(&worker, "its stored bytes cannot be used", 2).await;
    stage.other_jobs_run("other").await;
    for (name, _) in DAMAGES {
        let job = stage.job(&format!("bad-{name}")).await;
        assert_eq!((job.state, job.attempt), (State::Quarantined, 0), "{job:?}");
        assert_eq!(stage.runs.begun().get(job.id.as_str()), None);
    }
    stage.settled(1).await;
}

#[tokio::test]
async fn a_worker_with_an_unreadable_registration_gets_no_jobs() {
    let stage = Stage::set("bad-worker").await;
    let leader = stage.node("leader").candidate().start();
    let worker = stage.node("worker").worker().start();
    let sound = stage.worker(&worker, None).await;
    let info = stage.stored(&path::worker(sound)).await.0;
    let mut unreadable = Vec::new();
    for (_, damage) in DAMAGES {
        let id = WorkerId::new(Uuid::now_v7());
        let create = |path, data, lifetime| Op::Create { path, data, lifetime };
        let register = vec![
            create(path::inbox(id), Vec::new(), Lifetime::Persistent),
            create(path::worker(id), damage.of(&info), Lifetime::Ephemeral),
        ];
        assert_eq!(stage.zk.commit(register).await, Outcome::Applied(()));
        unreadable.push(id);
    }
    told(&leader, "the node cannot read a znode and leaves it unchanged path=\"/workers", 2).await;
    stage.other_jobs_run("other").await;
    let shown = stage.client.workers().await.unwrap();
    assert_eq!(shown.iter().filter(|worker| worker.info.is_err()).count(), 2, "unreadable workers are shown");
    // A worker whose registration is damaged later gets no new jobs either.
    stage.damage(&path::worker(sound), Damage::Future).await;
    told(&leader, "the node cannot read a znode and leaves it unchanged path=\"/workers", 3).await;
    let ids = stage.submit([stage.runs.job("later")]).await;
    let _second = stage.node("second").worker().start();
    let jobs = stage.over(&ids).await;
    assert_ne!(jobs[0].worker, Some(sound));
    for id in unreadable {
        assert_eq!(stage.zk.children(path::inbox(id)).await.unwrap(), Some(vec![]));
    }
}
