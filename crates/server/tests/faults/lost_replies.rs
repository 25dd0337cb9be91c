//! The reply of a committed transaction is lost: there is still one job and one run.

use bellwether::{Job, State};
use bellwether_testkit::{Cut, Proxy, Request};

use crate::process::Launch;
use crate::stage::{Stage, client, step};

const CUTS: [(&str, Cut); 2] = [("fin", Cut::Fin), ("rst", Cut::Reset)];

/// The process whose reply is lost.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    Client,
    Leader,
    Worker,
}

async fn one_job_one_run(name: &str, whose: Whose, step: fn(&Request<'_>) -> bool, cut: Cut) {
    let stage = Stage::set(name).await;
    let proxy = Proxy::to(&stage.to);
    let behind = |launch: Launch, who| if whose == who { launch.behind(&proxy) } else { launch };
    let leader = behind(stage.node("leader").candidate(), Whose::Leader).start();
    let _worker = behind(stage.node("worker").worker(), Whose::Worker).start();
    let epoch = stage.led_by(&leader).await.epoch;
    let workers = stage.workers(1).await;
    let submitter = match whose {
        Whose::Client => client(&proxy.connect_string()).await,
        Whose::Leader | Whose::Worker => stage.client.clone(),
    };

    let fault = proxy.swallow_reply_and_cut(step, cut);
    let submitted = submitter.submit(stage.runs.job("the-job")).await.unwrap();
    fault.fired().await;
    assert!(!submitted.is_duplicate(), "{name}: the client found its own job");
    let jobs = stage.over(&[submitted.id().clone()]).await;
    assert_eq!((jobs[0].state, jobs[0].attempt), (State::Succeeded, 1), "{name}: {jobs:?}");
    assert_eq!(stage.runs.explain(&jobs).runs, 1, "{name}");
    let again = submitter.submit(stage.runs.job("the-job")).await.unwrap();
    assert!(again.is_duplicate(), "{name}: the same submission is the same job");
    // The leader and the worker are the same as before, and the next job runs normally.
    let next = stage.submit([stage.runs.job("the-next")]).await;
    let next = stage.over(&next).await;
    assert_eq!((next[0].state, next[0].attempt), (State::Succeeded, 1), "{name}: {next:?}");
    assert_eq!(stage.leader().await.epoch, epoch, "{name}");
    assert_eq!(stage.workers(1).await[0].id, workers[0].id, "{name}");
    stage.settled(1).await;
}

#[tokio::test]
async fn a_submission_whose_reply_is_lost_is_one_job_and_one_run() {
    for (cut_name, cut) in CUTS {
        one_job_one_run(&format!("submit-{cut_name}"), Whose::Client, step::submit, cut).await;
    }
}

#[tokio::test]
async fn an_assignment_whose_reply_is_lost_is_one_run() {
    for (cut_name, cut) in CUTS {
        one_job_one_run(&format!("assign-{cut_name}"), Whose::Leader, step::assign, cut).await;
    }
}

#[tokio::test]
async fn a_completion_whose_reply_is_lost_is_one_run() {
    for (cut_name, cut) in CUTS {
        one_job_one_run(&format!("complete-{cut_name}"), Whose::Worker, step::complete, cut).await;
    }
}

/// As above, for a batch: the reply is about many jobs.
#[tokio::test]
async fn a_batch_of_assignments_whose_reply_is_lost_runs_each_job_once() {
    let stage = Stage::set("assign-batch").await;
    let proxy = Proxy::to(&stage.to);
    let leader = stage.node("leader").candidate().behind(&proxy).start();
    stage.led_by(&leader).await;
    let fault = proxy.swallow_reply_and_cut(step::assign, Cut::Reset);
    let jobs = (0..100).map(|n| stage.runs.job(&format!("job-{n}")));
    let ids = stage.submit(jobs.chain([Job::new("sum", &[1, 2])])).await;
    let _worker = stage.node("worker").worker().slots(64).start();
    fault.fired().await;
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    assert_eq!(stage.runs.explain(&jobs).runs, 100);
    stage.settled(1).await;
}
