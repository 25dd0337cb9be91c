//! The client library's handling of connections, sessions and requests.
//!
//! | event | when |
//! | --- | --- |
//! | attempt to create a session | once, on request of the session supervisor |
//! | attempt to reconnect | shortly after a lost connection, and again after a failed attempt |
//! | attempt times out | after 0.4 session timeouts |
//! | connection is considered dead | 0.4 session timeouts after a request without a reply |
//! | session is considered expired | when the server reports it, or 1.4 to 1.8 timeouts after the last received frame |
//!
//! The session supervisor (`supervisor`) decides what follows from a state of the session.

use std::time::Duration;

use bellwether_actors::session::{Failure, Made, SessionMsg};
use bellwether_core::clock::Reading;
use bellwether_core::failover::Failover;
use bellwether_core::time::Millis;
use bellwether_keeper::proto::{ConnectRequest, ConnectResponse, Request};

use super::supervisor::Followed;
use super::{Down, Incoming, Peer, Up, World};
use crate::host::{Msg, Route, session};
use crate::zk::Zk;
use crate::zk::library::{Changed, Conn, Heard, Library, Part, State, Then};
use crate::zk::protocol::{self, Answer};

/// The connection attempts of one process.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    number: u64,
    /// The attempt in progress: its connection and when it started.
    pending: Option<(Conn, u64)>,
    /// Whether a new session's namespace is being opened.
    opening: bool,
    /// Consecutive failed attempts to reconnect.
    failures: u32,
    /// The session whose states the session supervisor receives.
    pub(super) followed: Option<Followed>,
}

impl World {
    fn timeout_us(&self) -> u64 {
        self.plan.session_timeout_ms * 1_000
    }

    pub(super) fn attempt_in(&mut self, at: usize, wait_us: u64) {
        let state = &mut self.peers[at].attempts;
        state.number += 1;
        let number = state.number;
        self.put_peer(self.now_us + wait_us, at, Incoming::Attempt(number));
    }

    /// An attempt has failed.
    fn attempt_failed(&mut self, at: usize) {
        match self.peers[at].library.state {
            State::Away => {
                let failure = Failure::Transient("no session".to_owned());
                self.report_session(at, |life| session::to(life, SessionMsg::Made(Err(failure))));
            }
            State::Down | State::Up(_) => self.attempt_later(at),
        }
    }

    fn attempt_later(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.attempts.failures = (peer.attempts.failures + 1).min(5);
        let most = 100_000u64 << peer.attempts.failures;
        let wait = peer.rng.u64(20_000..most);
        self.attempt_in(at, wait);
    }

    pub(super) fn attempt(&mut self, at: usize, number: u64) {
        let (now_us, peer) = (self.now_us, &self.peers[at]);
        if peer.attempts.number != number || matches!(peer.library.state, State::Up(_)) {
            return;
        }
        let refused = now_us < peer.trouble.refused_until_us;
        let member = self.servers.pick(&mut self.peers[at].rng).filter(|_| !refused);
        let Some(member) = member else { return self.attempt_failed(at) };
        let conn = self.open(at, member);
        let timeout_ms = i32::try_from(self.plan.session_timeout_ms).expect("minutes at most");
        let mut password = [0; 16];
        let peer = &mut self.peers[at];
        peer.rng.fill(&mut password);
        peer.attempts.pending = Some((conn, now_us));
        let library = &peer.library;
        let known = library.state == State::Down;
        let request = ConnectRequest {
            last_zxid_seen: if known { library.last_zxid } else { 0 },
            timeout_ms,
            session_id: if known { library.view.session } else { 0 },
            password: if known { library.password.clone() } else { vec![0; 16] },
            read_only: Some(false),
        };
        self.send_up(conn, Up::Connect(request, password));
        self.put_peer(now_us + self.timeout_us() * 2 / 5, at, Incoming::AttemptOver(number));
    }

    pub(super) fn attempt_over(&mut self, at: usize, number: u64) {
        let state = &mut self.peers[at].attempts;
        if state.number == number
            && let Some((conn, _)) = state.pending.take()
        {
            self.close(conn);
            self.attempt_failed(at);
        }
    }

