//! Fuzz targets: functions that must accept any bytes without a panic, with their other guarantees.
//!
//! They have two drivers: libFuzzer (`crates/keeper/fuzz`), and `tests/fuzz`, which mutates the corpus in CI.

use std::net::{IpAddr, Ipv4Addr};

use bellwether_keeper::model::{Compat, Config, ConnectionId, Effect, Input, Model, Now};
use bellwether_keeper::proto::client::{encode_connect, encode_request};
use bellwether_keeper::proto::{
    ConnectRequest, CreateMode, Op, Reply, Request, Response, decode_connect, decode_request,
    encode_connected, encode_event, encode_reply,
};
use bellwether_keeper::store::{Memory, Store as _};

/// Fuzzes the first frame. A decoded frame is unchanged after encoding and decoding it again.
pub(crate) fn connect(bytes: &[u8]) {
    if let Ok(request) = decode_connect(bytes) {
        let mut frame = Vec::new();
        encode_connect(&request, &mut frame);
        assert_eq!(decode_connect(&frame[4..]), Ok(request));
    }
}

/// Fuzzes later frames, in the same way.
pub(crate) fn request(bytes: &[u8]) {
    let compat = compat(bytes);
    if let Ok((xid, request)) = decode_request(bytes, compat)
        && is_spelled_in_one_way(&request)
    {
        let mut frame = Vec::new();
        encode_request(xid, &request, &mut frame);
        assert_eq!(decode_request(&frame[4..], compat), Ok((xid, request)));
    }
}

/// Returns whether encoding preserves the request. A rejected request lacks the bytes that caused the rejection.
fn is_spelled_in_one_way(request: &Request) -> bool {
    use CreateMode::{Ttl, TtlSequential};
    // A TTL without a stat comes from a create whose format has no TTL.
    let refused = |op: &Op| {
        matches!(op, Op::Unknown { .. } | Op::Create { mode: Ttl(_) | TtlSequential(_), stat: false, .. })
    };
    match request {
        Request::Malformed(_) | Request::Unsupported { .. } => false,
        Request::Write(op) => !refused(op),
        Request::Multi(ops) => !ops.iter().any(refused),
        _others => true,
    }
}

/// Connections of a conversation.
const CONNECTIONS: u8 = 4;
/// Limit of frames: more of them reach no new states, and would test the allocator.
const MOST_FRAMES: usize = 200;
/// The digest of `admin:x`, which can read every znode.
const SUPER: &str = "admin:BCVaKdYdspv8rC2EU9HCAdHDkIA=";

/// Fuzzes a conversation with the model. Each frame has a header: one byte for the connection and two for the length.
/// An empty frame opens a new connection.
///
/// Checked: no panic, the zxid does not decrease, and the changes handed to the store equal the model.
pub(crate) fn model(bytes: &[u8]) {
    let config = Config { super_digest: Some(SUPER.to_owned()), compat: compat(bytes), ..Config::default() };
    let mut play = Play::new(config);
    let mut rest = bytes;
    for _ in 0..MOST_FRAMES {
        let Some((&[who, high, low], behind)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
        let (frame, behind) = behind.split_at(length);
        rest = behind;
        play.frame(who % CONNECTIONS, frame);
    }
    play.compare();
}

fn compat(bytes: &[u8]) -> Compat {
    match bytes.first() {
        Some(first) if first & 0x80 != 0 => Compat::V3_8_0,
        Some(_) | None => Compat::V3_9,
    }
}

struct Play {
    config: Config,
    model: Model,
    store: Memory,
    connections: [Option<ConnectionId>; CONNECTIONS as usize],
    next: u64,
    now_ms: u64,
}

impl Play {
    fn new(config: Config) -> Self {
        let model = Model::new(config.clone(), now(0));
        let mut play =
            Self { config, model, store: Memory::new(), connections: [None; 4], next: 0, now_ms: 0 };
        play.commit();
        play
    }

    fn frame(&mut self, who: u8, frame: &[u8]) {
        self.now_ms += 7;
        let slot = usize::from(who);
        let before = self.model.zxid();
        let effects = match self.connections[slot] {
            Some(connection) if !frame.is_empty() => match decode_request(frame, self.config.compat) {
                Ok((xid, request)) => self.input(connection, Input::Request { xid, request }),
                Err(_no_header) => {
                    self.connections[slot] = None;
                    self.input(connection, Input::Disconnected)
                }
            },
            Some(_) | None => {
                let request = decode_connect(frame).unwrap_or_else(|_| newcomer());
                let connection = ConnectionId(self.next);
                self.next += 1;
                self.connections[slot] = Some(connection);
                self.input(connection, hello(request))
            }
        };
        for effect in &effects {
            encode(effect);
            if let Effect::Close(gone) = effect {
                for slot in &mut self.connections {
                    if *slot == Some(*gone) {
                        *slot = None;
                    }
                }
            }
        }
        assert!(self.model.zxid() >= before, "the zxid decreased");
        self.commit();
    }

    fn input(&mut self, connection: ConnectionId, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        self.model.handle(now(self.now_ms), connection, input, &mut out);
        self.model.tick(now(self.now_ms), &mut out);
        out
    }

    fn commit(&mut self) {
        self.store.commit(&self.model.take_changes()).expect("a commit to memory cannot fail");
    }

    /// Checks that a model restored from the store has the same tree.
    fn compare(mut self) {
        let snapshot = self.store.load().expect("a load from memory cannot fail");
        let restored = Model::restore(self.config.clone(), snapshot, now(self.now_ms));
        let mut restored = restored.expect("the rows of a model are a valid tree");
        let at = now(self.now_ms);
        let (one, other) = (Viewer::of(&mut self.model, at), Viewer::of(&mut restored, at));
        assert_eq!(one.see("/"), other.see("/"), "the store differs from the model");
    }
}

/// A client that can read everything.
struct Viewer<'m> {
    model: std::cell::RefCell<&'m mut Model>,
    now: Now,
}

