//! A ZooKeeper for tests: the keeper's model, driven with core's operations.
//!
//! It applies each request immediately. A test decides which requests arrive and which answers get lost.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use bellwether_keeper::model::{Config, ConnectionId, Effect, Input, Model, Now};
pub(crate) use bellwether_keeper::proto::CreateMode;
use bellwether_keeper::proto::{
    Acl, AddWatchMode, ConnectRequest, ErrorCode, Id, Op as KeeperOp, OpResult, Request, Response,
};
use bellwether_keeper::store::{Data, NodeRow};

use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::time::Millis;
use crate::txn::{Lifetime, Op};

#[derive(Debug)]
pub(crate) struct Znode {
    pub(crate) data: Vec<u8>,
    pub(crate) version: i32,
    /// The session of an ephemeral; 0 otherwise.
    pub(crate) owner: i64,
    /// The transaction that created it.
    pub(crate) created: i64,
    /// The transaction that last wrote its data.
    pub(crate) written: i64,
}

pub(crate) struct ZooKeeper {
    model: Model,
    now: Now,
    connections: u64,
    /// A session that never expires, for requests that are not about sessions. It watches all znodes.
    pub(crate) operator: i64,
    /// The paths of znodes that were created, written or deleted. Tests take them out.
    pub(crate) changed: Vec<String>,
    /// The znodes of the model, read once after each change.
    znodes: OnceCell<BTreeMap<String, Znode>>,
}

impl ZooKeeper {
    pub(crate) fn new() -> Self {
        let now = Now { wall_ms: 0, monotonic_ms: 0 };
        // Any timeout is granted, and a session ends to the millisecond.
        let (min_session_timeout_ms, max_session_timeout_ms) = (Some(1), Some(i32::MAX));
        let config =
            Config { tick_ms: 1, min_session_timeout_ms, max_session_timeout_ms, ..Config::default() };
        let model = Model::new(config, now);
        let (changed, znodes) = (Vec::new(), OnceCell::new());
        let mut new = Self { model, now, connections: 0, operator: 0, changed, znodes };
        new.operator = new.session(Duration::from_millis(i32::MAX.unsigned_abs().into()));
        let watch = Request::AddWatch { path: "/".to_owned(), mode: AddWatchMode::PersistentRecursive };
        new.ask(new.operator, watch).unwrap();
        new
    }

    /// Begins a session. It expires as early as ZooKeeper may expire it: after `timeout` without a request.
    pub(crate) fn session(&mut self, timeout: Duration) -> i64 {
        self.connections += 1;
        let connection = ConnectionId(self.connections);
        // The model ends a session at the first tick after its timeout.
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap() - 1;
        let (password, read_only) = (vec![0; 16], Some(false));
        let request = ConnectRequest { last_zxid_seen: 0, timeout_ms, session_id: 0, password, read_only };
        let input = Input::Connect { request, peer: Ipv4Addr::LOCALHOST.into(), password: [7; 16] };
        self.run(|model, now, effects| model.handle(now, connection, input, effects));
        self.model.session_of(connection).unwrap()
    }

    pub(crate) fn is_alive(&self, session: i64) -> bool {
        self.model.sessions().any(|alive| alive.id == session)
    }

    /// The session's client shows that it is alive. This does not revive an expired session.
    pub(crate) fn ping(&mut self, session: i64) {
        if self.is_alive(session) {
            self.ask(session, Request::Ping).unwrap();
        }
    }

    pub(crate) fn end(&mut self, session: i64) {
        self.run(|model, _, effects| model.expire_session(session, effects));
    }

    /// Sets the clock and expires sessions.
    pub(crate) fn advance(&mut self, now: Millis) {
        self.now = Now { wall_ms: now.0.cast_signed(), monotonic_ms: now.0 };
        self.run(|model, now, effects| model.tick(now, effects));
    }

    /// Commits one transaction, with its missing containers.
    pub(crate) fn commit(&mut self, session: i64, ops: &[Op]) -> Outcome<()> {
        let created = ops.iter().filter_map(|op| match op {
            Op::Create { path, .. } => Some(path),
            Op::Check { .. } | Op::Set { .. } | Op::Delete { .. } => None,
        });
        let containers =
            |path| std::iter::successors(path::container_of(path), |path| path::container_of(path));
        let parents = created.flat_map(|path| containers(path));
        let absent = parents.filter(|parent| self.get(parent).is_none()).collect::<BTreeSet<_>>();
        let create = |path: &str| Op::Create {
            path: path.to_owned(),
            data: Vec::new(),
            lifetime: Lifetime::Container,
        };
        let creates = absent.into_iter().map(create).collect::<Vec<_>>();
        match self.multi(session, &[&creates, ops].concat()) {
            Outcome::Rejected(Rejection { at, reason }) => {
                let at = at.checked_sub(creates.len()).expect("absent containers can be created");
                Outcome::Rejected(Rejection { at, reason })
            }
            outcome => outcome,
        }
    }

    /// Commits one multi.
    pub(crate) fn multi(&mut self, session: i64, ops: &[Op]) -> Outcome<()> {
        let answer = self.ask(session, Request::Multi(ops.iter().map(keeper_op).collect()));
        let Ok(Response::Multi(results)) = answer else { panic!("a multi was answered by {answer:?}") };
        // In a failed multi, the operations before the one that failed have the number 0.
        let failed = results.iter().enumerate().find_map(|(at, result)| match result {
            OpResult::Error(number) if *number != 0 => Some((at, *number)),
            _ => None,
        });
        failed.map_or(Outcome::Applied(()), |(at, number)| rejected(at, number))
    }

