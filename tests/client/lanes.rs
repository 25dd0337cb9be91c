//! Lanes as a client creates and sees them; the test plays leader and worker.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bellwether::client::{Cancelled, Filter, Retried, WaitReason};
use bellwether::{Client, Job, State};
use bellwether_core::job::{Turn, TurnIndex};
use bellwether_core::name::Lane;
use bellwether_core::{path, txn, wire};
use bellwether_testkit::{Cut, Proxy, Request, namespace, op};

use futures::StreamExt;
use tokio::time::timeout;

use crate::fake_cluster::{FakeCluster, SOON, client, id};

fn laned(name: &str) -> Job {
    Job::new("sum", &1).id(name).lane("account-7")
}

fn turn(generation: u32, job: &str) -> String {
    path::turn(&Turn { lane: Lane::new("account-7").unwrap(), generation }, &id(job))
}

async fn turns(fake: &FakeCluster) -> Vec<String> {
    let lane = path::lane(&Lane::new("account-7").unwrap());
    let mut turns = fake.zk.children(lane).await.unwrap().unwrap_or_default();
    turns.sort();
    turns
}

/// Returns the jobs of the lane in the order of their turns.
async fn order(fake: &FakeCluster) -> Vec<String> {
    let mut order = Vec::new();
    for name in turns(fake).await {
        let (generation, job) = path::parse_turn(&name).unwrap();
        let node = fake.read(turn(generation, job.as_str())).await;
        let TurnIndex(index) = wire::decode(&node.data).unwrap();
        order.push((node.created, index, job.to_string()));
    }
    order.sort();
    order.into_iter().map(|(_, _, job)| job).collect()
}

/// Returns the job before each of these, as `job show` does.
async fn behind(client: &Client, jobs: &[&str]) -> Vec<Option<String>> {
    let ids = jobs.iter().map(|job| id(job)).collect::<Vec<_>>();
    let views = client.get_many(&ids).await.unwrap();
    views.into_iter().map(|view| view.unwrap().behind.map(|job| job.to_string())).collect()
}

#[tokio::test]
async fn a_lane_is_created_on_demand_and_shows_its_first_job() {
    let to = namespace("lanes");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    // In one multi, so that only the indices differ; and not in the order of the names.
    let answers = client.submit_many(["c", "a", "b"].map(laned), |_| {}).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(turns(&fake).await, ["1-a", "1-b", "1-c"]);
    let first = || Some("c".to_owned());
    assert_eq!(behind(&client, &["a", "b", "c"]).await, [first(), first(), None]);
    let view = client.get(&id("a")).await.unwrap().unwrap();
    assert_eq!((view.state, view.waiting), (State::Queued, Some(WaitReason::Lane)));
    assert_eq!(view.status(), "queued: c comes first in its lane");
    assert_eq!(view.lane, Some(Lane::new("account-7").unwrap()));

    fake.succeed(&id("c"), worker, "1").await;
    assert_eq!(turns(&fake).await, ["1-a", "1-b"]);
    assert_eq!(behind(&client, &["a", "b"]).await, [None, Some("a".to_owned())]);
}

