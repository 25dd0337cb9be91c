//! The finished handler of a parent, and the position of a job in its group.

use bellwether::client::State;
use bellwether::{Handlers, Job, JobId};
use bellwether_testkit::eventually_some;
use serde_json::json;

use crate::stage::{SOON, cluster, done, result, sub_jobs};

/// A parent with one sub-job, which returns its position. The payload says whether the finished handler runs.
fn parent() -> Handlers {
    Handlers::new()
        .job("parent", |context, finish: bool| async move {
            let group = context.sub_jobs_of("place").join(false);
            let group = group.finished(finish);
            let member = Job::new("place", &()).priority(context.priority());
            group.open().await?.submit(0, member).await?;
            Ok(context.number())
        })
        .job("place", |context, (): ()| async move {
            Ok((context.priority(), context.group().map(ToString::to_string), context.number()))
        })
}

/// The node that runs the parent has no finished handler.
#[tokio::test]
async fn the_parent_determines_whether_its_finished_handler_runs() {
    let cluster = cluster(parent(), 1).await;
    let client = cluster.client();
    client.submit(Job::new("parent", &true).id("p")).await.unwrap();
    let group = sub_jobs(client, "p").await;
    let finish = JobId::new(format!("parent.finished:@{group}")).unwrap();
    let waits = eventually_some("the finished job exists", SOON, async || client.get(&finish).await.unwrap());
    assert_eq!(waits.await.state, State::Queued, "no node has the handler");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn no_finished_handler_runs_unless_the_parent_requests_it() {
    let handlers = parent().finished_job("parent", |_, _| async move { Ok(()) });
    let cluster = cluster(handlers, 1).await;
    let client = cluster.client();
    client.submit(Job::new("parent", &false).id("p")).await.unwrap();
    let group = sub_jobs(client, "p").await;
    done(client, &group).await;
    let finish = JobId::new(format!("parent.finished:@{group}")).unwrap();
    assert_eq!(client.get(&finish).await.unwrap(), None);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_handler_sees_its_priority_its_group_and_its_number() {
    let cluster = cluster(parent(), 1).await;
    let client = cluster.client();
    client.submit(Job::new("parent", &false).id("p").priority(7)).await.unwrap();
    assert_eq!(result(client, "p").await, json!(null), "the parent is in no group");
    let group = sub_jobs(client, "p").await;
    assert_eq!(result(client, &format!("place:{group}:0")).await, json!([7, group, 0]));
    cluster.stop().await.unwrap();
}
