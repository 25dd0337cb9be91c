//! The client's side of the protocol, for tests: encodes requests and decodes replies.

use super::opcode::{self, flag};
use super::reader::{Malformed, Reader, SMALLEST_STRING};
use super::{
    AddWatchMode, ConnectRequest, ConnectResponse, CreateMode, EventKind, Id, Intent, Op, OpResult, Request,
    Response, Stat, WatchedEvent, WatcherKind, writer,
};

/// A frame from a server, except the reply to a first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A notification.
    Event(WatchedEvent),
    /// A reply.
    Reply {
        /// The number of the request.
        xid: i32,
        /// The newest transaction at the time of the reply.
        zxid: i64,
        /// 0, or the number of an [`ErrorCode`](super::ErrorCode).
        error: i32,
        /// The body for [`decode_response`], if `error` is 0.
        body: &'a [u8],
    },
}

const NOTIFICATION_XID: i32 = -1;
/// Flags that no server supports.
const UNKNOWN_FLAGS: i32 = 99;

/// Appends the first frame of a connection.
pub fn encode_connect(request: &ConnectRequest, out: &mut Vec<u8>) {
    writer::frame(out, |out| {
        writer::i32(out, 0);
        writer::i64(out, request.last_zxid_seen);
        writer::i32(out, request.timeout_ms);
        writer::i64(out, request.session_id);
        writer::buffer(out, Some(&request.password));
        if let Some(read_only) = request.read_only {
            writer::bool(out, read_only);
        }
    });
}

/// Appends the frame of a request.
pub fn encode_request(xid: i32, request: &Request, out: &mut Vec<u8>) {
    writer::frame(out, |out| {
        writer::i32(out, xid);
        writer::i32(out, code(request));
        body(out, request);
    });
}

/// Decodes the reply to a first frame, without its length.
///
/// # Errors
/// If the frame is malformed.
pub fn decode_connected(frame: &[u8]) -> Result<ConnectResponse, Malformed> {
    let mut reader = Reader::new(frame);
    let _protocol_version = reader.i32()?;
    Ok(ConnectResponse {
        timeout_ms: reader.i32()?,
        session_id: reader.i64()?,
        password: reader.buffer()?.unwrap_or_default().to_vec(),
        read_only: if reader.is_empty() { None } else { Some(reader.bool()?) },
    })
}

/// Decodes a later frame of a server, without its length.
///
/// # Errors
/// If the frame is malformed.
pub fn decode_incoming(frame: &[u8]) -> Result<Incoming<'_>, Malformed> {
    let mut reader = Reader::new(frame);
    let (xid, zxid, error) = (reader.i32()?, reader.i64()?, reader.i32()?);
    if xid != NOTIFICATION_XID {
        return Ok(Incoming::Reply { xid, zxid, error, body: reader.rest() });
    }
    let kind = match reader.i32()? {
        1 => EventKind::NodeCreated,
        2 => EventKind::NodeDeleted,
        3 => EventKind::NodeDataChanged,
        4 => EventKind::NodeChildrenChanged,
        7 => EventKind::PersistentWatchRemoved,
        _ => return Err(reader.malformed("kind of an event")),
    };
    let _state = reader.i32()?;
    Ok(Incoming::Event(WatchedEvent { kind, path: reader.string()?, zxid }))
}

/// Decodes the body of a reply without an error.
///
/// # Errors
/// If the body is malformed.
pub fn decode_response(request: &Request, body: &[u8]) -> Result<Response, Malformed> {
    let mut reader = Reader::new(body);
    let reader = &mut reader;
    Ok(match request {
        Request::Write(op) => match op {
            Op::Create { stat: false, .. } => Response::Path(reader.string()?),
            Op::Create { stat: true, .. } => Response::PathStat(reader.string()?, reader.stat()?),
            Op::SetData { .. } => Response::Stat(reader.stat()?),
            Op::Delete { .. } | Op::Check { .. } | Op::Unknown { .. } => Response::Empty,
        },
        Request::Multi(_) | Request::MultiRead(_) => Response::Multi(op_results(reader)?),
        Request::Exists { .. } | Request::SetAcl { .. } => Response::Stat(reader.stat()?),
        Request::GetData { .. } => Response::Data(reader.data()?, reader.stat()?),
        Request::GetChildren { stat: false, .. } | Request::GetEphemerals { .. } => {
            Response::Names(reader.strings()?)
        }
        Request::GetChildren { stat: true, .. } => Response::NamesStat(reader.strings()?, reader.stat()?),
        Request::CountDescendants { .. } => Response::Count(reader.i32()?),
        Request::GetAcl { .. } => Response::Acl(reader.acl()?, reader.stat()?),
        Request::Sync { .. } => Response::Synced(reader.string()?),
        Request::WhoAmI => Response::Identities(reader.ids()?),
        Request::AddWatch { .. } => {
            let _zero = reader.i32()?;
            Response::WatchAdded
        }
        Request::Ping
        | Request::Auth { .. }
        | Request::SetWatches { .. }
        | Request::CheckWatches { .. }
        | Request::RemoveWatches { .. }
        | Request::CloseSession
        | Request::Malformed(_)
        | Request::Unsupported { .. } => Response::Empty,
    })
}

