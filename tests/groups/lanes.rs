//! Lanes of jobs with sub-jobs: a parent keeps its turn until its sub-jobs have ended.

use bellwether::client::Cause;
use bellwether::handler::with_state;
use bellwether::{Handlers, Job, JobKind, Kind};
use bellwether_testkit::eventually_some;

use crate::stage::{Double, Runs, SOON, cluster, done, doubling, sub_jobs};

/// A parent with one sub-job, which is in the lane that the payload names, if any.
fn parent(runs: &Runs) -> Handlers {
    doubling(runs)
        .job("parent", |context, lane: Option<String>| async move {
            let group = context.sub_jobs::<Double>().open().await?;
            let job = Double::job(&1);
            group.submit(0, if let Some(lane) = &lane { job.lane(lane) } else { job }).await?;
            Ok(())
        })
        .add(with_state(runs.clone()).job("next", |runs, _, (): ()| async move {
            runs.note("next");
            Ok(())
        }))
}

/// S6
#[tokio::test]
async fn the_next_job_of_a_lane_waits_for_the_sub_jobs_of_the_first() {
    let runs = Runs::default();
    let cluster = cluster(parent(&runs), 2).await;
    let client = cluster.client();
    let double = Kind::new(Double::NAME).unwrap();
    client.pause_kind(&double, "test").await.unwrap();
    let first = Job::new("parent", &None::<String>).id("p").lane("x");
    client.submit(first).await.unwrap().wait(SOON).await.unwrap();
    let next = client.submit(Job::new("next", &()).lane("x")).await.unwrap();
    let status = eventually_some("the next job waits for the first", SOON, async || {
        match client.explain(next.id()).await.unwrap().cause {
            Cause::LaneBusy { job, status, .. } if job.as_str() == "p" => Some(status),
            _ => None,
        }
    });
    let group = sub_jobs(client, "p").await;
    assert_eq!(status.await, format!("succeeded, but group {group} of its sub-jobs is not done"));
    client.resume_kind(&double).await.unwrap();
    done(client, &group).await;
    next.wait(SOON).await.unwrap();
    assert_eq!(runs.all().last().map(String::as_str), Some("next"), "{:?}", runs.all());
    assert_eq!(runs.count(&format!("double.join:@{group}")), 1, "{:?}", runs.all());
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_sub_job_in_the_lane_of_its_parent_is_refused() {
    let cluster = cluster(parent(&Runs::default()), 1).await;
    let client = cluster.client();
    let own = Job::new("parent", &Some("x")).lane("x").max_attempts(1);
    let refused = client.submit(own).await.unwrap().wait(SOON).await.unwrap();
    let error = refused.error.unwrap_or_default();
    assert!(error.contains("cannot be in lane x"), "{error}");
    let other = Job::new("parent", &Some("y")).lane("x").max_attempts(1).id("other");
    client.submit(other).await.unwrap().wait(SOON).await.unwrap();
    done(client, &sub_jobs(client, "other").await).await;
    cluster.stop().await.unwrap();
}
