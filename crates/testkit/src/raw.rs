//! A minimal ZooKeeper client without a client library, to check results independently.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::op;

/// Longer than any healthy reply, so that a test of a silent server fails instead of blocking.
const PATIENCE: Duration = Duration::from_secs(10);
/// The server clamps it to its bounds.
const TIMEOUT_MS: i32 = 10_000;
const NO_NODE: i32 = -101;
/// All permissions for world:anyone, in wire format.
const OPEN_ACL: &[u8] = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone";

/// The credentials for re-attaching to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The session id; it is the `ephemeralOwner` of the session's ephemeral nodes.
    pub session_id: i64,
    /// The password of the session.
    pub password: Vec<u8>,
}

/// A blocking connection with its own session. Dropping it closes the socket, and the session expires later;
/// [`close`](Self::close) ends the session immediately.
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    credentials: Credentials,
    timeout: Duration,
    xid: i32,
}

impl RawClient {
    /// Connects with a new session.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::attach(address, Credentials { session_id: 0, password: vec![0; 16] })
    }

    /// Connects with an existing session, which is taken from its current connection. For an expired or unknown session
    /// it returns an error of kind `NotFound`.
    pub fn attach(address: SocketAddr, credentials: Credentials) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut client = Self { stream, credentials, timeout: Duration::ZERO, xid: 0 };

        let mut hello = Vec::new();
        hello.extend(0_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        hello.extend(TIMEOUT_MS.to_be_bytes());
        hello.extend(client.credentials.session_id.to_be_bytes());
        push_buffer(&mut hello, &client.credentials.password);
        hello.push(0);
        client.send(&hello)?;

        let answer = client.receive()?;
        let (timeout, granted) = connect_response(&answer).ok_or_else(|| malformed("connect response"))?;
        if timeout.is_zero() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the session expired"));
        }
        client.timeout = timeout;
        client.credentials = granted;
        Ok(client)
    }

    /// Returns the credentials of the session.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns the session timeout granted by the server.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Creates a persistent node with all permissions for anyone.
    pub fn create(&mut self, path: &str, data: &[u8]) -> io::Result<()> {
        self.create_with_flags(path, data, 0)
    }

    /// Creates an ephemeral node, which is deleted with this session.
    pub fn create_ephemeral(&mut self, path: &str, data: &[u8]) -> io::Result<()> {
        self.create_with_flags(path, data, 1)
    }

    fn create_with_flags(&mut self, path: &str, data: &[u8], flags: i32) -> io::Result<()> {
        let mut body = Vec::new();
        push_buffer(&mut body, path.as_bytes());
        push_buffer(&mut body, data);
        body.extend(OPEN_ACL);
        body.extend(flags.to_be_bytes());
        accept(self.call(op::CREATE, &body)?)
    }

    /// Replaces the data of a node, regardless of its version.
    pub fn set_data(&mut self, path: &str, data: &[u8]) -> io::Result<()> {
        let mut body = Vec::new();
        push_buffer(&mut body, path.as_bytes());
        push_buffer(&mut body, data);
        body.extend((-1_i32).to_be_bytes());
        accept(self.call(op::SET_DATA, &body)?)
    }

    /// Sets the permissions of anyone for a node: the sum of read 1, write 2, create 4, delete 8, admin 16.
    pub fn set_permissions(&mut self, path: &str, permissions: i32) -> io::Result<()> {
        let mut body = Vec::new();
        push_buffer(&mut body, path.as_bytes());
        body.extend(1_i32.to_be_bytes());
        body.extend(permissions.to_be_bytes());
        push_buffer(&mut body, b"world");
        push_buffer(&mut body, b"anyone");
        body.extend((-1_i32).to_be_bytes());
        accept(self.call(op::SET_ACL, &body)?)
    }

    /// Returns whether a node exists.
    pub fn exists(&mut self, path: &str) -> io::Result<bool> {
        self.exists_with_watch(path, false)
    }

    /// Returns whether a node exists, and sets a one-shot watch for its next change; see
    /// [`next_event`](Self::next_event).
    pub fn watch(&mut self, path: &str) -> io::Result<bool> {
        self.exists_with_watch(path, true)
    }

    fn exists_with_watch(&mut self, path: &str, watch: bool) -> io::Result<bool> {
        let mut body = Vec::new();
        push_buffer(&mut body, path.as_bytes());
        body.push(u8::from(watch));
        match self.call(op::EXISTS, &body)? {
            NO_NODE => Ok(false),
            code => accept(code).map(|()| true),
        }
    }

    /// Sets how long each call waits for its reply before it fails with kind `WouldBlock`. Default: 10 s.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    /// Waits for a watch event. Returns an error of kind `WouldBlock` if none arrives within `patience`.
    pub fn next_event(&mut self, patience: Duration) -> io::Result<()> {
        let before = self.stream.read_timeout()?;
        self.set_patience(patience)?;
        let frame = self.receive();
        self.stream.set_read_timeout(before)?;
        match be_i32(&frame?, 0) {
            Some(-1) => Ok(()),
            _ => Err(malformed("watch event")),
        }
    }

    /// Ends the session: its ephemeral nodes are deleted when this returns.
    pub fn close(mut self) -> io::Result<()> {
        accept(self.call(op::CLOSE_SESSION, &[])?)
    }

    /// Sends one request and returns the error code of its reply.
    fn call(&mut self, op: i32, body: &[u8]) -> io::Result<i32> {
        self.xid += 1;
        let mut request = Vec::new();
        request.extend(self.xid.to_be_bytes());
        request.extend(op.to_be_bytes());
        request.extend(body);
        self.send(&request)?;
        loop {
            let reply = self.receive()?;
            if be_i32(&reply, 0) == Some(self.xid) {
                return be_i32(&reply, 12).ok_or_else(|| malformed("reply header"));
            }
        }
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::new();
        push_buffer(&mut bytes, frame);
        self.stream.write_all(&bytes)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(frame)
    }
}

/// Decodes the timeout and the session of a connect response; the timeout of an expired session is zero.
pub(crate) fn connect_response(frame: &[u8]) -> Option<(Duration, Credentials)> {
    let timeout = u64::try_from(be_i32(frame, 4)?).ok()?;
    let session_id = i64::from_be_bytes(frame.get(8..16)?.try_into().ok()?);
    let length = usize::try_from(be_i32(frame, 16)?).ok()?;
    let password = frame.get(20..20 + length)?.to_vec();
    Some((Duration::from_millis(timeout), Credentials { session_id, password }))
}

/// Returns the big-endian i32 at `offset`.
pub(crate) fn be_i32(frame: &[u8], offset: usize) -> Option<i32> {
    Some(i32::from_be_bytes(frame.get(offset..offset + 4)?.try_into().ok()?))
}

fn push_buffer(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = i32::try_from(bytes.len()).expect("test frames are far below 2 GiB");
    to.extend(length.to_be_bytes());
    to.extend(bytes);
}

fn accept(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::other(format!("the server returned error {code}"))),
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed {what}"))
}
