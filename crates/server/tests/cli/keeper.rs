//! The keeper, alone and as part of `dev` and `demo`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use bellwether_testkit::{RawClient, eventually_some};

use crate::run::{command, run, run_in};
use crate::service::{SOON, Service};

const ANY_PORT: [&str; 2] = ["--listen", "127.0.0.1:0"];

fn keeper(options: &[&str]) -> Service {
    Service::start(&[&["keeper"], ANY_PORT.as_slice(), options].concat())
}

fn client(keeper: &Service) -> RawClient {
    RawClient::connect(keeper.zookeeper().parse().unwrap()).unwrap()
}

#[tokio::test]
async fn a_keeper_warns_that_it_is_a_single_node_and_stops_on_a_signal() {
    let keeper = keeper(&["--memory"]);
    client(&keeper).create("/a", b"").unwrap();
    let (code, said) = keeper.end().await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("single node"), "{said}");
}

#[test]
fn a_killed_keeper_has_kept_all_acknowledged_writes() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let options = ["--data-dir", dir.to_str().unwrap()];
    let before = keeper(&options);
    let mut one = client(&before);
    for n in 0..100 {
        one.create(&format!("/n-{n}"), b"data").unwrap();
    }
    one.create_ephemeral("/mine", b"").unwrap();
    before.kill();

    let after = keeper(&options);
    let mut two = client(&after);
    assert!((0..100).all(|n| two.exists(&format!("/n-{n}")).unwrap()));
    let mut back = RawClient::attach(after.zookeeper().parse().unwrap(), one.credentials().clone()).unwrap();
    assert!(back.exists("/mine").unwrap(), "its session survives");
}

#[tokio::test]
async fn a_backup_of_a_running_keeper_is_restored_into_a_new_directory() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (old, new, copy) = (path("old"), path("new"), path("copy"));

    let serving = keeper(&["--data-dir", &old]);
    client(&serving).create("/kept", b"data").unwrap();
    let made = run(&["--output", "json", "keeper", "backup", "--data-dir", &old, &copy]).exits(0).json();
    assert!(made["nodes"].as_u64().unwrap() >= 2, "{made}");
    client(&serving).create("/later", b"").unwrap();
    run(&["keeper", "backup", "--data-dir", &old, &copy]).exits(1).says("exists");
    assert_eq!(serving.end().await.0, Some(0));
    run(&["keeper", "backup", "--data-dir", &old, &path("offline")]).exits(0);

    run(&["keeper", "restore", "--data-dir", &old, &copy]).exits(1).says("not empty");
    run(&["keeper", "restore", "--data-dir", &new, &copy]).exits(0);
    let restored = keeper(&["--data-dir", &new]);
    let mut client = client(&restored);
    assert!(client.exists("/kept").unwrap() && !client.exists("/later").unwrap());
}

#[test]
fn invalid_options_of_a_keeper_are_rejected_with_the_option_to_change() {
    run(&["keeper"]).exits(2).says("--data-dir");
    run(&["keeper", "--memory", "--data-dir", "x"]).exits(2).says("cannot be used with");
    run(&["keeper", "--memory", "--compat", "3.5"]).exits(2).says("3.8.0");
    run(&["keeper", "--memory", "--tick-time", "0ms"]).exits(2).says("--tick-time");
    run(&["keeper", "--memory", "--handshake-time", "0ms"]).exits(2).says("must be 1ms to 1h");
    run(&["keeper", "--memory", "--min-session-timeout", "41s"])
        .exits(2)
        .says("session timeouts of 41s to 40s")
        .says("--min-session-timeout");
    for limit in ["--sessions", "--connection-memory-mib"] {
        run(&["keeper", "--memory", limit, "0"]).exits(2).says(limit);
    }
    for too_short in ["0ms", "3999ms"] {
        run(&["keeper", "--memory", "--max-session-timeout", too_short])
            .exits(2)
            .says("--max-session-timeout");
    }

    let home = tempfile::tempdir().unwrap();
    let dir = home.path().to_str().unwrap();
    let serving = keeper(&["--data-dir", dir]);
    run(&["keeper", "--data-dir", dir, "--listen", "127.0.0.1:0"]).exits(1).says("locked by another process");
    run(&["keeper", "--memory", "--listen", serving.zookeeper()]).exits(1).says("cannot listen on");
    run(&["keeper", "backup", "--data-dir", "/nonexistent", "/tmp/x"]).exits(1).says("/nonexistent");
}