fn op_results(reader: &mut Reader<'_>) -> Result<Vec<OpResult>, Malformed> {
    let mut results = Vec::new();
    loop {
        let (code, done, _error) = (reader.i32()?, reader.bool()?, reader.i32()?);
        if done {
            return Ok(results);
        }
        results.push(match code {
            opcode::CREATE => OpResult::Create { path: reader.string()? },
            opcode::CREATE2 => OpResult::Create2 { path: reader.string()?, stat: reader.stat()? },
            opcode::DELETE => OpResult::Delete,
            opcode::SET_DATA => OpResult::SetData(reader.stat()?),
            opcode::CHECK => OpResult::Check,
            opcode::GET_DATA => OpResult::GetData { data: reader.data()?, stat: reader.stat()? },
            opcode::GET_CHILDREN => OpResult::GetChildren(reader.strings()?),
            opcode::ERROR => OpResult::Error(reader.i32()?),
            _ => return Err(reader.malformed("result of a multi")),
        });
    }
}

fn code(request: &Request) -> i32 {
    match request {
        Request::Write(op) => op_code(op),
        Request::Multi(_) => opcode::MULTI,
        Request::MultiRead(_) => opcode::MULTI_READ,
        Request::Exists { .. } => opcode::EXISTS,
        Request::GetData { .. } => opcode::GET_DATA,
        Request::GetChildren { stat: false, .. } => opcode::GET_CHILDREN,
        Request::GetChildren { stat: true, .. } => opcode::GET_CHILDREN2,
        Request::CountDescendants { .. } => opcode::GET_ALL_CHILDREN_NUMBER,
        Request::GetEphemerals { .. } => opcode::GET_EPHEMERALS,
        Request::GetAcl { .. } => opcode::GET_ACL,
        Request::SetAcl { .. } => opcode::SET_ACL,
        Request::Sync { .. } => opcode::SYNC,
        Request::Ping => opcode::PING,
        Request::Auth { .. } => opcode::AUTH,
        Request::SetWatches { persistent, recursive, .. }
            if persistent.is_empty() && recursive.is_empty() =>
        {
            opcode::SET_WATCHES
        }
        Request::SetWatches { .. } => opcode::SET_WATCHES2,
        Request::AddWatch { .. } => opcode::ADD_WATCH,
        Request::CheckWatches { .. } => opcode::CHECK_WATCHES,
        Request::RemoveWatches { .. } => opcode::REMOVE_WATCHES,
        Request::WhoAmI => opcode::WHO_AM_I,
        Request::CloseSession => opcode::CLOSE_SESSION,
        // For each kind, a request that is malformed without a body.
        Request::Malformed(Intent::Read) => opcode::GET_DATA,
        Request::Malformed(Intent::Write) => opcode::SET_DATA,
        Request::Malformed(Intent::Check) => opcode::CHECK,
        Request::Malformed(Intent::Multi) => opcode::MULTI,
        Request::Malformed(Intent::Auth) => opcode::AUTH,
        Request::Unsupported { code } => *code,
    }
}

fn op_code(op: &Op) -> i32 {
    match op {
        Op::Create { mode: CreateMode::Container | CreateMode::ContainerSequential, .. } => {
            opcode::CREATE_CONTAINER
        }
        Op::Create { mode: CreateMode::Ttl(_) | CreateMode::TtlSequential(_), .. } => opcode::CREATE_TTL,
        Op::Create { stat: false, .. } => opcode::CREATE,
        Op::Create { stat: true, .. } => opcode::CREATE2,
        Op::Delete { .. } => opcode::DELETE,
        Op::SetData { .. } => opcode::SET_DATA,
        Op::Check { .. } => opcode::CHECK,
        Op::Unknown { code } => *code,
    }
}

