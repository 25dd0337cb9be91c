//! Decodes requests, for a server.

use super::opcode::{self, flag};
use super::reader::{Malformed, Reader};
use super::{AddWatchMode, Compat, ConnectRequest, CreateMode, Intent, Op, Request, WatcherKind};

/// Decodes the first frame of a connection, without its length.
///
/// # Errors
/// If the frame is malformed.
pub fn decode_connect(frame: &[u8]) -> Result<ConnectRequest, Malformed> {
    let mut reader = Reader::new(frame);
    let _protocol_version = reader.i32()?;
    Ok(ConnectRequest {
        last_zxid_seen: reader.i64()?,
        timeout_ms: reader.i32()?,
        session_id: reader.i64()?,
        password: reader.buffer()?.unwrap_or_default().to_vec(),
        read_only: if reader.is_empty() { None } else { Some(reader.bool()?) },
    })
}

/// Decodes a later frame, without its length, to the number of the request and the request. A malformed body is
/// returned as [`Malformed`](Request::Malformed). Releases decode the creates of a multi differently.
///
/// # Errors
/// If the frame is shorter than a header.
pub fn decode_request(frame: &[u8], compat: Compat) -> Result<(i32, Request), Malformed> {
    let mut reader = Reader::new(frame);
    let (xid, code) = (reader.i32()?, reader.i32()?);
    // The reply does not depend on the error in the body.
    let request =
        body(code, &mut reader, compat).unwrap_or_else(|_malformed| Request::Malformed(intent(code)));
    Ok((xid, request))
}

fn intent(code: i32) -> Intent {
    match code {
        opcode::CREATE
        | opcode::CREATE2
        | opcode::CREATE_CONTAINER
        | opcode::CREATE_TTL
        | opcode::DELETE
        | opcode::SET_DATA
        | opcode::SET_ACL => Intent::Write,
        opcode::CHECK => Intent::Check,
        opcode::MULTI => Intent::Multi,
        opcode::AUTH => Intent::Auth,
        _reads_and_watches => Intent::Read,
    }
}

fn body(code: i32, reader: &mut Reader<'_>, compat: Compat) -> Result<Request, Malformed> {
    Ok(match code {
        opcode::CREATE
        | opcode::CREATE2
        | opcode::CREATE_CONTAINER
        | opcode::CREATE_TTL
        | opcode::DELETE
        | opcode::SET_DATA
        | opcode::CHECK => Request::Write(operation(code, reader)?),
        opcode::MULTI => Request::Multi(multi(reader, |code, reader| part(code, reader, compat))?),
        opcode::MULTI_READ => Request::MultiRead(multi(reader, |code, reader| match code {
            opcode::GET_DATA | opcode::GET_CHILDREN => body(code, reader, compat),
            _ => Err(reader.malformed("read of a multi-read")),
        })?),
        opcode::EXISTS => Request::Exists { path: reader.string()?, watch: reader.bool()? },
        opcode::GET_DATA => Request::GetData { path: reader.string()?, watch: reader.bool()? },
        opcode::GET_CHILDREN | opcode::GET_CHILDREN2 => Request::GetChildren {
            path: reader.string()?,
            watch: reader.bool()?,
            stat: code == opcode::GET_CHILDREN2,
        },
        opcode::GET_ALL_CHILDREN_NUMBER => Request::CountDescendants { path: reader.string()? },
        opcode::GET_EPHEMERALS => Request::GetEphemerals { prefix: reader.string_or_empty()? },
        opcode::GET_ACL => Request::GetAcl { path: reader.string()? },
        opcode::SET_ACL => {
            Request::SetAcl { path: reader.string()?, acl: reader.acl()?, version: reader.i32()? }
        }
        opcode::SYNC => Request::Sync { path: reader.string()? },
        opcode::PING => Request::Ping,
        opcode::AUTH => {
            let _kind = reader.i32()?;
            Request::Auth { scheme: reader.string()?, auth: reader.buffer()?.unwrap_or_default().to_vec() }
        }
        opcode::SET_WATCHES => set_watches(reader, false)?,
        opcode::SET_WATCHES2 => set_watches(reader, true)?,
        opcode::ADD_WATCH => Request::AddWatch { path: reader.string()?, mode: add_watch_mode(reader)? },
        opcode::CHECK_WATCHES => {
            Request::CheckWatches { path: reader.string()?, kind: watcher_kind(reader)? }
        }
        opcode::REMOVE_WATCHES => {
            Request::RemoveWatches { path: reader.string()?, kind: watcher_kind(reader)? }
        }
        opcode::RECONFIG => {
            // Joining servers, leaving servers, new members, configuration version: unused by a single server.
            let _servers = (reader.buffer()?, reader.buffer()?, reader.buffer()?, reader.i64()?);
            Request::Unsupported { code }
        }
        opcode::WHO_AM_I => Request::WhoAmI,
        opcode::CLOSE_SESSION => Request::CloseSession,
        code => Request::Unsupported { code },
    })
}