#[test]
fn a_keeper_without_protection_is_not_reachable_from_other_machines() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../keeper/tests/certificates/");
    let file = |name: &str| format!("{folder}{name}");
    let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let open = ["keeper", "--memory", "--listen", "0.0.0.0:0"];
    let tls = ["--tls-cert", &cert, "--tls-key", &key];
    let refused = "other machines can reach 0.0.0.0:0";
    run(&open).exits(2).says(refused);
    run(&[&open[..], &tls].concat()).exits(2).says(refused);
    run(&[&open[..], &["--listen", "[::]:0"]].concat()).exits(2);
    run(&["dev", "--listen", "0.0.0.0:0"]).exits(2).says(refused);
    drop(Service::start(&[&open[..], &["--insecure"]].concat()));

    let keeper = Service::start(&[&open[..], &tls, &["--tls-client-ca", &ca]].concat());
    let port = keeper.zookeeper().rsplit_once(':').unwrap().1;
    let to = format!("127.0.0.1:{port}/bellwether");
    let submit = ["--deadline", "3s", "job", "submit", "sum", "[1]"];
    let trusting = ["--zookeeper-tls-ca", &ca];
    let (client, client_key) = (file("client.pem"), file("client.key"));
    let known = ["--zookeeper-tls-cert", &client, "--zookeeper-tls-key", &client_key];
    run_in(&to, &submit).exits(3);
    run_in(&to, &[&submit[..], &trusting].concat()).exits(3);
    run_in(&to, &[&submit[..], &trusting, &known].concat()).exits(0);
}

#[test]
fn the_digest_of_the_superuser_is_not_an_argument() {
    run(&["keeper", "--memory", "--super-digest", "a:b"]).exits(2).says("unexpected argument");
    run(&["keeper", "--memory", "--super-digest-file", "/nonexistent"]).exits(2).says("--super-digest-file");
}

#[tokio::test]
async fn a_keeper_bounds_what_all_clients_store_together() {
    let keeper = keeper(&["--memory", "--znodes", "6", "--sessions", "1"]);
    let mut one = client(&keeper);
    one.create("/a", b"").unwrap();
    one.create("/b", b"").unwrap();
    let error = one.create("/c", b"").unwrap_err();
    assert!(error.to_string().contains("-125"), "{error}");
    assert!(RawClient::connect(keeper.zookeeper().parse().unwrap()).is_err(), "a second session");
    assert!(one.exists("/a").unwrap());
}

#[tokio::test]
async fn a_development_server_runs_jobs_and_keeps_them() {
    let home = tempfile::tempdir().unwrap();
    let options = [&["dev", "--data-dir", home.path().to_str().unwrap()], ANY_PORT.as_slice()].concat();
    let dev = Service::start(&options);
    let sum = run_in(
        dev.zookeeper(),
        &["--output", "json", "job", "submit", "sum", r#"{"first":1,"second":2}"#, "--id", "three", "--wait"],
    );
    assert_eq!(sum.exits(0).json()["result"], 3);
    let (code, said) = dev.end().await;
    assert_eq!(code, Some(0), "{said}");

    let dev = Service::start(&options);
    let kept = run_in(dev.zookeeper(), &["--output", "json", "job", "show", "three"]).exits(0).json();
    assert_eq!(kept["state"], "succeeded");
}

#[tokio::test]
async fn a_development_server_warns_of_an_open_namespace_only_if_it_keeps_its_data() {
    let home = tempfile::tempdir().unwrap();
    for (options, warns) in [(&["--data-dir", home.path().to_str().unwrap()][..], true), (&[], false)] {
        let dev = Service::start(&[&["dev"], options, ANY_PORT.as_slice()].concat());
        // The check runs at the start of the node, before its worker has run a job.
        run_in(dev.zookeeper(), &["job", "submit", "sum", "[1, 2]", "--wait"]).exits(0);
        let (code, said) = dev.end().await;
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.contains("THE NAMESPACE IS OPEN"), warns, "{said}");
        assert_eq!(said.contains("THE ROOT OF ZOOKEEPER IS OPEN"), warns, "{said}");
        assert!(said.contains("the node became leader") && !said.contains("Actor{"), "{said}");
    }
}

