//! A test fixture: one model and its clients.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::invariants;
use crate::model::{Config, ConnectionId, Effect, Input, Model, Now};
use crate::proto::{
    Acl, ConnectRequest, ConnectResponse, CreateMode, ErrorCode, EventKind, Id, Op, OpResult, Reply, Request,
    Response, Stat,
};

pub(super) const WALL_MS: i64 = 1_700_000_000_000;
pub(super) const TICK_MS: i32 = 100;

/// A notification of a connection: kind, path, zxid.
pub(super) type Heard = (ConnectionId, EventKind, String, i64);

pub(super) struct Stage {
    pub(super) model: Model,
    pub(super) now_ms: u64,
    connections: u64,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::with(Config { tick_ms: TICK_MS, ..Config::default() })
    }

    pub(super) fn with(config: Config) -> Self {
        let stage = Self { model: Model::new(config, now(0)), now_ms: 0, connections: 0 };
        invariants::check(&stage.model);
        stage
    }

    pub(super) fn input(&mut self, connection: ConnectionId, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        self.model.handle(now(self.now_ms), connection, input, &mut out);
        invariants::check(&self.model);
        out
    }

    pub(super) fn tick(&mut self, now_ms: u64) -> Vec<Effect> {
        self.now_ms = now_ms;
        let mut out = Vec::new();
        self.model.tick(now(now_ms), &mut out);
        invariants::check(&self.model);
        out
    }

    pub(super) fn connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId(self.connections)
    }

    pub(super) fn hello(&mut self, request: ConnectRequest) -> (ConnectionId, Vec<Effect>) {
        let connection = self.connection();
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let effects = self.input(connection, Input::Connect { request, peer, password: [7; 16] });
        (connection, effects)
    }

    /// Opens a connection with a new session.
    pub(super) fn connect(&mut self) -> (ConnectionId, ConnectResponse) {
        let (connection, effects) = self.hello(new_session());
        match effects.as_slice() {
            [Effect::Connected(_, response)] => (connection, response.clone()),
            other => panic!("not a connect response: {other:?}"),
        }
    }

    /// Returns the notifications and the reply that a request causes.
    pub(super) fn request(&mut self, connection: ConnectionId, request: Request) -> (Vec<Heard>, Reply) {
        let mut effects = self.input(connection, Input::Request { xid: 1, request });
        let Some(Effect::Reply(to, reply)) = effects.pop() else { panic!("no reply") };
        assert_eq!(to, connection);
        (heard(effects), reply)
    }

    pub(super) fn ask(&mut self, connection: ConnectionId, request: Request) -> Result<Response, ErrorCode> {
        self.request(connection, request).1.result
    }

    pub(super) fn write(&mut self, connection: ConnectionId, op: Op) -> Result<Response, ErrorCode> {
        self.ask(connection, Request::Write(op))
    }

    pub(super) fn create(&mut self, connection: ConnectionId, path: &str) -> Result<Response, ErrorCode> {
        self.write(connection, create(path, CreateMode::Persistent))
    }

    pub(super) fn multi(&mut self, connection: ConnectionId, ops: Vec<Op>) -> Vec<OpResult> {
        match self.ask(connection, Request::Multi(ops)) {
            Ok(Response::Multi(results)) => results,
            other => panic!("not the reply to a multi: {other:?}"),
        }
    }

    pub(super) fn stat(&mut self, connection: ConnectionId, path: &str) -> Stat {
        match self.ask(connection, Request::Exists { path: path.to_owned(), watch: false }) {
            Ok(Response::Stat(stat)) => stat,
            other => panic!("{path}: {other:?}"),
        }
    }

    pub(super) fn exists(&mut self, connection: ConnectionId, path: &str) -> bool {
        self.ask(connection, Request::Exists { path: path.to_owned(), watch: false }).is_ok()
    }

    pub(super) fn children(&mut self, connection: ConnectionId, path: &str) -> Vec<String> {
        match self.ask(connection, Request::GetChildren { path: path.to_owned(), watch: false, stat: false })
        {
            Ok(Response::Names(names)) => names,
            other => panic!("{path}: {other:?}"),
        }
    }
}

pub(super) fn now(monotonic_ms: u64) -> Now {
    Now { wall_ms: WALL_MS + monotonic_ms.cast_signed(), monotonic_ms }
}

pub(super) fn new_session() -> ConnectRequest {
    ConnectRequest {
        last_zxid_seen: 0,
        timeout_ms: 1000,
        session_id: 0,
        password: vec![0; 16],
        read_only: Some(false),
    }
}

/// Returns the notifications; panics on any other effect.
pub(super) fn heard(effects: Vec<Effect>) -> Vec<Heard> {
    let mut heard = Vec::new();
    for effect in effects {
        match effect {
            Effect::Notify(hearers, event) => {
                heard.extend(hearers.into_iter().map(|by| (by, event.kind, event.path.clone(), event.zxid)));
            }
            other => panic!("not a notification: {other:?}"),
        }
    }
    heard
}

pub(super) fn world(permissions: i32) -> Acl {
    entry(permissions, "world", "anyone")
}

pub(super) fn entry(permissions: i32, scheme: &str, id: &str) -> Acl {
    Acl { permissions, id: Id { scheme: scheme.to_owned(), id: id.to_owned() } }
}

pub(super) fn create(path: &str, mode: CreateMode) -> Op {
    create_with(path, mode, vec![world(31)])
}

pub(super) fn create_with(path: &str, mode: CreateMode, acl: Vec<Acl>) -> Op {
    Op::Create { path: path.to_owned(), data: data("x"), acl, mode, stat: false }
}

pub(super) fn delete(path: &str) -> Op {
    Op::Delete { path: path.to_owned(), version: -1 }
}

pub(super) fn set(path: &str, text: &str, version: i32) -> Op {
    Op::SetData { path: path.to_owned(), data: data(text), version }
}

pub(super) fn check(path: &str, version: i32) -> Op {
    Op::Check { path: path.to_owned(), version }
}

pub(super) fn data(text: &str) -> Option<Arc<[u8]>> {
    Some(Arc::from(text.as_bytes()))
}
