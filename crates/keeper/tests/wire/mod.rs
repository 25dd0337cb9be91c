//! A minimal client without a library, to send requests that no client library sends.

#![allow(dead_code, reason = "each test program uses a part")]

use std::net::SocketAddr;
use std::time::Duration;

use bellwether_keeper::server::Keeper;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any healthy operation, so that a silent server fails the test instead of blocking it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const CREATE: i32 = 1;
pub(crate) const DELETE: i32 = 2;
pub(crate) const EXISTS: i32 = 3;
pub(crate) const GET_DATA: i32 = 4;
pub(crate) const SET_DATA: i32 = 5;
pub(crate) const PING: i32 = 11;
pub(crate) const MULTI: i32 = 14;
pub(crate) const MULTI_READ: i32 = 22;
pub(crate) const ADD_WATCH: i32 = 106;
pub(crate) const CLOSE_SESSION: i32 = -11;
pub(crate) const PERSISTENT: i32 = 0;
pub(crate) const EPHEMERAL: i32 = 1;

/// Starts an in-memory server on a free port.
pub(crate) async fn keeper() -> Keeper {
    Keeper::builder().start().await.expect("a keeper")
}

/// A session, as stored by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) password: Vec<u8>,
    pub(crate) timeout_ms: i32,
}

/// A reply or a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) error: i32,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Wire<S = TcpStream> {
    pub(crate) stream: S,
}

impl Wire {
    /// Opens a socket without sending anything.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a socket");
        stream.set_nodelay(true).expect("no delay");
        Self { stream }
    }

    /// Opens a session and requests a timeout of ten seconds.
    pub(crate) async fn session(address: SocketAddr) -> (Self, Session) {
        let mut wire = Self::open(address).await;
        let session = wire.hello(10_000, 0, &[0; 16]).await.expect("a session");
        (wire, session)
    }

    /// Re-attaches to a session; `None` if it has expired.
    pub(crate) async fn attach(address: SocketAddr, session: &Session) -> Option<Self> {
        let mut wire = Self::open(address).await;
        wire.hello(10_000, session.id, &session.password).await?;
        Some(wire)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        timeout(PATIENCE, self.stream.write_all(bytes)).await.expect("in time").expect("sent");
    }

    pub(crate) async fn send_frame(&mut self, body: &[u8]) {
        self.send_raw(&framed(body)).await;
    }

    pub(crate) async fn send(&mut self, xid: i32, code: i32, body: &[u8]) {
        self.send_raw(&request(xid, code, body)).await;
    }

    /// Returns the next frame; `None` if the server closed the connection.
    pub(crate) async fn receive_frame(&mut self) -> Option<Vec<u8>> {
        timeout(PATIENCE, async {
            let length = self.stream.read_u32().await.ok()?;
            let mut frame = vec![0; usize::try_from(length).expect("a length")];
            self.stream.read_exact(&mut frame).await.ok()?;
            Some(frame)
        })
        .await
        .expect("a frame or the end of the stream in time")
    }

    pub(crate) async fn receive(&mut self) -> Option<Frame> {
        let frame = self.receive_frame().await?;
        Some(Frame {
            xid: i32::from_be_bytes(frame[..4].try_into().expect("an xid")),
            zxid: i64::from_be_bytes(frame[4..12].try_into().expect("a zxid")),
            error: i32::from_be_bytes(frame[12..16].try_into().expect("an error")),
            body: frame[16..].to_vec(),
        })
    }

    /// Sends a request and returns the next frame as its reply.
    pub(crate) async fn call(&mut self, xid: i32, code: i32, body: &[u8]) -> Frame {
        self.send(xid, code, body).await;
        let frame = self.receive().await.expect("a reply");
        assert_eq!(frame.xid, xid, "a reply to another request");
        frame
    }

    /// Sends the first frame; `None` if the session has expired.
    pub(crate) async fn hello(&mut self, timeout_ms: i32, id: i64, password: &[u8]) -> Option<Session> {
        let mut body = Vec::new();
        body.extend(0_i32.to_be_bytes());
        body.extend(0_i64.to_be_bytes());
        body.extend(timeout_ms.to_be_bytes());
        body.extend(id.to_be_bytes());
        buffer(&mut body, password);
        body.push(0);
        self.send_frame(&body).await;
        let answer = self.receive_frame().await.expect("a reply to the first frame");
        let timeout_ms = i32::from_be_bytes(answer[4..8].try_into().expect("a timeout"));
        let id = i64::from_be_bytes(answer[8..16].try_into().expect("an id"));
        (timeout_ms > 0).then(|| Session { id, password: answer[20..36].to_vec(), timeout_ms })
    }

    /// Returns all text until the server closes the connection, or an empty string if the connection is reset.
    pub(crate) async fn receive_word(&mut self) -> String {
        let mut text = String::new();
        match timeout(PATIENCE, self.stream.read_to_string(&mut text)).await.expect("in time") {
            Ok(_) => text,
            Err(_) => String::new(),
        }
    }

    /// Returns whether the server closes the connection; skips everything it sends before.
    pub(crate) async fn closes(&mut self) -> bool {
        let mut bytes = [0; 4096];
        timeout(PATIENCE, async {
            loop {
                match self.stream.read(&mut bytes).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
        })
        .await
        .is_ok()
    }
}

pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    buffer(&mut frame, body);
    frame
}

pub(crate) fn request(xid: i32, code: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(xid.to_be_bytes());
    frame.extend(code.to_be_bytes());
    frame.extend(body);
    framed(&frame)
}

pub(crate) fn buffer(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(i32::try_from(bytes.len()).expect("a short buffer").to_be_bytes());
    to.extend(bytes);
}

pub(crate) fn create(path: &str, data: &[u8], flags: i32) -> Vec<u8> {
    let mut body = Vec::new();
    buffer(&mut body, path.as_bytes());
    buffer(&mut body, data);
    // All permissions for world:anyone.
    body.extend(b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone");
    body.extend(flags.to_be_bytes());
    body
}

pub(crate) fn set_data(path: &str, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    buffer(&mut body, path.as_bytes());
    buffer(&mut body, data);
    body.extend((-1_i32).to_be_bytes());
    body
}

/// The body of `exists`, `getData` and `getChildren`.
pub(crate) fn read(path: &str, watch: bool) -> Vec<u8> {
    let mut body = Vec::new();
    buffer(&mut body, path.as_bytes());
    body.push(u8::from(watch));
    body
}

pub(crate) fn add_watch_recursive(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    buffer(&mut body, path.as_bytes());
    body.extend(1_i32.to_be_bytes());
    body
}

/// Sends a four-letter word and returns the reply.
pub(crate) async fn word(address: SocketAddr, word: &str) -> String {
    let mut wire = Wire::open(address).await;
    wire.send_raw(word.as_bytes()).await;
    wire.receive_word().await
}

/// Returns the number of a key in `mntr`.
pub(crate) async fn monitored(address: SocketAddr, key: &str) -> i64 {
    let text = word(address, "mntr").await;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t'));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).parse().expect("a number")
}

/// Polls until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let held = timeout(PATIENCE, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(held.await.is_ok(), "condition not met within {PATIENCE:?}: {what}");
}