/// Returns the names of the alerts that the gateway reports after its first sample.
async fn alerts(dev: &Service) -> Vec<String> {
    let address = dev.told["http"].as_str().unwrap();
    let alerts = eventually_some("the alerts are evaluated", SOON, async || {
        let alerts = get(address, "/v1/alerts");
        let (_, body) = alerts.split_once("\r\n\r\n").unwrap();
        let alerts = serde_json::from_str::<serde_json::Value>(body).unwrap();
        (!alerts["evaluated_at"].is_null()).then_some(alerts)
    });
    let alerts = alerts.await["alerts"].as_array().unwrap().clone();
    alerts.iter().map(|alert| alert["name"].as_str().unwrap().to_owned()).collect()
}

/// A keeper in memory that other machines reach is as open as one that keeps its data. The log and the console agree.
#[tokio::test]
async fn a_development_server_reports_an_open_namespace_unless_only_this_machine_reaches_it() {
    let home = tempfile::tempdir().unwrap();
    for (options, reports) in [
        (&["--listen", "127.0.0.1:0"][..], false),
        (&["--listen", "127.0.0.1:0", "--data-dir", home.path().to_str().unwrap()], true),
        (&["--listen", "0.0.0.0:0", "--insecure"], true),
    ] {
        let dev = Service::start(&[&["dev"], options].concat());
        // The check runs at the start of the node, before its worker has run a job.
        run_in(dev.zookeeper(), &["job", "submit", "sum", "[1, 2]", "--wait"]).exits(0);
        let alerts = alerts(&dev).await;
        assert_eq!(alerts.contains(&"NamespaceOpen".to_owned()), reports, "{options:?}: {alerts:?}");
        let (_, said) = dev.end().await;
        assert_eq!(said.contains("THE NAMESPACE IS OPEN"), reports, "{options:?}: {said}");
    }
}

#[test]
fn a_development_server_prints_the_address_of_the_console_first() {
    let mut command = command(&["dev", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = lines.map_while(Result::ok).take_while(|line| !line.contains("Ctrl-C")).collect::<Vec<_>>();
    child.kill().unwrap();
    child.wait().unwrap();
    let addresses = lines.iter().filter(|line| line.starts_with("  ")).collect::<Vec<_>>();
    assert!(addresses[0].starts_with("  Console    http://127.0.0.1:"), "{lines:?}");
    assert!(addresses[1].starts_with("  HTTP API   http://127.0.0.1:"), "{lines:?}");
    assert!(addresses[2].starts_with("  ZooKeeper  127.0.0.1:"), "{lines:?}");
}

/// Returns the answer with its head.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn development_servers_serve_a_console_each() {
    let [first, second] = [(); 2].map(|()| Service::start(&["dev", "--listen", "127.0.0.1:0"]));
    let [first, second] = [&first, &second].map(|dev| dev.told["http"].as_str().unwrap());
    assert_ne!(first, second);
    for address in [first, second] {
        let page = get(address, "/");
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>Bellwether"), "{page}");
    }
}

#[test]
fn the_demo_loses_a_leader_and_a_worker_and_no_job() {
    let told = run(&["--output", "json", "demo", "--jobs", "300"]).exits(0).json();
    assert_eq!((&told["acknowledged"], &told["succeeded"]), (&300.into(), &300.into()), "{told}");
    assert_eq!((&told["lost"], &told["unexplained"]), (&0.into(), &0.into()), "{told}");
    assert_eq!(told["killed"].as_array().unwrap().len(), 2, "{told}");
    assert!(told["leaders"].as_array().unwrap().len() >= 2, "{told}");
}
