//! The ZooKeeper server: the keeper's model, plus a record of its commits.
//!
//! A restart keeps all data: every request that it answered was durable.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bellwether_core::change::Noted;
use bellwether_core::name::ScheduleId;
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::Shard;
use bellwether_core::retention::Retention;
use bellwether_core::schedule::ScheduleRecord;
use bellwether_core::wire::{self, LAYOUT_VERSION, Layout};
use bellwether_keeper::model::{Config, ConnectionId, Effect, Input, Model, Now};
use bellwether_keeper::proto::{ConnectRequest, CreateMode, ErrorCode, Op, OpResult, Request, Response};
use bellwether_keeper::store::{Change, Snapshot};

use super::Up;
use super::ensemble::Step;
use crate::history::{EventKind, TxnOp};
use crate::host::context::WALL_MS;
use crate::zk::library::Conn;
use crate::zk::protocol;

pub(super) struct Server {
    config: Config,
    state: State,
}

enum State {
    Up(Box<Model>),
    Down(Box<Snapshot>),
}

/// The result of an input.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) effects: Vec<Effect>,
    pub(super) history: Vec<EventKind>,
    /// Events of the ensemble, with their times.
    pub(super) later: Vec<(u64, Step)>,
}

pub(super) fn config(tick_ms: u64) -> Config {
    Config { tick_ms: i32::try_from(tick_ms).expect("a tick is short"), ..Config::default() }
}

pub(super) fn now(now_us: u64) -> Now {
    let ms = now_us / 1_000;
    Now { wall_ms: WALL_MS + ms.cast_signed(), monotonic_ms: ms }
}

impl Server {
    pub(super) fn new(tick_ms: u64) -> Self {
        let config = config(tick_ms);
        let model = Model::new(config.clone(), now(0));
        Self { config, state: State::Up(Box::new(model)) }
    }

    /// Creates the namespace, like the first process that opens it.
    pub(super) fn lay_out(
        &mut self,
        retention_ms: Option<u64>,
        schedules: &[ScheduleRecord],
    ) -> Vec<EventKind> {
        let conn = Conn::MAX;
        let mut history = Vec::new();
        let mut take = |outcome: Outcome| history.extend(outcome.history);
        let hello = ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: 0,
            session_id: 0,
            password: vec![],
            read_only: None,
        };
        take(self.handle(0, conn, Up::Connect(hello, [0; 16])));
        let make = |path: String, data: Vec<u8>| bellwether_core::txn::Op::Create {
            path,
            data,
            lifetime: bellwether_core::txn::Lifetime::Persistent,
        };
        let empty = |path: String| make(path, Vec::new());
        let top = path::PARENTS.into_iter().chain([path::EPOCH, path::LEADING]).map(str::to_owned).map(empty);
        let buckets = Bucket::all()
            .flat_map(|bucket| [bucket.jobs(), bucket.lanes(), bucket.groups(), bucket.members()])
            .chain(SubBucket::all().map(SubBucket::path));
        let shards = Shard::all().map(path::ready_shard);
        let layout = make(path::LAYOUT.to_owned(), wire::encode(&Layout::new(LAYOUT_VERSION)));
        let retention = retention_ms.map(|kept_ms| {
            let kept = Duration::from_millis(kept_ms);
            let retention = Retention::default().succeeded(kept).cancelled(kept).dead(kept);
            make(path::RETENTION.to_owned(), wire::encode(&Noted::unchanged(retention)))
        });
        let schedules = schedules.iter().enumerate().map(|(at, record)| {
            let id = ScheduleId::new(format!("s{at}")).expect("a letter and digits");
            make(path::schedule(&id), wire::encode(record))
        });
        let parts = top.chain(buckets.chain(shards).map(empty)).chain(retention);
        let ops: Vec<_> = parts.chain(schedules).chain([layout]).collect();
        take(self.handle(0, conn, Up::Request(1, protocol::commit(&ops))));
        take(self.handle(0, conn, Up::Request(2, Request::CloseSession)));
        history
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    fn model(&mut self) -> Option<&mut Model> {
        match &mut self.state {
            State::Up(model) => Some(model),
            State::Down(_) => None,
        }
    }

