//! Reads the files of Apache ZooKeeper's transaction log, and merges the logs of an ensemble.
//!
//! ```text
//!  "ZKLG" | version 2 | database id     then, until the preallocated zeros:
//!  Adler-32 | length | header (session, xid, zxid, time, type), body, digest | 'B'
//! ```
//!
//! A killed process leaves a torn record at the end of a file, and starts another file after its restart. So a file is
//! read up to its first incomplete record.
//!
//! **Committed transactions.** Members log a proposal before the leader commits it. So a member's log may contain
//! proposals that were never committed: the last ones of a leader that died. A member drops them when it synchronises
//! after a restart. Therefore all members must be up and synchronised before their logs are read. Then a transaction
//! that a majority has is committed, and one that only a minority has is not. If two members have different
//! transactions under one number, the reading fails. It also fails if the numbers within an epoch have a gap, because
//! then a snapshot replaced a part of the log.
//!
//! There is an exception. ZooKeeper 3.8.0 may log a proposal after it has left its leader (ZOOKEEPER-4712), so a majority
//! may have proposals that the next leader did not have. The next leader starts with a snapshot of its state, whose name is
//! the number of its last transaction. So transactions of an epoch after the last snapshot of that epoch are not committed if
//! there is a later epoch. If a client was told that such a transaction was applied, the checker finds it lost.
//!
//! A rejected multi is logged with the codes of its operations and without their paths. [`crate::witness`] provides the
//! paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bellwether_sim::history::TxnOp;

use crate::failure::Failure;
use crate::jute::Reader;
use crate::txn::{Done, Txn};

const HEADER: usize = 16;
const END_OF_RECORD: u8 = b'B';

/// Reads the logs of all members of an ensemble from their data directories. The members must agree.
pub(crate) fn read(members: &[&Path]) -> Result<Merged, Failure> {
    let logs = members.iter().map(|data| member(data)).collect::<Result<Vec<_>, _>>()?;
    let snapshots = members.iter().map(|data| snapshots(data)).collect::<Result<Vec<_>, _>>()?.concat();
    merge(&logs, &snapshots)
}

/// The merged logs of an ensemble.
#[derive(Debug)]
pub(crate) struct Merged {
    /// In the order of their numbers.
    pub(crate) committed: Vec<Txn>,
    /// Number of transactions that were logged and never committed.
    pub(crate) dropped: usize,
}

/// The numbers of the last transactions in the snapshots of a member.
fn snapshots(data: &Path) -> Result<Vec<i64>, Failure> {
    let names = fs::read_dir(data.join("version-2"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    let number = |name: &String| i64::from_str_radix(name.strip_prefix("snapshot.")?, 16).ok();
    Ok(names.iter().filter_map(number).collect())
}

fn member(data: &Path) -> Result<BTreeMap<i64, Txn>, Failure> {
    let dir = data.join("version-2");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log.")));
    let mut log = BTreeMap::new();
    for file in files {
        for txn in records(&fs::read(&file)?) {
            let (zxid, name) = (txn.zxid, file.display());
            let txn = txn.map_err(|what| Failure::new(format!("{name}: transaction {zxid:#x}: {what}")))?;
            // The last record of a file may be repeated as the first of the next file.
            log.insert(zxid, txn);
        }
    }
    Ok(log)
}

/// A complete record of a file, and its decoded transaction.
struct Record {
    zxid: i64,
    txn: Result<Txn, &'static str>,
}

impl Record {
    fn map_err<E>(self, error: impl FnOnce(&'static str) -> E) -> Result<Txn, E> {
        self.txn.map_err(error)
    }
}

fn records(file: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = Reader(file.get(HEADER..).unwrap_or_default());
    while let Some(record) = record(&mut rest) {
        let zxid = Reader(record.get(12..).unwrap_or_default()).long().unwrap_or_default();
        records.push(Record { zxid, txn: transaction(record).ok_or("invalid body") });
    }
    records
}

/// Returns the next complete record.
fn record<'a>(rest: &mut Reader<'a>) -> Option<&'a [u8]> {
    let checksum = rest.long()?;
    let record = rest.buffer().filter(|record| !record.is_empty())?;
    let whole = rest.bytes(1)? == [END_OF_RECORD] && i64::from(adler32(record)) == checksum;
    whole.then_some(record)
}

fn adler32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % PRIME;
        (low, (high + low) % PRIME)
    });
    (high << 16) | low
}