fn body(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::Write(op) => op_body(out, op),
        Request::Multi(ops) => multi(out, ops, op_code, op_body),
        Request::MultiRead(reads) => multi(out, reads, code, body),
        Request::Exists { path, watch }
        | Request::GetData { path, watch }
        | Request::GetChildren { path, watch, stat: _ } => {
            writer::string(out, path);
            writer::bool(out, *watch);
        }
        Request::CountDescendants { path } | Request::GetAcl { path } | Request::Sync { path } => {
            writer::string(out, path);
        }
        Request::GetEphemerals { prefix } => writer::string(out, prefix),
        Request::SetAcl { path, acl, version } => {
            writer::string(out, path);
            writer::acl(out, acl);
            writer::i32(out, *version);
        }
        Request::Auth { scheme, auth } => {
            writer::i32(out, 0);
            writer::string(out, scheme);
            writer::buffer(out, Some(auth));
        }
        Request::SetWatches { relative_zxid, data, exist, child, persistent, recursive } => {
            writer::i64(out, *relative_zxid);
            for paths in [data, exist, child] {
                writer::strings(out, paths);
            }
            if code(request) == opcode::SET_WATCHES2 {
                writer::strings(out, persistent);
                writer::strings(out, recursive);
            }
        }
        Request::AddWatch { path, mode } => {
            writer::string(out, path);
            writer::i32(
                out,
                match mode {
                    AddWatchMode::Persistent => 0,
                    AddWatchMode::PersistentRecursive => 1,
                },
            );
        }
        Request::CheckWatches { path, kind } | Request::RemoveWatches { path, kind } => {
            writer::string(out, path);
            writer::i32(
                out,
                match kind {
                    WatcherKind::Children => 1,
                    WatcherKind::Data => 2,
                    WatcherKind::Any => 3,
                    WatcherKind::Persistent => 4,
                    WatcherKind::PersistentRecursive => 5,
                },
            );
        }
        Request::Ping
        | Request::WhoAmI
        | Request::CloseSession
        | Request::Malformed(_)
        | Request::Unsupported { .. } => {}
    }
}

fn op_body(out: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Create { path, data, acl, mode, stat: _ } => {
            writer::string(out, path);
            writer::buffer(out, data.as_deref());
            writer::acl(out, acl);
            let (flags, ttl) = match mode {
                CreateMode::Persistent => (flag::PERSISTENT, None),
                CreateMode::PersistentSequential => (flag::PERSISTENT_SEQUENTIAL, None),
                CreateMode::Ephemeral => (flag::EPHEMERAL, None),
                CreateMode::EphemeralSequential => (flag::EPHEMERAL_SEQUENTIAL, None),
                CreateMode::Container => (flag::CONTAINER, None),
                CreateMode::ContainerSequential => (flag::PERSISTENT_SEQUENTIAL, None),
                CreateMode::Ttl(ms) => (flag::TTL, Some(*ms)),
                CreateMode::TtlSequential(ms) => (flag::TTL_SEQUENTIAL, Some(*ms)),
            };
            writer::i32(out, flags);
            if let Some(ttl) = ttl {
                writer::i64(out, ttl);
            }
        }
        Op::Delete { path, version } | Op::Check { path, version } => {
            writer::string(out, path);
            writer::i32(out, *version);
        }
        Op::SetData { path, data, version } => {
            writer::string(out, path);
            writer::buffer(out, data.as_deref());
            writer::i32(out, *version);
        }
        // A create with unknown flags.
        Op::Unknown { .. } => {
            writer::string(out, "/");
            writer::buffer(out, None);
            writer::acl(out, &[]);
            writer::i32(out, UNKNOWN_FLAGS);
            writer::i64(out, 0);
        }
    }
}

fn multi<T>(out: &mut Vec<u8>, ops: &[T], code: impl Fn(&T) -> i32, body: impl Fn(&mut Vec<u8>, &T)) {
    for op in ops {
        writer::i32(out, code(op));
        writer::bool(out, false);
        writer::i32(out, -1);
        body(out, op);
    }
    writer::i32(out, opcode::ERROR);
    writer::bool(out, true);
    writer::i32(out, -1);
}

impl Reader<'_> {
    fn ids(&mut self) -> Result<Vec<Id>, Malformed> {
        (0..self.count(2 * SMALLEST_STRING)?)
            .map(|_| Ok(Id { scheme: self.string()?, id: self.string()? }))
            .collect()
    }

    fn stat(&mut self) -> Result<Stat, Malformed> {
        Ok(Stat {
            czxid: self.i64()?,
            mzxid: self.i64()?,
            ctime: self.i64()?,
            mtime: self.i64()?,
            version: self.i32()?,
            cversion: self.i32()?,
            aversion: self.i32()?,
            ephemeral_owner: self.i64()?,
            data_length: self.i32()?,
            num_children: self.i32()?,
            pzxid: self.i64()?,
        })
    }
}
