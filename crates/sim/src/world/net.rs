//! Connections: two ordered pipes each.
//!
//! The delay of a frame is drawn when it is sent. Whether its pipe is stopped or lost is checked when it would arrive.
//! A stopped pipe holds its frames. A broken connection loses the frames in flight, or only those from the server,
//! depending on the fault.

use bellwether_core::path;
use bellwether_keeper::model::Effect;
use bellwether_keeper::proto::{Op, Request};

use super::ensemble::Step;
use super::server::Outcome;
use super::{Down, Happening, Incoming, Up, World};
use crate::zk::library::Conn;

/// A connection of a process.
pub(super) struct Connection {
    pub(super) peer: usize,
    pub(super) process: u64,
    /// The server at its other end.
    member: usize,
    up: Pipe<Up>,
    down: Pipe<Down>,
    /// Whether the server still reads from it.
    served: bool,
    /// Whether its client still reads from it.
    read: bool,
}

struct Pipe<F> {
    /// Arrival time of the last frame.
    last_us: u64,
    /// Frames that arrived while the pipe was stopped.
    stopped: Vec<F>,
    /// Whether the frames in flight are lost.
    lost: bool,
}

impl<F> Pipe<F> {
    fn new() -> Self {
        Self { last_us: 0, stopped: Vec::new(), lost: false }
    }

    fn arrives(&mut self, at_us: u64) -> u64 {
        self.last_us = at_us.max(self.last_us + 1);
        self.last_us
    }
}

/// The network faults of a peer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trouble {
    /// Connections are refused until this time.
    pub(super) refused_until_us: u64,
    /// Nothing arrives at the server until this time.
    pub(super) up_until_us: u64,
    /// Nothing arrives from the server until this time.
    pub(super) down_until_us: u64,
    /// Until the first time, frames take up to the second time longer.
    pub(super) slow: (u64, u64),
    /// How the next write is lost.
    pub(super) next_write: Option<Loss>,
}

/// How a write is lost. In each case the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The write is never applied.
    Before,
    /// The write is applied, and its reply is lost.
    After,
    /// The write is applied this much later, if its session still lives. Applies only to transactions that a record
    /// fences: a close, a submission, a cancel, a retry.
    Late(u64),
}

impl Loss {
    /// Returns whether this frame is the write to lose.
    fn meets(self, frame: &Up) -> bool {
        let Up::Request(_, request) = frame else { return false };
        match (self, request) {
            (Self::Before | Self::After, Request::Multi(_) | Request::Write(_)) => true,
            (Self::Late(_), Request::Multi(ops)) => match ops.first() {
                Some(Op::Create { path, .. } | Op::SetData { path, .. }) => path.starts_with(path::JOBS),
                Some(Op::Delete { .. } | Op::Check { .. } | Op::Unknown { .. }) | None => false,
            },
            (_, _) => false,
        }
    }
}

impl World {
    pub(super) fn open(&mut self, peer: usize, member: usize) -> Conn {
        self.next_conn += 1;
        let process = self.peers[peer].process;
        let (up, down) = (Pipe::new(), Pipe::new());
        self.conns
            .insert(self.next_conn, Connection { peer, process, member, up, down, served: true, read: true });
        self.next_conn
    }

    fn delay(&mut self, peer: usize) -> u64 {
        let trouble = self.peers[peer].trouble;
        let (until, most) = trouble.slow;
        let slow = if self.now_us < until { self.rng.u64(..=most) } else { 0 };
        let usual = if self.rng.u8(..50) == 0 { self.rng.u64(1_000..30_000) } else { self.rng.u64(80..600) };
        usual + slow
    }

    pub(super) fn send_up(&mut self, conn: Conn, frame: Up) {
        let Some(peer) = self.conns.get(&conn).map(|connection| connection.peer) else { return };
        let at = self.now_us + self.delay(peer);
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        let arrives = connection.up.arrives(at);
        self.put(arrives, Happening::ToServer(conn, frame));
    }

    fn send_down(&mut self, conn: Conn, frame: Down) {
        let Some(peer) = self.conns.get(&conn).map(|connection| connection.peer) else { return };
        let at = self.now_us + self.delay(peer);
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        let (arrives, process) = (connection.down.arrives(at), connection.process);
        self.put(arrives, Happening::ToPeer(peer, process, Incoming::Frame(conn, frame)));
    }

    /// Delivers a frame at the server's end, unless its pipe is stopped.
    pub(super) fn frame_up(&mut self, conn: Conn, frame: Up) {
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        let trouble = &mut self.peers[connection.peer].trouble;
        if self.now_us < trouble.up_until_us {
            return connection.up.stopped.push(frame);
        }
        if !connection.served || (connection.up.lost && !matches!(frame, Up::Fin)) {
            return;
        }
        let loss = trouble.next_write.take_if(|loss| loss.meets(&frame));
        match (loss, &frame) {
            (Some(Loss::Late(late_us)), Up::Request(_, request)) => {
                if let Some(session) = self.servers.session_of(conn) {
                    self.put(self.now_us + late_us, Happening::Late(session, request.clone()));
                }
                return self.break_connection(conn, false);
            }
            (Some(Loss::Before | Loss::Late(_)), _) => return self.break_connection(conn, false),
            (Some(Loss::After), _) => connection.down.lost = true,
            (None, _) => {}
        }
        connection.served = !matches!(frame, Up::Fin);
        let member = connection.member;
        let outcome = self.servers.handle(self.now_us, member, conn, frame);
        self.served(outcome);
        if loss == Some(Loss::After) {
            self.break_connection(conn, false);
        }
    }

