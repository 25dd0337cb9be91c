//! A live worker whose handler or whole runtime hangs loses the job to another worker.

use std::future::pending;
use std::thread;
use std::time::{Duration, Instant};

use bellwether::handler::with_state;
use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, Node, State, handler};
use bellwether_testkit::eventually;
use tokio::runtime::Builder;

use crate::stage::{Gate, LEASE, SOON, job, over, view};

/// Handlers whose first run hangs.
fn hangs_first(gate: &Gate) -> Handlers {
    let gate = with_state(gate.clone());
    let on_runtime = gate.job("async", |gate, context, (): ()| async move {
        gate.come(&context);
        if context.attempt() == 1 {
            pending::<()>().await;
        }
        Ok(context.worker().to_string())
    });
    let blocking = gate.blocking_job("blocking", |gate, context, (): ()| {
        gate.come(&context);
        if context.attempt() == 1 {
            gate.block();
        }
        Ok(context.worker().to_string())
    });
    let freezing = gate.job("freezing", |gate, context, (): ()| async move {
        gate.come(&context);
        if context.attempt() == 1 {
            gate.block();
        }
        Ok(context.worker().to_string())
    });
    Handlers::new().add(on_runtime.lease(LEASE)).add(blocking.lease(LEASE)).add(freezing.lease(LEASE))
}

#[tokio::test]
async fn a_hung_handler_is_cancelled_and_dropped_and_its_job_runs_again() {
    let gate = Gate::new();
    let cluster = Cluster::builder(hangs_first(&gate)).nodes(2).start().await.unwrap();
    cluster.client().submit(job("async", "hung")).await.unwrap();
    let view = over(&cluster, "hung").await;
    assert_eq!((view.state, view.attempt), (State::Succeeded, 2), "{view:?}");
    assert_eq!((view.losses, view.failures), (1, 0), "{view:?}");
    assert!(view.error.unwrap().contains("expired without a renewal"));
    assert_eq!(gate.came("hung"), [1, 2]);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_hung_blocking_handler_loses_its_job_and_its_late_result_is_dropped() {
    let gate = Gate::new();
    let cluster = Cluster::builder(hangs_first(&gate)).nodes(2).start().await.unwrap();
    cluster.client().submit(job("blocking", "hung")).await.unwrap();
    let ended = over(&cluster, "hung").await;
    assert_eq!((ended.state, ended.attempt, ended.losses), (State::Succeeded, 2, 1), "{ended:?}");
    gate.open();
    cluster.stop().await.unwrap();
    assert_eq!(gate.came("hung"), [1, 2]);
}

/// A node whose only thread is blocked. Its ZooKeeper client has its own thread and keeps the session.
struct Frozen {
    thread: thread::JoinHandle<()>,
}

impl Frozen {
    fn start(cluster: &Cluster, gate: &Gate) -> Self {
        let (to, handlers, gate) = (cluster.zookeeper(), hangs_first(gate), gate.clone());
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let node = Node::builder(to).node_id("frozen").candidate(false).tags(["cold"]);
                let node = node.handlers(handlers).start().await.unwrap();
                gate.wait().await;
                node.stop().await;
            });
        });
        Self { thread }
    }

    async fn registered(cluster: &Cluster, workers: usize) {
        eventually("the node is registered as a worker", SOON, async || {
            cluster.client().workers().await.unwrap().len() == workers
        })
        .await;
    }
}

#[tokio::test]
async fn a_worker_with_a_hung_runtime_loses_its_job_while_its_session_is_alive() {
    let gate = Gate::new();
    let cluster = Cluster::builder(hangs_first(&gate)).configure(|_, node| node.tags(["cold"]));
    // The node that leads has no worker until the frozen one has the job.
    let mut cluster = cluster.nodes(0).start().await.unwrap();
    let frozen = Frozen::start(&cluster, &gate);
    Frozen::registered(&cluster, 1).await;
    cluster.client().submit(job("freezing", "hung").tags(["cold"])).await.unwrap();
    let leader = Node::builder(cluster.zookeeper()).node_id("leader").start().await.unwrap();
    gate.has_come("hung", 1).await;
    let had = view(&cluster, "hung").await.worker;
    cluster.add().await.unwrap();
    let ended = over(&cluster, "hung").await;
    assert_eq!((ended.state, ended.attempt, ended.losses), (State::Succeeded, 2, 1), "{ended:?}");
    assert_ne!(ended.worker, had, "{ended:?}");
    assert_eq!(cluster.client().workers().await.unwrap().len(), 2, "the session of the hung worker is alive");
    // Its late result is rejected by the fence.
    gate.open();
    let thread = frozen.thread;
    tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    assert_eq!(view(&cluster, "hung").await.result, ended.result);
    assert_eq!(gate.came("hung"), [1, 2]);
    leader.stop().await;
    cluster.stop().await.unwrap();
}

/// The new leader's clock starts at zero: the job is taken later, but it is taken.
#[tokio::test]
async fn a_new_leader_takes_the_job_after_a_full_lease_by_its_own_clock() {
    const THREE: Duration = Duration::from_secs(3);
    let gate = Gate::new();
    let cluster =
        Cluster::builder(hangs_first(&gate)).configure(|_, node| node.tags(["cold"]).candidate(false));
    let mut cluster = cluster.nodes(0).start().await.unwrap();
    let frozen = Frozen::start(&cluster, &gate);
    Frozen::registered(&cluster, 1).await;
    cluster.client().submit(job("freezing", "hung").tags(["cold"]).lease(THREE)).await.unwrap();
    let killed = Node::builder(cluster.zookeeper()).node_id("killed").start().await.unwrap();
    gate.has_come("hung", 1).await;
    killed.actors().kill();
    cluster.add().await.unwrap();
    let since = Instant::now();
    let leader = Node::builder(cluster.zookeeper()).node_id("leader").start().await.unwrap();
    let ended = over(&cluster, "hung").await;
    assert_eq!((ended.state, ended.attempt, ended.losses), (State::Succeeded, 2, 1), "{ended:?}");
    assert!(since.elapsed() >= THREE, "the new leader measures the lease by its own clock");
    gate.open();
    let thread = frozen.thread;
    tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    leader.stop().await;
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_handler_that_stops_when_cancelled_ends_its_attempt_before_it_is_dropped() {
    let heeds = handler::job("heeds", |context, (): ()| async move {
        if context.attempt() > 1 {
            return Ok("in time");
        }
        context.cancelled().await;
        Err(HandlerError::new("cancelled"))
    });
    let cluster = Cluster::builder(Handlers::new().add(heeds.lease(LEASE))).start().await.unwrap();
    cluster.client().submit(job("heeds", "heeds")).await.unwrap();
    let view = over(&cluster, "heeds").await;
    assert_eq!((view.attempt, view.losses, view.failures), (2, 1, 0), "{view:?}");
    cluster.stop().await.unwrap();
}
