//! A member: serves clients from its own state, and applies the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bellwether_keeper::model::{ConnectionId, Effect, Input, Model};
use bellwether_keeper::proto::{ConnectRequest, ConnectResponse, ErrorCode, Reply, Request, Response};

use super::super::Up;
use super::super::server::{self, Outcome};
use super::link::{Link, ToLeader, ToMember};
use super::{Ensemble, Entry, Origin, What, through_leader};
use crate::zk::library::Conn;

pub(super) struct Member {
    pub(super) role: Role,
    pub(super) model: Model,
    /// Number of entries of the log that its state contains.
    pub(super) applied: usize,
    /// Number of entries of the log on its disk.
    pub(super) logged: usize,
    served: BTreeMap<Conn, Served>,
    /// Sessions that it has heard of since its last reply to a ping.
    touched: BTreeSet<i64>,
    /// When it last heard from the leader.
    pub(super) heard_us: u64,
    pub(super) link: Link,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Down,
    /// Without a leader: serves no client.
    Looking,
    Leading,
    /// Follows the leader of this term, which may have gone.
    Following(u64),
}

/// A connection of a client.
#[derive(Debug, Default)]
struct Served {
    /// The request to continue a session, until the leader has answered.
    hello: Option<ConnectRequest>,
    /// Requests that are not answered yet. The first one waits for the leader.
    waiting: VecDeque<(i32, Request)>,
}

impl Member {
    pub(super) fn new(model: Model) -> Self {
        Self {
            role: Role::Looking,
            model,
            applied: 0,
            logged: 0,
            served: BTreeMap::new(),
            touched: BTreeSet::new(),
            heard_us: 0,
            link: Link::default(),
        }
    }

    pub(super) fn is_serving(&self) -> bool {
        match self.role {
            Role::Leading | Role::Following(_) => true,
            Role::Down | Role::Looking => false,
        }
    }

    pub(super) fn session_of(&self, conn: Conn) -> Option<i64> {
        self.model.session_of(ConnectionId(conn)).filter(|_| self.served.contains_key(&conn))
    }

    /// Answers the requests in front that do not wait for the leader.
    fn answer(&mut self, now_us: u64, conn: Conn, out: &mut Vec<Effect>) {
        let Some(served) = self.served.get_mut(&conn) else { return };
        while served.waiting.front().is_some_and(|(_, request)| !through_leader(request)) {
            let Some((xid, request)) = served.waiting.pop_front() else { return };
            let input = Input::Request { xid, request };
            self.model.handle(server::now(now_us), ConnectionId(conn), input, out);
        }
    }

    /// Replies to the request in front.
    fn reply(
        &mut self,
        now_us: u64,
        Origin { conn, xid, .. }: Origin,
        result: Result<Response, ErrorCode>,
        out: &mut Vec<Effect>,
    ) {
        let Some(served) = self.served.get_mut(&conn) else { return };
        let asked = served.waiting.pop_front().expect("the leader answers a request that waits");
        assert_eq!(asked.0, xid, "the leader answers in the order of the requests");
        out.push(Effect::Reply(ConnectionId(conn), Reply { xid, zxid: self.model.zxid(), result }));
        self.answer(now_us, conn, out);
    }
}

impl Ensemble {
    /// Handles a frame of a client.
    pub(in super::super) fn handle(&mut self, now_us: u64, at: usize, conn: Conn, frame: Up) -> Outcome {
        self.now_us = now_us;
        match frame {
            Up::Connect(request, password) => self.connect(at, conn, request, password),
            Up::Request(xid, request) => self.request(at, conn, xid, request),
            Up::Fin => {
                let member = &mut self.members[at];
                member.served.remove(&conn);
                let (now, id) = (server::now(now_us), ConnectionId(conn));
                member.model.handle(now, id, Input::Disconnected, &mut self.out.effects);
            }
        }
        self.done()
    }

    fn connect(&mut self, at: usize, conn: Conn, request: ConnectRequest, password: [u8; 16]) {
        let member = &mut self.members[at];
        // The client has seen newer transactions than this member.
        let is_behind = request.last_zxid_seen > member.model.zxid();
        if !member.is_serving() || is_behind {
            return self.out.effects.push(Effect::Close(ConnectionId(conn)));
        }
        let mut served = Served::default();
        if request.session_id != 0 {
            let session = request.session_id;
            served.hello = Some(request);
            member.served.insert(conn, served);
            return self.up(at, ToLeader::Validate(session, conn));
        }
        member.served.insert(conn, served);
        let (shortest, longest) = self.config.session_bounds_ms();
        let timeout_ms = request.timeout_ms.max(shortest).min(longest);
        self.next_session += 1;
        let what = What::Begin { timeout_ms, password: password.to_vec() };
        let origin = Some(Origin { member: at, conn, xid: 0 });
        self.up(at, ToLeader::Write(Entry { session: self.next_session, what, origin, at_us: self.now_us }));
    }

