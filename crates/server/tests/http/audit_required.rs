//! A gateway whose audit file is full, with `--http-audit-required`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bellwether_testkit::{binary_or, eventually, namespace, unused_address};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::ask::{Answer, Ask, exchange};
use crate::stage::SOON;

/// A gateway that ignores the signal of a file at its limit, as a full disk sends none.
struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn node(to: &str, address: SocketAddr, options: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    command.arg(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    command.args(["--zookeeper", to, "node", "--roles", "gateway", "--http-listen", &address.to_string()]);
    command.args(options).stdin(Stdio::null());
    command
}

impl Gateway {
    async fn start(name: &str, audit: &Path, options: &[&str]) -> Self {
        let address = unused_address().unwrap();
        let options = [&["--http-audit-file", audit.to_str().unwrap()], options].concat();
        let child = node(&namespace(name), address, &options).spawn().unwrap();
        let gateway = Self { child, address };
        eventually("the gateway serves", SOON, async || {
            let Ok(stream) = TcpStream::connect(address).await else { return false };
            exchange(stream, &Ask::get("/readyz").text()).await.is_some_and(|answer| answer.status == 200)
        })
        .await;
        gateway
    }

    /// Limits the size of the files that the process writes; `None`: not.
    fn limit(&self, bytes: Option<u64>) {
        let limit = format!("--fsize={}:", bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string()));
        let done = Command::new("prlimit").args(["--pid", &self.child.id().to_string(), &limit]).status();
        assert!(done.unwrap().success());
    }

    async fn submit(&self, id: &str) -> Answer {
        let job = format!(r#"{{"id": "{id}", "kind": "nobody"}}"#);
        Ask::post("/v1/jobs", &job).of(self.address).await
    }

    async fn get(&self, path: &str) -> Answer {
        Ask::get(path).of(self.address).await
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_while_the_audit_file_cannot_be_written() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("audit");
    let gateway = Gateway::start("http-audit-required", &file, &["--http-audit-required"]).await;
    gateway.submit("before").await.is(201);
    let before = lines(&file);
    let [intent, outcome] = &before[..] else { panic!("{before:?}") };
    assert_eq!((&intent["event"], &intent["operation"]), (&"intent".into(), &"submit_job".into()));
    assert_eq!((&outcome["intent"], &outcome["status"]), (&intent["number"], &201.into()));

    // The disk is full in the middle of a line.
    gateway.limit(Some(std::fs::metadata(&file).unwrap().len() + 10));
    for n in 0..3 {
        let refused = gateway.submit(&format!("full-{n}")).await;
        let refused = refused.problem(503, "audit-unavailable", "nothing was changed");
        assert_eq!(refused.header("retry-after"), Some("1"));
        gateway.get(&format!("/v1/jobs/full-{n}")).await.is(404);
    }
    Ask::post("/v1/jobs/before/cancel", "{}").of(gateway.address).await.is(503);
    assert_eq!(gateway.get("/v1/jobs/before").await.is(200).json()["state"], "queued");
    // A request that is refused for another reason needs no line.
    Ask::post("/v1/nothing", "{}").of(gateway.address).await;
    gateway.get("/v1/jobs").await.is(200);

    gateway.limit(None);
    gateway.submit("after").await.is(201);
    let after = lines(&file);
    assert_eq!(after.len(), before.len() + 2, "{after:?}");
    assert_eq!(after[3]["intent"], after[2]["number"], "{after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_changes_only_if_the_audit_is_required() {
    let full = Path::new("/dev/full");
    let required = Gateway::start("http-audit-full", full, &["--http-audit-required"]).await;
    required.submit("a").await.problem(503, "audit-unavailable", "nothing was changed");
    required.get("/v1/jobs/a").await.is(404);
    let not = Gateway::start("http-audit-full-not", full, &[]).await;
    not.submit("a").await.is(201);
}

#[test]
fn a_required_audit_needs_a_file() {
    let address = unused_address().unwrap();
    let refused = node("127.0.0.1:1/nowhere", address, &["--http-audit-required"]).output().unwrap();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("http_audit_required needs http_audit_file"), "{stderr}");
}