    /// Records the commits of the server and sends its replies.
    pub(super) fn served(&mut self, outcome: Outcome) {
        for event in outcome.history {
            self.record(event);
        }
        for effect in outcome.effects {
            match effect {
                Effect::Connected(conn, response) => self.send_down(conn.0, Down::Connected(response)),
                Effect::Reply(conn, reply) => self.send_down(conn.0, Down::Reply(reply)),
                Effect::Notify(conns, event) => {
                    for conn in conns {
                        self.send_down(conn.0, Down::Event(event.clone()));
                    }
                }
                Effect::Close(conn) => self.hang_up(conn.0),
            }
        }
        for (at_us, step) in outcome.later {
            self.put(at_us, Happening::Ensemble(step));
        }
        let wanted = self.servers.next_tick_us();
        if let Some(at) = wanted.filter(|at| self.tick_at_us.is_none_or(|before| *at < before)) {
            self.tick_at_us = Some(at);
            self.put(at, Happening::ServerTick);
        }
    }

    /// The server closes a connection, after all frames that it sent.
    pub(super) fn hang_up(&mut self, conn: Conn) {
        if let Some(connection) = self.conns.get_mut(&conn).filter(|connection| connection.served) {
            connection.served = false;
            self.send_down(conn, Down::Fin);
        }
    }

    /// Delivers a frame at the client's end. Returns the frame if the client may read it.
    pub(super) fn arrives(&mut self, conn: Conn, frame: Down) -> Option<Down> {
        let connection = self.conns.get_mut(&conn)?;
        if self.now_us < self.peers[connection.peer].trouble.down_until_us {
            connection.down.stopped.push(frame);
            return None;
        }
        let readable = connection.read && (!connection.down.lost || matches!(frame, Down::Fin));
        readable.then_some(frame)
    }

    /// The client closes its end. Frames that it sent before still arrive.
    pub(super) fn close(&mut self, conn: Conn) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.read = false;
            self.send_up(conn, Up::Fin);
        }
    }

    /// Closes every connection of a process that has ended.
    pub(super) fn close_connections(&mut self, peer: usize) {
        let open = self.conns.iter().filter(|(_, it)| it.peer == peer && it.read).map(|(conn, _)| *conn);
        for conn in open.collect::<Vec<_>>() {
            self.close(conn);
        }
    }

    /// Breaks the connection for both ends. Frames from the server are lost; frames to the server are lost unless
    /// `requests_arrive`.
    pub(super) fn break_connection(&mut self, conn: Conn, requests_arrive: bool) {
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        connection.down.lost = true;
        connection.up.lost |= !requests_arrive;
        self.send_up(conn, Up::Fin);
        self.send_down(conn, Down::Fin);
    }

    /// Delivers the frames that were held.
    pub(super) fn flow_again(&mut self, peer: usize) {
        let of_peer = self.conns.iter().filter(|(_, connection)| connection.peer == peer);
        let conns: Vec<Conn> = of_peer.map(|(conn, _)| *conn).collect();
        let trouble = self.peers[peer].trouble;
        for conn in conns {
            if trouble.up_until_us <= self.now_us {
                let frames = self.conns.get_mut(&conn).map(|it| std::mem::take(&mut it.up.stopped));
                for frame in frames.into_iter().flatten() {
                    self.frame_up(conn, frame);
                }
            }
            if trouble.down_until_us <= self.now_us {
                let stopped =
                    self.conns.get_mut(&conn).map(|it| (it.process, std::mem::take(&mut it.down.stopped)));
                let Some((process, frames)) = stopped else { continue };
                for frame in frames {
                    self.incoming(peer, process, Incoming::Frame(conn, frame));
                }
            }
        }
    }

    /// Delivers all delayed frames in flight now.
    pub(super) fn hurry(&mut self) {
        let is_frame = |next: &Happening| {
            let to_peer = matches!(next, Happening::ToPeer(_, _, Incoming::Frame(..)));
            to_peer || matches!(next, Happening::ToServer(..) | Happening::Ensemble(Step::Message(..)))
        };
        let frames = self.queue.iter().filter(|(_, next)| is_frame(next)).map(|(at, _)| *at);
        for at in frames.collect::<Vec<_>>() {
            if let Some(frame) = self.queue.remove(&at) {
                self.put(self.now_us, frame);
            }
        }
        for connection in self.conns.values_mut() {
            (connection.up.last_us, connection.down.last_us) = (self.now_us, self.now_us);
        }
    }

    /// The server has died, and its kernel closes all connections.
    pub(super) fn all_hang_up(&mut self) {
        let served = self.conns.iter().filter(|(_, connection)| connection.served).map(|(conn, _)| *conn);
        for conn in served.collect::<Vec<_>>() {
            if let Some(connection) = self.conns.get_mut(&conn) {
                connection.up.lost = true;
            }
            self.hang_up(conn);
        }
    }
}
