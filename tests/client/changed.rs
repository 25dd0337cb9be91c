//! Records name the author of their last change.

use std::time::Duration;

use bellwether::client::{
    Cancelled, Changed, IfExists, RetentionChange, Retried, Schedule, ScheduleChange, WorkerChange,
};
use bellwether::placement::BuiltInStrategy;
use bellwether::{Client, Group, HandlerError, Handlers, Job, JobId, Kind, Node, ScheduleId};
use bellwether_core::change::Change;
use bellwether_testkit::{eventually, namespace};

const SOON: Duration = Duration::from_secs(60);

/// Returns what was done and by whom.
fn told(changed: Option<&Changed>) -> Option<(&str, &str)> {
    changed.map(|changed| (changed.what.as_str(), changed.by.as_str()))
}

async fn of_job(client: &Client, job: &JobId) -> Option<Changed> {
    client.get(job).await.unwrap().unwrap().changed
}

#[tokio::test]
async fn a_job_names_who_cancelled_and_reopened_it() {
    let to = namespace("changed");
    let ada = Client::builder(&to).author("ada@host").connect().await.unwrap();
    let bob = ada.on_behalf_of("bob");
    let job = ada.submit(Job::new("stay", &()).id("a")).await.unwrap();
    assert_eq!(of_job(&ada, job.id()).await, None);
    assert_eq!(ada.cancel(job.id()).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(told(of_job(&ada, job.id()).await.as_ref()), Some(("cancelled", "ada@host")));
    assert_eq!(bob.retry(job.id()).await.unwrap(), Retried::Reopened(2));
    assert_eq!(told(of_job(&ada, job.id()).await.as_ref()), Some(("reopened", "bob")));
    // A later cancellation of the running attempt, which its worker carries out.
    let handlers = Handlers::new().job("stay", async |context, (): ()| {
        context.cancelled().await;
        Err::<(), _>(HandlerError::new("stopped"))
    });
    let node = Node::builder(&to).handlers(handlers).start().await.unwrap();
    let running = async || ada.get(job.id()).await.unwrap().unwrap().worker.is_some();
    eventually("the job runs", SOON, running).await;
    assert!(matches!(ada.cancel(job.id()).await.unwrap(), Cancelled::Requested(_)));
    let ended = ada.wait_for(job.id(), 2, SOON).await.unwrap();
    assert_eq!(told(ended.changed.as_ref()), Some(("cancelled", "ada@host")));
    node.stop().await;
}

#[tokio::test]
async fn a_resubmission_that_reopens_a_job_names_its_author() {
    let to = namespace("changed-again");
    let ada = Client::builder(&to).author("ada@host").connect().await.unwrap();
    let bob = ada.on_behalf_of("bob");
    let job = || Job::new("stay", &()).id("a").if_exists(IfExists::Again);
    let a = ada.submit(job()).await.unwrap();
    assert_eq!(of_job(&ada, a.id()).await, None, "the first submission opens nothing again");
    assert_eq!(ada.cancel(a.id()).await.unwrap(), Cancelled::Cancelled);
    bob.submit(job()).await.unwrap();
    assert_eq!(told(of_job(&ada, a.id()).await.as_ref()), Some(("reopened", "bob")));
    ada.submit(job()).await.unwrap();
    assert_eq!(told(of_job(&ada, a.id()).await.as_ref()), Some(("reopened", "bob")), "it was open already");
}

#[tokio::test]
async fn settings_name_who_set_them() {
    let to = namespace("changed-settings");
    let ada = Client::builder(&to).author("ada@host").connect().await.unwrap();
    let bob = ada.on_behalf_of("bob");
    let node = Node::builder(&to)
        .slots(1)
        .handlers(Handlers::new().job("stay", async |_, (): ()| Ok(())))
        .start()
        .await
        .unwrap();
    assert_eq!(ada.retention().await.unwrap().unwrap().changed, None, "it has its default value");
    let shorter = RetentionChange::new().records(1_000);
    assert_eq!(
        told(ada.change_retention(&shorter).await.unwrap().changed.as_ref()),
        Some(("set", "ada@host"))
    );
    assert_eq!(
        told(bob.change_retention(&shorter).await.unwrap().changed.as_ref()),
        Some(("set", "ada@host")),
        "bob changed nothing"
    );

    let random = || BuiltInStrategy::Random.into();
    bob.set_placement_strategy(random()).await.unwrap();
    ada.set_placement_strategy(random()).await.unwrap();
    let placement = ada.placement_strategy().await.unwrap().unwrap();
    assert_eq!((placement.value, told(placement.changed.as_ref())), (random(), Some(("set", "bob"))));

    let worker = async || Some(ada.workers().await.unwrap().first()?.info.clone().unwrap().settings);
    eventually("the worker is registered", SOON, async || worker().await.is_some()).await;
    let id = ada.workers().await.unwrap()[0].id;
    assert_eq!(worker().await.unwrap().changed, None);
    bob.change_worker(id, &WorkerChange::new().slots(2)).await.unwrap();
    // The worker publishes the new number of slots, and keeps the note.
    let published = async || ada.workers().await.unwrap()[0].info.clone().unwrap().slots == 2;
    eventually("the slots are published", SOON, published).await;
    assert_eq!(told(worker().await.unwrap().changed.as_ref()), Some(("set", "bob")));
    node.stop().await;
}

#[tokio::test]
async fn a_schedule_and_an_abandoned_group_name_who_changed_them() {
    let to = namespace("changed-schedule");
    let ada = Client::builder(&to).author("ada@host").connect().await.unwrap();
    let (bob, id) = (ada.on_behalf_of("bob"), ScheduleId::new("nightly").unwrap());
    let hourly = Schedule::every("nightly", Duration::from_secs(3_600), Job::new("sum", &1));
    ada.schedules().add(&hourly).await.unwrap();
    let changed = async || ada.schedules().get(&id).await.unwrap().record.unwrap().changed;
    assert_eq!(told(changed().await.as_ref()), Some(("added", "ada@host")));
    bob.schedules().pause(&id).await.unwrap();
    assert_eq!(told(changed().await.as_ref()), Some(("paused", "bob")));
    ada.schedules().pause(&id).await.unwrap();
    assert_eq!(told(changed().await.as_ref()), Some(("paused", "bob")), "it was paused already");
    ada.schedules().resume(&id).await.unwrap();
    assert_eq!(told(changed().await.as_ref()), Some(("resumed", "ada@host")));
    bob.schedules().change(&id, &ScheduleChange::default().grace(Duration::from_secs(7))).await.unwrap();
    assert_eq!(told(changed().await.as_ref()), Some(("replaced", "bob")));

    let group = ada.group(Group::new("sum", "g")).await.unwrap();
    assert_eq!(group.view().await.unwrap().changed, None);
    let view = bob.abandon_group(group.id()).await.unwrap();
    assert_eq!(told(view.changed.as_ref()), Some(("abandoned", "bob")));
}

/// A removal deletes the record with its note, so the same transaction writes the author to the parent.
#[tokio::test]
async fn the_transaction_of_a_removal_names_its_author() {
    let to = namespace("changed-removed");
    let ada = Client::builder(&to).author("ada@host").connect().await.unwrap();
    let (bob, id) = (ada.on_behalf_of("bob"), ScheduleId::new("nightly").unwrap());
    let zk = bellwether_zk::connect(&to.parse().unwrap(), SOON).await.unwrap();
    let noted = async |parent: &str| {
        let data = zk.get(parent.to_owned()).await.unwrap().unwrap().data;
        bellwether_core::wire::decode::<Change>(&data).ok().map(|it| (it.what.as_str(), it.by.to_string()))
    };
    ada.schedules().add(&Schedule::every("nightly", SOON, Job::new("sum", &1))).await.unwrap();
    assert_eq!(noted("/schedules").await, None);
    assert!(bob.schedules().remove(&id).await.unwrap());
    assert_eq!(noted("/schedules").await, Some(("removed", "bob".to_owned())));

    let kind = Kind::new("sum").unwrap();
    ada.pause_kind(&kind, "deploy").await.unwrap();
    let paused = bob.kinds().await.unwrap().remove(0).paused.unwrap();
    assert_eq!((paused.by.as_deref(), paused.note.as_deref()), (Some("ada@host"), Some("deploy")));
    assert!(bob.resume_kind(&kind).await.unwrap());
    assert_eq!(noted("/pauses").await, Some(("resumed", "bob".to_owned())));
}

#[tokio::test]
async fn the_name_of_an_author_is_bounded_and_has_a_default() {
    let to = namespace("changed-author");
    let client = Client::connect(&to).await.unwrap();
    let long = format!("{}@{}", "x".repeat(300), "ä".repeat(100));
    for (client, by) in [(client.clone(), None), (client.on_behalf_of(&long), Some(&long))] {
        let job = client.submit(Job::new("sum", &1)).await.unwrap();
        client.cancel(job.id()).await.unwrap();
        let changed = of_job(&client, job.id()).await.unwrap();
        match by {
            None => assert!(changed.by.ends_with(&format!("-{}", std::process::id())), "{changed:?}"),
            Some(long) => assert!(changed.by.len() == 256 && long.ends_with(&changed.by), "{changed:?}"),
        }
    }
}
