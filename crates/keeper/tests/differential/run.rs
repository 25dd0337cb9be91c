//! Runs a script on one server and records what each client sees in each step.
//!
//! After each step all connected clients ping, and everything received before the reply to the ping belongs to the
//! step. A server sends notifications before the reply to the request that caused them, so no notification is missed.

use std::net::SocketAddr;

use crate::answer::Met;
use crate::connection::{Connection, Received, framed};
use crate::script::{Call, ClientNumber, Connect, SessionChoice, Step};
use crate::wire::{Reader, Writer, readable};

/// The number of clients in a run.
pub(crate) const CLIENTS: usize = 4;

const PING: i32 = 11;
const PING_XID: i32 = -2;
const EVENT_XID: i32 = -1;
const CLOSE_SESSION: i32 = -11;
/// The error for an unknown operation.
const UNIMPLEMENTED: i32 = -6;
const AUTH_FAILED: i32 = -115;
/// Longer frames are rejected because of their length.
const MAX_FRAME: usize = 0xf_ffff;

/// The result of a step as lines; those of the acting client come first.
pub(crate) type Record = Vec<String>;

/// The clients of one server.
#[derive(Debug)]
pub(crate) struct Run {
    address: SocketAddr,
    clients: Vec<Client>,
    met: Met,
    newest_zxid: i64,
}

/// What follows a reply on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Replies to further requests.
    More,
    /// The end of the connection: this was the last reply.
    Closing,
    /// Nothing: the connection has ended.
    Over,
}

#[derive(Debug, Default)]
struct Client {
    connection: Option<Connection>,
    session: Option<(i64, Vec<u8>)>,
    last_xid: i32,
}

