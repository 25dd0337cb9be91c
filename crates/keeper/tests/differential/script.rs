//! What the clients of a run do, without a word that depends on an answer: so a script can be replayed, on any
//! server, and steps can be taken out of it.

use std::fmt;

use crate::wire::readable;

/// One of the run's clients.
pub(crate) type ClientNumber = usize;

/// One thing that one client does; its answers and all notifications are awaited before the next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends a request.
    Request(ClientNumber, Call),
    /// Sends several in one go.
    Burst(ClientNumber, Vec<Call>),
    /// Connects anew, whether connected or not.
    Connect(ClientNumber, Connect),
    /// Closes the socket and leaves the session to itself.
    Hangup(ClientNumber),
    /// Sends bytes that are no request, and expects the server to hang up.
    Garbage(ClientNumber, Vec<u8>),
    /// Sends bytes as the first of a new connection that is nobody's, and then ends the sending side.
    Stranger(Vec<u8>),
}

/// A request behind its frame's length.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// `None`: the client's next number.
    pub(crate) xid: Option<i32>,
    /// The code of the operation.
    pub(crate) op: i32,
    /// What follows the header.
    pub(crate) body: Vec<u8>,
    /// The body's first eight bytes become the newest transaction seen, less this.
    pub(crate) since: Option<i64>,
    /// For people.
    pub(crate) text: String,
}

/// A first frame.
#[derive(Debug, Clone)]
pub(crate) struct Connect {
    pub(crate) session: SessionChoice,
    pub(crate) timeout_ms: i32,
    /// The newest transaction seen, plus this: above 0, the server is behind and must refuse.
    pub(crate) ahead: i64,
    /// `None`: a client from before 3.4, whose frame ends before the flag.
    pub(crate) read_only: Option<bool>,
}

/// Which session a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SessionChoice {
    /// A new one.
    New,
    /// Its own.
    Own,
    /// Its own, with a password that is not.
    WrongPassword,
    /// That of another client, which gets this client's in exchange.
    Of(ClientNumber),
    /// One that never was.
    Unknown,
}

impl Call {
    pub(crate) fn new(op: i32, body: Vec<u8>, text: String) -> Self {
        Self { xid: None, op, body, since: None, text }
    }
}

impl Step {
    /// The client whose answers come first in the record.
    pub(crate) fn actor(&self) -> ClientNumber {
        match self {
            Self::Request(client, _)
            | Self::Burst(client, _)
            | Self::Connect(client, _)
            | Self::Hangup(client)
            | Self::Garbage(client, _) => *client,
            Self::Stranger(_) => 0,
        }
    }

    /// How many requests it is.
    pub(crate) fn requests(&self) -> usize {
        match self {
            Self::Burst(_, calls) => calls.len(),
            Self::Request(..)
            | Self::Connect(..)
            | Self::Hangup(_)
            | Self::Garbage(..)
            | Self::Stranger(_) => 1,
        }
    }

    /// The requests that it sends.
    pub(crate) fn calls(&self) -> &[Call] {
        match self {
            Self::Request(_, call) => std::slice::from_ref(call),
            Self::Burst(_, calls) => calls,
            Self::Connect(..) | Self::Hangup(_) | Self::Garbage(..) | Self::Stranger(_) => &[],
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.xid {
            Some(xid) if !matches!(self.op, 11 | 100 | 101 | 105) => write!(f, " with xid {xid}"),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(client, call) => write!(f, "c{client} {call}"),
            Self::Burst(client, calls) => {
                write!(f, "c{client} at once:")?;
                calls.iter().try_for_each(|call| write!(f, "\n        {call}"))
            }
            Self::Connect(client, connect) => write!(f, "c{client} connects: {connect:?}"),
            Self::Hangup(client) => write!(f, "c{client} hangs up"),
            Self::Garbage(client, bytes) => write!(f, "c{client} sends garbage {}", readable(bytes)),
            Self::Stranger(bytes) => write!(f, "a stranger sends {}", readable(bytes)),
        }
    }
}
