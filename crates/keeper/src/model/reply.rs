//! Requests of a connection that has a session, one by one, to what they are answered.

use std::sync::Arc;

use super::engine::NO_ZXID;
use super::read::Reader;
use super::watch::Modes;
use super::write::{Author, Done, Journal};
use super::{Compat, ConnectionId, Effect, Model, Now};
use crate::proto::{
    AddWatchMode, ErrorCode, EventKind, Op, OpResult, Reply, Request, Response, Stat, WatchedEvent,
    WatcherKind,
};

/// Pings are answered under this number, whatever theirs was.
pub(super) const PING_XID: i32 = -2;
/// What the answer to `auth` has for a transaction.
pub(super) const AUTH_ZXID: i64 = 0;
/// What the answer to an unknown request has for a transaction.
pub(super) const UNKNOWN_ZXID: i64 = -1;
/// The code of `reconfig`.
pub(super) const RECONFIG: i32 = 16;
/// The code by which a real server asks itself to remove a container; it is no client's business.
pub(super) const DELETE_CONTAINER: i32 = 20;

pub(super) fn empty(xid: i32, zxid: i64) -> Reply {
    Reply { xid, zxid, result: Ok(Response::Empty) }
}

impl Model {
    /// Does what is asked. Notifications go out first, so that no answer runs ahead of them.
    pub(super) fn respond(
        &mut self,
        now: Now,
        connection: ConnectionId,
        request: &Request,
        out: &mut Vec<Effect>,
    ) -> Result<Response, ErrorCode> {
        match request {
            Request::Write(op) => self.write(now, connection, op, out),
            Request::Multi(ops) => Ok(Response::Multi(self.multi(now, connection, ops, out))),
            Request::SetAcl { path, acl, version } => self
                .transact(now, connection, out, |author, tree, journal| {
                    author.set_acl(tree, journal, path, acl, *version)
                })
                .map(Response::Stat),
            Request::MultiRead(reads) => Ok(Response::Multi(self.reader(connection).multi(reads))),
            Request::Exists { path, watch } => {
                self.reader(connection).exists(path, *watch).map(Response::Stat)
            }
            Request::GetData { path, watch } => self
                .reader(connection)
                .get_data(path, *watch)
                .map(|node| Response::Data(node.data.clone(), node.stat())),
            Request::GetChildren { path, watch, stat } => {
                let (names, found) = self.reader(connection).get_children(path, *watch)?;
                Ok(if *stat { Response::NamesStat(names, found) } else { Response::Names(names) })
            }
            Request::CountDescendants { path } => {
                self.reader(connection).count_descendants(path).map(Response::Count)
            }
            Request::GetEphemerals { prefix } => {
                let session = self.known(connection).session;
                Ok(Response::Names(self.reader(connection).ephemerals(session, prefix)))
            }
            Request::GetAcl { path } => {
                self.reader(connection).get_acl(path).map(|(acl, stat)| Response::Acl(acl, stat))
            }
            // One server has nobody to wait for.
            Request::Sync { path } => Ok(Response::Synced(path.clone())),
            Request::SetWatches { relative_zxid, data, exist, child, persistent, recursive } => {
                self.watch_again(connection, *relative_zxid, [data, exist, child], out);
                for path in persistent {
                    self.watches.add(path, connection, Modes::PERSISTENT);
                }
                for path in recursive {
                    self.watches.add(path, connection, Modes::RECURSIVE);
                }
                Ok(Response::Empty)
            }
            Request::AddWatch { path, mode } => {
                let mode = match mode {
                    AddWatchMode::Persistent => Modes::PERSISTENT,
                    AddWatchMode::PersistentRecursive => Modes::RECURSIVE,
                };
                self.watches.add(path, connection, mode);
                Ok(Response::WatchAdded)
            }
            Request::CheckWatches { path, kind } => {
                let modes = modes(*kind, self.config.compat)?;
                found(self.watches.contains(path, connection, modes))
            }
            Request::RemoveWatches { path, kind } => {
                let modes = modes(*kind, self.config.compat)?;
                found(self.watches.remove(path, connection, modes))
            }
            Request::WhoAmI => Ok(Response::Identities(self.known(connection).identities.names())),
            Request::Ping => Ok(Response::Empty),
            // Answered by the engine, since they end connections.
            Request::Auth { .. } | Request::CloseSession | Request::Unsupported { .. } => {
                Err(ErrorCode::Unimplemented)
            }
        }
    }

    fn known(&self, connection: ConnectionId) -> &super::engine::Connection {
        self.connections.get(&connection).expect("only known connections are answered")
    }

