//! A server process that is stopped and continued: sessions whose clients pinged during the pause survive.
//!
//! The server is this test binary, started with an environment variable to run as a server until the test ends.

#![cfg(all(unix, feature = "server"))]

mod wire;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_keeper::server::Keeper;

use self::wire::*;

const SERVE: &str = "KEEPER_SERVE";
const TEST: &str = "sessions_survive_a_pause_of_the_server_if_their_clients_pinged";
const READY: &str = "listening on ";
const CLIENTS: usize = 60;
const TICK: Duration = Duration::from_millis(500);
/// Longer than the shortest session, of two ticks.
const STOPPED: Duration = Duration::from_millis(1_800);

struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().expect("the test binary has a path"))
            .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
            .env(SERVE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary starts");
        let out = process.stdout.take().expect("stdout is piped");
        let address = BufReader::new(out).lines().find_map(|line| {
            let line = line.expect("the output is text");
            line.split_once(READY).map(|(_, address)| address.parse().expect("an address"))
        });
        Self { process, address: address.expect("the server prints its address") }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.expect("the command kill exists").success(), "{signal} was not sent");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("the child process");
        self.process.wait().expect("the child process");
    }
}

/// Serves until the test ends and closes its end of the pipe.
async fn serve() {
    let keeper = Keeper::builder().tick_time(TICK).start().await.expect("a keeper");
    let mut out = std::io::stdout();
    writeln!(out, "{READY}{}", keeper.address()).and_then(|()| out.flush()).expect("the test reads stdout");
    tokio::task::spawn_blocking(|| {
        let mut nothing = String::new();
        // End of file and an error both mean that the test has ended.
        drop(std::io::stdin().read_line(&mut nothing));
    })
    .await
    .expect("reading does not panic");
}

/// Pings until `enough` is set; every ping must be answered.
async fn ping(address: SocketAddr, connected: Arc<AtomicUsize>, enough: Arc<AtomicBool>) {
    let mut wire = Wire::open(address).await;
    wire.hello(1, 0, &[0; 16]).await.expect("a session");
    connected.fetch_add(1, Ordering::SeqCst);
    let mut pings = 0;
    while !enough.load(Ordering::SeqCst) {
        wire.send(-2, PING, &[]).await;
        pings += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for _ in 0..pings {
        assert_eq!(wire.receive().await.expect("the session is alive").error, 0);
    }
    assert_eq!(wire.call(-2, PING, &[]).await.error, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_a_pause_of_the_server_if_their_clients_pinged() {
    if std::env::var_os(SERVE).is_some() {
        return serve().await;
    }
    let server = Server::start();
    let (connected, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(ping(server.address, Arc::clone(&connected), Arc::clone(&enough))))
        .collect();
    eventually("all clients are connected", async || connected.load(Ordering::SeqCst) == CLIENTS).await;
    server.signal("-STOP");
    tokio::time::sleep(STOPPED).await;
    server.signal("-CONT");
    // The looks that would expire the sessions are done when it has served for a while.
    for _ in 0..10 {
        assert_eq!(word(server.address, "ruok").await, "imok");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    enough.store(true, Ordering::SeqCst);
    let mut ended = 0;
    for client in clients {
        ended += usize::from(client.await.is_err());
    }
    assert_eq!(ended, 0, "expired sessions of {CLIENTS}");
}
