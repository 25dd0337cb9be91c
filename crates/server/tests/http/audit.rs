//! Audit lines of requests that may change something.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bellwether_gateway::access::Role;
use bellwether_gateway::{Limits, Protection};
use bellwether_testkit::eventually;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tracing_subscriber::fmt::MakeWriter;

use crate::ask::Ask;
use crate::idle_connections::Gateway;
use crate::stage::{SOON, Secrets, Stage};

/// The log of this process. All tests write into it, and each test looks for its own requests.
#[derive(Clone, Copy)]
struct Log;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let to = tracing_subscriber::fmt().with_writer(Log).with_ansi(false);
        tracing::subscriber::set_global_default(to.with_max_level(tracing::Level::INFO).finish()).unwrap();
    });
}

/// Returns the audit lines that contain a text.
fn lines_with(text: &str) -> Vec<String> {
    let all = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let all = String::from_utf8(all).unwrap();
    let audit = all.lines().filter(|line| line.contains(" bellwether::audit: ") && line.contains(text));
    audit.map(ToOwned::to_owned).collect()
}

/// Returns the only audit line of a request. It is written before the answer is sent.
fn the_line_of(request_id: &str) -> String {
    let lines = lines_with(&format!("request_id=\"{request_id}\""));
    assert_eq!(lines.len(), 1, "{request_id}: {lines:?}");
    lines.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operations_that_may_change_something_leave_an_audit_line() {
    listen();
    let secrets = Secrets::new();
    let stage = Stage::with("http-audit", |builder| {
        builder.protection(Protection::default().tokens(secrets.tokens.clone()))
    })
    .await;
    let document = bellwether_gateway::openapi();
    let mut changing = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if path == "/v1/events" {
                continue;
            }
            let name = operation["operationId"].as_str().unwrap();
            let is_quiet = path.ends_with("/poll") || path.ends_with("/heartbeat");
            let path = path.replace("{id}", "none").replace("{kind}", "none");
            let path = path.replace("{key}", "00000000-0000-4000-8000-000000000000");
            let ask = |token: &str| {
                let ask = Ask::new(&method.to_uppercase(), &path).header("content-length: 0").token(token);
                ask.header(&format!("x-request-id: audit-{name}"))
            };
            let answer = ask(secrets.of(Role::Admin)).of(stage.address()).await;
            assert_eq!(answer.header("x-request-id"), Some(format!("audit-{name}").as_str()));
            if method == "get" || is_quiet {
                assert_eq!(lines_with(&format!("audit-{name}")), Vec::<String>::new());
                continue;
            }
            changing += 1;
            let line = the_line_of(&format!("audit-{name}"));
            let status = answer.status;
            for part in [
                "caller=\"admin\" role=\"admin\" from=127.0.0.1:".to_owned(),
                format!(
                    "operation=\"{name}\" method={} path=\"{path}\" status={status} ",
                    method.to_uppercase()
                ),
            ] {
                assert!(line.contains(&part), "{part} is not in {line}");
            }
        }
    }
    assert!(changing >= 14, "{changing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_names_the_change_and_contains_no_secret() {
    listen();
    let secrets = Secrets::new();
    let stage = Stage::with("http-audit-what", |builder| {
        builder.protection(Protection::default().tokens(secrets.tokens.clone()))
    })
    .await;
    let token = secrets.of(Role::Submit);
    let named = |ask: Ask, id: &str| ask.token(token).header(&format!("x-request-id: {id}"));
    let hidden = r#"{"id": "audited", "kind": "sum", "payload": "hunter2"}"#;
    named(Ask::post("/v1/jobs?hunter2=hunter2", hidden), "what-job").of(stage.address()).await.is(201);
    assert!(the_line_of("what-job").contains("what=\"job audited: new"), "{}", the_line_of("what-job"));

    // A refused request leaves a line with its caller, too.
    named(Ask::post("/v1/jobs/audited/cancel", ""), "what-role").of(stage.address()).await.is(403);
    let refused = the_line_of("what-role");
    assert!(refused.contains("caller=\"submit\"") && refused.contains("status=403"), "{refused}");
    let unknown = Ask::post("/v1/jobs", hidden).token("hunter2").header("x-request-id: what-token");
    unknown.of(stage.address()).await.is(401);
    let unknown = the_line_of("what-token");
    assert!(unknown.contains("caller=\"-\"") && unknown.contains("status=401"), "{unknown}");

    // A request id that is unsafe to log is replaced.
    let odd = Ask::post("/v1/jobs", hidden).token(token).header("x-request-id: a\" caller=\"admin");
    let odd = odd.of(stage.address()).await.is(200);
    the_line_of(odd.header("x-request-id").unwrap());

    let all = lines_with("");
    assert!(!all.iter().any(|line| line.contains("hunter2") || line.contains(token)), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_caller_disconnected_leaves_its_line() {
    listen();
    let stage = Stage::new("http-audit-gone").await;
    let mut stream = TcpStream::connect(stage.address()).await.unwrap();
    let begun = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 x-request-id: gone-1\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(begun.as_bytes()).await.unwrap();
    stage.get("/healthz").await.is(200);
    drop(stream);
    eventually("its line is written", SOON, async || !lines_with("gone-1").is_empty()).await;
    let line = the_line_of("gone-1");
    assert!(line.contains("caller=\"anonymous\" role=\"admin\""), "{line}");
    assert!(line.contains("operation=\"submit_job\""), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_is_logged_with_its_request_id() {
    listen();
    let limits = Limits::default().request_time(Duration::from_millis(200));
    let stage = Stage::with("http-log", |builder| builder.limits(limits)).await;
    let stuck = Ask::new("POST", "/v1/jobs").header("content-type: application/json");
    let stuck = stuck.header("content-length: 10").header("x-request-id: log-stuck");
    stuck.of(stage.address()).await.is(504);
    let all = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let all = String::from_utf8(all).unwrap();
    let line = all
        .lines()
        .find(|line| line.contains("the gateway answered with a server error") && line.contains("log-stuck"));
    let line = line.unwrap_or_else(|| panic!("no line in {all}"));
    assert!(line.contains("status=504 problem=\"unknown\"") && line.contains("may or may not"), "{line}");
}

/// Requests without a valid token also leave lines if they only read, but a flood of them does not fill the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_requests_without_a_token_leaves_sampled_lines() {
    listen();
    let secrets = Secrets::new();
    let stage = Stage::with("http-audit-flood", |builder| {
        builder.protection(Protection::default().tokens(secrets.tokens.clone()))
    })
    .await;
    let flooded = Instant::now();
    for n in 0..200 {
        let ask =
            if n % 2 == 0 { Ask::get("/v1/jobs/flood") } else { Ask::post("/v1/jobs/flood/cancel", "") };
        ask.of(stage.address()).await.is(401);
    }
    let seconds = usize::try_from(flooded.elapsed().as_secs()).unwrap();
    let lines = lines_with("path=\"/v1/jobs/flood");
    assert!(lines.iter().any(|line| line.contains("method=GET")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("method=POST")), "{lines:?}");
    let most = 20 * (seconds + 2);
    assert!(lines.len() <= most && most < 200, "{} lines in {seconds} s", lines.len());
}

/// The gateway logs only errors. Its peer is a proxy that it trusts.
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_file_has_changes_and_reads_of_payloads_whatever_the_log_level() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit");
    let options = ["--http-audit-file", file.to_str().unwrap(), "--http-audit-reads"];
    let options = [&options[..], &["--http-trusted-proxies", "127.0.0.1"]].concat();
    let gateway = Gateway::with("http-audit-file", &options).await;
    let of = async |ask: Ask, status: u16| {
        ask.header("x-forwarded-for: 127.0.0.9, 198.51.100.9").of(gateway.address).await.is(status)
    };
    of(Ask::post("/v1/jobs", r#"{"id": "a", "kind": "nobody", "payload": "hunter2"}"#), 201).await;
    of(Ask::get("/v1/jobs/a"), 200).await;
    of(Ask::get("/v1/jobs/a/payload"), 200).await;
    of(Ask::get("/v1/jobs/a/result"), 404).await;
    of(Ask::get("/v1/jobs/a/checkpoint"), 404).await;
    of(Ask::get("/v1/jobs?%70ayloads=true"), 200).await;
    of(Ask::get("/v1/jobs"), 200).await;
    of(Ask::get("/v1/kinds"), 200).await;
    let nightly = r#"{"id": "nightly", "every": "1h", "job": {"kind": "nobody", "payload": "hunter2"}}"#;
    of(Ask::post("/v1/schedules", nightly), 201).await;
    of(Ask::get("/v1/schedules"), 200).await;
    of(Ask::get("/v1/schedules/nightly"), 200).await;
    of(Ask::get("/v1/schedules/nightly/payload"), 200).await;
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let operations = lines.iter().map(|line| line["operation"].as_str().unwrap()).collect::<Vec<_>>();
    let shown = ["show_job", "show_payload", "show_result", "show_checkpoint"];
    let of_schedule = ["add_schedule", "show_schedule", "show_schedule_payload"];
    assert_eq!(operations, [&["submit_job"], &shown[..], &["list_jobs"], &of_schedule].concat(), "{text}");
    assert!(lines.iter().all(|line| line["from"] == "198.51.100.9:0"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
