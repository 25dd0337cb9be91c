//! A job is in exactly one place at every instant.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether::{Job, State};
use bellwether_testkit::eventually;
use serde_json::json;

use crate::places::places;
use crate::stage::{SOON, Stage};

/// Looked at in one multi-read each time: as many as fit into it.
const AT_ONCE: usize = 14;
const JOBS: usize = 420;

/// Read while a worker dies and its jobs move twice as often. The one server of this test answers a multi-read between
/// two transactions, so a job that was in no place, or in two, would be seen so.
#[tokio::test]
async fn a_job_is_in_exactly_one_place_at_every_instant() {
    let stage = Stage::set("one-place").await;
    let _leader = stage.node("leader").candidate().start();
    let mut lost = stage.node("lost").worker().start();
    let _spare = stage.node("spare").worker().session(SOON).start();
    stage.workers(2).await;

    let jobs = (0..JOBS).map(|n| match n % 3 {
        0 => Job::new("sleep", &json!({ "millis": 40 })).unwrap(),
        1 => Job::new("sum", &[n, n]).unwrap(),
        _ => {
            // Long enough that no look can miss all of them.
            let backoff = Duration::from_millis(1_500);
            let job = Job::new("fail", &json!({ "message": "once", "times": 1 })).unwrap();
            job.backoff(backoff, backoff)
        }
    });
    let ids = stage.submit(jobs).await;
    let mut pages = ids.chunks(AT_ONCE).cycle();
    let (mut looks, mut seen) = (0, BTreeMap::<_, u32>::new());
    let looking = async {
        loop {
            let page = pages.next().unwrap();
            let Some(places) = places(&stage.zk, page).await else { continue };
            for (job, places) in page.iter().zip(places) {
                assert_eq!(places.len(), 1, "{job} is in {places:?}");
                *seen.entry(places[0]).or_default() += 1;
            }
            looks += 1;
        }
    };
    let ending = async {
        eventually("a part is over", SOON, async || {
            let views = stage.client.get_many(&ids[..60]).await.unwrap();
            views.iter().flatten().filter(|job| job.state == State::Succeeded).count() > 20
        })
        .await;
        lost.kill();
        stage.over(&ids).await
    };
    let jobs = tokio::select! {
        () = looking => unreachable!("it looks until it is stopped"),
        jobs = ending => jobs,
    };
    assert!(jobs.iter().all(|job| job.state == State::Succeeded));
    eprintln!("{looks} looks: {seen:?}");
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), ["delayed", "inbox", "queue", "terminal"]);
    stage.settled(1).await;
}
