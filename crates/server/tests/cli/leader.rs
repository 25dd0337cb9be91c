//! `bellwether leader`, with several candidates.

use std::time::Duration;

use bellwether::Client;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_testkit::{Process, eventually, namespace};
use bellwether_zk::connect;
use serde_json::{Value, json};

use crate::run::{command, run_in};

const SOON: Duration = Duration::from_secs(20);

/// Starts a candidate and waits until it is listed, so that the order of the candidates is that of the calls.
async fn candidate(to: &str, client: &Client, name: &str) -> Process {
    let mut node =
        command(&["node", "--zookeeper", to, "--roles", "candidate", "--session-timeout", "4s", "--node-id"]);
    let node = Process::start("a candidate", node.arg(name)).unwrap();
    eventually(&format!("{name} is a candidate"), SOON, async || {
        let candidates = client.candidates().await.unwrap().list;
        candidates.iter().any(|found| found.node.as_ref().is_some_and(|node| node.as_str() == name))
    })
    .await;
    node
}

#[tokio::test]
async fn several_candidates_are_listed_in_their_order_as_json_and_as_a_table() {
    let to = namespace("cli-candidates");
    let client = Client::connect(&to).await.unwrap();
    let names = ["second", "third", "first"];
    let mut nodes = Vec::new();
    for name in names {
        nodes.push(candidate(&to, &client, name).await);
    }
    eventually("the first candidate leads", SOON, async || {
        client.leader().await.unwrap().is_some_and(|leader| leader.standing)
    })
    .await;

    let json = run_in(&to, &["leader", "candidates", "--output", "json"]).exits(0).json();
    assert_eq!(json["unreadable"], json!(0));
    let list = json["candidates"].as_array().unwrap();
    let fields = |field: &str| list.iter().map(|candidate| candidate[field].clone()).collect::<Vec<_>>();
    assert_eq!(
        fields("node"),
        names.map(Value::from),
        "in the order of their registration, not of their names"
    );
    assert_eq!(fields("leads"), [true, false, false].map(Value::from));
    let leader = run_in(&to, &["leader", "show", "--output", "json"]).exits(0).json();
    assert_eq!((&leader["node"], &leader["session"]), (&list[0]["node"], &list[0]["session"]));

    let zk = connect(&to.parse().unwrap(), SOON).await.unwrap();
    let path = format!("{}/foreign", path::ELECTION);
    let foreign = Op::Create { path, data: Vec::new(), lifetime: Lifetime::Persistent };
    assert_eq!(zk.commit(vec![foreign]).await, Outcome::Applied(()));
    let table = run_in(&to, &["leader", "candidates"]).exits(0).stdout;
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect::<Vec<_>>();
    assert_eq!(rows[0], ["NODE", "STATE", "SINCE", "SESSION"]);
    let shown =
        |field: usize| list.iter().map(move |candidate| candidate[["since", "session"][field]].as_str());
    let states = ["leading", "waiting", "waiting"];
    for (((row, name), state), (since, session)) in
        rows[1..4].iter().zip(names).zip(states).zip(shown(0).zip(shown(1)))
    {
        assert_eq!(row[..], [name, state, since.unwrap(), session.unwrap()], "{table}");
    }
    assert!(table.contains("1 znodes among the candidates cannot be read"), "{table}");

    nodes.remove(0).kill();
    eventually("the next candidate leads", SOON, async || {
        let json = run_in(&to, &["leader", "candidates", "--output", "json"]).exits(0).json();
        let first = &json["candidates"][0];
        (&first["node"], &first["leads"], json["candidates"].as_array().unwrap().len())
            == (&json!("third"), &json!(true), 2)
    })
    .await;
}
