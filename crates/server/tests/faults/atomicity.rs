//! A job is in exactly one place at any time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use bellwether::{Job, State};
use bellwether_testkit::eventually;
use serde_json::json;

use crate::places::places;
use crate::stage::{SOON, Stage};

/// The number of jobs that fit into one multi-read.
const AT_ONCE: usize = 14;
const JOBS: usize = 420;
/// The backoff of the job that is part of each read. It is over when the test cancels the job.
const HOUR: Duration = Duration::from_secs(3_600);

/// Reads while a worker dies, when its jobs move twice as often. The single server of this test answers a multi-read
/// between two transactions, so the test would see a job in no place or in two places.
#[tokio::test]
async fn a_job_is_in_exactly_one_place_at_any_time() {
    let stage = Stage::set("one-place").await;
    let _leader = stage.node("leader").candidate().start();
    let mut lost = stage.node("lost").worker().start();
    let _spare = stage.node("spare").worker().session(SOON).start();
    stage.workers(2).await;

    let jobs = (0..JOBS).map(|n| match n % 3 {
        // Long enough for the reads to see some of them at a worker, also on a busy machine.
        0 => Job::new("sleep", &json!({ "millis": 400 })),
        1 => Job::new("sum", &[n, n]),
        _ => fails_once(Duration::from_millis(1_500)),
    });
    let ids = stage.submit(jobs).await;
    let [delayed] = stage.submit([fails_once(HOUR)]).await.try_into().unwrap();
    let mut pages = ids.chunks(AT_ONCE - 1).cycle();
    let seen = RefCell::new(BTreeMap::<_, u32>::new());
    let looking = async {
        loop {
            let page = [pages.next().unwrap(), std::slice::from_ref(&delayed)].concat();
            let Some(places) = places(&stage.zk, &page).await else { continue };
            for (job, places) in page.iter().zip(places) {
                assert_eq!(places.len(), 1, "{job} is in {places:?}");
                *seen.borrow_mut().entry(places[0]).or_default() += 1;
            }
        }
    };
    let ending = async {
        eventually("some jobs have ended", SOON, async || {
            let views = stage.client.get_many(&ids[..60]).await.unwrap();
            views.iter().flatten().filter(|job| job.state == State::Succeeded).count() > 20
        })
        .await;
        lost.kill();
        let jobs = stage.over(&ids).await;
        eventually("a read has seen the delayed job", SOON, async || seen.borrow().contains_key("delayed"))
            .await;
        stage.client.cancel(&delayed).await.unwrap();
        jobs
    };
    let jobs = tokio::select! {
        () = looking => unreachable!("the reads continue until the jobs have ended"),
        jobs = ending => jobs,
    };
    assert!(jobs.iter().all(|job| job.state == State::Succeeded));
    let seen = seen.into_inner();
    eprintln!("places seen: {seen:?}");
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), ["delayed", "inbox", "queue", "terminal"]);
    stage.settled(1).await;
}

fn fails_once(backoff: Duration) -> Job {
    Job::new("fail", &json!({ "message": "once", "times": 1 })).backoff(backoff, backoff)
}
