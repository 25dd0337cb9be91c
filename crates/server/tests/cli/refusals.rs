//! Invalid arguments, and servers and namespaces that cannot be used.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_core::wire::{LAYOUT_VERSION, Layout, encode};
use bellwether_testkit::namespace;
use bellwether_zk::{connect, open_namespace};

use crate::run::{command, ran, run, run_in, run_with_stdin};

#[test]
fn a_missing_address_is_reported_with_the_ways_to_set_it() {
    let refused = run(&["job", "list"]).exits(2).says("--zookeeper HOST:PORT");
    refused.says("BELLWETHER_ZOOKEEPER");
    run(&["job", "list", "--zookeeper", "zk1:port"]).exits(2).says("is not HOST:PORT");
}

#[test]
fn a_log_filter_that_cannot_be_read_is_ignored_with_a_warning() {
    let filtered = |filter| ran(command(&["completions", "bash"]).env("RUST_LOG", filter)).exits(0);
    filtered("info,bellwether=loud").says("the command ignores RUST_LOG");
    assert_eq!(filtered("info,bellwether=debug").stderr, "");
}

/// Nothing is sent, so the test needs no server.
#[test]
fn invalid_input_is_rejected_with_its_field_and_bound() {
    let nowhere = "127.0.0.1:1/nowhere";
    let long = "x".repeat(129);
    for (arguments, said) in [
        (
            vec!["job", "submit", "sum", "{\"a\": 1,\n]"],
            "payload is not JSON: key must be a string at line 2 column 1",
        ),
        (vec!["job", "submit", "sum", "@/no/such/file"], "cannot open /no/such/file"),
        (vec!["job", "submit", "a/b"], "kind has '/' at byte 1"),
        (vec!["job", "submit", "sum", "--id", &long], "job id is 129 bytes long: at most 128 are allowed"),
        (vec!["job", "submit", "sum", "--tags", ""], "tag is empty"),
        (
            vec!["job", "submit", "sum", "--lane", ""],
            "lane is empty: give 1 to 128 characters of [A-Za-z0-9._-]",
        ),
        (vec!["job", "submit", "sum", "--lane", &long], "lane is 129 bytes long: at most 128 are allowed"),
        (vec!["job", "submit", "sum", "--lane", "a/b"], "lane has '/' at byte 1"),
        (vec!["job", "submit", "sum", "--max-attempts", "0"], "max_attempts must be 1 to 1000, not 0"),
        (vec!["job", "submit", "sum", "--timeout", "8d"], "timeout must be 1ms to 7d, not 8d"),
        (vec!["job", "submit", "sum", "--count", "0"], "0 is not in 1..=1000000"),
        (vec!["job", "show", "a b"], "job id has ' ' at byte 1"),
        (vec!["job", "list", "--state", "lost"], "possible values: queued"),
        (vec!["node", "--session-timeout", "0s"], "session timeout must be 100ms to 2147483647 ms, not 0ns"),
        (vec!["node", "--session-timeout", "99ms"], "not 99ms"),
        (vec!["node", "--session-timeout", "25d"], "not 2160000s"),
        (vec!["job", "list", "--deadline", "10"], "such as 500ms, 10s, 2m, 1h or 1d"),
    ] {
        let refused = run_in(nowhere, &arguments).exits(2).says(said);
        assert_eq!(refused.stdout, "");
    }
    let large = format!("\"{}\"", "x".repeat(70_000));
    run_with_stdin(nowhere, &["job", "submit", "sum", "-"], large.as_bytes())
        .exits(2)
        .says("payload has 70002 bytes: at most 65536 are allowed inline");
}

#[test]
fn every_unreachable_server_is_named_with_its_reason_within_the_timeout() {
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let began = Instant::now();
    let refused =
        run(&["job", "list", "--deadline", "2s", "--zookeeper", "127.0.0.1:1,127.0.0.2:1/x"]).exits(3);
    let refused = refused.says("ZooKeeper did not serve within 2s").says("127.0.0.1:1: Connection refused");
    assert_eq!(refused.says("127.0.0.2:1: Connection refused").stdout, "");
    run(&["job", "list", "--deadline", "1s", "--zookeeper", &format!("{silent}/x")])
        .exits(3)
        .says(&silent.to_string());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_newer_and_an_older_layout_are_refused_with_both_versions() {
    for (name, version) in [("cli-newer", LAYOUT_VERSION + 1), ("cli-older", LAYOUT_VERSION - 1)] {
        let to = namespace(name);
        let zk = connect(&to.parse().unwrap(), Duration::from_secs(10)).await.unwrap();
        open_namespace(&zk, true).await.unwrap();
        let data = encode(&Layout::new(version));
        let other = Op::Set { path: path::LAYOUT.into(), data, version: 0 };
        assert_eq!(zk.commit(vec![other]).await, Outcome::Applied(()));
        for arguments in [&["job", "list"][..], &["job", "submit", "sum"]] {
            let refused = run_in(&to, arguments).exits(3).says(&format!("has layout version {version}"));
            refused.says(&format!("this build serves version {LAYOUT_VERSION}"));
        }
    }
}

#[tokio::test]
async fn a_read_only_command_creates_no_namespace() {
    let to = namespace("cli-reader");
    let served = format!("this build serves version {LAYOUT_VERSION}");
    for arguments in [&["job", "list"][..], &["job", "show", "a"], &["worker", "list"], &["leader", "show"]] {
        run_in(&to, arguments).exits(3).says("there is no namespace at").says(&served);
    }
    let zk = connect(&to.parse().unwrap(), Duration::from_secs(10)).await.unwrap();
    assert_eq!(zk.children("/".to_owned()).await.unwrap(), Some(vec![]));
}

#[test]
fn help_documents_the_exit_codes_and_fields() {
    for arguments in [&["--help"][..], &["job", "--help"], &["node", "--help"], &["worker", "--help"]] {
        assert!(run(arguments).exits(0).stdout.contains("5  timed out"), "{arguments:?}");
    }
    for (verb, fields) in [
        ("submit", "accepted, duplicate, generation, id."),
        ("list", "assigned_at, attempt, attempts, behind,"),
        ("cancel", "generation, id, outcome, worker."),
    ] {
        let help = run(&["job", verb, "--help"]).exits(0).stdout;
        assert!(help.contains(&format!("JSON fields: {fields}")), "{verb}: {help}");
    }
}
