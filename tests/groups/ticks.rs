//! Schedules whose jobs have sub-jobs: a job is open until its sub-jobs have ended.

use std::time::Duration;

use bellwether::schedule::{Overlap, SkipReason};
use bellwether::{Job, JobKind, Kind, Schedule, ScheduleId, State};
use bellwether_testkit::eventually_some;

use crate::stage::{Double, Runs, SOON, cluster, done, doubling, group, sub_jobs};

#[tokio::test]
async fn a_tick_is_skipped_while_a_sub_job_of_the_last_job_is_open() {
    let handlers = doubling(&Runs::default()).job("parent", |context, (): ()| async move {
        context.sub_jobs::<Double>().open().await?.submit(0, Double::job(&1)).await?;
        Ok(())
    });
    let cluster = cluster(handlers, 1).await;
    let (client, id) = (cluster.client(), ScheduleId::new("beat").unwrap());
    let double = Kind::new(Double::NAME).unwrap();
    client.pause_kind(&double, "test").await.unwrap();
    let beat = Schedule::every("beat", Duration::from_secs(1), Job::new("parent", &()));
    client.schedules().add(&beat.overlap(Overlap::Forbid)).await.unwrap();
    let view = async || client.schedules().get(&id).await.unwrap();
    let first = eventually_some("the first tick creates a job", SOON, async || view().await.last_job()).await;
    let sub_jobs = sub_jobs(client, first.as_str()).await;
    assert_eq!(client.wait(&first, SOON).await.unwrap().state, State::Succeeded);

    // A tick may have been skipped because the job itself was open.
    let before = view().await.record.unwrap();
    let after = eventually_some("two more ticks are decided", SOON, async || {
        let after = view().await.record.unwrap();
        (after.ticked + after.skipped >= before.ticked + before.skipped + 2).then_some(after)
    });
    let after = after.await;
    assert_eq!(after.ticked, 1, "{after:?}");
    assert_eq!(after.last_skipped.unwrap().reason, SkipReason::Overlap);
    let open = client.get_group(&group(&sub_jobs)).await.unwrap().unwrap();
    assert_eq!(open.succeeded, 0, "{open:?}");

    client.resume_kind(&double).await.unwrap();
    done(client, &sub_jobs).await;
    let next = async || view().await.last_job().filter(|last| *last != first);
    let next = eventually_some("a tick creates the next job", SOON, next).await;
    client.schedules().remove(&id).await.unwrap();
    assert_eq!(client.wait(&next, SOON).await.unwrap().state, State::Succeeded);
    cluster.stop().await.unwrap();
}
