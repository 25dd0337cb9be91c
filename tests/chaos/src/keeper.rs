//! A keeper process that also logs its transactions.
//!
//! It is the product's keeper library with the same settings and one hook: each transaction is written to a file before
//! its batch is committed. After a kill the file may hold more transactions than the store. The keeper reports the
//! transaction number with which it starts; higher numbers before this point in the file did not survive.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_keeper::model::{Compat, Entry, Transaction};
use bellwether_keeper::proto::{CreateMode, Op, OpResult};
use bellwether_keeper::server::{Keeper, Logged, Storage};
use bellwether_sim::history::{Bytes, TxnOp};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::txn::{Done, Txn};

/// The longest session timeout of a run.
const MAX_SESSION_TIMEOUT: Duration = Duration::from_secs(600);

/// A keeper process of a chaos run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Address to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// Data directory.
    #[arg(long)]
    data_dir: PathBuf,
    /// File for its transactions.
    #[arg(long)]
    log: PathBuf,
    /// ZooKeeper `tickTime`, in milliseconds.
    #[arg(long)]
    tick_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    Begins(i64),
    Txn(Txn),
}

/// Serves until the process is killed.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { listen, data_dir, log, tick_ms } = arguments;
    let mut file = File::options().create(true).append(true).open(log)?;
    let write = move |logged| {
        let line = match logged {
            Logged::Begins(zxid) => Line::Begins(zxid),
            Logged::Transaction(transaction) => Line::Txn(txn(transaction)),
        };
        let line = serde_json::to_string(&line).expect("plain fields are JSON");
        // Starts a new line, because the previous process may have been killed within a line.
        let line = if line.contains("Begins") { format!("\n{line}\n") } else { format!("{line}\n") };
        file.write_all(line.as_bytes()).expect("the transaction log is writable");
    };
    let keeper = Keeper::builder()
        .listen(listen)
        .store(Storage::Directory(data_dir))
        .tick_time(Duration::from_millis(tick_ms))
        .max_session_timeout(MAX_SESSION_TIMEOUT)
        .compat(Compat::V3_8_0);
    let keeper = keeper.log(write).start().await?;
    Ok(keeper.wait().await?)
}

fn txn(transaction: Transaction) -> Txn {
    let Transaction { zxid, session, xid, wall_ms, entry } = transaction;
    let done = match entry {
        Entry::Writes(writes) => writes_of(&writes),
        Entry::Refused(_, code) => Done::Refused(0, code.number()),
        Entry::SessionEnded(_) => Done::Committed(vec![TxnOp::CloseSession]),
        Entry::Removed(path) => Done::Committed(vec![TxnOp::Delete { path }]),
    };
    Txn { zxid, session, xid, wall_ms: u64::try_from(wall_ms).unwrap_or_default(), done }
}

fn writes_of(writes: &[(Op, OpResult)]) -> Done {
    const AFTER_THE_FAILED: i32 = -2;
    let failed = |(_, result): &(Op, OpResult)| match result {
        OpResult::Error(code) if *code != 0 && *code != AFTER_THE_FAILED => Some(*code),
        _ => None,
    };
    let refused = writes.iter().enumerate().find_map(|(index, write)| Some((index, failed(write)?)));
    match refused {
        Some((index, code)) => Done::Refused(index, code),
        None => Done::Committed(writes.iter().filter_map(operation).collect()),
    }
}

fn operation((op, result): &(Op, OpResult)) -> Option<TxnOp> {
    let bytes = |data: &Option<std::sync::Arc<[u8]>>| Bytes(data.clone().unwrap_or_default());
    Some(match (op, result) {
        (Op::Create { data, mode, .. }, OpResult::Create { path } | OpResult::Create2 { path, .. }) => {
            let ephemeral = matches!(mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential);
            TxnOp::Create { path: path.clone(), data: bytes(data), ephemeral }
        }
        (Op::SetData { path, data, .. }, OpResult::SetData(stat)) => {
            TxnOp::Set { path: path.clone(), data: bytes(data), version: stat.version }
        }
        (Op::Delete { path, .. }, _) => TxnOp::Delete { path: path.clone() },
        (Op::Check { path, version }, _) => TxnOp::Check { path: path.clone(), version: *version },
        (_, _) => return None,
    })
}

/// Reads the transactions that survived, from all runs of a keeper.
pub(crate) fn read(log: &Path) -> Result<Vec<Txn>, Failure> {
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let mut txns: Vec<Txn> = Vec::new();
    let mut torn = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (serde_json::from_str(line), &torn) {
            (Ok(Line::Begins(zxid)), _) => {
                txns.retain(|txn| txn.zxid <= zxid);
                torn = None;
            }
            (Ok(Line::Txn(txn)), None) => txns.push(txn),
            (Ok(Line::Txn(_)), Some(error)) => {
                return Err(Failure::new(format!("the keeper's log: {error}")));
            }
            (Err(error), _) => torn = Some(error.to_string()),
        }
    }
    Ok(txns)
}