    pub(super) fn frame_down(&mut self, at: usize, conn: Conn, frame: Down) {
        let state = &mut self.peers[at].attempts;
        if let Some((_, sent_us)) = state.pending.take_if(|(pending, _)| *pending == conn) {
            return match frame {
                Down::Connected(response) => self.connected(at, conn, sent_us, &response),
                Down::Fin | Down::Reply(_) | Down::Event(_) => {
                    self.close(conn);
                    self.attempt_failed(at);
                }
            };
        }
        let library = &mut self.peers[at].library;
        if library.state != State::Up(conn) {
            return;
        }
        library.heard_us = self.now_us;
        match frame {
            Down::Reply(reply) => {
                if let Some(msg) = library.replied(reply) {
                    self.report(at, msg);
                }
            }
            Down::Event(event) => {
                let (heard, glanced) = library.notified(&event);
                for (feed, msg) in heard {
                    self.tell(at, Route::Feed(feed), msg);
                }
                glanced.into_iter().for_each(|msg| self.report(at, msg));
            }
            Down::Fin => self.lost(at, conn),
            Down::Connected(_) => {}
        }
    }

    fn connected(&mut self, at: usize, conn: Conn, sent_us: u64, response: &ConnectResponse) {
        let now_us = self.now_us;
        let peer = &mut self.peers[at];
        peer.attempts.failures = 0;
        if response.session_id == 0 {
            self.close(conn);
            return self.expired(at);
        }
        let library = &mut peer.library;
        let known = library.state == State::Down;
        library.state = State::Up(conn);
        library.heard_us = now_us;
        if known {
            library.view.connected = true;
            if let Some((xid, request)) = library.set_watches() {
                self.send_up(conn, Up::Request(xid, request));
            }
            self.stats.reconnections += 1;
            return self.changed(at);
        }
        library.password = response.password.clone();
        library.last_zxid = 0;
        library.view.generation += 1;
        library.view.session = response.session_id;
        library.view.timeout_us = u64::try_from(response.timeout_ms).unwrap_or_default() * 1_000;
        library.began(sent_us);
        // The session counts as connected only after its namespace is open.
        library.view.connected = false;
        peer.attempts.opening = true;
        self.stats.sessions += 1;
        self.opening(at, conn);
    }

    /// Opens the namespace. It exists, so this only reads the layout, and then the server's clock.
    fn opening(&mut self, at: usize, conn: Conn) {
        let (peer, now_us) = (&mut self.peers[at], self.now_us);
        let generation = peer.library.view.generation;
        let sent = Millis(now_us / 1_000);
        let opened = move |answer| {
            let reading = protocol::clock(answer).map(|server| Reading { sent, server });
            Msg::Opened(generation, reading)
        };
        let read = peer.library.sending(now_us, None);
        let xid = peer.library.sending(now_us, Some(Box::new(opened)));
        self.send_up(conn, Up::Request(read, protocol::get(bellwether_core::path::LAYOUT.to_owned())));
        self.send_up(conn, Up::Request(xid, protocol::read_clock()));
    }

    pub(super) fn opened(&mut self, at: usize, generation: u64, clock: Option<Reading>) {
        let peer = &mut self.peers[at];
        let up = matches!(peer.library.state, State::Up(_)) && peer.library.view.generation == generation;
        if !up || !std::mem::take(&mut peer.attempts.opening) {
            return;
        }
        peer.library.view.connected = true;
        let (session, timeout) =
            (peer.library.view.session, Duration::from_micros(peer.library.view.timeout_us));
        let failover = Failover::default();
        self.report_session(at, |life| {
            session::made(life, Zk(generation), Made { session, timeout, failover, clock })
        });
    }

    pub(super) fn heartbeat(&mut self, at: usize, zk: Zk, then: Then<Msg>) {
        if let Some(conn) = serves(&self.peers[at].library, zk) {
            self.put_peer(self.now_us + self.timeout_us() * 2 / 5, at, Incoming::Silence(conn));
        }
        self.ask(at, zk, Request::Sync { path: "/".to_owned() }, then);
    }

    pub(super) fn silence(&mut self, at: usize, conn: Conn) {
        let library = &self.peers[at].library;
        let Some(oldest) = library.oldest_request_us().filter(|_| library.state == State::Up(conn)) else {
            return;
        };
        if oldest.max(library.heard_us) + self.timeout_us() * 2 / 5 <= self.now_us {
            self.close(conn);
            self.lost(at, conn);
        }
    }

    /// The connection of a session is lost.
    pub(super) fn lost(&mut self, at: usize, conn: Conn) {
        let (now_us, timeout_us) = (self.now_us, self.timeout_us());
        let peer = &mut self.peers[at];
        if peer.library.state != State::Up(conn) {
            return;
        }
        let answers = peer.library.lost();
        self.stats.lost_replies += answers.len() as u64;
        for msg in answers {
            self.report(at, msg);
        }
        self.close(conn);
        let peer = &mut self.peers[at];
        if std::mem::take(&mut peer.attempts.opening) {
            // No other part knows this session yet: create another.
            peer.library.state = State::Away;
            return self.attempt_failed(at);
        }
        peer.library.view.connected = false;
        let heard_us = peer.library.heard_us;
        let patience = peer.rng.u64(timeout_us * 7 / 5..timeout_us * 9 / 5);
        self.put_peer((heard_us + patience).max(now_us), at, Incoming::GiveUp);
        self.changed(at);
        let wait = self.peers[at].rng.u64(5_000..200_000);
        self.attempt_in(at, wait);
    }