impl Run {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        Self { address, clients, met: Met::default(), newest_zxid: 0 }
    }

    /// Executes a step and waits for all its results.
    pub(crate) fn step(&mut self, step: &Step) -> Record {
        let mut record = Record::new();
        match step {
            Step::Request(client, call) => self.request(*client, std::slice::from_ref(call), &mut record),
            Step::Burst(client, calls) => self.request(*client, calls, &mut record),
            Step::Connect(client, connect) => self.connect(*client, connect, &mut record),
            Step::Hangup(client) => self.clients[*client].connection = None,
            Step::Garbage(client, bytes) => self.garbage(*client, bytes, &mut record),
            Step::Stranger(bytes) => self.stranger(bytes, &mut record),
        }
        self.settle(step.actor(), &mut record);
        let ends_sessions = step.calls().iter().any(|call| call.op == CLOSE_SESSION);
        if ends_sessions {
            // One transaction deletes the ephemeral znodes of a session, in Java in hash order.
            sort_events(&mut record);
        }
        record
    }

    fn request(&mut self, number: ClientNumber, calls: &[Call], record: &mut Record) {
        self.connected(number, record);
        let mut bytes = Vec::new();
        let mut sent = Vec::new();
        for call in calls {
            let xid = call.xid.unwrap_or_else(|| {
                self.clients[number].last_xid += 1;
                self.clients[number].last_xid
            });
            let mut body = call.body.clone();
            if let (Some(since), Some(place)) = (call.since, body.get_mut(..8)) {
                place.copy_from_slice(&self.newest_zxid.saturating_sub(since).to_be_bytes());
            }
            bytes.extend(framed(&Writer::default().int(xid).int(call.op).bytes(&body).0));
            sent.push(call.op);
        }
        let Some(connection) = &mut self.clients[number].connection else { return };
        connection.send(&bytes);
        for op in sent {
            if op == CLOSE_SESSION {
                self.clients[number].session = None;
            }
            match self.receive_reply(number, op, record) {
                Next::More => {}
                // Whether a ping would still be answered before the server closes the connection is random.
                Next::Closing => {
                    while let Next::More | Next::Closing = self.receive_reply(number, op, record) {}
                    break;
                }
                Next::Over => break,
            }
        }
    }

    /// Sends bytes after which the server must close the connection.
    fn garbage(&mut self, number: ClientNumber, bytes: &[u8], record: &mut Record) {
        self.connected(number, record);
        if let Some(connection) = &mut self.clients[number].connection {
            connection.send(bytes);
            connection.end();
            while let Next::More | Next::Closing = self.receive_reply(number, 0, record) {}
        }
    }

    fn stranger(&mut self, bytes: &[u8], record: &mut Record) {
        let mut connection = Connection::open(self.address);
        connection.send(bytes);
        if awaits_more(bytes) {
            // Only in this case: otherwise the end of the stream could overtake the server's reply.
            connection.end();
        }
        let answer = match connection.receive() {
            Received::Frame(frame) => self.met.connected(&frame).0,
            Received::Closed => "closed".to_owned(),
            Received::Silence => "silence".to_owned(),
        };
        record.push(format!("stranger {answer}"));
    }

    /// Connects a client that is not connected as a client library does: to its session, or else to a new one.
    fn connected(&mut self, number: ClientNumber, record: &mut Record) {
        while self.clients[number].connection.is_none() {
            let session = match self.clients[number].session {
                Some(_) => SessionChoice::Own,
                None => SessionChoice::New,
            };
            let had_session = self.clients[number].session.is_some();
            let plain = Connect { session, timeout_ms: 300_000, ahead: 0, read_only: Some(false) };
            self.connect(number, &plain, record);
            if !had_session {
                return; // A new session was refused: no further attempt.
            }
        }
    }

    fn connect(&mut self, number: ClientNumber, connect: &Connect, record: &mut Record) {
        if let SessionChoice::Of(other) = connect.session {
            self.swap_sessions(number, other);
        }
        let nobody = (0, vec![0; 16]);
        let own = self.clients[number].session.clone().unwrap_or_else(|| nobody.clone());
        let (session, password) = match connect.session {
            SessionChoice::New => nobody,
            SessionChoice::Own | SessionChoice::Of(_) => own,
            SessionChoice::WrongPassword => (own.0, own.1.iter().map(|byte| byte ^ 0x55).collect()),
            SessionChoice::Unknown => (0x7fff_1234_5678, vec![7; 16]),
        };
        let hello = Writer::default()
            .int(0)
            .long(self.newest_zxid.saturating_add(connect.ahead))
            .int(connect.timeout_ms)
            .long(session)
            .buffer(Some(&password));
        let hello = connect.read_only.into_iter().fold(hello, Writer::bool);

        let mut connection = Connection::open(self.address);
        connection.send(&framed(&hello.0));
        let client = &mut self.clients[number];
        client.connection = None;
        let line = match connection.receive() {
            Received::Closed => {
                match connect.session {
                    _ if connect.ahead <= 0 => client.session = None,
                    // The session was not moved.
                    SessionChoice::Of(other) => self.swap_sessions(number, other),
                    SessionChoice::New
                    | SessionChoice::Own
                    | SessionChoice::WrongPassword
                    | SessionChoice::Unknown => {}
                }
                "closed".to_owned()
            }
            Received::Silence => {
                client.session = None;
                "silence".to_owned()
            }
            Received::Frame(frame) => {
                let (line, granted) = self.met.connected(&frame);
                match granted {
                    Some(granted) if granted.timeout_ms > 0 => {
                        client.session = Some((granted.session, granted.password));
                        client.connection = Some(connection);
                    }
                    // After a wrong password the client's session is still valid; any other refused session has
                    // expired.
                    Some(_) | None => match connect.session {
                        SessionChoice::WrongPassword | SessionChoice::Unknown => {}
                        SessionChoice::New | SessionChoice::Own | SessionChoice::Of(_) => {
                            client.session = None
                        }
                    },
                }
                line
            }
        };
        record.push(format!("c{number} {line}"));
    }

    fn swap_sessions(&mut self, one: ClientNumber, other: ClientNumber) {
        let session = self.clients[one].session.take();
        self.clients[one].session = std::mem::replace(&mut self.clients[other].session, session);
    }

    /// Receives notifications and one reply. A reply to a later ping proves that there will be no reply.
    fn receive_reply(&mut self, number: ClientNumber, op: i32, record: &mut Record) -> Next {
        let mut asked = false;
        loop {
            let client = &mut self.clients[number];
            let Some(connection) = &mut client.connection else { return Next::Over };
            if op != PING && !asked && !connection.comes() {
                connection.send(&ping());
                asked = true;
            }
            let frame = match connection.receive() {
                Received::Frame(frame) => frame,
                Received::Closed => {
                    client.connection = None;
                    record.push(format!("c{number} closed"));
                    return Next::Over;
                }
                Received::Silence => {
                    client.connection = None;
                    record.push(format!("c{number} silence"));
                    return Next::Over;
                }
            };
            let mut reader = Reader(&frame);
            let header = (|| Some((reader.int()?, reader.long()?, reader.int()?)))();
            let Some((xid, zxid, code)) = header else {
                record.push(format!("c{number} a frame without a header: {}", readable(&frame)));
                return Next::More;
            };
            if xid == EVENT_XID {
                let event = self.met.event(zxid, code, reader.0);
                record.push(format!("c{number} {event}"));
                continue;
            }
            self.newest_zxid = self.newest_zxid.max(zxid);
            if asked && xid == PING_XID {
                record.push(format!("c{number} no reply"));
                return Next::More;
            }
            if asked {
                self.receive_reply(number, PING, &mut Record::new());
            }
            let body = self.met.body(op, reader.0);
            record.push(format!("c{number} reply: xid {xid} zxid {zxid} err {code} {body}"));
            let closing = matches!((op, code), (CLOSE_SESSION, _) | (_, UNIMPLEMENTED | AUTH_FAILED));
            return if closing { Next::Closing } else { Next::More };
        }
    }

    /// Pings on all connections, the actor's first, and records everything received before the replies.
    fn settle(&mut self, actor: ClientNumber, record: &mut Record) {
        for client in &mut self.clients {
            if let Some(connection) = &mut client.connection {
                connection.send(&ping());
            }
        }
        let mut others: Vec<ClientNumber> = (0..self.clients.len()).collect();
        others.rotate_left(actor);
        for number in others {
            if self.clients[number].connection.is_some() {
                self.receive_reply(number, PING, record);
            }
        }
    }
}

fn ping() -> Vec<u8> {
    framed(&Writer::default().int(PING_XID).int(PING).0)
}

/// Returns whether the server must wait for the rest of a frame after these bytes.
fn awaits_more(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    match reader.int().map(usize::try_from) {
        None => true,
        Some(Ok(length)) => length <= MAX_FRAME && length > reader.0.len(),
        Some(Err(_)) => false,
    }
}

/// Sorts consecutive events. Each line starts with its client, so the events of a client stay together.
fn sort_events(record: &mut Record) {
    let is_event = |line: &String| line.contains(" event: ");
    record.chunk_by_mut(|one, other| is_event(one) && is_event(other)).for_each(<[String]>::sort);
}
