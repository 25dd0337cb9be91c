//! Groups that fail fast, and parents that fail.

use std::time::Duration;

use bellwether::client::{Accepted, Error, GroupError, GroupStage, IfExists, SubmitError};
use bellwether::handler::with_state;
use bellwether::{Group, HandlerError, Handlers, Job, JobId, State, Untyped};
use bellwether_testkit::eventually;
use serde_json::json;

use crate::stage::{Runs, SOON, cluster, done, result, sub_jobs};

/// Ends as its payload specifies: immediately, or when it is cancelled.
fn moody(runs: &Runs) -> Handlers {
    Handlers::new()
        .job("moody", |context, mood: String| async move {
            match mood.as_str() {
                "fails" => Err(HandlerError::new("planned failure")),
                "stays" => {
                    context.cancelled().await;
                    Err(HandlerError::new("cancelled"))
                }
                _ => Ok(()),
            }
        })
        .add(with_state(runs.clone()).join_job("moody", |runs, _, mut members| async move {
            let mut ended = 0;
            while let Some(member) = members.next().await? {
                ended += u32::from(member.succeeded());
            }
            runs.note("join");
            Ok(ended)
        }))
}

fn mood(mood: &str) -> Job {
    Job::new("moody", &mood).max_attempts(1)
}

#[tokio::test]
async fn the_first_failure_runs_the_join_immediately_and_ends_the_other_members() {
    let runs = Runs::default();
    let cluster = cluster(moody(&runs), 1).await;
    let client = cluster.client();
    let group = client.group(Group::new("moody", "g").total(40).fail_fast(true)).await.unwrap();
    group.submit(0, mood("well")).await.unwrap();
    group.submit(1, mood("stays")).await.unwrap();
    let running = JobId::new("moody:g:1").unwrap();
    eventually("the first member runs", SOON, async || {
        client.get(&running).await.unwrap().unwrap().state == State::Running
    })
    .await;
    // Members 1 to 3 occupy three of the four slots, and member 4 waits for its backoff.
    for (number, how) in [(2, "stays"), (3, "stays")] {
        group.submit(number, mood(how)).await.unwrap();
    }
    let delayed = Job::new("moody", &"fails").backoff(Duration::from_secs(300), Duration::from_secs(300));
    group.submit(4, delayed).await.unwrap();
    eventually("a member is delayed", SOON, async || {
        client.get(&JobId::new("moody:g:4").unwrap()).await.unwrap().unwrap().state == State::Delayed
    })
    .await;
    group.submit(5, mood("fails")).await.unwrap();
    assert_eq!(result(client, "moody.join:@g").await, json!(1));
    let view = done(client, "g").await;
    assert_eq!((view.succeeded, view.cancelled, view.dead, view.open), (1, 4, 1, 0), "{view:?}");
    assert_eq!(view.stopped.as_deref(), Some("member 5 ended without success"));
    let late = group.submit(6, mood("well")).await.unwrap_err();
    assert!(matches!(late, SubmitError::Group(GroupError::Closed { .. })), "{late}");
    assert!(
        group.submit(0, mood("well")).await.unwrap().is_duplicate(),
        "an existing member is the same member"
    );
    assert_eq!(runs.count("join"), 1);
    cluster.stop().await.unwrap();
}

/// No worker serves the kind, so that only the client ends members.
#[tokio::test]
async fn a_fail_fast_group_without_a_join_refuses_members_after_the_first_failure() {
    let cluster = cluster(moody(&Runs::default()), 1).await;
    let client = cluster.client();
    let plain = Group::new("unserved", "plain").fail_fast(true).join(false);
    let group = client.group(plain).await.unwrap();
    let job = || Job::new("unserved", &());
    for number in 0..3 {
        group.submit(number, job()).await.unwrap();
    }
    client.cancel(&JobId::new("unserved:plain:1").unwrap()).await.unwrap();
    let view = group.wait(SOON).await.unwrap();
    assert_eq!((view.cancelled, view.open), (3, 0), "{view:?}");
    let late = group.submit(3, job()).await.unwrap_err();
    assert!(matches!(late, SubmitError::Group(GroupError::Closed { .. })), "{late}");
    cluster.stop().await.unwrap();
}

