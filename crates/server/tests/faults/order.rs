//! Priorities, start times, pauses and well-known ids, while the leader is killed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellwether::client::{Accepted, IfExists, WaitReason};
use bellwether::metrics as metric;
use bellwether::{Job, Kind, State};
use bellwether_testkit::{eventually, eventually_some};
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep_until};

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage, client};

/// Two candidates that are not workers, so the leader can be killed without killing a worker.
struct Candidates(Vec<NodeProcess>);

impl Candidates {
    fn start(stage: &Stage) -> Self {
        Self(["a", "b"].map(|name| stage.node(name).candidate().start()).into())
    }

    /// Kills the leader, and waits until the other candidate is the leader.
    async fn kill_leader(&mut self, stage: &Stage) {
        let first = stage.leader().await;
        let at = self.0.iter().position(|node| node.name() == first.node.as_str()).unwrap();
        self.0.remove(at).kill();
        eventually("another node is the leader", SOON, async || {
            let leader = stage.client.leader().await.unwrap();
            leader.is_some_and(|leader| leader.standing && leader.epoch > first.epoch)
        })
        .await;
    }

    /// Waits until the remaining candidate knows of this many waiting jobs.
    async fn knows(&self, waiting: f64) {
        let what = format!("the leader knows of {waiting} jobs");
        eventually(&what, SOON, async || self.0[0].metric(metric::QUEUE_DEPTH) == Some(waiting)).await;
    }
}

/// L3
#[tokio::test]
async fn waiting_jobs_run_by_priority_after_a_change_of_the_leader() {
    let stage = Stage::set("priorities").await;
    let mut candidates = Candidates::start(&stage);
    let _worker = stage.node("w").worker().slots(1).start();
    stage.workers(1).await;
    stage.runs.hold();
    let mut ids = stage.submit([stage.runs.held("holds")]).await;
    stage.begun(1).await;
    let job = |n: u8| stage.runs.job(&format!("p{}-{n:02}", n % 10)).priority(n % 10);
    ids.extend(stage.submit((0..30).map(job)).await);
    candidates.kill_leader(&stage).await;
    candidates.knows(30.0).await;
    stage.runs.release();
    stage.runs.explain(&stage.over(&ids).await);
    let ran = stage.runs.sequence();
    let mut sorted = ran[1..].to_vec();
    sorted.sort_by_key(|id| std::cmp::Reverse(id[1..2].to_owned()));
    assert_eq!(ran[1..], sorted, "jobs run by priority");
}

#[tokio::test]
async fn a_job_starts_after_its_start_time_and_never_after_its_expiry_when_the_leader_is_killed() {
    const SKEW: Duration = Duration::from_millis(5);
    let stage = Stage::set("times").await;
    let mut candidates = Candidates::start(&stage);
    stage.leader().await;
    let now = SystemTime::now();
    let at = now + Duration::from_secs(4);
    let later = stage.submit((0..20).map(|n| stage.runs.job(&format!("later-{n}")).run_at(at))).await;
    // There is no worker until these jobs have expired. Some reach their start time only shortly before.
    let expiry = now + Duration::from_secs(3);
    let too_late = (0..20).map(|n| {
        let job = stage.runs.job(&format!("late-{n}")).expires_at(expiry);
        if n % 2 == 0 { job.lane("late") } else { job.run_at(expiry - Duration::from_millis(200)) }
    });
    let too_late = stage.submit(too_late).await;
    candidates.kill_leader(&stage).await;
    for view in stage.over(&too_late).await {
        assert_eq!(view.state, State::Dead, "{view:?}");
        assert!(view.error.as_ref().unwrap().contains("expired"), "{view:?}");
        assert!(millis(view.finished_at.unwrap()) > millis(expiry), "{view:?}");
    }
    let _worker = stage.node("w").worker().start();
    let jobs = stage.over(&later).await;
    for view in &jobs {
        assert_eq!(view.state, State::Succeeded);
        assert!(millis(view.finished_at.unwrap()) >= millis(at - SKEW), "{view:?}");
    }
    stage.runs.explain(&jobs);
    assert_eq!(stage.runs.begun().len(), 20, "nothing else ran");
    // The lane is free again, and a retried job does not expire.
    stage.client.retry(&too_late[0]).await.unwrap();
    let retried = stage.over(&too_late[..1]).await;
    assert_eq!((retried[0].state, retried[0].generation), (State::Succeeded, 2));
}

