//! How fast a worker is, with the leader out of the way: everything is submitted before, and assigned in batches.

use std::time::{Duration, Instant};

use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Batch};
use bellwether_testkit::{Profile, ZooKeeperServer, eventually_some};

use crate::stage::{SOON, Stage, job, policy};

const JOBS: usize = 40_000;
const BATCH: usize = 100;
/// Batches of assignments in flight, so that the worker always has something to read.
const WINDOW: usize = 8;

async fn submit(stage: &Stage, jobs: &[JobId], record: &JobRecord) {
    for window in jobs.chunks(BATCH * WINDOW) {
        let commits = window.chunks(BATCH).map(|jobs| {
            let ops = jobs.iter().flat_map(|job| txn::submit(job, record)).collect();
            stage.zk.commit(ops)
        });
        for outcome in futures::future::join_all(commits.collect::<Vec<_>>()).await {
            assert_eq!(outcome, Outcome::Applied(()));
        }
    }
}

async fn assign(stage: &Stage, jobs: &[JobId], worker: WorkerId) {
    let assignment = Assignment { attempt: 1, epoch: 1, cancel: false, assigned_at: WallMillis(1) };
    for window in jobs.chunks(BATCH * WINDOW) {
        let commits = window.chunks(BATCH).map(|jobs| {
            let mut batch = Batch::new(vec![]);
            for job in jobs {
                batch.push((), txn::assign(job, worker, &assignment)).expect("a small batch");
            }
            stage.zk.commit_batch(batch)
        });
        for (_, outcome) in futures::future::join_all(commits.collect::<Vec<_>>()).await {
            assert_eq!(outcome, Outcome::Applied(()));
        }
    }
}

/// Ticks of a hundredth of a second that this process, and not ZooKeeper, has computed for.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// `cargo test --release -p bellwether-actors --test worker -- --ignored --nocapture throughput`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement; run it in release"]
async fn throughput() {
    let server = ZooKeeperServer::builder().profile(Profile::Production).start();
    let stage = Stage::unproxied(&format!("{}/throughput", server.connect_string()), 4_096).await;
    let worker = stage.serving(None).await;
    let template = stage.submit("template", "echo", policy()).await;
    let (record, _) = stage.record(&template).await;
    let jobs: Vec<JobId> = (0..JOBS).map(|n| job(&format!("job-{n}"))).collect();
    submit(&stage, &jobs, &record).await;

    let (since, ticks) = (Instant::now(), cpu_ticks());
    assign(&stage, &jobs, worker).await;
    let assigned = since.elapsed();
    eventually_some("the inbox is empty", SOON * 3, async || {
        let left = stage.zk.children(path::inbox(worker)).await.unwrap().unwrap();
        left.is_empty().then_some(())
    })
    .await;
    let (all, ticks) = (since.elapsed(), cpu_ticks() - ticks);
    assert_eq!(stage.runs() as usize, JOBS);
    let rate = |took: Duration| JOBS as f64 / took.as_secs_f64();
    println!("assigned {:.0} jobs/s, closed {:.0} jobs/s ({all:?})", rate(assigned), rate(all));
    let cost = ticks as f64 * 10_000.0 / JOBS as f64;
    println!("worker and leader together: {cost:.0} µs of one core per job, without ZooKeeper's");

    let mut waits = Vec::new();
    for n in 0..200 {
        let job = stage.submit(&format!("one-{n}"), "echo", policy()).await;
        let since = Instant::now();
        assert_eq!(stage.assign(&job, worker).await, Outcome::Applied(()));
        while stage.record(&job).await.0.attempts == 0 {}
        waits.push(since.elapsed());
    }
    waits.sort();
    println!(
        "one job, idle: median {:?}, p95 {:?} (its assignment, three requests, included)",
        waits[100], waits[190]
    );
}