    /// Handles a frame of a connection.
    pub(super) fn handle(&mut self, now_us: u64, conn: Conn, frame: Up) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(model) = self.model() else { return outcome };
        let id = ConnectionId(conn);
        let (input, asked) = match frame {
            Up::Connect(request, password) => {
                let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
                (Input::Connect { request, peer, password }, None)
            }
            Up::Request(xid, request) => (Input::Request { xid, request: request.clone() }, Some(request)),
            Up::Fin => (Input::Disconnected, None),
        };
        let session = model.session_of(id).unwrap_or_default();
        model.handle(now(now_us), id, input, &mut outcome.effects);
        let zxid = model.zxid();
        drop(model.take_changes());
        if let Some(request) = asked.filter(|_| session != 0) {
            let response = outcome.effects.iter().rev().find_map(|effect| match effect {
                Effect::Reply(_, reply) => Some(&reply.result),
                _ => None,
            });
            let event = response.and_then(|response| recorded(zxid, session, &request, response));
            outcome.history.extend(event);
        }
        outcome
    }

    /// Returns the session that a connection serves.
    pub(super) fn session_of(&self, conn: Conn) -> Option<i64> {
        match &self.state {
            State::Up(model) => model.session_of(ConnectionId(conn)),
            State::Down(_) => None,
        }
    }

    /// Applies a write of a live session, on the connection that serves it now. The reply is dropped.
    pub(super) fn late(&mut self, now_us: u64, session: i64, request: Request) -> Outcome {
        let conn = self.model().and_then(|model| {
            model.sessions().find(|view| view.id == session).and_then(|view| view.connection)
        });
        let Some(ConnectionId(conn)) = conn else { return Outcome::default() };
        let mut outcome = self.handle(now_us, conn, Up::Request(0, request));
        outcome.effects.retain(|effect| !matches!(effect, Effect::Reply(..)));
        outcome
    }

    /// Expires a session.
    pub(super) fn expire(&mut self, session: i64) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(model) = self.model() else { return outcome };
        let before = model.zxid();
        model.expire_session(session, &mut outcome.effects);
        drop(model.take_changes());
        let zxid = model.zxid();
        if zxid != before {
            outcome.history.push(EventKind::Txn { zxid, session, ops: vec![TxnOp::CloseSession] });
        }
        outcome
    }

    /// Advances the server's clock.
    pub(super) fn tick(&mut self, now_us: u64) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(model) = self.model() else { return outcome };
        let over: Vec<i64> =
            model.sessions().filter(|view| view.ends_at_ms <= now_us / 1_000).map(|view| view.id).collect();
        for session in over {
            let ended = self.expire(session);
            outcome.effects.extend(ended.effects);
            outcome.history.extend(ended.history);
        }
        let Some(model) = self.model() else { return outcome };
        let before = model.zxid();
        model.tick(now(now_us), &mut outcome.effects);
        let removed = model.take_changes().rows.into_iter().filter_map(|row| match row {
            Change::DeleteNode { path, czxid: _ } => Some(TxnOp::Delete { path: path.as_ref().to_owned() }),
            _ => None,
        });
        let removed = (before + 1..).zip(removed);
        outcome.history.extend(removed.map(|(zxid, op)| EventKind::Txn { zxid, session: 0, ops: vec![op] }));
        outcome
    }

    /// Returns when [`Server::tick`] has work to do, in microseconds.
    pub(super) fn next_tick_us(&self) -> Option<u64> {
        match &self.state {
            State::Up(model) => model.next_tick().map(|ms| ms * 1_000),
            State::Down(_) => None,
        }
    }

    /// Returns the server's data.
    pub(super) fn snapshot(&self) -> Snapshot {
        match &self.state {
            State::Up(model) => model.snapshot(),
            State::Down(snapshot) => (**snapshot).clone(),
        }
    }

    /// Stops the server.
    pub(super) fn kill(&mut self) {
        if let State::Up(model) = &self.state {
            self.state = State::Down(Box::new(model.snapshot()));
        }
    }

    /// Restarts the server.
    pub(super) fn start(&mut self, now_us: u64) {
        if let State::Down(snapshot) = &mut self.state {
            let model = Model::restore(self.config.clone(), std::mem::take(snapshot), now(now_us));
            self.state = State::Up(Box::new(model.expect("a model can be restored from its own snapshot")));
        }
    }
}