fn transaction(record: &[u8]) -> Option<Txn> {
    let mut reader = Reader(record);
    let (session, xid, zxid) = (reader.long()?, reader.int()?, reader.long()?);
    let (wall_ms, kind) = (u64::try_from(reader.long()?).ok()?, reader.int()?);
    let done = match kind {
        kind::CREATE_SESSION => Done::Else,
        kind::ERROR => Done::Refused(0, reader.int()?),
        kind::MULTI => multi(&mut reader)?,
        // ACLs are not part of a history.
        kind::SET_ACL => Done::Else,
        single => Done::Committed(vec![operation(single, &mut reader)?]),
    };
    // The server removes containers itself, so the session is 0.
    Some(Txn { zxid, session: if kind == kind::DELETE_CONTAINER { 0 } else { session }, xid, wall_ms, done })
}

fn multi(reader: &mut Reader<'_>) -> Option<Done> {
    let count = usize::try_from(reader.int()?).ok()?;
    let mut ops = Vec::new();
    let mut refused = None;
    for index in 0..count {
        let kind = reader.int()?;
        let mut body = Reader(reader.buffer()?);
        if kind == kind::ERROR {
            // Only the operation that failed has its own code.
            let code = body.int()?;
            if code != 0 && code != RUNTIME_INCONSISTENCY {
                refused = Some(Done::Refused(index, code));
            }
        } else {
            ops.push(operation(kind, &mut body)?);
        }
    }
    Some(refused.unwrap_or(Done::Committed(ops)))
}

fn operation(kind: i32, reader: &mut Reader<'_>) -> Option<TxnOp> {
    Some(match kind {
        kind::CREATE | kind::CREATE2 => {
            let (path, data) = (reader.text()?, reader.data()?);
            reader.acl()?;
            TxnOp::Create { path, data, ephemeral: reader.bytes(1)? == [1] }
        }
        kind::CREATE_CONTAINER | kind::CREATE_TTL => {
            TxnOp::Create { path: reader.text()?, data: reader.data()?, ephemeral: false }
        }
        kind::DELETE | kind::DELETE_CONTAINER => TxnOp::Delete { path: reader.text()? },
        kind::SET_DATA => TxnOp::Set { path: reader.text()?, data: reader.data()?, version: reader.int()? },
        // The log contains the version plus one.
        kind::CHECK => TxnOp::Check { path: reader.text()?, version: reader.int()? - 1 },
        kind::CLOSE_SESSION => TxnOp::CloseSession,
        _ => return None,
    })
}

/// The codes of operations in the log.
mod kind {
    pub(super) const ERROR: i32 = -1;
    pub(super) const CREATE_SESSION: i32 = -10;
    pub(super) const CLOSE_SESSION: i32 = -11;
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const SET_DATA: i32 = 5;
    pub(super) const SET_ACL: i32 = 7;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const DELETE_CONTAINER: i32 = 20;
    pub(super) const CREATE_TTL: i32 = 21;
}

/// The code of the operations after the one that failed.
const RUNTIME_INCONSISTENCY: i32 = -2;

fn merge(logs: &[BTreeMap<i64, Txn>], snapshots: &[i64]) -> Result<Merged, Failure> {
    let mut all = BTreeMap::<i64, (Txn, usize)>::new();
    for (zxid, txn) in logs.iter().flatten() {
        let (first, members) = all.entry(*zxid).or_insert_with(|| (txn.clone(), 0));
        *members += 1;
        if first != txn {
            return Err(Failure::new(format!("two members disagree on transaction {zxid:#x}")));
        }
    }
    let count = all.len();
    let last_epoch = all.last_key_value().map_or(0, |(zxid, _)| epoch(*zxid));
    let is_kept = |zxid: i64| {
        // Without a transaction in an epoch, its end has no snapshot of this epoch.
        let end = snapshots.iter().filter(|last| epoch(**last) == epoch(zxid)).max();
        epoch(zxid) == last_epoch || end.is_none_or(|end| zxid <= *end)
    };
    let is_committed = |txn: &Txn, members: usize| 2 * members > logs.len() && is_kept(txn.zxid);
    let committed: Vec<Txn> =
        all.into_values().filter(|(txn, members)| is_committed(txn, *members)).map(|(txn, _)| txn).collect();
    for pair in committed.windows(2) {
        let (before, after) = (pair[0].zxid, pair[1].zxid);
        let follows =
            if epoch(before) == epoch(after) { after == before + 1 } else { after & 0xffff_ffff == 1 };
        if !follows {
            return Err(Failure::new(format!("the logs have a gap between {before:#x} and {after:#x}")));
        }
    }
    Ok(Merged { dropped: count - committed.len(), committed })
}

