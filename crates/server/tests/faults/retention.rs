//! Records are removed after their retention time, and finally the namespace is in its initial state (L6).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bellwether::ScheduleId;
use bellwether::client::{Cancelled, Group, Schedule};
use bellwether::{Handlers, Job, Node, Retention, State};
use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::change::Noted;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, SubBucket};
use bellwether_core::txn::Op;
use bellwether_core::wire;
use bellwether_testkit::{Cut, Proxy, ZooKeeperServer, eventually, eventually_some, four_letter_word};
use futures::future::join_all;
use serde_json::json;

use crate::stage::{SOON, Stage, step};

/// The interval of schedules: the shortest allowed.
const EVERY: Duration = Duration::from_secs(1);

impl Stage {
    /// Sets the retention to zero; the janitor's minimum still applies. Clients do not allow a time this short.
    async fn keep_nothing(&self) {
        let none = Duration::ZERO;
        let retention = Retention::default().succeeded(none).cancelled(none).dead(none);
        let version = self.zk.get(path::RETENTION.into()).await.unwrap().unwrap().version;
        let set = Op::Set {
            path: path::RETENTION.into(),
            data: wire::encode(&Noted::unchanged(retention)),
            version,
        };
        assert_eq!(self.zk.commit(vec![set]).await, Outcome::Applied(()));
    }

    async fn records(&self) -> usize {
        let parents = SubBucket::all().map(SubBucket::path).collect::<Vec<_>>();
        let mut records = 0;
        for few in parents.chunks(MAX_READ_BATCH) {
            let lists = self.zk.children_many(few.to_vec()).await.unwrap();
            records += lists.into_iter().flatten().flatten().count();
        }
        records
    }

    /// Counts the znodes below each child of the root, without containers: ZooKeeper removes empty ones only once a minute,
    /// and the znodes in the others count.
    async fn znodes(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        let mut left = VecDeque::from([String::new()]);
        while !left.is_empty() {
            let few = left.drain(..left.len().min(MAX_READ_BATCH)).collect::<Vec<_>>();
            let listed =
                few.iter().map(|path| if path.is_empty() { "/".to_owned() } else { path.clone() }).collect();
            let lists = self.zk.children_many(listed).await.unwrap();
            for (path, names) in few.iter().zip(lists) {
                let parts = path.split('/').skip(1).collect::<Vec<_>>();
                let Some(names) = names else { continue };
                if path::container_of(&format!("{path}/child")).is_none() {
                    *counts.entry(parts.first().unwrap_or(&"").to_string()).or_default() += 1;
                }
                left.extend(names.iter().map(|name| format!("{path}/{name}")));
            }
        }
        counts
    }
}

/// Jobs of many types: jobs that succeed, fail once, become dead, use lanes, or start later.
fn jobs(stage: &Stage, round: u32) -> Vec<Job> {
    let wait = Duration::from_millis(100);
    let failing =
        |times: u32| Job::new("fail", &json!({ "message": "boom", "times": times })).backoff(wait, wait);
    let plain = (0..150).map(|n| Job::new("sum", &[n, 1]).id(format!("plain-{round}-{n}")));
    let lanes = (0..40).map(|n| {
        let id = format!("lane-{round}-{n}");
        stage.runs.job(&id).lane(format!("lane-{}", n % 8))
    });
    let failing_once = (0..20).map(|n| failing(1).id(format!("fails-{round}-{n}")));
    let dying = (0..20).map(|n| failing(9).max_attempts(2).id(format!("dies-{round}-{n}")));
    let later = (0..20).map(|n| {
        let job = Job::new("sum", &[n, 1]).id(format!("later-{round}-{n}"));
        job.delay(Duration::from_secs(2))
    });
    let jobs = plain.chain(lanes).collect::<Vec<_>>().into_iter();
    jobs.chain(failing_once).chain(dying).chain(later).collect()
}

/// Handlers of parent jobs, whose sub-jobs run on another node process.
fn parents() -> Handlers {
    Handlers::new()
        .job("parent", |context, (): ()| async move {
            let group = context.sub_jobs_of("sum").join(false).finished(true).open().await?;
            for number in 0..5 {
                group.submit(number, Job::new("sum", &[number, 1])).await?;
            }
            Ok(())
        })
        .finished_job("parent", |_, finished| async move { Ok(finished.group.succeeded) })
}

