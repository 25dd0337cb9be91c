//! Changing the slots, the tags and the kinds of running workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether::client::{Cause, ChangeWorkerError, WaitReason, WorkerChange, WorkerSettings};
use bellwether::placement::BuiltInStrategy;
use bellwether::{Client, Handlers, Job, Kind, Node, Tag, WorkerId};
use bellwether_core::path;
use bellwether_testkit::{Cut, Proxy, Request, eventually, eventually_some, namespace, op};
use tokio::sync::Semaphore;

use crate::fake_cluster::{FakeCluster, SOON, client};

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

fn pause(name: &str) -> WorkerChange {
    WorkerChange::new().pause_kinds([kind(name)])
}

fn reset() -> WorkerChange {
    WorkerChange::new().reset(true)
}

fn paused(name: &str) -> WorkerSettings {
    WorkerSettings::default().paused_kinds(vec![kind(name)])
}

#[tokio::test]
async fn settings_are_written_once_within_their_bounds() {
    let to = namespace("worker-settings");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["mail", "sum"], 4, &["eu"]).await;
    let tags = vec![Tag::new("gpu").unwrap(), Tag::new("eu").unwrap(), Tag::new("gpu").unwrap()];
    let wanted = WorkerChange::new().slots(2).tags(tags).pause_kinds([kind("sum")]);
    let set = client.change_worker(worker, &wanted).await.unwrap().unwrap();
    assert_eq!(set.value.tags, Some(vec![Tag::new("eu").unwrap(), Tag::new("gpu").unwrap()]));
    assert_eq!(client.change_worker(worker, &wanted).await, Ok(Some(set.clone())));
    assert_eq!(fake.read(path::worker(worker)).await.version, 1, "nothing to change, nothing written");
    let info = client.workers().await.unwrap().remove(0).info.unwrap();
    assert_eq!((info.slots, &info.settings), (2, &set));
    assert_eq!(info.tags, set.value.tags.clone().unwrap());
    let kinds = client.kinds().await.unwrap();
    let of = |name: &str| kinds.iter().find(|view| view.kind == kind(name)).unwrap();
    assert_eq!((of("sum").slots, &of("sum").paused_on), (0, &vec![worker]));
    assert_eq!((of("mail").slots, of("mail").paused_on.len()), (2, 0));

    let refused = client.change_worker(worker, &pause("smu")).await.unwrap_err();
    assert!(matches!(refused, ChangeWorkerError::Invalid(_)), "{refused:?}");
    assert_eq!(refused.to_string(), "the worker has no handler for kind smu");
    let many = WorkerChange::new().slots(4_097);
    assert!(client.change_worker(worker, &many).await.is_err());
    assert_eq!(client.workers().await.unwrap()[0].info.as_ref().unwrap().settings, set, "nothing was set");

    client.change_worker(worker, &reset()).await.unwrap();
    let info = client.workers().await.unwrap().remove(0).info.unwrap();
    assert_eq!((info.slots, info.tags), (4, vec![Tag::new("eu").unwrap()]));
    let none = WorkerId::new(uuid::Uuid::from_u128(7));
    assert_eq!(client.change_worker(none, &pause("sum")).await, Ok(None));
}

#[tokio::test]
async fn settings_with_a_lost_reply_are_read_back() {
    let to = namespace("worker-settings-lost");
    let proxy = Proxy::to(&to);
    let (client, fake) = (client(&proxy.connect_string()).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 4, &[]).await;
    let change = |request: &Request<'_>| request.op == op::MULTI && request.mentions("/workers/");
    let lost = proxy.swallow_reply_and_cut(change, Cut::Fin);
    let set = client.change_worker(worker, &pause("sum")).await.unwrap().unwrap();
    assert_eq!(set.value, paused("sum"));
    assert!(lost.has_fired());
    let lost = proxy.drop_request_and_cut(change, Cut::Fin);
    let usual = WorkerSettings::default();
    let set = client.change_worker(worker, &reset()).await.unwrap().unwrap();
    assert_eq!(set.value, usual);
    assert!(lost.has_fired());
    assert_eq!(fake.read(path::worker(worker)).await.version, 2, "each was written once");
}