    /// Closes the session: its last holder has dropped it. Without a connection it is left to expire.
    pub(super) fn close_session(&mut self, at: usize) {
        let now_us = self.now_us;
        let Peer { library, attempts, .. } = &mut self.peers[at];
        let (state, pending) = (library.state, attempts.pending.take());
        attempts.number += 1;
        attempts.failures = 0;
        attempts.opening = false;
        if let State::Up(conn) = state {
            let xid = library.sending(now_us, None);
            self.send_up(conn, Up::Request(xid, Request::CloseSession));
            self.close(conn);
        }
        if let Some((conn, _)) = pending {
            self.close(conn);
        }
        let library = &mut self.peers[at].library;
        let answers = library.lost();
        for msg in answers.into_iter().chain(library.ended()) {
            self.report(at, msg);
        }
    }

    /// Gives up the session if nothing was received for so long that it must have expired.
    pub(super) fn give_up(&mut self, at: usize) {
        let library = &self.peers[at].library;
        let silent = library.heard_us + self.timeout_us() * 7 / 5 <= self.now_us;
        if library.state == State::Down && silent {
            if let Some((pending, _)) = self.peers[at].attempts.pending.take() {
                self.close(pending);
            }
            self.expired(at);
        }
    }

    fn expired(&mut self, at: usize) {
        let library = &mut self.peers[at].library;
        let had_session = library.state == State::Down;
        let glanced = library.ended();
        glanced.into_iter().for_each(|msg| self.report(at, msg));
        if had_session {
            self.stats.expirations += 1;
            self.changed(at);
        } else {
            self.attempt_failed(at);
        }
    }

    pub(super) fn ask(&mut self, at: usize, zk: Zk, request: Request, then: Then<Msg>) {
        let now_us = self.now_us;
        let library = &mut self.peers[at].library;
        match serves(library, zk) {
            Some(conn) => {
                let xid = library.sending(now_us, Some(then));
                self.send_up(conn, Up::Request(xid, request));
            }
            None => {
                let msg = then(Answer::NotSent);
                self.report(at, msg);
            }
        }
    }

    pub(super) fn watch(&mut self, at: usize, zk: Zk, path: String, set: Then<Msg>, heard: Heard<Msg>) {
        let now_us = self.now_us;
        let library = &mut self.peers[at].library;
        let Some(conn) = serves(library, zk) else {
            let msg = set(Answer::NotSent);
            return self.report(at, msg);
        };
        let is_set = library.add_feed(path.clone(), heard);
        let then = move |answer: Answer| {
            is_set.set(matches!(answer, Answer::Reply(Ok(_))));
            set(answer)
        };
        let xid = library.sending(now_us, Some(Box::new(then)));
        self.send_up(conn, Up::Request(xid, protocol::watch(path)));
    }

    pub(super) fn peek(
        &mut self,
        at: usize,
        zk: Zk,
        (path, part): (String, Part),
        then: Then<Msg>,
        changed: Changed,
    ) {
        let now_us = self.now_us;
        let library = &mut self.peers[at].library;
        let Some(conn) = serves(library, zk) else {
            let msg = then(Answer::NotSent);
            return self.report(at, msg);
        };
        let is_set = library.peek(path.clone(), part, changed);
        let then = move |answer: Answer| {
            is_set.set(matches!(answer, Answer::Reply(Ok(_))));
            then(answer)
        };
        let xid = library.sending(now_us, Some(Box::new(then)));
        self.send_up(conn, Up::Request(xid, part.read_and_watch(path)));
    }

    pub(super) fn glance(
        &mut self,
        at: usize,
        zk: Zk,
        path: String,
        there: Then<Msg>,
        changed: Box<dyn FnOnce() -> Msg>,
    ) {
        let now_us = self.now_us;
        let library = &mut self.peers[at].library;
        let Some(conn) = serves(library, zk) else {
            let msg = there(Answer::NotSent);
            return self.report(at, msg);
        };
        library.glance(path.clone(), changed);
        let xid = library.sending(now_us, Some(there));
        self.send_up(conn, Up::Request(xid, protocol::exists(path, true)));
    }
}

fn serves(library: &Library<Msg>, zk: Zk) -> Option<Conn> {
    if library.view.connected { library.serves(zk) } else { None }
}