/// Decodes a single write or an operation of a multi.
fn operation(code: i32, reader: &mut Reader<'_>) -> Result<Op, Malformed> {
    Ok(match code {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
            let (path, data, acl) = (reader.string()?, reader.data()?, reader.acl()?);
            let flags = reader.i32()?;
            let ttl = if code == opcode::CREATE_TTL { reader.i64()? } else { NO_TTL };
            match create_mode(code, flags, ttl) {
                Some(mode) => Op::Create { path, data, acl, mode, stat: code != opcode::CREATE },
                None => Op::Unknown { code },
            }
        }
        opcode::DELETE => Op::Delete { path: reader.string()?, version: reader.i32()? },
        opcode::SET_DATA => {
            Op::SetData { path: reader.string()?, data: reader.data()?, version: reader.i32()? }
        }
        opcode::CHECK => Op::Check { path: reader.string()?, version: reader.i32()? },
        _ => return Err(reader.malformed("operation of a multi")),
    })
}

/// Decodes an operation of a multi. In a multi the flags of a create override its code. In 3.9 only the flags of a TTL
/// override the code of a `createContainer`.
fn part(code: i32, reader: &mut Reader<'_>, compat: Compat) -> Result<Op, Malformed> {
    match code {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
            let (path, data, acl) = (reader.string()?, reader.data()?, reader.acl()?);
            let flags = reader.i32()?;
            let ttl = if code == opcode::CREATE_TTL { reader.i64()? } else { NO_TTL };
            let meant = match flags {
                flag::CONTAINER => opcode::CREATE_CONTAINER,
                flag::TTL | flag::TTL_SEQUENTIAL => opcode::CREATE_TTL,
                _ if code == opcode::CREATE_CONTAINER && compat == Compat::V3_9 => code,
                _ => opcode::CREATE,
            };
            let stat = code != opcode::CREATE || meant != opcode::CREATE;
            Ok(match create_mode(meant, flags, ttl) {
                Some(mode) => Op::Create { path, data, acl, mode, stat },
                None => Op::Unknown { code },
            })
        }
        code => operation(code, reader),
    }
}

/// The TTL of a create without that field: out of range, so that the mode is rejected.
const NO_TTL: i64 = -1;

/// Returns the mode of a single create. Its code overrides its flags: `createContainer` creates a container whatever
/// lifetime the flags have, and `create` never does.
fn create_mode(code: i32, flags: i32, ttl: i64) -> Option<CreateMode> {
    match (code, flags) {
        (opcode::CREATE_CONTAINER, flag::PERSISTENT | flag::EPHEMERAL | flag::CONTAINER) => {
            Some(CreateMode::Container)
        }
        (opcode::CREATE_CONTAINER, flag::PERSISTENT_SEQUENTIAL | flag::EPHEMERAL_SEQUENTIAL) => {
            Some(CreateMode::ContainerSequential)
        }
        (opcode::CREATE_CONTAINER, _) => None,
        (_, flag::TTL) => Some(CreateMode::Ttl(ttl)),
        (_, flag::TTL_SEQUENTIAL) => Some(CreateMode::TtlSequential(ttl)),
        (opcode::CREATE_TTL, _) => None,
        (_, flag::PERSISTENT | flag::CONTAINER) => Some(CreateMode::Persistent),
        (_, flag::EPHEMERAL) => Some(CreateMode::Ephemeral),
        (_, flag::PERSISTENT_SEQUENTIAL) => Some(CreateMode::PersistentSequential),
        (_, flag::EPHEMERAL_SEQUENTIAL) => Some(CreateMode::EphemeralSequential),
        _ => None,
    }
}

/// Decodes the operations of a multi. Each has a header; the last header has no operation.
fn multi<T>(
    reader: &mut Reader<'_>,
    mut operation: impl FnMut(i32, &mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut operations = Vec::new();
    loop {
        let code = reader.i32()?;
        let done = reader.bool()?;
        let _error = reader.i32()?;
        if done {
            return Ok(operations);
        }
        operations.push(operation(code, reader)?);
    }
}

fn set_watches(reader: &mut Reader<'_>, persistent_too: bool) -> Result<Request, Malformed> {
    Ok(Request::SetWatches {
        relative_zxid: reader.i64()?,
        data: reader.strings()?,
        exist: reader.strings()?,
        child: reader.strings()?,
        persistent: if persistent_too { reader.strings()? } else { Vec::new() },
        recursive: if persistent_too { reader.strings()? } else { Vec::new() },
    })
}

fn add_watch_mode(reader: &mut Reader<'_>) -> Result<AddWatchMode, Malformed> {
    match reader.i32()? {
        0 => Ok(AddWatchMode::Persistent),
        1 => Ok(AddWatchMode::PersistentRecursive),
        _ => Err(reader.malformed("mode of a watch")),
    }
}

fn watcher_kind(reader: &mut Reader<'_>) -> Result<WatcherKind, Malformed> {
    match reader.i32()? {
        1 => Ok(WatcherKind::Children),
        2 => Ok(WatcherKind::Data),
        3 => Ok(WatcherKind::Any),
        4 => Ok(WatcherKind::Persistent),
        5 => Ok(WatcherKind::PersistentRecursive),
        _ => Err(reader.malformed("kind of a watch")),
    }
}
