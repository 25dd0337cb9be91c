//! How a command reaches the keeper that holds the lock on a data directory: a socket beside the data.
//!
//! Who may read the directory may ask; the protocol of the clients' port has no word for a backup. One request and one
//! answer per connection, each a line of JSON. A socket that a killed keeper left behind is replaced by the next one:
//! the lock on the data tells that nobody serves it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_keeper::server::Keeper;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// The socket's name in the data directory.
const SOCKET: &str = "admin.sock";
/// Longer than any line: a path and a few numbers.
const MAX_LINE: u64 = 16 * 1024;
/// Whoever connects and asks nothing is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a keeper may be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    /// Copy the data to this file.
    Backup(PathBuf),
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The copy is made and on disk.
    Copied { zxid: i64, nodes: u64, bytes: u64 },
    /// It is not made, and why.
    Refused(String),
}

/// The socket of a running keeper; gone with this value.
#[derive(Debug)]
pub(super) struct Admin {
    listener: UnixListener,
    path: PathBuf,
}

impl Admin {
    /// Opens the socket. The caller holds the lock on the directory, so an old socket is nobody's.
    pub(super) fn open(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Ok(Self { listener: UnixListener::bind(&path)?, path })
    }

    /// Answers one after another, until it is dropped.
    pub(super) async fn serve(&self, keeper: &Keeper) {
        loop {
            let served = match self.listener.accept().await {
                Ok((stream, _)) => serve_one(stream, keeper).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::warn!(%error, "a request for a backup could not be served");
                // An error of accept (no more descriptors) may last.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the socket for backups was gone already");
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
        Err(error) => Answer::Refused(format!("not a request: {error}")),
    };
    write_line(&mut stream, &answer).await
}

/// Asks the keeper that runs on a directory.
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