/// The client ended before it sealed the group. No worker serves the kind, so that only the test ends members.
#[tokio::test]
async fn an_abandoned_group_keeps_its_members_and_is_done_without_a_join_when_they_have_ended() {
    let cluster = cluster(moody(&Runs::default()), 1).await;
    let client = cluster.client();
    let group = client.group(Group::new("unserved", "left")).await.unwrap();
    let job = || Job::new("unserved", &());
    for number in 0..2 {
        group.submit(number, job()).await.unwrap();
    }
    let view = client.abandon_group(group.id()).await.unwrap();
    assert_eq!(view.status(), "open: it was abandoned, 2 members are open");
    let late = group.submit(2, job()).await.unwrap_err();
    assert!(matches!(late, SubmitError::Group(GroupError::Closed { .. })), "{late}");
    let sealed = client.existing_group::<Untyped>(group.id()).await.unwrap().seal(2).await.unwrap_err();
    assert!(matches!(sealed, Error::Group(GroupError::Closed { .. })), "{sealed}");
    client.cancel(&JobId::new("unserved:left:0").unwrap()).await.unwrap();
    let view = client.abandon_group(group.id()).await.unwrap();
    assert_eq!(
        (view.cancelled, view.open),
        (1, 1),
        "abandoned again, and the other member still waits: {view:?}"
    );
    client.cancel(&JobId::new("unserved:left:1").unwrap()).await.unwrap();
    let view = group.wait(SOON).await.unwrap();
    assert_eq!((view.stage, view.join, view.cancelled), (GroupStage::Done, None, 2));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_dead_parent_stops_its_sub_jobs_and_its_finished_handler_runs() {
    let runs = Runs::default();
    let handlers = moody(&runs)
        .job("parent", |context, (): ()| async move {
            let group = context.sub_jobs_of("moody").finished(true).open().await?;
            for number in 0..3 {
                group.submit(number, mood("stays")).await?;
            }
            Err::<(), _>(HandlerError::new("planned failure"))
        })
        .add(with_state(runs.clone()).finished_job("parent", |runs, _, finished| async move {
            runs.note("finished");
            Ok((finished.parent.state, finished.group.cancelled))
        }));
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let parent = client.submit(Job::new("parent", &()).id("p").max_attempts(1)).await.unwrap();
    assert_eq!(parent.wait(SOON).await.unwrap().state, State::Dead);
    let group = sub_jobs(client, "p").await;
    let view = done(client, &group).await;
    assert_eq!((view.stage, view.cancelled), (GroupStage::Done, 3), "{view:?}");
    assert_eq!(result(client, &format!("parent.finished:@{group}")).await[0], json!("dead"));
    assert!(runs.first("join") < runs.first("finished"));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_stopped_group_stops_the_sub_jobs_of_its_members() {
    let runs = Runs::default();
    let handlers = moody(&runs)
        .job("parent", |context, ends: bool| async move {
            if !ends {
                return Err(HandlerError::new("broken"));
            }
            let group = context.sub_jobs_of("moody").join(false).open().await?;
            group.submit(0, mood("stays")).await?;
            Ok(())
        })
        .join_job("parent", |_, _| async { Ok(()) });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let group = client.group(Group::new("parent", "outer").total(2).fail_fast(true)).await.unwrap();
    group.submit(0, Job::new("parent", &true)).await.unwrap();
    let inner = sub_jobs(client, "parent:outer:0").await;
    let inner = JobId::new(format!("moody:{inner}:0")).unwrap();
    eventually("the sub-job runs", SOON, async || {
        client.get(&inner).await.unwrap().is_some_and(|view| view.state == State::Running)
    })
    .await;
    eventually("its parent has ended", SOON, async || {
        client.get(&JobId::new("parent:outer:0").unwrap()).await.unwrap().unwrap().state == State::Succeeded
    })
    .await;
    assert_eq!(group.view().await.unwrap().open, 1, "the member ends after its sub-jobs");
    group.submit(1, Job::new("parent", &false).max_attempts(1)).await.unwrap();
    let view = done(client, "outer").await;
    assert_eq!((view.succeeded, view.dead, view.open), (1, 1, 0), "{view:?}");
    assert_eq!(client.get(&inner).await.unwrap().unwrap().state, State::Cancelled);
    cluster.stop().await.unwrap();
}

/// Generation 2 would run at the same time as the sub-jobs of generation 1.
#[tokio::test]
async fn a_parent_is_not_opened_again_before_its_sub_jobs_are_done() {
    let runs = Runs::default();
    let handlers = moody(&runs).job("parent", |context, (): ()| async move {
        let group = context.sub_jobs_of("moody").open().await?;
        group.submit(0, mood("stays")).await?;
        Ok(())
    });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let again = || Job::new("parent", &()).id("p").if_exists(IfExists::Again);
    client.submit(again()).await.unwrap().wait(SOON).await.unwrap();
    assert_eq!(client.submit(again()).await.unwrap().accepted(), Accepted::Same);
    let group = sub_jobs(client, "p").await;
    client.cancel(&JobId::new(format!("moody:{group}:0")).unwrap()).await.unwrap();
    done(client, &group).await;
    assert_eq!(client.submit(again()).await.unwrap().accepted(), Accepted::Again(2));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn each_generation_of_a_parent_has_its_own_sub_jobs() {
    let runs = Runs::default();
    let handlers = moody(&runs).job("parent", |context, (): ()| async move {
        let group = context.sub_jobs_of("moody").open().await?;
        group.submit(0, mood("well")).await?;
        Err::<(), _>(HandlerError::new("broken"))
    });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let parent = client.submit(Job::new("parent", &()).id("p").max_attempts(1)).await.unwrap();
    parent.wait(SOON).await.unwrap();
    let first = sub_jobs(client, "p").await;
    done(client, &first).await;
    client.retry(parent.id()).await.unwrap();
    parent.wait(SOON).await.unwrap();
    let second = sub_jobs(client, "p").await;
    assert_ne!(first, second);
    done(client, &second).await;
    assert_eq!(runs.count("join"), 2);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_member_with_sub_jobs_is_not_retried_before_they_are_done() {
    let runs = Runs::default();
    let handlers = moody(&runs).job("parent", |context, (): ()| async move {
        let group = context.sub_jobs_of("moody").join(false).open().await?;
        group.submit(0, mood("stays")).await?;
        Err::<(), _>(HandlerError::new("broken"))
    });
    let cluster = cluster(handlers, 2).await;
    let client = cluster.client();
    let group = client.group(Group::new("parent", "outer").join(false).total(1)).await.unwrap();
    let parent = group.submit(0, Job::new("parent", &()).max_attempts(1)).await.unwrap();
    let ended = parent.wait(SOON).await.unwrap();
    assert_eq!(ended.state, State::Dead);
    // Right after its end, or once its sub-jobs have ended: the retry is refused, or done.
    match client.retry(parent.id()).await {
        Err(error) => assert!(matches!(error, Error::Group(GroupError::Spawned { .. })), "{error}"),
        Ok(_) => assert!(group.view().await.unwrap().stage == GroupStage::Done),
    }
    cluster.stop().await.unwrap();
}
