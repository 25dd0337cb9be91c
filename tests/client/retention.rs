//! Retention of records, and removing records by hand.

use std::time::Duration;

use bellwether::client::{Cancelled, ChangeRetentionError, Ended, Error, Purge, RetentionChange};
use bellwether::{Client, Job, Kind, Retention, State};
use bellwether_core::job::Ending;
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_testkit::{eventually, namespace};

use crate::fake_cluster::{FakeCluster, client, id};

/// Jobs that ended within the last minute are not purged.
const OLD_ENOUGH: Duration = Duration::from_secs(90);
const HOUR: Duration = Duration::from_secs(3600);

async fn retention(client: &Client) -> Option<Retention> {
    client.retention().await.unwrap().map(|setting| setting.value)
}

#[tokio::test]
async fn the_setting_exists_from_the_start_and_is_changed_within_its_bounds() {
    let to = namespace("retention");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    assert_eq!(retention(&client).await, Some(Retention::default()));

    let wanted = Retention::default().dead(100 * HOUR);
    let change = RetentionChange::new();
    client.change_retention(&change.dead(100 * HOUR)).await.unwrap();
    let changed = client.change_retention(&change.records(1_000)).await;
    assert_eq!(changed.unwrap().value, wanted.records(1_000), "the other change is kept");
    let version = fake.read(path::RETENTION.into()).await.version;
    client.change_retention(&change).await.unwrap();
    assert_eq!(
        fake.read(path::RETENTION.into()).await.version,
        version,
        "nothing to change, nothing written"
    );

    let refused = client.change_retention(&change.dead(Duration::from_secs(59))).await;
    let Err(ChangeRetentionError::Invalid(error)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().starts_with("retention of dead jobs must be 1m to 3650d, not 59s"));
    assert_eq!(fake.read(path::RETENTION.into()).await.version, version);
}

#[tokio::test]
async fn an_unreadable_setting_is_an_error_and_a_newer_one_is_kept() {
    let to = namespace("retention-unreadable");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let mut newer = fake.read(path::RETENTION.into()).await.data;
    newer[4] = 9;
    fake.overwrite(path::RETENTION.into(), newer.clone()).await;
    assert!(matches!(client.retention().await, Err(Error::Settings { path: path::RETENTION, .. })));
    let refused = client.change_retention(&RetentionChange::new()).await;
    assert!(matches!(refused, Err(ChangeRetentionError::Client(Error::Settings { .. }))), "{refused:?}");
    assert_eq!(fake.read(path::RETENTION.into()).await.data, newer);

    fake.overwrite(path::RETENTION.into(), b"garbage".to_vec()).await;
    client.change_retention(&RetentionChange::new()).await.unwrap();
    assert_eq!(retention(&client).await, Some(Retention::default()), "the setting is repaired");

    fake.apply(vec![Op::Delete { path: path::RETENTION.into(), version: None }]).await;
    assert_eq!(retention(&client).await, None);
    client.change_retention(&RetentionChange::new()).await.unwrap();
    assert_eq!(retention(&client).await, Some(Retention::default()), "the setting is created again");
}

#[tokio::test]
async fn a_purge_removes_selected_records_and_frees_their_ids() {
    let to = namespace("purge");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum", "product"], 9, &[]).await;
    let job = |kind: &str, name: &str| Job::new(kind, &1).id(name).max_attempts(1);
    for name in ["dead", "succeeded", "cancelled", "queued", "garbage"] {
        client.submit(job("sum", name)).await.unwrap();
    }
    client.submit(job("product", "other")).await.unwrap();
    for name in ["dead", "other"].map(id) {
        fake.assign(&name, worker).await;
        fake.close(&name, worker, Ending::Failed("boom".into())).await;
    }
    fake.succeed(&id("succeeded"), worker, "1").await;
    assert_eq!(client.cancel(&id("cancelled")).await, Ok(Cancelled::Cancelled));
    fake.overwrite(path::record(&id("garbage")), b"garbage".to_vec()).await;

    let count = Purge::default().kind(Kind::new("sum").unwrap());
    let dead = count.clone().remove(true);
    let young = client.purge(&dead, |_| {}).await.unwrap();
    assert_eq!((young.buckets, young.matched, young.removed), (256, 0, 0));
    assert_eq!(young.too_recent, 1, "the job has just ended");
    let old = dead.clone().older_than(HOUR);
    eventually("the record is old enough to be purged", OLD_ENOUGH, async || {
        // Reads one record; a count by state reads them all.
        client.purge(&Purge::jobs([id("dead")]), |_| {}).await.unwrap().matched == 1
    })
    .await;
    assert_eq!(client.purge(&count, |_| {}).await.unwrap().matched, 1);
    assert_eq!(client.purge(&old, |_| {}).await.unwrap().matched, 0);
    let mut told = Vec::new();
    let done = client.purge(&dead, |so_far| told.push(so_far)).await.unwrap();
    assert_eq!((done.matched, done.removed), (1, 1));
    assert_eq!(told.last(), Some(&done));
    assert_eq!(client.get(&id("dead")).await, Ok(None));
    assert_eq!(client.retry(&id("dead")).await, Err(Error::NotFound(id("dead"))));
    for (name, state) in [
        ("succeeded", State::Succeeded),
        ("cancelled", State::Cancelled),
        ("queued", State::Queued),
        ("garbage", State::Quarantined),
        ("other", State::Dead),
    ] {
        assert_eq!(client.get(&id(name)).await.unwrap().unwrap().state, state, "{name}");
    }
    // The first job is given twice; only the first one has ended and can be read.
    let given = ["cancelled", "cancelled", "queued", "garbage", "absent"].map(id);
    let given = Purge::jobs(given);
    let counted = client.purge(&given, |_| {}).await.unwrap();
    assert_eq!((counted.matched, counted.removed, counted.too_recent), (1, 0, 0));
    let done = client.purge(&given.remove(true), |_| {}).await.unwrap();
    assert_eq!((done.matched, done.removed), (1, 1));
    assert_eq!(client.get(&id("cancelled")).await, Ok(None));
    assert_eq!(client.get(&id("queued")).await.unwrap().unwrap().state, State::Queued);
    for ended in [Ended::Succeeded, Ended::Dead] {
        let purge = Purge::of(ended).remove(true);
        assert_eq!(client.purge(&purge, |_| {}).await.unwrap().removed, 1, "{ended:?}");
    }

    let again = client.submit(job("product", "dead")).await.unwrap();
    assert!(!again.is_duplicate());
    assert_eq!(fake.record(again.id()).await.1, 0, "another job with that id");
}