const VIEWER: ConnectionId = ConnectionId(u64::MAX);

impl<'m> Viewer<'m> {
    fn of(model: &'m mut Model, now: Now) -> Self {
        let mut out = Vec::new();
        model.handle(now, VIEWER, hello(newcomer()), &mut out);
        let viewer = Self { model: std::cell::RefCell::new(model), now };
        viewer.ask(Request::Auth { scheme: "digest".to_owned(), auth: b"admin:x".to_vec() });
        viewer
    }

    fn ask(&self, request: Request) -> Option<Reply> {
        let mut out = Vec::new();
        self.model.borrow_mut().handle(self.now, VIEWER, Input::Request { xid: 1, request }, &mut out);
        out.into_iter().find_map(|effect| match effect {
            Effect::Reply(_, reply) => Some(reply),
            Effect::Connected(..) | Effect::Notify(..) | Effect::Close(_) => None,
        })
    }

    /// Returns the complete state of a znode and its descendants.
    fn see(&self, path: &str) -> Vec<(String, Vec<Option<Reply>>)> {
        let own = || path.to_owned();
        let data = self.ask(Request::GetData { path: own(), watch: false });
        let acl = self.ask(Request::GetAcl { path: own() });
        let list = self.ask(Request::GetChildren { path: own(), watch: false, stat: false });
        let names = match &list {
            Some(Reply { result: Ok(Response::Names(names)), .. }) => names.clone(),
            other => panic!("no list of children of {path:?}: {other:?}"),
        };
        let mut seen = vec![(own(), vec![data, acl, list])];
        for name in names {
            let above = if path == "/" { "" } else { path };
            seen.extend(self.see(&format!("{above}/{name}")));
        }
        seen
    }
}

fn newcomer() -> ConnectRequest {
    ConnectRequest {
        last_zxid_seen: 0,
        timeout_ms: 30_000,
        session_id: 0,
        password: vec![0; 16],
        read_only: Some(false),
    }
}

fn hello(request: ConnectRequest) -> Input {
    Input::Connect { request, peer: IpAddr::V4(Ipv4Addr::LOCALHOST), password: [9; 16] }
}

fn now(ms: u64) -> Now {
    Now { wall_ms: 1_700_000_000_000 + ms.cast_signed(), monotonic_ms: ms }
}

/// Checks that every effect can be encoded.
fn encode(effect: &Effect) {
    let mut out = Vec::new();
    match effect {
        Effect::Connected(_, response) => encode_connected(response, &mut out),
        Effect::Reply(_, reply) => encode_reply(reply, &mut out),
        Effect::Notify(_, event) => encode_event(event, &mut out),
        Effect::Close(_) => {}
    }
}
