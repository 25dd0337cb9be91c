//! The placement strategy, which a running leader follows.

use bellwether::client::Error;
use bellwether::node::StartError;
use bellwether::placement::{
    BuiltInStrategy, PlacementJob, PlacementStrategy, PlacementWorker, StrategyName,
};
use bellwether::{Client, Handlers, Job, Node};
use bellwether_core::path;
use bellwether_testkit::{eventually, namespace};

use crate::fake_cluster::{FakeCluster, SOON, client};

/// Chooses the node with this name.
struct To(&'static str);

impl PlacementStrategy for To {
    fn choose(&self, _: &PlacementJob<'_>, workers: &[PlacementWorker<'_>]) -> usize {
        workers.iter().position(|worker| worker.node.as_str() == self.0).unwrap_or(0)
    }
}

struct Panics;

impl PlacementStrategy for Panics {
    fn choose(&self, job: &PlacementJob<'_>, _: &[PlacementWorker<'_>]) -> usize {
        panic!("no worker for job {}", job.id)
    }
}

async fn node(to: &str, name: &'static str) -> Node {
    let handlers = Handlers::new().job("where", move |_, (): ()| async move { Ok(name) });
    let node = Node::builder(to).node_id(name).handlers(handlers).slots(100);
    let node = node.placement_strategy("to-a", To("a")).placement_strategy("to-b", To("b"));
    node.placement_strategy("panics", Panics).start().await.unwrap()
}

/// Submits a job and returns the node that runs it.
async fn runs_on(client: &Client) -> String {
    let job = client.submit(Job::new("where", &())).await.unwrap();
    serde_json::from_slice(job.result(SOON).await.unwrap().bytes()).unwrap()
}

fn name(name: &str) -> StrategyName {
    StrategyName::new(name).unwrap()
}

#[tokio::test]
async fn a_running_leader_follows_the_placement_setting() {
    let to = namespace("placement");
    let client = client(&to).await;
    assert_eq!(client.placement_strategy().await, Ok(None));
    let nodes = [node(&to, "a").await, node(&to, "b").await];
    eventually("both workers are registered", SOON, async || client.workers().await.unwrap().len() == 2)
        .await;
    for place in ["a", "b", "a"] {
        client.set_placement_strategy(name(&format!("to-{place}"))).await.unwrap();
        eventually("the leader follows", SOON, async || runs_on(&client).await == place).await;
        for _ in 0..5 {
            assert_eq!(runs_on(&client).await, place);
        }
    }
    for failing in ["panics", "unknown"] {
        client.set_placement_strategy(name(failing)).await.unwrap();
        for _ in 0..10 {
            runs_on(&client).await;
        }
    }
    client.set_placement_strategy(name("to-b")).await.unwrap();
    eventually("the leader follows again", SOON, async || runs_on(&client).await == "b").await;
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test]
async fn the_placement_setting_is_written_once_and_a_newer_one_is_kept() {
    let to = namespace("placement-setting");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    drop(client.submit(Job::new("where", &())).await.unwrap());
    for _ in 0..2 {
        client.set_placement_strategy(BuiltInStrategy::Rendezvous.into()).await.unwrap();
    }
    let stored = fake.read(path::PLACEMENT.into()).await;
    assert_eq!(stored.version, 0, "nothing to change, nothing written");
    assert_eq!(client.placement_strategy().await.unwrap().unwrap().value, name("rendezvous"));
    let mut newer = stored.data;
    newer[4] = 9;
    fake.overwrite(path::PLACEMENT.into(), newer.clone()).await;
    let refused = client.set_placement_strategy(BuiltInStrategy::Random.into()).await;
    assert!(matches!(refused, Err(Error::Settings { path: path::PLACEMENT, .. })), "{refused:?}");
    assert_eq!(fake.read(path::PLACEMENT.into()).await.data, newer);
    fake.overwrite(path::PLACEMENT.into(), b"foreign".to_vec()).await;
    assert!(matches!(client.placement_strategy().await, Err(Error::Settings { .. })));
    client.set_placement_strategy(BuiltInStrategy::Random.into()).await.unwrap();
    assert_eq!(client.placement_strategy().await.unwrap().unwrap().value, name("random"));
}

#[tokio::test]
async fn a_node_refuses_an_own_strategy_with_a_taken_name() {
    let builder = || Node::builder("127.0.0.1:1/none").placement_strategy("to-a", To("a"));
    for (again, said) in [
        ("to-a", "the placement strategy to-a is given twice"),
        ("random", "random is a built-in placement strategy: choose another name"),
    ] {
        let refused = builder().placement_strategy(again, Panics).start().await.unwrap_err();
        assert!(matches!(refused, StartError::Placement(_)), "{refused:?}");
        assert_eq!(refused.to_string(), said);
    }
    let refused = Node::builder("127.0.0.1:1/none").placement_strategy("a b", Panics).start().await;
    assert!(matches!(refused, Err(StartError::Name(_))));
}
