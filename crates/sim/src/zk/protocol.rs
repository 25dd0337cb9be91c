//! Converts core's operations to requests, and replies to outcomes.

use std::sync::Arc;

use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::port::WrappingCount;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Lifetime, Op};
use bellwether_keeper::proto::{Acl, CreateMode, ErrorCode, Id, OpResult, Request, Response, Stat};
use bellwether_keeper::proto::{AddWatchMode, Op as KeeperOp};

use super::{ReadError, ReadResult, Znode};

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The server's reply.
    Reply(Result<Response, ErrorCode>),
    /// The connection was lost before the reply came.
    Lost,
    /// The request was not sent: the session is not connected, or has ended.
    NotSent,
}

fn anyone() -> Vec<Acl> {
    let id = Id { scheme: "world".to_owned(), id: "anyone".to_owned() };
    vec![Acl { permissions: 31, id }]
}

fn create(path: String, data: Vec<u8>, mode: CreateMode) -> KeeperOp {
    KeeperOp::Create { path, data: Some(Arc::from(data)), acl: anyone(), mode, stat: false }
}

fn op(op: &Op) -> KeeperOp {
    match op {
        Op::Check { path, version } => KeeperOp::Check { path: path.clone(), version: *version },
        Op::Create { path, data, lifetime } => {
            let mode = match lifetime {
                Lifetime::Persistent => CreateMode::Persistent,
                Lifetime::Ephemeral => CreateMode::Ephemeral,
                Lifetime::Container => CreateMode::Container,
            };
            create(path.clone(), data.clone(), mode)
        }
        Op::Set { path, data, version } => {
            let data = Some(Arc::from(data.clone()));
            KeeperOp::SetData { path: path.clone(), data, version: *version }
        }
        Op::Delete { path, version } => {
            KeeperOp::Delete { path: path.clone(), version: version.unwrap_or(-1) }
        }
    }
}

/// Builds one multi.
pub(crate) fn commit<'a>(ops: impl IntoIterator<Item = &'a Op>) -> Request {
    Request::Multi(ops.into_iter().map(op).collect())
}

pub(crate) fn create_sequential(prefix: String, data: Vec<u8>) -> Request {
    Request::Write(create(prefix, data, CreateMode::EphemeralSequential))
}

/// Sets `/jobs`; [`clock`] decodes the reply.
pub(crate) fn read_clock() -> Request {
    Request::Write(op(&txn::read_clock()))
}

/// Returns the server's time; `None` without a reply.
pub(crate) fn clock(answer: Answer) -> Option<WallMillis> {
    match answer {
        Answer::Reply(Ok(Response::Stat(stat))) => Some(WallMillis(stat.mtime.cast_unsigned())),
        Answer::Lost | Answer::NotSent => None,
        Answer::Reply(other) => unreachable!("set a znode, got {other:?}"),
    }
}

pub(crate) fn get(path: String) -> Request {
    Request::GetData { path, watch: false }
}

pub(crate) fn children(path: String) -> Request {
    Request::GetChildren { path, watch: false, stat: false }
}

pub(crate) fn get_many(paths: impl IntoIterator<Item = String>) -> Request {
    Request::MultiRead(paths.into_iter().map(get).collect())
}

pub(crate) fn children_many(paths: impl IntoIterator<Item = String>) -> Request {
    Request::MultiRead(paths.into_iter().map(children).collect())
}

pub(crate) fn exists(path: String, watch: bool) -> Request {
    Request::Exists { path, watch }
}

pub(crate) fn watch(path: String) -> Request {
    Request::AddWatch { path, mode: AddWatchMode::PersistentRecursive }
}

/// Converts the answer to a write.
pub(crate) fn written(answer: Answer) -> Outcome<()> {
    let rejected = |at, code| Outcome::Rejected(Rejection { at, reason: reason(code) });
    match answer {
        Answer::NotSent => Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent }),
        Answer::Lost => Outcome::Unknown,
        Answer::Reply(Ok(Response::Multi(results))) => {
            let number = |result: &OpResult| match result {
                OpResult::Error(number) => Some(*number),
                _ => None,
            };
            // Results before the failed operation have the code 0, results after it a code other than the cause.
            let failed = results.iter().position(|result| number(result).is_some_and(|number| number != 0));
            match failed {
                None => Outcome::Applied(()),
                Some(at) => rejected(at, number(&results[at]).unwrap_or_default()),
            }
        }
        Answer::Reply(Ok(_)) => Outcome::Applied(()),
        Answer::Reply(Err(code)) => rejected(0, code.number()),
    }
}

