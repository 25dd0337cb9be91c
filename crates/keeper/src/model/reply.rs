//! Executes the requests of connections with a session.

use std::sync::Arc;

use super::engine::NO_ZXID;
use super::read::Reader;
use super::watch::Modes;
use super::write::{Author, Done, Journal};
use super::{Compat, ConnectionId, Effect, Model, Now};
use crate::proto::{
    AddWatchMode, CreateMode, ErrorCode, EventKind, Op, OpResult, Request, Response, Stat, WatchedEvent,
};

impl Model {
    /// Executes a request. Notifications are added to `out` before the caller adds the reply.
    pub(super) fn respond(
        &mut self,
        now: Now,
        connection: ConnectionId,
        request: &Request,
        out: &mut Vec<Effect>,
    ) -> Result<Response, ErrorCode> {
        if let Some(path) = watched(request)
            && !self.has_room_for([path].into_iter())
        {
            return Err(ErrorCode::Throttled);
        }
        match request {
            Request::Write(op) => self.write(now, connection, op, out),
            Request::Multi(ops) => Ok(Response::Multi(self.multi(now, connection, ops, out))),
            Request::SetAcl { path, acl, version } => self
                .transact(now, connection, out, |author, tree, journal| {
                    author.set_acl(tree, journal, path, acl, *version)
                })
                .map(Response::Stat),
            Request::MultiRead(reads) => self.reader(connection).multi(reads).map(Response::Multi),
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
            // A single server has no other servers to synchronize with.
            Request::Sync { path } => Ok(Response::Synced(path.clone())),
            Request::SetWatches { relative_zxid, data, exist, child, persistent, recursive } => {
                self.watch_again(connection, *relative_zxid, [data, exist, child], out);
                for path in persistent {
                    self.add_watch(connection, path, AddWatchMode::Persistent);
                }
                for path in recursive {
                    self.add_watch(connection, path, AddWatchMode::PersistentRecursive);
                }
                Ok(Response::Empty)
            }
            Request::AddWatch { path, mode } => {
                self.add_watch(connection, path, *mode);
                Ok(Response::WatchAdded)
            }
            Request::CheckWatches { path, kind } => {
                let modes = Modes::of_kind(*kind, self.config.compat)?;
                found(self.watches.contains(path, connection, modes))
            }
            Request::RemoveWatches { path, kind } => {
                let modes = Modes::of_kind(*kind, self.config.compat)?;
                found(self.watches.remove(path, connection, modes))
            }
            Request::WhoAmI => Ok(Response::Identities(self.known(connection).identities.names())),
            Request::Ping => Ok(Response::Empty),
            // Handled by `Model::answer`, because they can close the connection.
            Request::Auth { .. }
            | Request::CloseSession
            | Request::Malformed(_)
            | Request::Unsupported { .. } => Err(ErrorCode::Unimplemented),
        }
    }

    /// Returns whether these watches stay within the bounds.
    pub(super) fn has_room_for<'p>(&self, paths: impl Iterator<Item = &'p String>) -> bool {
        let (bounds, mut size) = (self.config.bounds, self.watches.size());
        paths.for_each(|path| size.add(path));
        size.watches <= bounds.watches && size.bytes <= bounds.watch_bytes
    }

    fn add_watch(&mut self, connection: ConnectionId, path: &str, mode: AddWatchMode) {
        self.watches.add(path, connection, Modes::lasting(mode, self.config.compat));
    }

    fn known(&self, connection: ConnectionId) -> &super::engine::Connection {
        self.connections.get(&connection).expect("only known connections are answered")
    }

    fn reader(&mut self, connection: ConnectionId) -> Reader<'_> {
        let known = self.connections.get(&connection).expect("only known connections are answered");
        Reader {
            tree: &self.tree,
            watches: &mut self.watches,
            connection,
            identities: &known.identities,
            compat: self.config.compat,
        }
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

    /// Executes all operations or none. The header of the reply has no error; each operation has one. All errors except
    /// that of the failed operation only say that an operation was not applied.
    fn multi(
        &mut self,
        now: Now,
        connection: ConnectionId,
        ops: &[Op],
        out: &mut Vec<Effect>,
    ) -> Vec<OpResult> {
        let mut failed_at = 0;
        let compat = self.config.compat;
        let all = self.transact(now, connection, out, |author: Author<'_>, tree, journal: &mut Journal| {
            let mut results = Vec::with_capacity(ops.len());
            for (index, op) in ops.iter().enumerate() {
                failed_at = index;
                results.push(match author.write(tree, journal, op)? {
                    Done::Created { path, stat } => created(&path, stat, op, compat),
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

    /// Sets a client's one-shot watches on a new connection. Watches whose znode changed in the meantime fire
    /// immediately; the others are set.
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
                out.push(Effect::Notify(vec![connection], event));
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

/// Returns the path on which a request sets a watch.
fn watched(request: &Request) -> Option<&String> {
    match request {
        Request::Exists { path, watch: true }
        | Request::GetData { path, watch: true }
        | Request::GetChildren { path, watch: true, .. }
        | Request::AddWatch { path, .. } => Some(path),
        // `SetWatches` was checked when it arrived; the others set none.
        _ => None,
    }
}

fn wants_stat(op: &Op) -> bool {
    matches!(op, Op::Create { stat: true, .. })
}

/// Returns whether the operation creates a container or a TTL znode.
fn perishable(op: &Op) -> bool {
    use CreateMode::{Container, ContainerSequential, Ttl, TtlSequential};
    matches!(op, Op::Create { mode: Container | ContainerSequential | Ttl(_) | TtlSequential(_), .. })
}

/// Returns the result of a create in a multi. Before the fix of ZOOKEEPER-4026 a multi handled `create2` as `create`:
/// clients show a blank stat.
fn created(path: &Arc<str>, stat: Stat, op: &Op, compat: Compat) -> OpResult {
    let path = path.as_ref().to_owned();
    let with_stat = match compat {
        Compat::V3_9 => wants_stat(op),
        Compat::V3_8_0 => wants_stat(op) && perishable(op),
    };
    if with_stat { OpResult::Create2 { path, stat } } else { OpResult::Create { path } }
}

fn found(found: bool) -> Result<Response, ErrorCode> {
    if found { Ok(Response::Empty) } else { Err(ErrorCode::NoWatcher) }
}