/// The epoch of a transaction's number.
fn epoch(zxid: i64) -> i64 {
    zxid >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(zxid: i64, xid: i32) -> (i64, Txn) {
        (zxid, Txn { zxid, session: 7, xid, wall_ms: 1, done: Done::Else })
    }

    fn numbers(merged: &Merged) -> Vec<i64> {
        merged.committed.iter().map(|txn| txn.zxid).collect()
    }

    #[test]
    fn transactions_of_a_majority_are_committed() {
        let first = 1_i64 << 32;
        let whole: BTreeMap<_, _> = [txn(first + 1, 1), txn(first + 2, 2)].into();
        let ahead: BTreeMap<_, _> = [txn(first + 1, 1), txn(first + 2, 2), txn(first + 3, 3)].into();
        let merged = merge(&[whole.clone(), whole, ahead], &[]).unwrap();
        assert_eq!((numbers(&merged), merged.dropped), (vec![first + 1, first + 2], 1));
    }

    /// The third member led the second epoch and did not have the third transaction, which the others logged too late.
    #[test]
    fn transactions_that_the_next_leader_did_not_have_are_not_committed() {
        let (first, second) = (1_i64 << 32, 2_i64 << 32);
        let late: BTreeMap<_, _> =
            [txn(first + 1, 1), txn(first + 2, 2), txn(first + 3, 3), txn(second + 1, 4)].into();
        let next: BTreeMap<_, _> = [txn(first + 1, 1), txn(first + 2, 2), txn(second + 1, 4)].into();
        let logs = [late.clone(), late.clone(), next];
        let merged = merge(&logs, &[0, first + 1, first + 2]).unwrap();
        assert_eq!((numbers(&merged), merged.dropped), (vec![first + 1, first + 2, second + 1], 1));
        // Nothing has replaced the last epoch, so a snapshot within it is not its end.
        let merged = merge(&[late.clone(), late], &[first + 3, second]).unwrap();
        assert_eq!((merged.committed.len(), merged.dropped), (4, 0));
    }

    #[test]
    fn logs_that_disagree_or_have_gaps_are_rejected() {
        let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) = ([txn(1, 1)].into(), [txn(1, 2)].into());
        assert!(merge(&[one.clone(), other], &[]).unwrap_err().to_string().contains("disagree"));
        let gap: BTreeMap<_, _> = [txn(1, 1), txn(3, 3)].into();
        assert!(merge(&[gap], &[]).unwrap_err().to_string().contains("gap"));
        let epochs: BTreeMap<_, _> = [txn(1, 1), txn((2 << 32) + 1, 3)].into();
        assert_eq!(merge(&[epochs], &[]).unwrap().committed.len(), 2);
    }

    fn framed(record: &[u8]) -> Vec<u8> {
        let mut bytes = i64::from(adler32(record)).to_be_bytes().to_vec();
        bytes.extend(i32::try_from(record.len()).unwrap().to_be_bytes());
        bytes.extend(record);
        bytes.push(END_OF_RECORD);
        bytes
    }

    fn deletion(zxid: i64) -> Vec<u8> {
        let mut record = 7_i64.to_be_bytes().to_vec();
        record.extend(3_i32.to_be_bytes());
        record.extend(zxid.to_be_bytes());
        record.extend(1_700_000_000_000_i64.to_be_bytes());
        record.extend(kind::DELETE.to_be_bytes());
        record.extend(2_i32.to_be_bytes());
        record.extend(b"/a");
        record
    }

    #[test]
    fn a_file_is_read_up_to_its_first_torn_record() {
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
        let mut file = vec![0; HEADER];
        file.extend(framed(&deletion(1)));
        file.extend(framed(&deletion(2)));
        let whole = file.len();
        let count = |file: &[u8]| records(file).len();
        assert_eq!(count(&file), 2);
        assert_eq!(count(&file[..whole - 1]), 1);
        file[whole - 3] ^= 1;
        assert_eq!(count(&file), 1);
        file.truncate(whole);
        file[whole - 3] ^= 1;
        file.extend([0; 64]);
        let read = records(&file);
        let txn = read.into_iter().last().unwrap().txn.unwrap();
        assert_eq!((txn.zxid, txn.session, txn.xid), (2, 7, 3));
        assert_eq!(txn.done, Done::Committed(vec![TxnOp::Delete { path: "/a".into() }]));
    }
}