#[tokio::test]
async fn a_job_explains_that_its_kind_is_paused_on_each_worker() {
    let to = namespace("worker-settings-explain");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 4, &[]).await;
    fake.lead().await;
    let job = client.submit(Job::new("sum", &1)).await.unwrap();
    client.change_worker(worker, &pause("sum")).await.unwrap();
    assert_eq!(client.get(job.id()).await.unwrap().unwrap().waiting, Some(WaitReason::PausedOnWorkers));
    let cause = client.explain(job.id()).await.unwrap().cause;
    assert_eq!(cause, Cause::PausedOnWorkers { kind: kind("sum"), workers: 1 });
}

/// A node whose jobs return its name, or wait for a permit.
async fn node(to: &str, name: &'static str, slots: u32, gate: &Arc<Gate>) -> Node {
    let gate = Arc::clone(gate);
    let handlers = Handlers::new().job("where", move |_, (): ()| async move { Ok(name) }).job(
        "waits",
        move |_, (): ()| {
            let gate = Arc::clone(&gate);
            async move {
                let running = gate.running.fetch_add(1, Ordering::SeqCst) + 1;
                gate.most.fetch_max(running, Ordering::SeqCst);
                gate.permits.acquire().await.expect("never closed").forget();
                gate.running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        },
    );
    Node::builder(to).node_id(name).handlers(handlers).slots(slots).start().await.unwrap()
}

struct Gate {
    permits: Semaphore,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self { permits: Semaphore::new(0), running: AtomicUsize::new(0), most: AtomicUsize::new(0) })
    }

    async fn runs(&self, jobs: usize) {
        eventually("so many jobs run", SOON, async || self.running.load(Ordering::SeqCst) == jobs).await;
    }
}

async fn worker_of(client: &Client, node: &str) -> WorkerId {
    eventually_some("the worker is registered", SOON, async || {
        let workers = client.workers().await.unwrap();
        let of = |info: &bellwether::client::WorkerInfo| info.node.as_str() == node;
        workers.iter().find(|worker| worker.info.as_ref().is_ok_and(of)).map(|worker| worker.id)
    })
    .await
}

async fn runs_on(client: &Client) -> String {
    let job = client.submit(Job::new("where", &())).await.unwrap();
    serde_json::from_slice(job.result(SOON).await.unwrap().bytes()).unwrap()
}

/// S24
#[tokio::test]
async fn no_job_is_assigned_to_a_worker_on_which_its_kind_is_paused() {
    let to = namespace("worker-pause");
    let (client, gate) = (client(&to).await, Gate::new());
    let nodes = [node(&to, "one", 4, &gate).await, node(&to, "two", 4, &gate).await];
    let one = worker_of(&client, "one").await;
    worker_of(&client, "two").await;
    // Of two idle workers the default strategy always chooses the same.
    client.set_placement_strategy(BuiltInStrategy::RoundRobin.into()).await.unwrap();
    for change in [pause("where"), WorkerChange::new().slots(0)] {
        client.change_worker(one, &change).await.unwrap();
        for _ in 0..10 {
            assert_eq!(runs_on(&client).await, "two", "from the moment the call has returned");
        }
        client.change_worker(one, &reset()).await.unwrap();
        eventually("it is assigned jobs again", SOON, async || runs_on(&client).await == "one").await;
    }
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test]
async fn slots_change_at_run_time_and_running_jobs_continue() {
    let to = namespace("worker-slots");
    let (client, gate) = (client(&to).await, Gate::new());
    let node = node(&to, "one", 1, &gate).await;
    let worker = worker_of(&client, "one").await;
    let slots = async |slots| {
        let wanted = WorkerChange::new().slots(slots);
        client.change_worker(worker, &wanted).await.unwrap();
    };
    let mut jobs = Vec::new();
    for _ in 0..6 {
        jobs.push(client.submit(Job::new("waits", &())).await.unwrap());
    }
    gate.runs(1).await;
    slots(3).await;
    gate.runs(3).await;
    slots(1).await;
    assert_eq!(gate.running.load(Ordering::SeqCst), 3, "running jobs are not stopped");
    gate.permits.add_permits(2);
    gate.runs(1).await;
    gate.most.store(0, Ordering::SeqCst);
    gate.permits.add_permits(4);
    for job in &jobs {
        assert_eq!(job.wait(SOON).await.unwrap().attempt, 1, "no job was handed back or repeated");
    }
    assert_eq!(gate.most.load(Ordering::SeqCst), 1, "one job at a time since the slots were lowered");
    node.stop().await;
}
