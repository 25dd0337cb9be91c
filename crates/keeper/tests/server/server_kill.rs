//! A server that is killed while clients create znodes: every acknowledged znode exists, with its stat.
//!
//! The server is this test binary, started with an environment variable to run as a server until it is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_keeper::server::{Keeper, Storage};
use zookeeper_client::{Acls, Client, CreateMode, Stat};

const SERVE: &str = "KEEPER_SERVE";
const TEST: &str = "server_kill::znodes_acknowledged_by_a_killed_server_exist_with_their_stat";
const READY: &str = "listening on ";
const CLIENTS: usize = 4;
const ROUNDS: usize = 3;
/// Acknowledgements of one client before the kill.
const ENOUGH: usize = 40;
/// Longer than any healthy server takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server process, killed on drop.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("the test binary has a path"))
            .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
            .env(SERVE, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary starts");
        let out = process.stdout.take().expect("stdout is piped");
        let mut server = Self { process, address: String::new() };
        let address = BufReader::new(out).lines().find_map(|line| {
            let line = line.expect("the output is text");
            line.split_once(READY).map(|(_, address)| address.to_owned())
        });
        server.address = address.expect("the server prints its address");
        server
    }

    fn kill(&mut self) {
        self.process.kill().expect("the child process");
        self.process.wait().expect("the child process");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Serves until it is killed, or until the test ends and closes its end of the pipe.
async fn serve(dir: &Path) {
    let storage = Storage::Directory(dir.to_owned());
    let keeper = Keeper::builder().store(storage).start().await.expect("the directory is not locked");
    let mut out = std::io::stdout();
    writeln!(out, "{READY}{}", keeper.connect_string())
        .and_then(|()| out.flush())
        .expect("the test reads stdout");
    tokio::task::spawn_blocking(|| {
        let mut nothing = String::new();
        // End of file and an error both mean that the test has ended.
        drop(std::io::stdin().read_line(&mut nothing));
    })
    .await
    .expect("reading does not panic");
}

async fn connect(address: &str) -> Client {
    tokio::time::timeout(PATIENCE, Client::connect(address)).await.expect("in time").expect("a client")
}

/// Creates znodes until the server ends; returns the acknowledged ones. Sends to `enough` when there are enough of
/// them.
async fn create(
    client: Client,
    prefix: String,
    enough: tokio::sync::mpsc::Sender<()>,
) -> Vec<(String, Stat)> {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let path = format!("{prefix}-{number}");
        let Ok((stat, _)) = client.create(&path, path.as_bytes(), &options).await else { break };
        acknowledged.push((path, stat));
        if acknowledged.len() == ENOUGH {
            // The receiver may be dropped, or already have a message.
            let (Ok(()) | Err(_)) = enough.try_send(());
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn znodes_acknowledged_by_a_killed_server_exist_with_their_stat() {
    if let Some(dir) = std::env::var_os(SERVE) {
        return serve(Path::new(&dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let mut server = Server::start(dir.path());
        let (enough, mut told) = tokio::sync::mpsc::channel(1);
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let client = connect(&server.address).await;
            clients.push(tokio::spawn(create(client, format!("/{round}-{number}"), enough.clone())));
        }
        tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
        server.kill();
        for client in clients {
            acknowledged.extend(client.await.unwrap());
        }
        assert!(acknowledged.len() > round * ENOUGH);

        let server = Server::start(dir.path());
        let client = connect(&server.address).await;
        for (path, stat) in &acknowledged {
            let (data, found) = client.get_data(path).await.unwrap();
            assert_eq!((data.as_slice(), found), (path.as_bytes(), *stat), "{path} of round {round}");
        }
    }
}