/// Returns the path of a znode that was created.
pub(crate) fn created(answer: Answer) -> Outcome<String> {
    let path = match &answer {
        Answer::Reply(Ok(Response::Path(path))) => path.clone(),
        Answer::Reply(_) | Answer::Lost | Answer::NotSent => String::new(),
    };
    written(answer).map(|()| path)
}

fn reason(number: i32) -> Reason {
    let is = |code: ErrorCode| code.number() == number;
    if is(ErrorCode::NoNode) {
        Reason::NoNode
    } else if is(ErrorCode::NodeExists) {
        Reason::NodeExists
    } else if is(ErrorCode::BadVersion) {
        Reason::BadVersion
    } else if is(ErrorCode::NotEmpty) {
        Reason::NotEmpty
    } else {
        Reason::Other(format!("code {number}"))
    }
}

pub(crate) fn got(answer: Answer) -> ReadResult<Option<Znode>> {
    match reply(answer)? {
        Some(Response::Data(data, stat)) => Ok(Some(znode(data, &stat))),
        Some(other) => unreachable!("asked for data, got {other:?}"),
        None => Ok(None),
    }
}

pub(crate) fn listed(answer: Answer) -> ReadResult<Option<Vec<String>>> {
    match reply(answer)? {
        Some(Response::Names(names)) => Ok(Some(names)),
        Some(other) => unreachable!("asked for children, got {other:?}"),
        None => Ok(None),
    }
}

pub(crate) fn got_many(answer: Answer) -> ReadResult<Vec<Option<Znode>>> {
    let node = |result| match result {
        OpResult::GetData { data, stat } => Some(znode(data, &stat)),
        _ => None,
    };
    Ok(many(answer)?.into_iter().map(node).collect())
}

pub(crate) fn listed_many(answer: Answer) -> ReadResult<Vec<Option<Vec<String>>>> {
    let names = |result| match result {
        OpResult::GetChildren(names) => Some(names),
        _ => None,
    };
    Ok(many(answer)?.into_iter().map(names).collect())
}

/// Returns whether the znode exists.
pub(crate) fn found(answer: Answer) -> ReadResult<bool> {
    Ok(reply(answer)?.is_some())
}

/// Returns whether there was a reply.
pub(crate) fn answered(answer: Answer) -> ReadResult<()> {
    reply(answer).map(|_| ())
}

fn many(answer: Answer) -> ReadResult<Vec<OpResult>> {
    match reply(answer)? {
        Some(Response::Multi(results)) => Ok(results),
        other => unreachable!("asked for many, got {other:?}"),
    }
}

/// Returns `None` for an absent znode. The server rejects reads for no other reason: there are no ACLs and no
/// throttling.
fn reply(answer: Answer) -> ReadResult<Option<Response>> {
    match answer {
        Answer::Lost | Answer::NotSent => Err(ReadError::Disconnected),
        Answer::Reply(Ok(response)) => Ok(Some(response)),
        Answer::Reply(Err(ErrorCode::NoNode)) => Ok(None),
        Answer::Reply(Err(code)) => unreachable!("the server rejected a read: {code:?}"),
    }
}

fn znode(data: Option<Arc<[u8]>>, stat: &Stat) -> Znode {
    Znode {
        data: data.map(|data| data.to_vec()).unwrap_or_default(),
        version: stat.version,
        owner: stat.ephemeral_owner,
        created: stat.czxid,
        written: stat.mzxid,
        modified: WallMillis(stat.mtime.cast_unsigned()),
        children: usize::try_from(stat.num_children).unwrap_or(0),
        children_ever: WrappingCount::children_ever(stat.cversion, stat.num_children),
    }
}
