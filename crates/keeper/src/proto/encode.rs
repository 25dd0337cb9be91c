//! Encodes replies and notifications, for a server. Each function appends one frame with its length.

use super::{ConnectResponse, EventKind, OpResult, Reply, Response, WatchedEvent, opcode, writer};

/// The xid of every notification.
const NOTIFICATION_XID: i32 = -1;
/// The state in every notification. Other states of a session are not sent: clients derive them from the connection.
const SYNC_CONNECTED: i32 = 3;

/// Appends the reply to a first frame.
pub fn encode_connected(response: &ConnectResponse, out: &mut Vec<u8>) {
    writer::frame(out, |out| {
        writer::i32(out, 0);
        writer::i32(out, response.timeout_ms);
        writer::i64(out, response.session_id);
        writer::buffer(out, Some(&response.password));
        if let Some(read_only) = response.read_only {
            writer::bool(out, read_only);
        }
    });
}

/// Appends a reply.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    writer::frame(out, |out| {
        writer::i32(out, reply.xid);
        writer::i64(out, reply.zxid);
        match &reply.result {
            Ok(body) => {
                writer::i32(out, 0);
                response(out, body);
            }
            Err(code) => writer::i32(out, code.number()),
        }
    });
}

/// Appends a notification.
pub fn encode_event(event: &WatchedEvent, out: &mut Vec<u8>) {
    writer::frame(out, |out| {
        writer::i32(out, NOTIFICATION_XID);
        writer::i64(out, event.zxid);
        writer::i32(out, 0);
        writer::i32(out, event_kind(event.kind));
        writer::i32(out, SYNC_CONNECTED);
        writer::string(out, &event.path);
    });
}

fn event_kind(kind: EventKind) -> i32 {
    match kind {
        EventKind::NodeCreated => 1,
        EventKind::NodeDeleted => 2,
        EventKind::NodeDataChanged => 3,
        EventKind::NodeChildrenChanged => 4,
        EventKind::PersistentWatchRemoved => 7,
    }
}

fn response(out: &mut Vec<u8>, response: &Response) {
    match response {
        Response::Empty => {}
        Response::WatchAdded => writer::i32(out, 0),
        Response::Path(path) | Response::Synced(path) => writer::string(out, path),
        Response::PathStat(path, stat) => {
            writer::string(out, path);
            writer::stat(out, stat);
        }
        Response::Stat(stat) => writer::stat(out, stat),
        Response::Data(data, stat) => {
            writer::buffer(out, data.as_deref());
            writer::stat(out, stat);
        }
        Response::Names(names) => writer::strings(out, names),
        Response::NamesStat(names, stat) => {
            writer::strings(out, names);
            writer::stat(out, stat);
        }
        Response::Acl(acl, stat) => {
            writer::acl(out, acl);
            writer::stat(out, stat);
        }
        Response::Count(count) => writer::i32(out, *count),
        Response::Multi(results) => {
            for result in results {
                operation(out, result);
            }
            multi_header(out, opcode::ERROR, true, -1);
        }
        Response::Identities(ids) => writer::ids(out, ids),
    }
}

fn operation(out: &mut Vec<u8>, result: &OpResult) {
    match result {
        OpResult::Create { path } => {
            multi_header(out, opcode::CREATE, false, 0);
            writer::string(out, path);
        }
        OpResult::Create2 { path, stat } => {
            multi_header(out, opcode::CREATE2, false, 0);
            writer::string(out, path);
            writer::stat(out, stat);
        }
        OpResult::Delete => multi_header(out, opcode::DELETE, false, 0),
        OpResult::SetData(stat) => {
            multi_header(out, opcode::SET_DATA, false, 0);
            writer::stat(out, stat);
        }
        OpResult::Check => multi_header(out, opcode::CHECK, false, 0),
        OpResult::GetData { data, stat } => {
            multi_header(out, opcode::GET_DATA, false, 0);
            writer::buffer(out, data.as_deref());
            writer::stat(out, stat);
        }
        OpResult::GetChildren(names) => {
            multi_header(out, opcode::GET_CHILDREN, false, 0);
            writer::strings(out, names);
        }
        OpResult::Error(code) => {
            multi_header(out, opcode::ERROR, false, *code);
            writer::i32(out, *code);
        }
    }
}

fn multi_header(out: &mut Vec<u8>, code: i32, done: bool, error: i32) {
    writer::i32(out, code);
    writer::bool(out, done);
    writer::i32(out, error);
}
