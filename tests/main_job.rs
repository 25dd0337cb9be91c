//! Submitting, assigning and running jobs end to end on a real server, with nodes in this process.

use std::sync::Arc;
use std::time::Duration;

use bellwether::{Client, Job, Payload, State};
use bellwether_core::clock_report::Process;
use bellwether_core::name::{Kind, NodeId};
use bellwether_core::placement::OwnStrategies;
use bellwether_host::election::ElectionConfig;
use bellwether_host::node::{CandidateConfig, Node, NodeConfig};
use bellwether_host::session::SessionConfig;
use bellwether_host::worker::{Handler, Registry, RunContext, WorkerConfig};
use bellwether_testkit::namespace;

const SOON: Duration = Duration::from_secs(20);

fn echo() -> Registry {
    let handler: Handler = Arc::new(|run: RunContext| Box::pin(async move { Ok::<Payload, _>(run.payload) }));
    Registry::new([(Kind::new("echo").expect("a name"), handler)]).expect("one handler")
}

async fn node(to: &str, name: &str) -> Node {
    let id = NodeId::new(name).expect("a name");
    let config = NodeConfig {
        session: SessionConfig {
            owner: "test".to_owned(),
            is_trusted: true,
            election: None,
            connect: to.parse().expect("a connect string"),
            access: bellwether_zk::Access::default(),
            session_timeout: Duration::from_secs(2),
            create_namespace: true,
            reads_clock: Some(Process { node: None, host: "h".into() }),
        },
        candidate: Some(CandidateConfig {
            election: ElectionConfig::new(id.clone()),
            strategies: OwnStrategies::default(),
        }),
        worker: Some(WorkerConfig {
            node: id,
            host: "h".into(),
            slots: 16,
            tags: vec![],
            handlers: echo(),
            drain_grace: Duration::ZERO,
            former: None,
            owner: None,
            takeover: None,
        }),
    };
    Node::start(config).await.expect("a node")
}

#[tokio::test]
async fn submitted_jobs_are_assigned_run_and_seen_by_the_client() {
    let to = namespace("main-job");
    let one = node(&to, "one").await;
    let two = node(&to, "two").await;
    let client = Client::connect(&to).await.expect("a client");
    let mut handles = Vec::new();
    for n in 0..200 {
        handles.push(client.submit(Job::new("echo", &n)).await.expect("accepted"));
    }
    for (n, handle) in handles.iter().enumerate() {
        let end = handle.wait(SOON).await.expect("an end");
        assert_eq!(end.state, State::Succeeded);
        assert_eq!(end.result.expect("a result").bytes(), n.to_string().as_bytes());
    }
    one.stop(SOON).await;
    two.stop(SOON).await;
}
