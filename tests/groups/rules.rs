//! Which members a group accepts and refuses, and that its join runs once.

use bellwether::client::{Error, GroupError, GroupStage, MemberEnd, Retried, SubmitError};
use bellwether::{Client, Group, HandlerError, Handlers, Job, JobId, JobKind, JoinKind};
use bellwether_testkit::{eventually, namespace};
use futures::future::try_join_all;
use serde_json::json;
use tokio::time::timeout;

use crate::stage::{Runs, SOON, cluster, done, doubling, result, sum};

fn member(n: u64) -> Job {
    Job::new("double", &n)
}

/// S7
#[tokio::test]
async fn the_join_runs_once_when_all_members_have_ended_and_reads_their_results() {
    let runs = Runs::default();
    let cluster = cluster(doubling(&runs), 2).await;
    let client = cluster.client();
    let group = client.group(Group::new("double", "ten").total(10)).await.unwrap();
    assert_eq!(group.submit_all((0..9).map(member)).await.unwrap(), 9);
    eventually("nine members have ended", SOON, async || group.view().await.unwrap().succeeded == 9).await;
    let view = group.view().await.unwrap();
    assert_eq!((view.stage, view.missing()), (GroupStage::Open, Some(1)));
    assert_eq!(view.status(), "open: 1 of 10 members were not submitted, 0 are open");
    group.submit(9, member(9)).await.unwrap();
    assert_eq!(result(client, "double.join:@ten").await, json!([10, 90]));
    let view = group.wait(SOON).await.unwrap();
    assert_eq!((view.stage, view.succeeded, view.open), (GroupStage::Done, 10, 0));
    assert_eq!(runs.count("double.join:@ten"), 1);
    let last = (0..10).map(|n| runs.last(&format!("double:ten:{n}"))).max().unwrap();
    assert!(runs.first("double.join:@ten") > last);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_group_without_a_total_waits_for_its_last_member() {
    let runs = Runs::default();
    let cluster = cluster(doubling(&runs), 1).await;
    let client = cluster.client();
    let group = client.group(Group::new("double", "open")).await.unwrap();
    for n in 0..3 {
        group.submit(n, member(n.into())).await.unwrap();
    }
    eventually("three members have ended", SOON, async || group.view().await.unwrap().succeeded == 3).await;
    let view = group.view().await.unwrap();
    assert_eq!(view.status(), "open: its total is not set yet");
    group.submit_last(3, member(3)).await.unwrap();
    assert_eq!(result(client, "double.join:@open").await, json!([4, 12]));
    cluster.stop().await.unwrap();
}

/// S11
#[tokio::test]
async fn submitting_a_whole_group_again_changes_nothing() {
    let runs = Runs::default();
    let cluster = cluster(doubling(&runs), 2).await;
    let client = cluster.client();
    for round in 0..3 {
        let group = client.group(Group::new("double", "again").total(5)).await.unwrap();
        for n in 0..5 {
            let job = group.submit(n, member(n.into())).await.unwrap();
            assert_eq!(job.is_duplicate(), round > 0, "round {round}, member {n}");
        }
        done(client, "again").await;
    }
    let other = client.group(Group::new("double", "again")).await.unwrap();
    let conflict = other.submit(0, member(99)).await.unwrap_err();
    assert!(matches!(conflict, SubmitError::Conflict { .. }), "{conflict}");
    assert_eq!(runs.count("double.join:@again"), 1);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_violated_group_rule_is_an_error_and_nothing_is_written() {
    let client = Client::connect(&namespace("group-rules")).await.unwrap();
    let group = client.group(Group::new("double", "g")).await.unwrap();
    group.submit(0, member(0)).await.unwrap();
    let told = |error: SubmitError| error.to_string();
    assert_eq!(
        told(group.submit(1, Job::new("sum", &1)).await.unwrap_err()),
        "group g has members of kind double, not sum: a group has one kind"
    );
    assert_eq!(
        told(group.submit(1, member(1).id("mine")).await.unwrap_err()),
        "a member of group g cannot have a given id: its id consists of its kind, group and number"
    );
    assert_eq!(
        told(group.submit(1_000_000, member(1)).await.unwrap_err()),
        "member 1000000 of group g is not below its total of 1000000: members are numbered from 0"
    );
    assert_eq!(
        group.seal(0).await.unwrap_err().to_string(),
        "group g has member 0 already: its total cannot be 0"
    );
    group.seal(2).await.unwrap();
    group.seal(2).await.unwrap();
    assert_eq!(
        group.seal(3).await.unwrap_err().to_string(),
        "group g was sealed with a total of 2, not 3: a total can be set only once"
    );
    assert!(matches!(
        group.submit_last(4, member(4)).await.unwrap_err(),
        SubmitError::Group(GroupError::Sealed { .. })
    ));
    // With a handle that does not know of the seal yet.
    let late = client.group(Group::new("double", "g")).await.unwrap();
    assert_eq!(
        told(late.submit(2, member(2)).await.unwrap_err()),
        "member 2 of group g is not below its total of 2: members are numbered from 0"
    );
    let other = client.group(Group::new("sum", "g")).await.unwrap_err();
    assert_eq!(
        other.to_string(),
        "group g was created with kind double, not sum: choose another id for another group"
    );
    let rules = client.group(Group::new("double", "g").fail_fast(true)).await.unwrap_err();
    assert!(matches!(rules, Error::Group(GroupError::Conflict { field: "failing fast", .. })), "{rules}");
    let total = client.group(Group::new("double", "h").total(1_000_001)).await.unwrap_err();
    assert_eq!(
        total.to_string(),
        "total of group h is 1000001: at most 1000000 are allowed; nest groups for more"
    );
    let long = client.group(Group::new("double", "x".repeat(120))).await.unwrap_err();
    assert!(matches!(long, Error::Group(GroupError::IdTooLong { .. })), "{long}");
    assert!(Group::new("double", "a:b").check().is_err());
    assert!(client.get_group(&crate::stage::group("h")).await.unwrap().is_none());
    let view = group.view().await.unwrap();
    assert_eq!((view.open, view.total, view.missing()), (1, Some(2), Some(1)));
    client.close().await;
}

#[tokio::test]
async fn an_outdated_handle_reads_the_group_again() {
    let client = Client::connect(&namespace("group-behind")).await.unwrap();
    let one = client.group(Group::new("double", "g")).await.unwrap();
    let two = client.group(Group::new("double", "g")).await.unwrap();
    one.seal(3).await.unwrap();
    two.submit(2, member(2)).await.unwrap();
    assert!(matches!(
        two.submit(3, member(3)).await.unwrap_err(),
        SubmitError::Group(GroupError::NumberTooLarge { .. })
    ));
    client.close().await;
}

/// Both submit in one multi, which the outdated handle's check rejects.
#[tokio::test]
async fn outdated_and_current_handles_of_one_group_submit_together() {
    let client = Client::connect(&namespace("group-apart")).await.unwrap();
    let behind = client.group(Group::new("double", "g")).await.unwrap();
    let ahead = client.group(Group::new("double", "g")).await.unwrap();
    ahead.seal(40).await.unwrap();
    let submitted = (0..40).map(|n| if n % 2 == 0 { &behind } else { &ahead }.submit(n, member(n.into())));
    timeout(SOON, try_join_all(submitted)).await.expect("the outdated handle is refreshed").unwrap();
    assert_eq!(ahead.view().await.unwrap().open, 40);
    client.close().await;
}

/// Returns its payload, except that zero fails in the first generation.
struct Fragile;

impl JobKind for Fragile {
    const NAME: &'static str = "fragile";
    type Payload = u64;
    type Result = u64;
}

impl JoinKind for Fragile {
    type Joined = (u64, u64);
}

/// S7: a mark that was removed by a retry is not counted.
#[tokio::test]
async fn an_open_group_waits_again_for_a_retried_dead_member() {
    let handlers = Handlers::new()
        .kind::<Fragile>(|context, n| async move {
            if n == 0 && context.generation() == 1 { Err(HandlerError::new("broken")) } else { Ok(n) }
        })
        .join::<Fragile>(|_, members| async move { sum(members).await });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let group = client.group(Fragile::group("g").total(2)).await.unwrap();
    let fragile = |n: u64| Fragile::job(&n).max_attempts(1);
    let dead = group.submit(0, fragile(0)).await.unwrap();
    dead.wait(SOON).await.unwrap();
    assert_eq!(group.view().await.unwrap().dead, 1);
    assert_eq!(client.retry(dead.id()).await.unwrap(), Retried::Reopened(2));
    dead.wait(SOON).await.unwrap();
    let view = group.view().await.unwrap();
    assert_eq!((view.dead, view.succeeded, view.stage), (0, 1, GroupStage::Open));
    group.submit(1, fragile(5)).await.unwrap();
    assert_eq!(group.join_result(SOON).await.unwrap(), (2, 5));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_member_retried_after_the_join_does_not_affect_the_group() {
    let handlers = Handlers::new()
        .job("fragile", |context, (): ()| async move {
            if context.generation() == 1 { Err(HandlerError::new("broken")) } else { Ok(7_u64) }
        })
        .join_job("fragile", |_, mut members| async move {
            let member = members.next().await?.ok_or(HandlerError::new("no member"))?;
            Ok(format!("{:?}", member.end == MemberEnd::Dead("broken".to_owned())))
        });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let group = client.group(Group::new("fragile", "g").total(1)).await.unwrap();
    let job = group.submit(0, Job::new("fragile", &()).max_attempts(1)).await.unwrap();
    assert_eq!(result(client, "fragile.join:@g").await, json!("true"));
    group.wait(SOON).await.unwrap();
    client.retry(job.id()).await.unwrap();
    assert_eq!(result(client, "fragile:g:0").await, json!(7));
    assert_eq!(group.view().await.unwrap().dead, 1, "the group is done");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_group_without_a_join_is_done_with_its_last_member_and_an_empty_one_immediately() {
    let runs = Runs::default();
    let cluster = cluster(doubling(&runs), 1).await;
    let client = cluster.client();
    let group = client.group(Group::new("double", "plain").join(false).total(1)).await.unwrap();
    group.submit(0, member(0)).await.unwrap();
    assert!(group.wait(SOON).await.unwrap().join.is_none());
    assert!(client.get(&JobId::new("double.join:@plain").unwrap()).await.unwrap().is_none());
    client.group(Group::new("double", "empty").total(0)).await.unwrap();
    assert_eq!(result(client, "double.join:@empty").await, json!([0, 0]));
    cluster.stop().await.unwrap();
}
