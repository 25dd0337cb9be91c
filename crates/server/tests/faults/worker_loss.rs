//! Workers are killed while they run jobs.

use bellwether::{Job, JobId, State};
use bellwether_core::outcome::Outcome;
use bellwether_core::txn::Op;
use bellwether_core::{metric, path};
use bellwether_testkit::{Proxy, eventually, eventually_some};
use serde_json::json;

use crate::stage::{SOON, Stage};

#[tokio::test]
async fn the_jobs_of_a_killed_worker_run_on_another_and_each_extra_run_is_a_loss() {
    let stage = Stage::set("worker-killed").await;
    let leader = stage.node("leader").candidate().start();
    let mut killed = stage.node("killed").worker().slots(10).start();
    let _spare = stage.node("spare").worker().slots(10).start();
    stage.workers(2).await;
    stage.runs.hold();
    let ids = stage.submit((0..40).map(|n| stage.runs.held(&format!("job-{n}")))).await;
    stage.begun(20).await;
    killed.kill();
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.losses <= 1), "{jobs:?}");
    let counts = stage.runs.explain(&jobs);
    assert_eq!((counts.succeeded, counts.lost, counts.failed, counts.released), (40, 10, 0, 0), "{counts:?}");
    assert_eq!(counts.runs, 50, "each of the killed worker's jobs ran twice");
    stage.settled(1).await;
    assert_eq!(leader.attempts("lost"), Some(10.0));
    assert_eq!(leader.metric(metric::ORPHANED_ATTEMPTS_RECOVERED), Some(10.0));
}

/// S20, with default settings.
#[tokio::test]
async fn the_neighbours_of_a_job_that_kills_its_workers_succeed() {
    let stage = Stage::set("poison").await;
    let _leader = stage.node("leader").candidate().start();
    let mut workers =
        (1..=4).map(|n| stage.node(&format!("w{n}")).worker().slots(12).start()).collect::<Vec<_>>();
    stage.workers(4).await;
    let others = (0..9).map(|n| stage.runs.brief(&format!("job-{n}")));
    let ids = stage.submit([stage.runs.poison("poison")].into_iter().chain(others)).await;
    neighbours_succeed(&stage, &ids).await;
    let killed = workers.iter_mut().map(|worker| usize::from(worker.has_ended())).sum::<usize>();
    assert_eq!(killed, 3, "each loss is a killed worker");
    stage.settled(1).await;
}

/// S20, with default settings: the only worker is restarted each time, so all jobs share it.
#[tokio::test]
async fn the_neighbours_of_a_job_that_kills_the_only_worker_succeed() {
    let stage = Stage::set("only-worker").await;
    let _leader = stage.node("leader").candidate().start();
    let others = (0..9).map(|n| stage.runs.brief(&format!("job-{n}")));
    let ids = stage.submit([stage.runs.poison("poison")].into_iter().chain(others)).await;
    let supervise = async {
        let mut worker = stage.node("worker").worker().start();
        loop {
            eventually("the worker is killed", 10 * SOON, async || worker.has_ended()).await;
            worker = stage.node("worker").worker().start();
        }
    };
    tokio::select! {
        () = neighbours_succeed(&stage, &ids) => {}
        () = supervise => {}
    }
}

/// Waits for the jobs, of which the first is the poison job: only that one is dead, of the default number of losses.
async fn neighbours_succeed(stage: &Stage, ids: &[JobId]) {
    let jobs = stage.over(ids).await;
    let (poison, others) = jobs.split_first().unwrap();
    assert!(others.iter().all(|job| job.state == State::Succeeded), "{others:?}");
    assert_eq!((poison.state, poison.losses, poison.attempt), (State::Dead, 3, 3), "{poison:?}");
    let error = poison.error.clone().unwrap();
    assert!(error.starts_with("attempt 3 lost its worker"), "{error}");
    stage.runs.explain(&jobs);
}

