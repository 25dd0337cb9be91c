//! Scripts: the actions of the clients in a run. No action depends on a reply, so a script can be replayed on any
//! server, and steps can be removed from it.

use std::fmt;

use crate::wire::readable;

/// The index of a client.
pub(crate) type ClientNumber = usize;

/// One action of one client. Its replies and all notifications are received before the next step.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends a request.
    Request(ClientNumber, Call),
    /// Sends several requests in one write.
    Burst(ClientNumber, Vec<Call>),
    /// Opens a new connection, even if the client is connected.
    Connect(ClientNumber, Connect),
    /// Closes the socket without closing the session.
    Hangup(ClientNumber),
    /// Sends bytes that are not a request, and expects the server to close the connection.
    Garbage(ClientNumber, Vec<u8>),
    /// Sends bytes on a separate new connection, then closes the sending side.
    Stranger(Vec<u8>),
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The xid; `None` for the client's next number.
    pub(crate) xid: Option<i32>,
    /// The code of the operation.
    pub(crate) op: i32,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// Replaces the first eight bytes of the body by the newest transaction seen, minus this number.
    pub(crate) since: Option<i64>,
    /// The description in reports.
    pub(crate) text: String,
}

/// A first frame.
#[derive(Debug, Clone)]
pub(crate) struct Connect {
    pub(crate) session: SessionChoice,
    pub(crate) timeout_ms: i32,
    /// The newest transaction seen, plus this number. If it is above 0, the server is behind and must refuse the
    /// client.
    pub(crate) ahead: i64,
    /// `None` for a client before 3.4, whose frame lacks the flag.
    pub(crate) read_only: Option<bool>,
}

/// The session that a client requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SessionChoice {
    /// A new session.
    New,
    /// The session of this client.
    Own,
    /// The session of this client with a wrong password.
    WrongPassword,
    /// The session of another client. The two clients exchange their sessions.
    Of(ClientNumber),
    /// A session that never existed.
    Unknown,
}

impl Call {
    pub(crate) fn new(op: i32, body: Vec<u8>, text: String) -> Self {
        Self { xid: None, op, body, since: None, text }
    }
}

impl Step {
    /// Returns the client whose lines come first in the record.
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

    /// Returns the number of requests.
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

    /// Returns the requests.
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
                write!(f, "c{client} in one write:")?;
                calls.iter().try_for_each(|call| write!(f, "\n        {call}"))
            }
            Self::Connect(client, connect) => write!(f, "c{client} connects: {connect:?}"),
            Self::Hangup(client) => write!(f, "c{client} closes its connection"),
            Self::Garbage(client, bytes) => write!(f, "c{client} sends garbage {}", readable(bytes)),
            Self::Stranger(bytes) => write!(f, "a stranger sends {}", readable(bytes)),
        }
    }
}
