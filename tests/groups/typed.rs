//! Groups whose kind is a Rust type.

use std::time::Duration;

use bellwether::client::{MemberEnd, ResultError};
use bellwether::{Client, Group, Handlers, Job, JobKind, JoinKind, ParentKind, Payload, Untyped};
use bellwether_testkit::namespace;

use crate::stage::{Double, Runs, SOON, cluster, doubling};

/// A kind with the name of a group's members for another purpose.
struct Other;

impl JobKind for Other {
    const NAME: &'static str = "other";
    type Payload = u64;
    type Result = u64;
}

impl JoinKind for Other {
    type Joined = u64;
}

impl ParentKind for Other {
    type SubJob = Double;
    type Finished = u64;
}

#[tokio::test]
async fn a_client_waits_for_the_typed_result_of_the_join() {
    let runs = Runs::default();
    let cluster = cluster(doubling(&runs), 1).await;
    let group = cluster.client().group(Double::group("four").total(4)).await.unwrap();
    let early = group.join_result(Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(early, ResultError::Group(_)), "{early}");
    assert_eq!(group.submit_all((0..4).map(|n| Double::job(&n))).await.unwrap(), 4);
    assert_eq!(group.join_result(SOON).await.unwrap(), (4, 12));
    let mut members = group.members();
    let mut results = Vec::new();
    while let Some(member) = members.next().await.unwrap() {
        results.push(member.into_result().unwrap());
    }
    assert_eq!(results, [0, 2, 4, 6]);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_of_another_type_is_visible_and_fails_the_join() {
    let handlers = Handlers::new()
        .add(bellwether::handler::raw("other", |_| async { Ok(Payload::json(*b"\"two\"")?) }))
        .join::<Other>(|_, mut members| async move {
            let mut sum = 0;
            while let Some(member) = members.next().await? {
                sum += member.into_result()?;
            }
            Ok(sum)
        });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let group = client.group(Other::group("odd").total(1)).await.unwrap();
    group.submit(0, Other::job(&1)).await.unwrap();
    group.wait(Duration::from_millis(1)).await.unwrap_err();
    let member = bellwether_testkit::eventually_some("the member has ended", SOON, async || {
        let member = group.members().next().await.unwrap()?;
        (member.end != MemberEnd::Open).then_some(member)
    })
    .await;
    assert!(matches!(member.end, MemberEnd::Undecodable(_)), "{member:?}");
    assert!(member.succeeded());
    assert_eq!(member.stored().unwrap().bytes(), b"\"two\"");
    let untyped = client.group_members::<Untyped>(group.id()).next().await.unwrap().unwrap();
    assert_eq!(untyped.into_result().unwrap().bytes(), b"\"two\"");
    let why = "member 0 of the group has no result: job other:odd:0 has a result of another type: \
               invalid type: string \"two\", expected u64 at line 1 column 5";
    let join = bellwether_testkit::eventually_some("the join has failed", SOON, async || {
        let join = bellwether::JobId::new("other.join:@odd").unwrap();
        client.get(&join).await.unwrap()?.error
    })
    .await;
    assert_eq!(join, why);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_typed_view_of_a_group_of_another_kind_is_refused() {
    let client = Client::connect(&namespace("group-kinds")).await.unwrap();
    let group = client.group(Group::new("double", "g").join(false).total(0)).await.unwrap();
    let refused = "group g has members of kind double, not other: a group has one kind";
    assert_eq!(client.existing_group::<Other>(group.id()).await.unwrap_err().to_string(), refused);
    let mut members = client.group_members::<Other>(group.id());
    assert_eq!(members.next().await.unwrap_err().to_string(), refused);
    let typed = client.existing_group::<Double>(group.id()).await.unwrap();
    assert!(typed.members().next().await.unwrap().is_none());
    client.existing_group::<Untyped>(group.id()).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn there_is_no_result_of_a_join_or_a_finished_handler_that_does_not_exist() {
    let handlers =
        Handlers::new().kind::<Double>(|_, n| async move { Ok(n) }).kind::<Other>(|context, n| async move {
            if n > 0 {
                context.sub_jobs::<Double>().join(false).open().await?;
            }
            Ok(n)
        });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    let plain = client.group(Double::group("plain").join(false).total(0)).await.unwrap();
    let error = plain.join_result(SOON).await.unwrap_err();
    assert_eq!(error.to_string(), "group plain has no join, so there is no result to wait for");
    let alone = client.submit(Other::job(&0).id("alone")).await.unwrap();
    let error = alone.finished_result(SOON).await.unwrap_err();
    assert_eq!(error.to_string(), "job alone has no sub-jobs, so no finished handler runs after it");
    let parent = client.submit(Other::job(&1).id("parent")).await.unwrap();
    let error = parent.finished_result(SOON).await.unwrap_err().to_string();
    assert!(error.ends_with("has no finished handler, so there is no result to wait for"), "{error}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_view_of_a_job_returns_the_result_of_its_kind_only() {
    let runs = Runs::default();
    let cluster = cluster(doubling(&runs), 1).await;
    let client = cluster.client();
    let job = client.submit(Job::new("double", &4_u64).id("four")).await.unwrap();
    assert_eq!(
        job.result(SOON).await.unwrap().bytes(),
        b"8",
        "an untyped result is returned as it is stored"
    );
    let view = client.get(job.id()).await.unwrap().unwrap();
    assert_eq!(view.typed_result::<Double>().unwrap(), 8);
    let error = view.typed_result::<Other>().unwrap_err();
    assert_eq!(error.to_string(), "job four is of kind double, not other");
    cluster.stop().await.unwrap();
}
