//! Traces, and log lines in JSON.

use serde_json::{Value, json};

use super::run::{Ran, command, ran, run, run_in};
use super::service::Service;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn dev(options: &[&str]) -> Service {
    Service::start(&[&["dev", "--listen", "127.0.0.1:0"], options].concat())
}

/// Parses every line as JSON.
fn lines(said: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    said.lines().map(line).collect()
}

#[tokio::test]
async fn each_log_line_of_a_node_is_json_and_handler_lines_include_run_and_trace() {
    let node = dev(&["--log-format", "json"]);
    let submit = ["job", "submit", "sum", "\"no numbers\"", "--id", "bad\"id\""];
    run_in(node.zookeeper(), &submit).exits(2);
    let submit =
        ["job", "submit", "sum", "\"no numbers\"", "--id", "bad", "--wait", "--traceparent", TRACEPARENT];
    run_in(node.zookeeper(), &submit).exits(1);
    let (code, said) = node.end().await;
    assert_eq!(code, Some(0), "{said}");
    let lines = lines(&said);
    for line in &lines {
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
        assert!(line["fields"]["message"].is_string(), "{line}");
    }
    let is_why =
        |line: &&Value| line["fields"]["message"] == "the job is dead: the handler reported invalid input";
    let why = lines.iter().find(is_why).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(why["level"], "WARN");
    let span = &why["span"];
    assert_eq!((&span["name"], &span["job"], &span["kind"]), (&json!("run"), &json!("bad"), &json!("sum")));
    assert_eq!((&span["attempt"], &span["trace"]), (&json!(1), &json!(TRACE)));
}

#[test]
fn the_final_error_of_a_command_is_json_if_its_log_is() {
    // Nothing listens on this port.
    let words = ["--zookeeper", "127.0.0.1:1/x", "--deadline", "200ms", "job", "list"];
    let text = run(&words).exits(3);
    assert!(text.stderr.starts_with("bellwether: "), "{text:?}");
    let json = ran(command(&words).env("BELLWETHER_LOG_FORMAT", "json")).exits(3);
    let told = lines(&json.stderr).pop().unwrap();
    assert_eq!(told["level"], "ERROR");
    assert_eq!(format!("bellwether: {}\n", told["fields"]["message"].as_str().unwrap()), text.stderr);
}

#[tokio::test]
async fn a_job_keeps_its_trace_and_passes_it_to_its_program() {
    let node = dev(&["--allow-exec", "/usr/bin/env"]);
    let to = node.zookeeper();
    let env = ["job", "submit", "exec", r#"{"argv": ["/usr/bin/env"]}"#, "--wait", "--output", "json"];
    let within = |traceparent: &str, options: &[&str]| {
        let mut command = command(&[&env, options].concat());
        ran(command.env("BELLWETHER_ZOOKEEPER", to).env("TRACEPARENT", traceparent))
    };
    let saw = |ran: Ran| {
        let job = ran.exits(0).json();
        let output = job["result"]["stdout"].as_str().unwrap().to_owned();
        let given = output.lines().find_map(|line| line.strip_prefix("TRACEPARENT=")).map(ToOwned::to_owned);
        (job["trace_id"].clone(), given)
    };
    let traced = (json!(TRACE), Some(TRACEPARENT.to_owned()));
    assert_eq!(saw(within("", &["--traceparent", TRACEPARENT])), traced);
    assert_eq!(saw(within(TRACEPARENT, &["--id", "a"])), traced);
    let other = TRACEPARENT.replace("4bf9", "aaaa");
    assert_eq!(
        saw(within(&other, &["--traceparent", TRACEPARENT])),
        traced,
        "the option overrides the variable"
    );
    assert_eq!(saw(within("what is this", &[])), (json!(null), None), "an invalid variable is ignored");
    let wrong = within("", &["--traceparent", "00-1-2-3"]).exits(2);
    wrong.says("is not 00-TRACE-SPAN-FLAGS of 32, 16 and 2 lower-case hexadecimal digits");
    let shown = run_in(to, &["job", "show", "a"]).exits(0);
    let told = |line: &str| line.trim().starts_with("trace ") && line.trim().ends_with(TRACE);
    assert!(shown.stdout.lines().any(told), "{shown:?}");
}

#[test]
fn only_an_explicit_collector_is_rejected_by_a_build_without_opentelemetry() {
    let version = run(&["--version"]).exits(0).stdout;
    let features = version.lines().find_map(|line| line.strip_prefix("features: ")).unwrap();
    let words = ["--zookeeper", "127.0.0.1:1/x", "--deadline", "200ms", "job", "list"];
    let told = ran(command(&words).env("BELLWETHER_OTLP_ENDPOINT", "http://127.0.0.1:1"));
    if features.split(", ").any(|feature| feature == "otel") {
        told.exits(3);
    } else {
        told.exits(2).says("this build exports no traces: build it with --features otel, or unset it");
    }
    ran(command(&words).env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")).exits(3);
}