    fn reader(&mut self, connection: ConnectionId) -> Reader<'_> {
        let known = self.connections.get(&connection).expect("only known connections are answered");
        Reader { tree: &self.tree, watches: &mut self.watches, connection, identities: &known.identities }
    }

    fn write(
        &mut self,
        now: Now,
        connection: ConnectionId,
        op: &Op,
        out: &mut Vec<Effect>,
    ) -> Result<Response, ErrorCode> {
        let done =
            self.transact(now, connection, out, |author, tree, journal| author.write(tree, journal, op))?;
        Ok(match done {
            Done::Created { path, stat } => {
                let path = path.as_ref().to_owned();
                if wants_stat(op) { Response::PathStat(path, stat) } else { Response::Path(path) }
            }
            Done::DataSet(stat) => Response::Stat(stat),
            Done::Deleted | Done::Checked => Response::Empty,
        })
    }

    /// All or none. The answer has no error of its own: each operation has, and all but one of them are there to
    /// tell that they were not done.
    fn multi(
        &mut self,
        now: Now,
        connection: ConnectionId,
        ops: &[Op],
        out: &mut Vec<Effect>,
    ) -> Vec<OpResult> {
        let mut failed_at = 0;
        let blank = self.config.compat == Compat::V3_8_0;
        let all = self.transact(now, connection, out, |author: Author<'_>, tree, journal: &mut Journal| {
            let mut results = Vec::with_capacity(ops.len());
            for (index, op) in ops.iter().enumerate() {
                failed_at = index;
                results.push(match author.write(tree, journal, op)? {
                    Done::Created { path, stat } => created(&path, stat, wants_stat(op), blank),
                    Done::Deleted => OpResult::Delete,
                    Done::DataSet(stat) => OpResult::SetData(stat),
                    Done::Checked => OpResult::Check,
                });
            }
            Ok(results)
        });
        all.unwrap_or_else(|code| {
            let number = |index| match index {
                before if before < failed_at => 0,
                at if at == failed_at => code.number(),
                _behind => ErrorCode::RuntimeInconsistency.number(),
            };
            (0..ops.len()).map(|index| OpResult::Error(number(index))).collect()
        })
    }

    /// A client's one-shot watches on a new connection: what changed in between is told at once, the rest is
    /// watched.
    fn watch_again(
        &mut self,
        connection: ConnectionId,
        seen: i64,
        [data, exist, child]: [&Vec<String>; 3],
        out: &mut Vec<Effect>,
    ) {
        let mut settle = |path: &str, missed: Option<EventKind>, modes: Modes| match missed {
            Some(kind) => {
                let event = WatchedEvent { kind, path: path.to_owned(), zxid: NO_ZXID };
                out.push(Effect::Notify(connection, event));
            }
            None => self.watches.add(path, connection, modes),
        };
        for path in data {
            let missed = match self.tree.get(path) {
                None => Some(EventKind::NodeDeleted),
                Some(node) => (node.mzxid > seen).then_some(EventKind::NodeDataChanged),
            };
            settle(path, missed, Modes::DATA);
        }
        for path in exist {
            let missed = self.tree.get(path).map(|_| EventKind::NodeCreated);
            settle(path, missed, Modes::DATA);
        }
        for path in child {
            let missed = match self.tree.get(path) {
                None => Some(EventKind::NodeDeleted),
                Some(node) => (node.pzxid > seen).then_some(EventKind::NodeChildrenChanged),
            };
            settle(path, missed, Modes::CHILD);
        }
    }
}

fn wants_stat(op: &Op) -> bool {
    matches!(op, Op::Create { stat: true, .. })
}

fn created(path: &Arc<str>, stat: Stat, wants_stat: bool, blank: bool) -> OpResult {
    let path = path.as_ref().to_owned();
    if wants_stat {
        OpResult::Create2 { path, stat: if blank { Stat::default() } else { stat } }
    } else {
        OpResult::Create { path }
    }
}

/// 3.8.0 looks whether there is a watch of any mode in its one or its other table.
fn modes(kind: WatcherKind, compat: Compat) -> Result<Modes, ErrorCode> {
    let lasting = Modes::PERSISTENT.and(Modes::RECURSIVE);
    Ok(match (kind, compat) {
        (WatcherKind::Any, Compat::V3_9 | Compat::V3_8_0) => Modes::ANY,
        (WatcherKind::Children, Compat::V3_9) => Modes::CHILD,
        (WatcherKind::Children, Compat::V3_8_0) => Modes::CHILD.and(lasting),
        (WatcherKind::Data, Compat::V3_9) => Modes::DATA,
        (WatcherKind::Data, Compat::V3_8_0) => Modes::DATA.and(lasting),
        (WatcherKind::Persistent, Compat::V3_9) => Modes::PERSISTENT,
        (WatcherKind::PersistentRecursive, Compat::V3_9) => Modes::RECURSIVE,
        (WatcherKind::Persistent | WatcherKind::PersistentRecursive, Compat::V3_8_0) => {
            return Err(ErrorCode::MarshallingError);
        }
    })
}

fn found(found: bool) -> Result<Response, ErrorCode> {
    if found { Ok(Response::Empty) } else { Err(ErrorCode::NoWatcher) }
}
