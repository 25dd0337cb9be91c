//! The guarantees of a store, tested on real files and on a simulated disk with faults.

mod crash;
mod device;
mod files;
mod hostile;
mod rows;

use std::sync::Arc;

use super::waiting::Sizes;
use crate::proto::{Acl, Id};
use crate::store::{Change, Changes, NodeRow, SessionRow};

/// The smallest possible steps: batches of many parts, checkpoints of many runs in many transactions.
const SMALL: Sizes = Sizes { fold: 5_000, run: 500, stride: 0, tidy: 1, part: 1_000 };

/// Returns a row with a different value in every field.
fn row(version: i32) -> NodeRow {
    NodeRow {
        czxid: 0x10,
        mzxid: 0x20,
        pzxid: 0x30,
        ctime: 1_800_000_000_000,
        mtime: 1_800_000_000_001,
        version,
        creates: 7,
        aversion: 2,
        ephemeral_owner: -5,
        acl: Arc::from([Acl { permissions: 31, id: Id { scheme: "world".into(), id: "anyone".into() } }]),
    }
}

fn session(timeout_ms: i32) -> SessionRow {
    SessionRow { timeout_ms, password: vec![9; 16] }
}

fn put(path: &str, version: i32, data: &[u8]) -> Change {
    Change::PutNode { path: path.into(), row: row(version), data: Some(data.into()), data_changed: true }
}

/// Returns the end of a znode with the `czxid` of [`row`].
fn deleted(path: &str) -> Change {
    Change::DeleteNode { czxid: row(0).czxid, path: path.into() }
}

fn batch(zxid: i64, rows: impl IntoIterator<Item = Change>) -> Changes {
    Changes { zxid, rows: rows.into_iter().collect() }
}
