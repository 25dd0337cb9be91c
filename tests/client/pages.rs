//! Pages of jobs, and the snapshot of a namespace.

use std::collections::BTreeSet;

use bellwether::client::{Cursor, Filter, Page, PageLimits, SnapshotOptions};
use bellwether::{Client, Job, Kind, State};
use bellwether_core::job::Ending;
use bellwether_testkit::namespace;

use crate::fake_cluster::{FakeCluster, client, id};

/// The ids of the jobs on all pages, and the size of each page. Each cursor passes through its text.
async fn paged(client: &Client, filter: &Filter, limits: PageLimits) -> (Vec<String>, Vec<usize>) {
    let (mut from, mut ids, mut sizes) = (None::<Cursor>, Vec::new(), Vec::new());
    loop {
        let Page { items: jobs, next, .. } =
            client.list_page_within(filter, from.as_ref(), limits).await.unwrap();
        sizes.push(jobs.len());
        ids.extend(jobs.into_iter().map(|job| job.id.to_string()));
        match next {
            Some(next) => from = Some(next.to_string().parse().unwrap()),
            None => return (ids, sizes),
        }
    }
}

#[tokio::test]
async fn pages_of_each_state_return_each_job_once() {
    let to = namespace("pages-by-state");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 99, &[]).await;
    for n in 0..30 {
        for state in ["queued", "delayed", "running"] {
            client.submit(Job::new("sum", &n).id(format!("{state}-{n}"))).await.unwrap();
        }
    }
    for n in 0..30 {
        fake.assign(&id(&format!("running-{n}")), worker).await;
        let delayed = id(&format!("delayed-{n}"));
        fake.assign(&delayed, worker).await;
        fake.close(&delayed, worker, Ending::Failed("again".into())).await;
    }
    for (state, name) in [(State::Queued, "queued"), (State::Delayed, "delayed"), (State::Running, "running")]
    {
        let expected = (0..30).map(|n| format!("{name}-{n}")).collect::<BTreeSet<_>>();
        for limit in [1, 7, 30, 1_000] {
            let (ids, sizes) = paged(&client, &Filter::default().state(state), PageLimits::jobs(limit)).await;
            assert_eq!(ids.len(), 30, "{name}, {limit} at a time");
            assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), expected, "{name}, {limit} at a time");
            assert!(sizes.iter().all(|size| *size <= limit), "{sizes:?}");
            assert!(sizes.len() <= 30_usize.div_ceil(limit) + 1, "{sizes:?}");
        }
    }
    let (all, _) = paged(&client, &Filter::default(), PageLimits::jobs(11)).await;
    assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>().len()), (90, 90));
    let none = Filter::default().kind(Kind::new("other").unwrap());
    assert_eq!(paged(&client, &none, PageLimits::jobs(10)).await.0, Vec::<String>::new());
}

#[tokio::test]
async fn a_page_ends_before_the_job_with_which_it_would_have_too_many_bytes() {
    let client = client(&namespace("pages-by-bytes")).await;
    let text = "x".repeat(10_000);
    for n in 0..12 {
        client.submit(Job::new("sum", &text).id(format!("a{n}"))).await.unwrap();
    }
    let all = Filter::default();
    let one = client.get(&id("a10")).await.unwrap().unwrap().bytes();
    let (ids, sizes) = paged(&client, &all, PageLimits::jobs(100).bytes(3 * one)).await;
    assert_eq!(ids.into_iter().collect::<BTreeSet<_>>().len(), 12);
    assert_eq!(sizes[..4], [3, 3, 3, 3], "a page may have exactly as many bytes");
    let (_, sizes) = paged(&client, &all, PageLimits::jobs(100).bytes(3 * one - 1)).await;
    assert_eq!(sizes[..6], [2; 6]);
    let (ids, sizes) = paged(&client, &all, PageLimits::jobs(100).bytes(1)).await;
    assert_eq!(
        (ids.len(), &sizes[..12]),
        (12, &[1; 12][..]),
        "a job that is too large alone has its own page"
    );
    let small = PageLimits::jobs(100).bytes(3 * one).payloads(false);
    let page = client.list_page_within(&all, None, small).await.unwrap();
    assert_eq!((page.items.len(), page.next), (12, None), "payloads that are left out do not count");
    assert!(page.items.iter().all(|job| job.payload.is_none()));
}

#[tokio::test]
async fn a_snapshot_counts_jobs_and_its_sample_shows_their_kinds_and_the_oldest() {
    let to = namespace("snapshot");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let empty = client.snapshot(SnapshotOptions::default()).await.unwrap();
    assert_eq!((empty.open(), empty.assigned(), empty.orphaned), (0, 0, 0));
    let worker = fake.worker(&["sum"], 99, &[]).await;
    for n in 0..7 {
        let kind = if n < 5 { "sum" } else { "product" };
        client.submit(Job::new(kind, &n).id(format!("j{n}"))).await.unwrap();
    }
    for n in 1..4 {
        fake.assign(&id(&format!("j{n}")), worker).await;
    }
    fake.succeed(&id("j4"), worker, "1").await;
    let count = |sample: &bellwether::client::KindSample, kind: &str| {
        sample.of(&Kind::new(kind).unwrap()).map(|estimate| (estimate.count, estimate.exact))
    };
    for turn in 0..20 {
        let shot = client.snapshot(SnapshotOptions::default().sample(turn)).await.unwrap();
        assert_eq!((shot.depths.queued, shot.assigned(), shot.open(), shot.depths.stored), (3, 3, 6, 7));
        assert_eq!(count(&shot.queued, "sum"), Some((1, true)), "turn {turn}");
        assert_eq!(count(&shot.queued, "product"), Some((2, true)));
        assert_eq!(
            (count(&shot.running, "sum"), count(&shot.running, "product")),
            (Some((3, true)), Some((0, true)))
        );
        let oldest = shot.oldest_queued.unwrap();
        assert_eq!((oldest.id, oldest.exact), (id("j0"), true));
        assert_eq!((shot.workers[0].id, shot.workers[0].assigned, shot.leader), (worker, 3, None));
    }
    let waiting = client.snapshot(SnapshotOptions::default().sample(0).waiting_only(true)).await.unwrap();
    assert_eq!((waiting.running.sampled, waiting.running.all), (0, 3));
    let unsampled = client.snapshot(SnapshotOptions::default()).await.unwrap();
    assert_eq!((unsampled.queued.sampled, unsampled.queued.all, unsampled.oldest_queued), (0, 3, None));
    fake.apply(vec![bellwether_core::txn::Op::Delete {
        path: bellwether_core::path::worker(worker),
        version: None,
    }])
    .await;
    let orphaned = client.snapshot(SnapshotOptions::default()).await.unwrap();
    assert_eq!((orphaned.orphaned, orphaned.assigned(), orphaned.open()), (3, 0, 6));
}