#[tokio::test]
async fn after_all_jobs_and_the_leaders_death_a_namespace_is_in_its_initial_state() {
    let server = ZooKeeperServer::builder().memory().start();
    let stage = Stage::at(format!("{}/prod", server.connect_string())).await;
    let mut first = stage.node("first").candidate().start();
    stage.led_by(&first).await;
    let second = stage.node("second").candidate().start();
    let worker = stage.node("worker").worker().slots(32).start();
    stage.workers(1).await;
    let settled = eventually_some("both are candidates", SOON, async || {
        let znodes = stage.znodes().await;
        (znodes["election"] == 1 + 2).then_some(znodes)
    })
    .await;
    let watches = || {
        // ZooKeeper still counts a connection whose last watch has fired, so only paths and watches are compared.
        let summary = four_letter_word(server.address(), "wchs").unwrap();
        summary.split_once("connections watching").unwrap().1.to_owned()
    };
    eventually("the worker and the candidates have set their watches", SOON, async || {
        let paths = four_letter_word(server.address(), "wchp").unwrap();
        ["/workers/", "/assignments/", "/election/"].iter().all(|own| paths.contains(own))
    })
    .await;
    let before = (settled, watches(), worker.open_files());
    let spawning = Node::builder(&stage.to).node_id("spawning").candidate(false).handlers(parents());
    let spawning = spawning.start().await.unwrap();
    stage.workers(2).await;

    let (mut ids, mut groups, mut parents) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..2 {
        stage.runs.hold();
        let held = stage.submit([stage.runs.held(&format!("held-{round}"))]).await;
        stage.begun(40 * round + round + 1).await;
        ids.extend(stage.submit(jobs(&stage, u32::try_from(round).unwrap())).await);
        let group = Group::new("sum", format!("group-{round}")).total(20).join(false);
        let group = stage.client.group(group).await.unwrap();
        group.submit_all((0..20).map(|n| Job::new("sum", &[n, 1]))).await.unwrap();
        let schedule = Schedule::every(format!("every-{round}"), EVERY, Job::new("sum", &[1]));
        stage.client.schedules().add(&schedule).await.unwrap();
        let parent = Job::new("parent", &()).id(format!("parent-{round}"));
        parents.extend(stage.submit([parent]).await);
        let unserved = || Job::new("unserved", &1);
        let expiring = (0..10).map(|n| unserved().id(format!("expires-{round}-{n}")));
        ids.extend(stage.submit(expiring.map(|job| job.expires_in(Duration::from_secs(1)))).await);
        let unserved = stage.submit([unserved()]).await;
        assert_eq!(stage.client.cancel(&unserved[0]).await, Ok(Cancelled::Cancelled));
        // The job may end before it is cancelled. Both results are allowed here.
        stage.client.cancel(&held[0]).await.unwrap();
        stage.runs.release();
        ids.extend(held.into_iter().chain(unserved));
        groups.push(group);
        if round == 0 {
            first.kill();
            stage.led_by(&second).await;
        }
    }
    for (round, group) in groups.iter().enumerate() {
        assert_eq!(group.wait(SOON).await.unwrap().succeeded, 20);
        let id = ScheduleId::new(format!("every-{round}")).unwrap();
        let schedules = stage.client.schedules();
        eventually("the schedule ticks", SOON, async || {
            schedules.get(&id).await.unwrap().record.unwrap().ticked > 0
        })
        .await;
        schedules.remove(&id).await.unwrap();
    }
    for parent in stage.over(&parents).await {
        let group = stage.client.wait_group(&parent.sub_jobs[0], SOON).await.unwrap();
        assert_eq!((group.succeeded, group.finished.is_some()), (5, true));
    }
    spawning.stop().await;
    let over = stage.over(&ids).await;
    let count = |state| over.iter().filter(|job| job.state == state).count();
    assert!(count(State::Cancelled) >= 2);
    assert_eq!((count(State::Dead), over.len()), (40 + 20, 464 + 40 + 20));
    stage.settled(1).await;
    let records = stage.records().await;
    // This includes jobs of groups, ticks, and parents with their sub-jobs and finished jobs.
    assert!(records >= 524 + 40 + 2 + 2 * 7, "all records are kept at first: {records}");

    stage.keep_nothing().await;
    // Replaces the killed node, so the number of sessions and candidates is the same as before.
    let _third = stage.node("third").candidate().start();
    eventually("every record is gone", SOON, async || stage.records().await == 0).await;
    eventually("every znode is deleted", SOON, async || stage.znodes().await == before.0).await;
    eventually("as many watches as before", SOON, async || watches() == before.1).await;
    eventually("as many open files as before", SOON, async || worker.open_files() <= before.2).await;
    assert_eq!(
        second.metric("bellwether_records_removed_total"),
        Some(f64::from(u32::try_from(records).unwrap()))
    );
}

#[tokio::test]
async fn a_leader_killed_while_it_removes_records_leaves_them_to_the_next() {
    join_all([false, true].map(|committed| async move {
        let stage = Stage::set("removing").await;
        let proxy = Proxy::to(&stage.to);
        let fault = if committed {
            proxy.swallow_reply_and_cut(step::remove_records, Cut::Reset)
        } else {
            proxy.drop_request_and_cut(step::remove_records, Cut::Reset)
        };
        let mut first = stage.node("first").candidate().behind(&proxy).start();
        stage.led_by(&first).await;
        let _worker = stage.node("worker").worker().slots(32).start();
        let jobs = (0..300).map(|n| Job::new("sum", &[n, 1]).id(format!("job-{n}")));
        let ids = stage.submit(jobs).await;
        stage.over(&ids).await;
        stage.keep_nothing().await;
        fault.fired().await;
        first.kill();
        assert!(stage.records().await > 0);
        let second = stage.node("second").candidate().start();
        stage.led_by(&second).await;
        eventually("every record is gone", SOON, async || stage.records().await == 0).await;
        // The id is free again, so this is a new job.
        let again = stage.submit([Job::new("sum", &[1, 2, 3]).id("job-1")]).await;
        assert_eq!(stage.over(&again).await[0].result.as_ref().unwrap().bytes(), b"6");
    }))
    .await;
}