fn millis(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[tokio::test]
async fn a_worker_refuses_a_job_that_expired_after_its_assignment() {
    const EXPIRY: Duration = Duration::from_millis(700);
    let stage = Stage::set("late-start").await;
    let _leader = stage.node("a").candidate().start();
    let worker = stage.node("w").worker().start();
    stage.workers(1).await;
    stage.leader().await;
    worker.signal(Signal::SIGSTOP);
    let expired = Instant::now() + EXPIRY;
    let late = stage.submit([stage.runs.job("late").expires_in(EXPIRY)]).await;
    eventually("the job is assigned", SOON, async || stage.job("late").await.worker.is_some()).await;
    sleep_until(expired + Duration::from_millis(1)).await;
    worker.signal(Signal::SIGCONT);
    let view = stage.over(&late).await.remove(0);
    assert_eq!((view.state, view.attempt), (State::Dead, 1), "{view:?}");
    assert!(view.error.unwrap().contains("expired"));
    assert_eq!(stage.runs.sequence(), [""; 0]);
}

#[tokio::test]
async fn a_paused_kind_does_not_start_until_it_is_resumed_when_the_leader_is_killed() {
    let stage = Stage::set("paused").await;
    let mut candidates = Candidates::start(&stage);
    let _worker = stage.node("w").worker().slots(4).start();
    stage.workers(1).await;
    let (exec, sum) = (Kind::new("exec").unwrap(), |n: u32| Job::new("sum", &[n, 1]));
    stage.client.pause_kind(&exec, "a test").await.unwrap();
    // A job of another kind runs, so the leader knows the pause, or will know it before its next assignment.
    stage.over(&stage.submit([sum(0)]).await).await;
    let jobs = stage.submit((0..20).map(|n| stage.runs.job(&format!("job-{n}")))).await;
    candidates.kill_leader(&stage).await;
    candidates.knows(20.0).await;
    let others = stage.over(&stage.submit((0..50).map(sum)).await).await;
    assert!(others.iter().all(|view| view.state == State::Succeeded));
    assert_eq!(stage.runs.sequence(), [""; 0]);
    let view = stage.job("job-0").await;
    assert_eq!((view.state, view.waiting), (State::Queued, Some(WaitReason::Paused)));
    stage.client.resume_kind(&exec).await.unwrap();
    stage.runs.explain(&stage.over(&jobs).await);
    assert_eq!(stage.runs.sequence().len(), 20);
}

/// S2, S9, S11: a job with a given id runs at most once at a time, however many clients submit it.
#[tokio::test]
async fn a_job_with_a_well_known_id_never_runs_twice_at_the_same_time() {
    const CLIENTS: usize = 5;
    let stage = Stage::set("well-known").await;
    let mut nodes = ["a", "b", "c"].map(|name| Some(stage.node(name).slots(8).start()));
    stage.workers(3).await;
    let first = stage.leader().await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(client(&stage.to).await);
    }
    let generations = AtomicU32::new(0);
    let submit = async |client: &bellwether::Client| {
        let (mut opened, mut same) = (0, 0);
        let few = || generations.load(Ordering::Relaxed) <= 3;
        while opened + same < 200 || few() || stage.leader().await.epoch == first.epoch {
            let job = stage.runs.alone("only").if_exists(IfExists::Again);
            match client.submit(job).await.unwrap().accepted() {
                Accepted::New | Accepted::Again(_) => {
                    opened += 1;
                    generations.fetch_add(1, Ordering::Relaxed);
                }
                Accepted::Same => same += 1,
                Accepted::Other => panic!("all submissions are equal"),
            }
        }
        (opened, same)
    };
    let kill = async {
        stage.begun(3).await;
        let leader = nodes.iter_mut().flatten().find(|node| node.name() == first.node.as_str());
        leader.unwrap().kill();
    };
    let (reports, ()) = tokio::join!(futures::future::join_all(clients.iter().map(submit)), kill);
    let only = eventually_some("the job has ended", 2 * SOON, async || {
        let view = stage.job("only").await;
        view.state.is_terminal().then_some(view)
    })
    .await;
    println!("{reports:?} by client, {} generations", only.generation);
    assert_eq!(only.state, State::Succeeded);
    let opened = reports.iter().map(|(opened, _)| opened).sum::<u32>();
    assert_eq!(opened, only.generation, "each generation is reported to one client");
    assert!(opened > 3 && reports.iter().all(|(_, same)| *same > 0), "{reports:?}");
    assert_eq!(stage.runs.together(), "", "S9: the job ran twice at the same time");
    assert!(stage.runs.sequence().len() >= opened as usize);
}

#[tokio::test]
async fn the_leader_does_not_read_jobs_of_the_far_future() {
    const JOBS: usize = 20_000;
    let stage = Stage::set("far-future").await;
    let mut candidates = Candidates::start(&stage);
    stage.leader().await;
    let tomorrow = SystemTime::now() + Duration::from_secs(24 * 3_600);
    let job = |n: usize| {
        let at = tomorrow + Duration::from_secs(60 * (n as u64 % 100));
        Job::new("sum", &[n, 1]).run_at(at)
    };
    stage.submit((0..JOBS).map(job)).await;
    candidates.kill_leader(&stage).await;
    // The leader has listed the minutes and promotes due jobs.
    let now = stage.submit([Job::new("sum", &[1, 1]).delay(Duration::from_millis(300))]).await;
    candidates.knows(1.0).await;
    // The assigner may count the job before the promoter has the reply to its promotion.
    let leader = &candidates.0[0];
    let none = async || leader.metric(metric::DELAYED_JOBS_IN_HORIZON) == Some(0.0);
    eventually("the leader knows none of the jobs", SOON, none).await;
    let _worker = stage.node("w").worker().start();
    assert_eq!(stage.over(&now).await[0].state, State::Succeeded);
}
