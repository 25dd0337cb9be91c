//! Earliest start and expiry of a job: the client's part.

use std::time::{Duration, SystemTime};

use bellwether::client::{SubmitError, WaitReason};
use bellwether::{Job, State};
use bellwether_core::budget::MAX_BUCKET_ENTRIES;
use bellwether_core::job::Delay;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_testkit::namespace;

use crate::fake_cluster::{FakeCluster, client};

const MINUTE: Duration = Duration::from_secs(60);

fn sum() -> Job {
    Job::new("sum", &1)
}

#[tokio::test]
async fn a_job_with_a_later_start_is_delayed_and_can_be_cancelled() {
    let to = namespace("later");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let at = SystemTime::now() + 90 * MINUTE;
    let job = client.submit(sum().run_at(at).expires_at(at + MINUTE).priority(8)).await.unwrap();
    let view = client.get(job.id()).await.unwrap().unwrap();
    assert_eq!((view.state, view.waiting), (State::Delayed, Some(WaitReason::NotBefore)));
    let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let not_before = view.not_before.unwrap();
    assert_eq!(since(not_before), since(at));
    assert_eq!(since(view.expires_at.unwrap()), since(at + MINUTE));
    let delay = Delay { minute: WallMillis::from(not_before).minute(), generation: 1, attempt: 1 };
    assert_eq!(view.options.unwrap().priority, Some(8));
    fake.read(path::delayed_entry(delay, job.id())).await;
    client.cancel(job.id()).await.unwrap();
    assert_eq!(fake.zk.get(path::delayed_entry(delay, job.id())).await, Ok(None));
    let now = client.submit(sum().run_at(SystemTime::now() - MINUTE)).await.unwrap();
    assert_eq!(client.get(now.id()).await.unwrap().unwrap().state, State::Queued, "not delayed");
}

#[tokio::test]
async fn jobs_of_many_minutes_and_lanes_go_in_one_batch() {
    let client = client(&namespace("minutes")).await;
    let job = |n: u32| match n % 3 {
        0 => sum(),
        1 => sum().delay(n * MINUTE),
        _ => sum().delay(n * MINUTE).lane(format!("l{}", n % 7)),
    };
    let answers = client.submit_many((0..300).map(job), |_| {}).await;
    let ids = answers.into_iter().map(|answer| answer.unwrap().id().clone()).collect::<Vec<_>>();
    let views = client.get_many(&ids).await.unwrap();
    let delayed = views.iter().flatten().filter(|view| view.state == State::Delayed).count();
    assert_eq!(delayed, 200);
}

#[tokio::test]
async fn impossible_times_are_refused_before_anything_is_written() {
    let to = namespace("times");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let year = 366 * 24 * 60 * MINUTE;
    for (job, said) in [
        (sum().delay(11 * year), "delay must be at most 3653 days ahead"),
        (sum().delay(Duration::MAX), "delay must be at most 3653 days ahead"),
        (sum().expires_in(11 * year), "expires_in must be at most 3653 days ahead"),
        (sum().expires_at(SystemTime::now() - MINUTE), "expires_at must be in the future"),
        (sum().expires_in(Duration::ZERO), "expires_in must be in the future"),
        (sum().delay(MINUTE).expires_in(MINUTE), "expires_in must be after delay"),
        (sum().priority(10), "priority must be 0 to 9, where 9 goes first, not 10"),
    ] {
        let refused = client.submit(job.id("refused")).await.unwrap_err();
        assert!(matches!(refused, SubmitError::Invalid(_)), "{refused}");
        assert!(refused.to_string().starts_with(said), "{refused}");
    }
    assert_eq!(fake.zk.get(path::record(&crate::fake_cluster::id("refused"))).await, Ok(None));
}

#[tokio::test]
async fn a_full_minute_refuses_jobs_before_anything_is_written() {
    let to = namespace("full-minute");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let at = SystemTime::now() + 60 * MINUTE;
    let job = client.submit(sum().run_at(at)).await.unwrap();
    let not_before = client.get(job.id()).await.unwrap().unwrap().not_before.unwrap();
    let minute = WallMillis::from(not_before).minute();
    let create = |n: usize| {
        let path = format!("{}/x{n}", path::delayed_minute(minute));
        Op::Create { path, data: Vec::new(), lifetime: Lifetime::Persistent }
    };
    let all = (1..MAX_BUCKET_ENTRIES).map(create).collect::<Vec<_>>();
    for ops in all.chunks(500) {
        fake.apply(ops.to_vec()).await;
    }
    let other = crate::fake_cluster::client(&to).await;
    let full = other.submit(sum().id("more").run_at(at)).await.unwrap_err();
    assert!(matches!(full, SubmitError::MinuteFull { entries: 5_000, .. }), "{full}");
    assert!(full.to_string().contains("choose another minute"), "{full}");
    assert_eq!(other.get(&crate::fake_cluster::id("more")).await.unwrap(), None);
    other.submit(sum().id("more").run_at(at + MINUTE)).await.unwrap();
}
