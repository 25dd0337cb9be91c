//! Requests to the keeper that holds the lock on a data directory, over a socket in that directory.
//!
//! Access to the directory is access to the socket. The protocol of the client port has no request for a backup. A
//! connection carries one request and one answer, each a line of JSON. A keeper replaces the socket that a killed
//! keeper left behind: it holds the lock on the data, so no other keeper serves that socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_keeper::server::Keeper;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// Name of the socket in the data directory.
const SOCKET: &str = "admin.sock";
/// Limit of a line. A request or answer is shorter: a path and a few numbers.
const MAX_LINE: u64 = 16 * 1024;
/// A client that connects and sends no request is disconnected after this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to a keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    /// Copy the data to this file.
    Backup(PathBuf),
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The copy is complete and on disk.
    Copied { zxid: i64, nodes: u64, bytes: u64 },
    /// No copy was made, for this reason.
    Refused(String),
}

/// The socket of a running keeper. It is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Admin {
    listener: UnixListener,
    path: PathBuf,
}

impl Admin {
    /// Opens the socket. The caller holds the lock on the directory, so an old socket is unused.
    pub(super) fn open(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Ok(Self { listener: UnixListener::bind(&path)?, path })
    }

    /// Serves requests one after another, until the future is dropped.
    pub(super) async fn serve(&self, keeper: &Keeper) {
        loop {
            let served = match self.listener.accept().await {
                Ok((stream, _)) => serve_one(stream, keeper).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::warn!(%error, "the keeper cannot serve a backup request");
                // An error of `accept`, such as too many open files, may last.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the backup socket was already removed");
        }
    }
}

async fn serve_one(mut stream: UnixStream, keeper: &Keeper) -> io::Result<()> {
    let line = tokio::time::timeout(PATIENCE, read_line(&mut stream)).await??;
    let answer = match serde_json::from_str(&line) {
        Ok(Ask::Backup(to)) => match keeper.backup(&to).await {
            Ok(backup) => Answer::Copied { zxid: backup.zxid, nodes: backup.nodes, bytes: backup.bytes },
            Err(error) => Answer::Refused(crate::cli::exit::chain(&error)),
        },
        Err(error) => Answer::Refused(format!("invalid request: {error}")),
    };
    write_line(&mut stream, &answer).await
}

/// Sends a request to the keeper that runs on a directory.
pub(super) async fn ask(data_dir: &Path, ask: &Ask) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(data_dir.join(SOCKET)).await?;
    write_line(&mut stream, ask).await?;
    let line = read_line(&mut stream).await?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

async fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

async fn read_line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE)).read_line(&mut line).await?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
