//! A real server: start, sharing, kill, freeze, and cleanup after the test process.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bellwether_testkit::{RawClient, ZooKeeperServer, eventually, four_letter_word, namespace, shared};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_started_server_accepts_requests() {
    let answer = shared().four_letter_word("srvr").unwrap();
    assert!(answer.contains("Mode: standalone"), "{answer}");
}

#[test]
fn sessions_can_be_as_short_as_two_ticks() {
    let conf = shared().four_letter_word("conf").unwrap();
    assert!(conf.contains("minSessionTimeout=400"), "{conf}");
    assert!(conf.contains("maxSessionTimeout=600000"), "{conf}");
}

#[test]
fn namespaces_exist_and_differ_even_for_the_same_name() {
    let (one, two) = (namespace("same"), namespace("same"));
    assert_ne!(one, two);

    let mut client = RawClient::connect(shared().address()).unwrap();
    for namespace in [one, two] {
        let (_, chroot) = namespace.split_once('/').unwrap();
        assert!(client.exists(&format!("/{chroot}")).unwrap());
    }
}

#[test]
fn a_killed_server_keeps_its_data_and_sessions_over_a_restart() {
    let mut server = ZooKeeperServer::start();
    let mut before = RawClient::connect(server.address()).unwrap();
    before.create("/kept", b"").unwrap();
    before.create_ephemeral("/mine", b"").unwrap();

    server.kill();
    assert!(before.exists("/kept").is_err());
    assert!(server.four_letter_word("srvr").is_err());

    server.restart();
    let mut after = RawClient::attach(server.address(), before.credentials().clone()).unwrap();
    assert!(after.exists("/kept").unwrap());
    assert!(after.exists("/mine").unwrap());
}

#[test]
fn a_frozen_server_is_silent_until_it_is_thawed() {
    let mut server = ZooKeeperServer::start();
    let mut client = RawClient::connect(server.address()).unwrap();

    for _round in 0..2 {
        server.freeze();
        client.set_patience(Duration::from_millis(200)).unwrap();
        assert_eq!(client.exists("/").unwrap_err().kind(), ErrorKind::WouldBlock);

        server.thaw();
        client.set_patience(SOON).unwrap();
        assert!(client.exists("/").unwrap());
    }
}

#[test]
fn several_servers_run_concurrently() {
    let servers: Vec<_> = (0..3).map(|_| std::thread::spawn(ZooKeeperServer::start)).collect();
    let servers: Vec<_> = servers.into_iter().map(|server| server.join().unwrap()).collect();
    for server in &servers {
        let mut client = RawClient::connect(server.address()).unwrap();
        client.create("/only-here", b"").unwrap();
    }
}

/// The test starts and kills this test binary, which runs as the victim if the environment variable is set.
#[tokio::test]
async fn a_server_is_killed_with_its_test_process_and_its_directory_is_deleted() {
    const HOME: &str = "BELLWETHER_VICTIM_DIR";
    const NAME: &str = "a_server_is_killed_with_its_test_process_and_its_directory_is_deleted";
    if let Ok(home) = std::env::var(HOME) {
        let server = ZooKeeperServer::start();
        std::fs::write(Path::new(&home).join("connect-string"), server.connect_string()).unwrap();
        return std::future::pending().await;
    }
    let tmp = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env("TMPDIR", tmp.path())
        .env(HOME, tmp.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let connect_string = tmp.path().join("connect-string");
    eventually("the victim serves", SOON, async || {
        std::fs::read_to_string(&connect_string).is_ok_and(|text| !text.is_empty())
    })
    .await;
    let address = std::fs::read_to_string(&connect_string).unwrap().parse().unwrap();
    four_letter_word(address, "srvr").unwrap();

    victim.kill().unwrap();
    victim.wait().unwrap();

    eventually("the server is killed", SOON, async || four_letter_word(address, "srvr").is_err()).await;
    eventually("only the file of the victim is left", SOON, async || {
        std::fs::read_dir(tmp.path()).unwrap().count() == 1
    })
    .await;
}