/// Converts a request and its reply to the event of its transaction, if it is one.
pub(super) fn recorded(
    zxid: i64,
    session: i64,
    request: &Request,
    reply: &Result<Response, ErrorCode>,
) -> Option<EventKind> {
    let (ops, results) = match (request, reply) {
        (Request::Multi(ops), Ok(Response::Multi(results))) => (ops.as_slice(), results.clone()),
        (Request::Write(op), Ok(response)) => (std::slice::from_ref(op), vec![single(op, response)]),
        (Request::Write(op), Err(code)) => (std::slice::from_ref(op), vec![OpResult::Error(code.number())]),
        (Request::CloseSession, _) => {
            return Some(EventKind::Txn { zxid, session, ops: vec![TxnOp::CloseSession] });
        }
        (_, _) => return None,
    };
    Some(carried_out(zxid, session, ops, &results))
}

fn single(op: &Op, response: &Response) -> OpResult {
    match (op, response) {
        (Op::Create { .. }, Response::Path(path)) => OpResult::Create { path: path.clone() },
        (Op::SetData { .. }, Response::Stat(stat)) => OpResult::SetData(*stat),
        (Op::Check { .. }, _) => OpResult::Check,
        (_, _) => OpResult::Delete,
    }
}

/// Converts a request and its results to the committed transaction, or to the reason of its rejection.
fn carried_out(zxid: i64, session: i64, ops: &[Op], results: &[OpResult]) -> EventKind {
    let mut done = Vec::with_capacity(ops.len());
    for (at, (op, result)) in ops.iter().zip(results).enumerate() {
        if let OpResult::Error(code) = result {
            if *code == 0 {
                continue;
            }
            let path = match op {
                Op::Create { path, .. }
                | Op::Delete { path, .. }
                | Op::SetData { path, .. }
                | Op::Check { path, .. } => path.as_str(),
                Op::Unknown { .. } => "",
            };
            let what = match op {
                Op::Create { .. } => "create",
                Op::Delete { .. } => "delete",
                Op::SetData { .. } => "set",
                Op::Check { .. } => "check",
                Op::Unknown { .. } => "unknown",
            };
            let why = format!("operation {at}, {what} {path}: code {code}");
            return EventKind::Refused { zxid, session, why };
        }
        done.extend(match (op, result) {
            (Op::Create { data, mode, .. }, OpResult::Create { path } | OpResult::Create2 { path, .. }) => {
                let data = data.as_deref().unwrap_or_default().to_vec().into();
                let ephemeral = matches!(mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential);
                Some(TxnOp::Create { path: path.clone(), data, ephemeral })
            }
            (Op::SetData { path, data, .. }, OpResult::SetData(stat)) => {
                let data = data.as_deref().unwrap_or_default().to_vec().into();
                Some(TxnOp::Set { path: path.clone(), data, version: stat.version })
            }
            (Op::Delete { path, .. }, _) => Some(TxnOp::Delete { path: path.clone() }),
            (Op::Check { path, version }, _) => Some(TxnOp::Check { path: path.clone(), version: *version }),
            (_, _) => None,
        });
    }
    EventKind::Txn { zxid, session, ops: done }
}
