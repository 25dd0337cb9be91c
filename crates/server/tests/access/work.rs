//! Other users of ZooKeeper sessions work with a login, too: a node's gateway, the schedules of its file, jobs that
//! handlers submit, and an election without jobs. `top` is tested in `tests/cli`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use bellwether::election::Election;
use bellwether::{Client, Job, ScheduleId, State};
use bellwether_gateway::Gateway;
use bellwether_testkit::{binary_or, eventually};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::{PASSWORD, SOON, USER, assert_closed, bare, client, handlers, login, node, place};

/// The command without ZooKeeper variables in its environment.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BELLWETHER_ZOOKEEPER")) {
        command.env_remove(name);
    }
    command.args(words).stdin(Stdio::null());
    command
}

fn password_file(dir: &Path) -> String {
    let file = dir.join("password");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns status and body.
pub(crate) async fn ask(gateway: SocketAddr, line: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let text = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.expect("an answer in time").unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_works_with_the_login_of_its_node() {
    let to = place("gateway");
    let node = bellwether::Node::builder(&to).access(login()).handlers(handlers()).start().await.unwrap();
    let client = Client::builder(&to).access(login()).open().await.unwrap();
    let gateway = Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap()).start().await.unwrap();
    let at = gateway.address();
    let submission = r#"{"id": "a", "kind": "double", "payload": 21}"#;
    let (status, answer) = ask(at, "POST /v1/jobs", submission).await;
    assert_eq!((status, &answer["id"]), (201, &"a".into()), "{answer}");
    let (status, answer) = ask(at, "GET /v1/jobs/a/wait", "").await;
    assert_eq!((status, &answer["state"]), (200, &"succeeded".into()), "{answer}");
    let (status, answer) = ask(at, "GET /v1/jobs", "").await;
    assert_eq!((status, &answer["jobs"][0]["id"]), (200, &"a".into()), "{answer}");
    let (insider, outsider) = (bare(&to, Some((USER, PASSWORD))).await, bare(&to, None).await);
    assert_closed(&insider, &[&outsider]).await;
    gateway.stop().await;
    node.stop().await;
}

#[tokio::test]
async fn schedules_of_a_file_tick_on_a_node_with_a_login() {
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    let to = place("schedules");
    let config = dir.path().join("node.toml");
    let text = format!(
        "[node]\nzookeeper = {to:?}\nzookeeper_user = {USER:?}\nzookeeper_password_file = {file:?}\n\n\
         [[schedule]]\nid = \"beat\"\nevery = \"1s\"\njob = {{ kind = \"sum\", payload = [1, 2] }}\n"
    );
    std::fs::write(&config, text).unwrap();
    let words = ["node", "--config", config.to_str().unwrap()];
    let mut node = tokio::process::Command::from(command(&words));
    let node = node.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let client = client(&to, login()).await;
    let (schedules, id) = (client.schedules(), ScheduleId::new("beat").unwrap());
    let record = async || schedules.get(&id).await.ok()?.record.ok();
    eventually("it ticks", SOON, async || record().await.is_some_and(|record| record.ticked >= 2)).await;
    let (insider, outsider) = (bare(&to, Some((USER, PASSWORD))).await, bare(&to, None).await);
    assert_closed(&insider, &[&outsider]).await;
    drop(node);
}

#[tokio::test]
async fn a_handler_submits_sub_jobs_with_the_login_of_its_node() {
    let to = place("sub-jobs");
    let node = node(&to, login()).await;
    let client = client(&to, login()).await;
    let parent = client.submit(Job::new("parent", &()).max_attempts(1)).await.unwrap();
    let over = parent.wait(SOON).await.unwrap();
    assert_eq!(over.state, State::Succeeded, "{over:?}");
    let (insider, outsider) = (bare(&to, Some((USER, PASSWORD))).await, bare(&to, None).await);
    assert_closed(&insider, &[&outsider]).await;
    node.stop().await;
}

#[tokio::test]
async fn an_election_without_jobs_uses_its_login() {
    let to = place("election");
    let candidate = Election::builder(&to).node_id("a").access(login()).start().await.unwrap();
    candidate.watch().active().await;
    let (insider, outsider) = (bare(&to, Some((USER, PASSWORD))).await, bare(&to, None).await);
    assert_closed(&insider, &[&outsider]).await;
    drop(candidate);
}