    fn request(&mut self, at: usize, conn: Conn, xid: i32, request: Request) {
        let Some(session) = self.members[at].session_of(conn) else { return };
        let origin = Origin { member: at, conn, xid };
        if self.leading() == Some(at) {
            self.touch(session);
        } else {
            self.members[at].touched.insert(session);
        }
        let message = match &request {
            read if !through_leader(read) => None,
            Request::Sync { .. } => Some(ToLeader::Sync(session, origin)),
            Request::CloseSession => Some(ToLeader::End(session, origin)),
            write => {
                let what = What::Write(write.clone());
                Some(ToLeader::Write(Entry { session, what, origin: Some(origin), at_us: self.now_us }))
            }
        };
        if let Some(served) = self.members[at].served.get_mut(&conn) {
            served.waiting.push_back((xid, request));
        }
        match message {
            Some(message) => self.up(at, message),
            None => self.members[at].answer(self.now_us, conn, &mut self.out.effects),
        }
    }

    pub(super) fn at_member(&mut self, at: usize, message: ToMember) {
        self.members[at].heard_us = self.now_us;
        match message {
            ToMember::Propose(length) => {
                self.members[at].logged = length;
                self.up(at, ToLeader::Ack(length));
            }
            ToMember::Commit(committed) => self.apply_to(at, committed),
            ToMember::Synced(origin) => {
                let (member, out) = (&mut self.members[at], &mut self.out.effects);
                member.reply(self.now_us, origin, Ok(Response::Synced("/".to_owned())), out);
            }
            ToMember::Validated(conn, alive) => self.validated(at, conn, alive),
            ToMember::Moved(conn) => self.drop_client(at, conn),
            ToMember::Ping => {
                let touched = std::mem::take(&mut self.members[at].touched);
                self.up(at, ToLeader::Pong(touched.into_iter().collect()));
            }
        }
    }

    fn validated(&mut self, at: usize, conn: Conn, alive: bool) {
        let (member, out) = (&mut self.members[at], &mut self.out.effects);
        let Some(hello) = member.served.get_mut(&conn).and_then(|served| served.hello.take()) else { return };
        let id = ConnectionId(conn);
        if !alive {
            let over = ConnectResponse {
                timeout_ms: 0,
                session_id: 0,
                password: vec![0; 16],
                read_only: Some(false),
            };
            out.push(Effect::Connected(id, over));
        } else if member.model.serve_session(id, hello.session_id, &hello.password, out) {
            return;
        }
        // Also closed if the member has not applied the start of the session yet. The client tries again.
        member.served.remove(&conn);
        out.push(Effect::Close(id));
    }

    /// Applies the log up to there, and replies to the clients that asked for the entries.
    pub(super) fn apply_to(&mut self, at: usize, committed: usize) {
        let (now_us, member, out) = (self.now_us, &mut self.members[at], &mut self.out.effects);
        for Entry { session, what, origin, at_us } in
            self.log.get(member.applied..committed).unwrap_or_default()
        {
            let (session, now) = (*session, server::now(*at_us));
            let origin =
                origin.filter(|origin| origin.member == at && member.served.contains_key(&origin.conn));
            match what {
                What::Begin { timeout_ms, password } => {
                    member.model.begin_session(now, session, *timeout_ms, password.clone());
                    if let Some(Origin { conn, .. }) = origin {
                        member.model.serve_session(ConnectionId(conn), session, password, out);
                    }
                }
                What::Write(request) => {
                    let result = member.model.apply(now, session, request, out);
                    if let Some(origin) = origin {
                        member.reply(now_us, origin, result, out);
                    }
                }
                What::End => {
                    let served = member.model.sessions().find(|view| view.id == session);
                    let conn = served.and_then(|view| view.connection);
                    let first = out.len();
                    member.model.expire_session(session, out);
                    if let Some(origin) = origin {
                        // The reply precedes the end of the connection.
                        let (closes, rest): (Vec<_>, Vec<_>) =
                            out.drain(first..).partition(|effect| matches!(effect, Effect::Close(_)));
                        out.extend(rest);
                        member.reply(now_us, origin, Ok(Response::Empty), out);
                        out.extend(closes);
                    }
                    if let Some(ConnectionId(conn)) = conn {
                        member.served.remove(&conn);
                    }
                }
                What::Clean => member.model.remove_useless(now, out),
            }
        }
        member.applied = committed.max(member.applied);
        drop(member.model.take_changes());
    }

    /// Closes a connection of a member.
    fn drop_client(&mut self, at: usize, conn: Conn) {
        let (now, member, out) = (server::now(self.now_us), &mut self.members[at], &mut self.out.effects);
        if member.served.remove(&conn).is_some() {
            member.model.handle(now, ConnectionId(conn), Input::Disconnected, out);
            out.push(Effect::Close(ConnectionId(conn)));
        }
    }

    /// Closes every connection of a member.
    pub(super) fn drop_clients(&mut self, at: usize) {
        let conns = self.members[at].served.keys().copied().collect::<Vec<_>>();
        conns.into_iter().for_each(|conn| self.drop_client(at, conn));
        self.members[at].touched.clear();
    }
}
