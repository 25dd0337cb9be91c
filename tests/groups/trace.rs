//! Traces of the jobs of a group.

use bellwether::{Group, HandlerError, Handlers, Job, JobId, TraceContext};

use crate::stage::{Runs, cluster, done, doubling, result, sub_jobs};

const OF_GROUP: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OF_JOB: &str = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00";

fn context(traceparent: &str) -> TraceContext {
    traceparent.parse().unwrap()
}

async fn trace(client: &bellwether::Client, id: &str) -> Option<String> {
    let view = client.get(&JobId::new(id).unwrap()).await.unwrap().unwrap();
    view.traceparent.map(|trace| trace.to_string())
}

#[tokio::test]
async fn members_without_a_trace_and_the_join_use_the_trace_of_the_group() {
    let cluster = cluster(doubling(&Runs::default()), 1).await;
    let client = cluster.client();
    let traced = Group::new("double", "g").total(2).traceparent(context(OF_GROUP));
    let group = client.group(traced).await.unwrap();
    group.submit(0, Job::new("double", &1)).await.unwrap();
    group.submit(1, Job::new("double", &2).traceparent(context(OF_JOB))).await.unwrap();
    done(client, "g").await;
    assert_eq!(trace(client, "double:g:0").await.as_deref(), Some(OF_GROUP));
    assert_eq!(trace(client, "double:g:1").await.as_deref(), Some(OF_JOB));
    assert_eq!(trace(client, "double.join:@g").await.as_deref(), Some(OF_GROUP));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn sub_jobs_join_and_finished_job_use_the_trace_of_a_retried_parent() {
    let handlers = doubling(&Runs::default())
        .job("parent", |context, (): ()| async move {
            let saw = context.traceparent().map(ToString::to_string);
            if context.attempt() == 1 {
                return Err(HandlerError::new(format!("attempt 1 saw {saw:?}")));
            }
            context
                .sub_jobs_of("double")
                .finished(true)
                .open()
                .await?
                .submit(0, Job::new("double", &1))
                .await?;
            Ok(saw)
        })
        .finished_job("parent", |_, _| async move { Ok(()) });
    let cluster = cluster(Handlers::new().and(handlers), 1).await;
    let client = cluster.client();
    let again = std::time::Duration::from_millis(1);
    let parent = Job::new("parent", &()).id("p").traceparent(context(OF_JOB)).backoff(again, again);
    client.submit(parent).await.unwrap();
    let group = sub_jobs(client, "p").await;
    done(client, &group).await;
    assert_eq!(result(client, "p").await, serde_json::json!(OF_JOB));
    let first = client.get(&JobId::new("p").unwrap()).await.unwrap().unwrap().error.unwrap();
    assert_eq!(first, format!("attempt 1 saw Some({OF_JOB:?})"));
    for id in
        [format!("double:{group}:0"), format!("double.join:@{group}"), format!("parent.finished:@{group}")]
    {
        assert_eq!(trace(client, &id).await.as_deref(), Some(OF_JOB), "{id}");
    }
    cluster.stop().await.unwrap();
}
