//! Listing jobs by state and kind.

use std::collections::BTreeSet;

use bellwether::client::Filter;
use bellwether::{Client, Job, Kind, State};
use bellwether_core::job::Ending;
use bellwether_core::path;
use bellwether_testkit::namespace;

use crate::fake_cluster::{FakeCluster, client, id};

async fn listed(client: &Client, state: Option<State>, kind: Option<&str>) -> BTreeSet<String> {
    let mut listing =
        client.list(Filter::default().state(state).kind(kind.map(|kind| Kind::new(kind).unwrap())));
    let mut ids = BTreeSet::new();
    while let Some(view) = listing.next().await.unwrap() {
        assert!(state.is_none_or(|state| view.state == state), "{view:?}");
        assert!(ids.insert(view.id.to_string()), "{} is listed twice", view.id);
    }
    ids
}

#[tokio::test]
async fn each_state_lists_its_jobs_despite_a_corrupt_record() {
    let to = namespace("list");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 9, &[]).await;
    let jobs = ["queued", "delayed", "running", "succeeded", "cancelled", "dead", "quarantined"];
    for job in jobs {
        let attempts = if job == "dead" { 1 } else { 2 };
        client.submit(Job::new("sum", &1).id(job).max_attempts(attempts)).await.unwrap();
    }
    client.submit(Job::new("product", &1).id("other")).await.unwrap();
    for job in ["delayed", "dead"].map(id) {
        fake.assign(&job, worker).await;
        fake.close(&job, worker, Ending::Failed("boom".into())).await;
    }
    fake.assign(&id("running"), worker).await;
    fake.succeed(&id("succeeded"), worker, "1").await;
    client.cancel(&id("cancelled")).await.unwrap();
    fake.overwrite(path::record(&id("quarantined")), b"garbage".to_vec()).await;

    for state in State::ALL {
        let one = BTreeSet::from([state.to_string()]);
        let kind = (state != State::Quarantined).then_some("sum");
        assert_eq!(listed(&client, Some(state), kind).await, one);
    }
    let all = jobs.into_iter().chain(["other"]).map(String::from).collect::<BTreeSet<_>>();
    assert_eq!(listed(&client, None, None).await, all);
    assert_eq!(listed(&client, None, Some("product")).await, BTreeSet::from(["other".to_owned()]));
    assert_eq!(client.workers().await.unwrap()[0].assigned, 1);
    assert_eq!(client.leader().await.unwrap(), None);
}

#[tokio::test]
async fn a_listing_spans_many_pages() {
    let client = client(&namespace("pages")).await;
    let jobs = (0..1_234).map(|n| Job::new("sum", &n));
    let ids = client.submit_many(jobs, |_| {}).await.into_iter();
    let ids = ids.map(|job| job.unwrap().id().to_string()).collect::<BTreeSet<_>>();
    assert_eq!(listed(&client, None, None).await, ids);
    assert_eq!(listed(&client, Some(State::Queued), None).await, ids);
}
