//! Segments on a cluster: members that succeed leave only results, and all others become jobs of their own.
//!
//! The segments are submitted by their transaction.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bellwether::client::State;
use bellwether::testing::Cluster;
use bellwether::{Client, HandlerError, Handlers};
use bellwether_core::job::{Payload, Placement, Policy, Priority};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::segment::{ChunkEnd, Chunks, Head, Member, MemberId, Segment, SegmentId};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_testkit::eventually;
use bellwether_zk::Zk;
use tokio::sync::watch;
use uuid::Uuid;

const SOON: Duration = Duration::from_secs(30);

/// A namespace with its own connection.
struct Stage {
    cluster: Cluster,
    zk: Zk,
}

impl Stage {
    async fn new(handlers: Handlers, nodes: usize) -> Self {
        let cluster = Cluster::builder(handlers).nodes(nodes).start().await.unwrap();
        cluster.ready().await.unwrap();
        let zk = bellwether_zk::connect(&cluster.zookeeper().parse().unwrap(), SOON).await.unwrap();
        Self { cluster, zk }
    }

    fn client(&self) -> &Client {
        self.cluster.client()
    }

    /// Submits jobs with the payloads 0, 1, 2, …
    async fn submit(&self, kind: &str, count: u8) -> SegmentId {
        let head = Head {
            kind: Kind::new(kind).unwrap(),
            policy: Policy { max_attempts: 1, ..Policy::default() },
            placement: Placement::default(),
            priority: Priority::default(),
            submitted_at: WallMillis(1_700_000_000_000),
            part: 0,
            token: Uuid::now_v7(),
        };
        let payload = |n: u8| Payload::json(n.to_string().into_bytes()).unwrap();
        let members = (0..count).map(|n| Member { payload: payload(n), trace: None }).collect();
        let segment = Segment { head, members };
        let id = SegmentId::new(Uuid::now_v7(), count, 1_000).unwrap();
        assert_eq!(self.zk.commit(txn::segment::submit(id, &segment)).await, Outcome::Applied(()));
        id
    }

    async fn chunks(&self, id: SegmentId) -> Chunks {
        let names = self.zk.children(path::segment(id)).await.unwrap().unwrap();
        Chunks::of_names(names.iter().map(String::as_str))
    }

    /// The names in each inbox, by worker.
    async fn inboxes(&self) -> Vec<(String, Vec<String>)> {
        let workers = self.zk.children(path::ASSIGNMENTS.to_owned()).await.unwrap().unwrap();
        let paths = workers.iter().map(|worker| format!("{}/{worker}", path::ASSIGNMENTS)).collect();
        let names = self.zk.children_many(paths).await.unwrap().into_iter().map(Option::unwrap_or_default);
        workers.into_iter().zip(names).collect()
    }

    async fn states(&self, id: SegmentId) -> Vec<(u8, State)> {
        let mut states = Vec::new();
        for number in self.chunks(id).await.members(ChunkEnd::Extracted).iter() {
            let view = self.client().get(&job(id, number)).await.unwrap();
            states.push((number, view.unwrap().state));
        }
        states
    }

    /// Waits until all members have ended, and checks that nothing is left in an inbox or under `/ready`.
    async fn over(&self, id: SegmentId) {
        eventually("all members have left the segment", SOON, async || {
            self.chunks(id).await.open(id).is_empty()
        })
        .await;
        eventually("the extracted jobs have ended", SOON, async || {
            self.states(id).await.iter().all(|(_, state)| is_over(*state))
        })
        .await;
    }
}

/// A handler whose runs end when the gate opens.
fn held(gate: &watch::Sender<bool>) -> Handlers {
    let gate = gate.clone();
    Handlers::new().job("held", move |_, n: u8| {
        let mut gate = gate.subscribe();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            Ok(n)
        }
    })
}

/// Whether a name in an inbox is of this segment or of one of its members.
fn is_of(name: &str, id: SegmentId) -> bool {
    name.contains(&id.to_string())
}

fn is_over(state: State) -> bool {
    matches!(state, State::Succeeded | State::Dead | State::Cancelled)
}

fn job(segment: SegmentId, number: u8) -> JobId {
    MemberId { segment, number }.job()
}

#[tokio::test(flavor = "multi_thread")]
async fn short_jobs_leave_only_their_results() {
    let ran = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let handlers = Handlers::new().job("echo", move |_, n: u8| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Ok(n) }
    });
    let stage = Stage::new(handlers, 2).await;
    let segments = [stage.submit("echo", 100).await, stage.submit("echo", 4).await];
    for id in segments {
        stage.over(id).await;
        assert_eq!(stage.states(id).await, [], "no member has a record");
    }
    assert_eq!(ran.load(Ordering::Relaxed), 104, "each ran once");
    stage.cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_fails_becomes_a_job_and_the_others_do_not() {
    let handlers = Handlers::new()
        .job("odd", |_, n: u8| async move { if n % 2 == 1 { Err(HandlerError::new("odd")) } else { Ok(n) } });
    let stage = Stage::new(handlers, 1).await;
    let id = stage.submit("odd", 6).await;
    stage.over(id).await;
    assert_eq!(stage.states(id).await, [1, 3, 5].map(|number| (number, State::Dead)));
    stage.cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_jobs_are_extracted_and_spread_over_the_workers() {
    let gate = watch::Sender::new(false);
    let stage = Stage::new(held(&gate), 2).await;
    let id = stage.submit("held", 40).await;
    eventually("both workers run extracted jobs", SOON, async || {
        stage.inboxes().await.iter().filter(|(_, names)| names.iter().any(|name| is_of(name, id))).count()
            == 2
    })
    .await;
    gate.send_replace(true);
    stage.over(id).await;
    let states = stage.states(id).await;
    assert_eq!(states, (0..40).map(|number| (number, State::Succeeded)).collect::<Vec<_>>());
    let mut workers = std::collections::BTreeSet::new();
    for number in 0..40 {
        workers.extend(stage.client().get(&job(id, number)).await.unwrap().unwrap().worker);
    }
    assert_eq!(workers.len(), 2, "both nodes took part");
    stage.cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_a_killed_worker_run_on_another_one() {
    let gate = watch::Sender::new(false);
    let stage = Stage::new(held(&gate), 2).await;
    let id = stage.submit("held", 10).await;
    // The segment itself is there for 250 ms, its extracted members until they end.
    let holder = async || {
        let inboxes = stage.inboxes().await.into_iter();
        inboxes.filter(|(_, names)| names.iter().any(|name| is_of(name, id))).map(|(worker, _)| worker).next()
    };
    let worker = bellwether_testkit::eventually_some("the segment is assigned", SOON, holder).await;
    let workers = stage.client().workers().await.unwrap();
    let view = workers.into_iter().find(|view| view.id.to_string() == worker).unwrap();
    let node = view.info.unwrap().node.to_string();
    stage.cluster.named(&node).unwrap().kill().await;
    gate.send_replace(true);
    stage.over(id).await;
    let states = stage.states(id).await;
    assert!(states.iter().all(|(_, state)| *state == State::Succeeded), "{states:?}");
    stage.cluster.stop().await.unwrap();
}