    /// Creates one znode. Some modes have no [`Op`].
    pub(crate) fn create(&mut self, session: i64, path: &str, data: &[u8], mode: CreateMode) -> Outcome<()> {
        let op = create(path.to_owned(), data.to_vec(), mode);
        let answer = self.ask(session, Request::Write(op));
        answer.map_or_else(|code| rejected(0, code.number()), |_| Outcome::Applied(()))
    }

    /// All znodes by their paths, without the server's own.
    pub(crate) fn znodes(&self) -> &BTreeMap<String, Znode> {
        self.znodes.get_or_init(|| {
            let nodes = self.model.snapshot().nodes.into_iter();
            let ours = nodes.filter(|(path, ..)| path != "/" && !path.starts_with("/zookeeper"));
            let znode = |(path, row, data): (_, NodeRow, Data)| {
                let data = data.unwrap_or_default().to_vec();
                let NodeRow { version, ephemeral_owner: owner, czxid: created, mzxid: written, .. } = row;
                (path, Znode { data, version, owner, created, written })
            };
            ours.map(znode).collect()
        })
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Znode> {
        self.znodes().get(path)
    }

    /// The names of the children of `parent`; none if it is absent.
    pub(crate) fn children(&self, parent: &str) -> Vec<String> {
        let prefix = format!("{parent}/");
        let names = self.znodes().keys().filter_map(|path| path.strip_prefix(&prefix));
        names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    /// For set-up: creates a znode with this data and version, and its missing parents. It replaces an existing znode.
    pub(crate) fn put(&mut self, path: &str, data: Vec<u8>, version: i32) {
        self.remove(path);
        self.make_parents(path);
        let (path, lifetime) = (path.to_owned(), Lifetime::Persistent);
        let set = Op::Set { path: path.clone(), data: data.clone(), version: -1 };
        let sets = std::iter::repeat_n(set, version.unsigned_abs() as usize);
        let ops: Vec<_> = std::iter::once(Op::Create { path, data, lifetime }).chain(sets).collect();
        assert_eq!(self.commit(self.operator, &ops), Outcome::Applied(()));
    }

    /// For set-up: creates the missing znodes above `path`, such as its bucket.
    pub(crate) fn make_parents(&mut self, path: &str) {
        for (end, _) in path.match_indices('/').skip(1) {
            if self.get(&path[..end]).is_none() {
                self.put(&path[..end], Vec::new(), 0);
            }
        }
    }

    /// Deletes a childless znode, if it is there.
    pub(crate) fn remove(&mut self, path: &str) {
        if self.get(path).is_some() {
            let delete = Op::Delete { path: path.to_owned(), version: None };
            assert_eq!(self.commit(self.operator, &[delete]), Outcome::Applied(()));
        }
    }

    fn ask(&mut self, session: i64, request: Request) -> Result<Response, ErrorCode> {
        let alive = self.model.sessions().find(|alive| alive.id == session).expect("the session is alive");
        let (connection, input) = (alive.connection.unwrap(), Input::Request { xid: 1, request });
        let last = self.run(|model, now, effects| model.handle(now, connection, input, effects));
        let Some(Effect::Reply(_, reply)) = last else { panic!("no reply but {last:?}") };
        reply.result
    }

    /// Notes what a step of the model changed, and returns its last effect.
    fn run(&mut self, step: impl FnOnce(&mut Model, Now, &mut Vec<Effect>)) -> Option<Effect> {
        let mut effects = Vec::new();
        step(&mut self.model, self.now, &mut effects);
        for effect in &effects {
            if let Effect::Notify(_, event) = effect {
                self.changed.push(event.path.clone());
                self.znodes.take();
            }
        }
        effects.pop()
    }
}

fn keeper_op(op: &Op) -> KeeperOp {
    match op.clone() {
        Op::Check { path, version } => KeeperOp::Check { path, version },
        Op::Create { path, data, lifetime: Lifetime::Persistent } => {
            create(path, data, CreateMode::Persistent)
        }
        Op::Create { path, data, lifetime: Lifetime::Ephemeral } => create(path, data, CreateMode::Ephemeral),
        Op::Create { path, data, lifetime: Lifetime::Container } => create(path, data, CreateMode::Container),
        Op::Set { path, data, version } => KeeperOp::SetData { path, data: Some(data.into()), version },
        Op::Delete { path, version } => KeeperOp::Delete { path, version: version.unwrap_or(-1) },
    }
}

fn create(path: String, data: Vec<u8>, mode: CreateMode) -> KeeperOp {
    let id = Id { scheme: "world".to_owned(), id: "anyone".to_owned() };
    let acl = vec![Acl { permissions: 31, id }];
    KeeperOp::Create { path, data: Some(data.into()), acl, mode, stat: false }
}

fn rejected(at: usize, number: i32) -> Outcome<()> {
    let known = [
        (ErrorCode::NoNode, Reason::NoNode),
        (ErrorCode::NodeExists, Reason::NodeExists),
        (ErrorCode::BadVersion, Reason::BadVersion),
        (ErrorCode::NotEmpty, Reason::NotEmpty),
    ];
    let reason = known.into_iter().find_map(|(code, reason)| (code.number() == number).then_some(reason));
    Outcome::Rejected(Rejection { at, reason: reason.unwrap_or_else(|| panic!("code {number}")) })
}