#[tokio::test]
async fn a_cancelled_job_leaves_its_lane_and_a_retry_puts_it_last() {
    let to = namespace("lanes-retry");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    for name in ["a", "b"] {
        client.submit(laned(name)).await.unwrap();
    }
    assert_eq!(client.cancel(&id("a")).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(turns(&fake).await, ["1-b"]);
    assert_eq!(client.retry(&id("a")).await.unwrap(), Retried::Reopened(2));
    assert_eq!(turns(&fake).await, ["1-b", "2-a"]);
    assert_eq!(behind(&client, &["a", "b"]).await, [Some("b".to_owned()), None]);
    assert!(client.submit(laned("a")).await.unwrap().is_duplicate());
    // The lane itself may have been removed before a retry.
    assert_eq!(client.cancel(&id("a")).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(client.cancel(&id("b")).await.unwrap(), Cancelled::Cancelled);
    let lane = path::lane(&Lane::new("account-7").unwrap());
    fake.apply(vec![txn::Op::Delete { path: lane, version: None }]).await;
    assert_eq!(client.retry(&id("a")).await.unwrap(), Retried::Reopened(3));
    assert_eq!(turns(&fake).await, ["3-a"]);
}

#[tokio::test]
async fn a_job_with_a_deleted_turn_shows_it_and_can_be_cancelled() {
    let to = namespace("lanes-by-hand");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    client.submit(laned("a")).await.unwrap();
    fake.apply(vec![txn::Op::Delete { path: turn(1, "a"), version: None }]).await;
    assert_eq!(client.get(&id("a")).await.unwrap().unwrap().waiting, Some(WaitReason::NoTurn));
    assert_eq!(client.cancel(&id("a")).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(client.retry(&id("a")).await.unwrap(), Retried::Reopened(2));
    assert_eq!(turns(&fake).await, ["2-a"]);
}

fn multi_read_about(text: &'static str) -> impl Fn(&Request<'_>) -> bool + Send + 'static {
    move |request| request.op == op::MULTI_READ && request.mentions(text)
}

#[tokio::test]
async fn a_listing_page_is_read_again_if_its_turns_cannot_be_read() {
    let to = namespace("lanes-list");
    let proxy = Proxy::to(&to);
    let client = Client::builder(proxy.connect_string()).deadline(Duration::from_secs(2));
    let client = client.connect().await.unwrap();
    client.submit(laned("a")).await.unwrap();
    let mut listing = client.list(Filter::default().state(State::Queued));
    let held = proxy.hold_reply(multi_read_about("/account-7"));
    listing.next().await.unwrap_err();
    held.release();
    assert_eq!(listing.next().await.unwrap().map(|view| view.id), Some(id("a")));
    assert_eq!(listing.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_job_is_returned_without_its_turn_if_its_lane_cannot_be_read() {
    let to = namespace("lanes-silent");
    let proxy = Proxy::to(&to);
    let client = Client::builder(proxy.connect_string()).deadline(Duration::from_secs(2));
    let client = client.connect().await.unwrap();
    for name in ["a", "b"] {
        client.submit(laned(name)).await.unwrap();
    }
    let held = proxy.hold_reply(multi_read_about("/account-7"));
    let view = client.get(&id("b")).await.unwrap().unwrap();
    assert_eq!((view.state, view.behind), (State::Queued, None));
    held.release();
    assert_eq!(behind(&client, &["b"]).await, [Some("a".to_owned())]);
}

/// Names do not show the order of a lane, so each read of the order reads all turns.
#[tokio::test]
async fn a_lane_is_listed_once_for_all_of_its_jobs() {
    const JOBS: usize = 250;
    let to = namespace("lanes-once");
    let proxy = Proxy::to(&to);
    let client = Client::connect(&proxy.connect_string()).await.unwrap();
    let answers = client.submit_many((0..JOBS).map(|n| laned(&format!("job-{n}"))), |_| {}).await;
    assert!(answers.iter().all(Result::is_ok));
    let lists = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&lists);
    let _counts = proxy.hold_reply(move |request: &Request<'_>| {
        // The path of a turn continues with a slash.
        let of_lane = |path: &[u8]| path.strip_prefix(b"/account-7").is_some_and(|rest| rest != b"/");
        let list = request.op == op::MULTI_READ && request.body.windows(b"/account-7/".len()).any(of_lane);
        seen.fetch_add(usize::from(list), Relaxed);
        false
    });
    let mut listing = client.list(Filter::default().state(State::Queued));
    let mut behind = 0;
    while let Some(view) = listing.next().await.unwrap() {
        behind += usize::from(view.behind.is_some_and(|first| first == id("job-0")));
    }
    assert_eq!((behind, lists.load(Relaxed)), (JOBS - 1, 1));
    let ids = (0..JOBS).map(|n| id(&format!("job-{n}"))).collect::<Vec<_>>();
    let views = client.get_many(&ids).await.unwrap().into_iter().flatten();
    assert_eq!((views.filter(|view| view.behind.is_some()).count(), lists.load(Relaxed)), (JOBS - 1, 2));
}

/// The turn is deleted with the job's end, which happens between the reads.
#[tokio::test]
async fn a_job_that_ends_during_a_read_is_not_reported_without_a_turn() {
    let to = namespace("lanes-ends");
    let proxy = Proxy::to(&to);
    let (client, fake) = (client(&proxy.connect_string()).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    client.submit(laned("a")).await.unwrap();
    let placed = proxy.hold_reply(multi_read_about("/ready/"));
    let ends = async {
        placed.fired().await;
        fake.succeed(&id("a"), worker, "1").await;
        placed.release();
    };
    let job = id("a");
    let (view, ()) = tokio::join!(client.get(&job), ends);
    let view = view.unwrap().unwrap();
    assert_eq!(
        (view.state, view.waiting),
        (State::Queued, Some(WaitReason::NoLeader)),
        "the state of the first read"
    );
}

/// Calls that are not polled must not block others, wherever they wait.
#[tokio::test]
async fn a_lane_accepts_a_job_between_two_items_of_a_stream() {
    const JOBS: usize = 600;
    let to = namespace("lanes-stream");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let mut stream = pin!(client.submit_stream((0..JOBS).map(|n| laned(&format!("job-{n}")))));
    stream.next().await.expect("the stream has 600 items").expect("the job is accepted");
    timeout(Duration::from_secs(5), client.submit(laned("between")))
        .await
        .expect("in time")
        .expect("accepted");
    assert!(stream.all(|answer| ready(answer.is_ok())).await);
    let mut order = order(&fake).await;
    assert_eq!(order.pop().as_deref(), Some("between"), "it was polled last");
    assert_eq!(order, (0..JOBS).map(|n| format!("job-{n}")).collect::<Vec<_>>());
}

/// If the reply to the submission that creates the lane, or to a later one, is lost, the rest of the lane must not
/// overtake it. The same holds for the rejection of a create of a lane that exists.
#[tokio::test]
async fn a_lane_keeps_its_order_when_a_reply_is_lost() {
    const JOBS: usize = 450;
    for (name, after, exists) in [
        ("lanes-first", 0, false),
        ("lanes-second", 1, false),
        ("lanes-later", 3, false),
        ("lanes-rejected", 0, true),
        ("lanes-again", 1, true),
    ] {
        let to = namespace(name);
        let fake = FakeCluster::new(&to).await;
        let proxy = Proxy::to(&to);
        let client =
            Client::builder(proxy.connect_string()).session_timeout(Duration::from_secs(5)).deadline(SOON);
        let client = client.connect().await.unwrap();
        if exists {
            let path = path::lane(&Lane::new("account-7").unwrap());
            fake.apply(vec![txn::Op::Create { path, data: Vec::new(), lifetime: txn::Lifetime::Container }])
                .await;
        }
        let seen = AtomicUsize::new(0);
        let nth = move |request: &Request<'_>| {
            let submission = request.op == op::MULTI && request.mentions("/lanes/");
            submission && seen.fetch_add(1, Relaxed) == after
        };
        let fault = proxy.swallow_reply_and_cut(nth, Cut::Reset);
        let answers = client.submit_many((0..JOBS).map(|n| laned(&format!("job-{n}"))), |_| {}).await;
        fault.fired().await;
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|job| !job.is_duplicate())), "{name}");
        assert_eq!(order(&fake).await, (0..JOBS).map(|n| format!("job-{n}")).collect::<Vec<_>>(), "{name}");
    }
}
