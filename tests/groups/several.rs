//! A parent with several groups of sub-jobs, of different kinds.

use std::time::Duration;

use bellwether::client::Cause;
use bellwether::handler::with_state;
use bellwether::{HandlerError, Handlers, Job, JobKind, JoinKind, Kind, ParentKind};
use bellwether_testkit::eventually_some;

use crate::stage::{Double, Runs, SOON, cluster, done, doubling, group, sub_jobs, sum};

/// Triples a number.
struct Triple;

impl JobKind for Triple {
    const NAME: &'static str = "triple";
    type Payload = u64;
    type Result = u64;
}

/// Has a group of each kind. The first attempt opens one of them and fails; the second opens them in the other order.
struct Both;

impl JobKind for Both {
    const NAME: &'static str = "both";
    type Payload = ();
    type Result = ();
}

impl JoinKind for Both {
    type Joined = ();
}

impl ParentKind for Both {
    type SubJob = Double;
    /// The sums of both groups.
    type Finished = (u64, u64);
}

fn both(runs: &Runs) -> Handlers {
    let with_runs = with_state(runs.clone());
    doubling(runs)
        .add(with_runs.kind::<Triple>(|runs, context, n| async move {
            runs.note(context.job().to_string());
            Ok(3 * n)
        }))
        .kind::<Both>(|context, ()| async move {
            if context.attempt() == 1 {
                context.sub_jobs::<Double>().open().await?;
                return Err(HandlerError::new("after the first group"));
            }
            let triples = context.sub_jobs::<Triple>().join(false).finished(true).open().await?;
            let doubles = context.sub_jobs::<Double>().open().await?;
            for n in 0..4 {
                triples.submit(n, Triple::job(&u64::from(n))).await?;
                doubles.submit(n, Double::job(&u64::from(n))).await?;
            }
            Ok(())
        })
        .add(with_runs.finished::<Both>(|runs, context, ended| async move {
            runs.note(context.job().to_string());
            let triples = ended.further::<Triple>().ok_or_else(|| HandlerError::new("no triples"))?;
            let (_, doubled) = ended.join_result()?.unwrap_or_default();
            Ok((doubled, sum(triples).await?.1))
        }))
}

fn quick() -> Job<Both> {
    Both::job(&()).id("p").backoff(Duration::from_millis(10), Duration::from_millis(20))
}

/// S7
#[tokio::test]
async fn the_finished_handler_runs_after_all_groups_of_a_parent() {
    let runs = Runs::default();
    let cluster = cluster(both(&runs), 2).await;
    let client = cluster.client();
    let triple = Kind::new(Triple::NAME).unwrap();
    client.pause_kind(&triple, "test").await.unwrap();
    let parent = client.submit(quick()).await.unwrap();
    parent.wait(SOON).await.unwrap();
    let first = sub_jobs(client, "p").await;
    let further = format!("{first}.0");
    let job = client.get(parent.id()).await.unwrap().unwrap();
    assert_eq!(job.sub_jobs, [group(&first), group(&further)]);
    let waits = eventually_some("the first group waits for the further one", SOON, async || {
        let view = client.get_group(&group(&first)).await.unwrap()?;
        let status = view.status();
        status.ends_with(&format!("group {further} is not done")).then_some(view)
    });
    let waits = waits.await;
    assert_eq!((waits.kind.as_str(), waits.further[0].kind.as_str()), (Double::NAME, Triple::NAME));
    client.resume_kind(&triple).await.unwrap();
    assert_eq!(parent.finished_result(SOON).await.unwrap(), (12, 18));
    assert_eq!(client.get_group(&group(&further)).await.unwrap().unwrap().first, Some(group(&first)));
    let finished = runs.all().last().cloned();
    assert_eq!(finished, Some(format!("both.finished:@{first}")), "{:?}", runs.all());
    for n in 0..4 {
        assert_eq!(runs.count(&format!("triple:{further}:{n}")), 1, "{:?}", runs.all());
        assert_eq!(runs.count(&format!("double:{first}:{n}")), 1, "{:?}", runs.all());
    }
    cluster.stop().await.unwrap();
}

/// S6
#[tokio::test]
async fn a_lane_waits_for_all_groups_and_a_cancelled_parent_stops_all_of_them() {
    let handlers = doubling(&Runs::default())
        .kind::<Triple>(|_, n| async move { Ok(3 * n) })
        .job("parent", |context, (): ()| async move {
            for n in 0..2 {
                context.sub_jobs::<Double>().open().await?.submit(n, Double::job(&1)).await?;
                let triples = context.sub_jobs::<Triple>().join(false).open().await?;
                triples.submit(n, Triple::job(&1)).await?;
            }
            context.cancelled().await;
            Err::<(), _>(HandlerError::new("it was asked to stop"))
        })
        .job("next", |_, (): ()| async move { Ok(()) });
    let cluster = cluster(handlers, 2).await;
    let client = cluster.client();
    for kind in [Double::NAME, Triple::NAME] {
        client.pause_kind(&Kind::new(kind).unwrap(), "test").await.unwrap();
    }
    let parent = client.submit(Job::new("parent", &()).id("p").lane("x")).await.unwrap();
    let first = sub_jobs(client, "p").await;
    let further = format!("{first}.0");
    eventually_some("all sub-jobs are submitted", SOON, async || {
        let view = client.get_group(&group(&further)).await.unwrap()?;
        (view.open == 2).then_some(())
    })
    .await;
    let next = client.submit(Job::new("next", &()).lane("x")).await.unwrap();
    let cause = client.explain(next.id()).await.unwrap().cause;
    assert!(matches!(cause, Cause::LaneBusy { .. }), "{cause}");
    client.cancel(parent.id()).await.unwrap();
    for id in [&first, &further] {
        let view = done(client, id).await;
        assert_eq!((view.cancelled, view.open), (2, 0), "{view:?}");
        assert_eq!(view.stopped.as_deref(), Some("its parent ended without success"));
    }
    next.wait(SOON).await.unwrap();
    cluster.stop().await.unwrap();
}