#[tokio::test]
async fn the_programs_of_a_killed_node_die_with_it() {
    let stage = Stage::set("exec-killed").await;
    let _leader = stage.node("leader").candidate().start();
    let mut node = stage.node("killed").worker().start();
    stage.workers(1).await;
    let pids = stage.runs.dir().join("pids");
    // The program and its child use no pipe of the node. A signal to the whole process group, as scripts send it to end
    // their children, ends neither them nor their supervisor.
    let script = format!("trap '' TERM; sleep 600 & kill -TERM 0; echo $$ $! > {}; wait", pids.display());
    stage.submit([Job::new("exec", &json!({ "argv": ["/bin/sh", "-c", script] }))]).await;
    let pids = eventually_some("the program writes its process ids", SOON, async || {
        let text = std::fs::read_to_string(&pids).ok()?;
        let numbers = text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        (numbers.len() == 2).then_some(numbers)
    })
    .await;
    let alive =
        |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !dead(&stat));
    assert!(pids.iter().all(alive), "both processes run: {pids:?}");
    node.kill();
    eventually("program and child are dead", SOON, async || !pids.iter().any(alive)).await;
}

/// Whether a process is dead, by `/proc/{pid}/stat`. The state follows the name in parentheses. A zombie counts as
/// dead.
fn dead(stat: &str) -> bool {
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

#[tokio::test]
async fn a_restarted_worker_does_not_inherit_assignments() {
    let stage = Stage::set("namesake").await;
    let _leader = stage.node("leader").candidate().start();
    let mut first = stage.node("web-1").worker().start();
    let old = stage.worker(&first, None).await;
    stage.runs.hold();
    let ids = stage.submit([stage.runs.held("job")]).await;
    stage.begun(1).await;
    first.kill();
    let second = stage.node("web-1").worker().start();
    let new = stage.worker(&second, Some(old)).await;
    stage.begun(2).await;
    // If the new worker had inherited the assignment, there would be no attempt 2.
    eventually("attempt 2 runs", SOON, async || {
        let job = stage.job("job").await;
        (job.attempt, job.worker, job.losses) == (2, Some(new), 1)
    })
    .await;
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    assert_eq!(stage.runs.explain(&jobs).lost, 1);
}

/// The leader treats a live worker as dead: an operator deleted its registration, and the worker receives no event.
#[tokio::test]
async fn a_run_that_outlives_its_attempt_never_commits() {
    let stage = Stage::set("zombie").await;
    let _leader = stage.node("leader").candidate().start();
    let proxy = Proxy::to(&stage.to);
    let zombie = stage.node("zombie").worker().behind(&proxy).start();
    let old = stage.worker(&zombie, None).await;
    stage.runs.hold();
    let ids = stage.submit((0..4).map(|n| stage.runs.held(&format!("job-{n}")))).await;
    stage.begun(4).await;
    let _spare = stage.node("spare").worker().start();
    stage.workers(2).await;

    proxy.drop_events();
    let remove = Op::Delete { path: path::worker(old), version: None };
    assert_eq!(stage.zk.commit(vec![remove]).await, Outcome::Applied(()));
    // Jobs with a loss do not share a worker, so only one of them begins again while it is held.
    stage.begun(5).await;
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    for job in &jobs {
        assert_eq!((job.state, job.attempt, job.losses), (State::Succeeded, 2, 1), "{job:?}");
        assert_ne!(job.worker, Some(old), "{job:?}");
    }
    stage.runs.explain(&jobs);
    // After the first rejected close the worker reads its registration and registers again. A run without a reported
    // result ends then.
    let again = stage.worker(&zombie, Some(old)).await;
    eventually("the reported results are counted and dropped", SOON, async || {
        (1.0..=4.0).contains(&zombie.metric(metric::STALE_RESULTS_DROPPED).unwrap())
    })
    .await;
    // Under its new registration it may have run some of the jobs again.
    let own = jobs.iter().filter(|job| job.worker == Some(again)).count();
    assert_eq!(zombie.attempts("succeeded"), Some(own as f64));
}

/// L8: a connected worker does not stay idle because of an operator's mistake.
#[tokio::test]
async fn a_worker_whose_registration_was_deleted_registers_again() {
    let stage = Stage::set("unregistered").await;
    let _leader = stage.node("leader").candidate().start();
    let worker = stage.node("worker").worker().start();
    let old = stage.worker(&worker, None).await;
    stage.runs.hold();
    let busy = stage.submit([stage.runs.held("busy")]).await;
    stage.begun(1).await;
    let remove = Op::Delete { path: path::worker(old), version: None };
    assert_eq!(stage.zk.commit(vec![remove]).await, Outcome::Applied(()));
    assert_ne!(stage.worker(&worker, Some(old)).await, old);
    stage.runs.release();
    let jobs = stage.over(&busy).await;
    assert_eq!((jobs[0].state, jobs[0].attempt, jobs[0].losses), (State::Succeeded, 2, 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    stage.settled(1).await;
}
