//! One raw request per connection, so that a test can also send malformed ones.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::SOON;

pub(crate) struct Ask {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

/// An answer, read until the connection was closed.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Ask {
    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn new(method: &str, path: &str) -> Self {
        let headers = vec!["host: localhost".to_owned(), "connection: close".to_owned()];
        Self { line: format!("{method} {path} HTTP/1.1"), headers, body: Vec::new() }
    }

    /// A POST with a JSON body and its length.
    pub(crate) fn post(path: &str, body: &str) -> Self {
        let ask = Self::new("POST", path).header("content-type: application/json");
        ask.body(body.as_bytes())
    }

    pub(crate) fn header(mut self, header: &str) -> Self {
        self.headers.push(header.to_owned());
        self
    }

    pub(crate) fn host(mut self, host: &str) -> Self {
        self.headers[0] = format!("host: {host}");
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header(&format!("authorization: Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_owned();
        self.header(&format!("content-length: {}", body.len()))
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n{}\r\n\r\n", self.line, self.headers.join("\r\n")).into_bytes();
        text.extend_from_slice(&self.body);
        text
    }

    pub(crate) async fn of(self, address: SocketAddr) -> Answer {
        exchange(TcpStream::connect(address).await.unwrap(), &self.text()).await.unwrap()
    }
}

/// Sends bytes and reads until the connection is closed; `None` if that is not an answer.
pub(crate) async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    bytes: &[u8],
) -> Option<Answer> {
    let exchange = async {
        // The server may answer and close the connection before it has read everything.
        drop(stream.write_all(bytes).await);
        drop(stream.flush().await);
        let mut read = Vec::new();
        drop(stream.read_to_end(&mut read).await);
        read
    };
    Answer::parse(&timeout(SOON, exchange).await.expect("the connection is closed in time"))
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(Self { status, headers, body: bytes[end + 4..].to_vec() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Asserts the status; the panic message contains the answer.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?} {}", self.headers, self.text());
        self
    }

    /// Asserts that the answer is a problem of this type with this text in its detail.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, word: &str, said: &str) -> Self {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
        let problem = answer.json();
        assert_eq!(problem["type"], format!("urn:bellwether:problem:{word}"), "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["request_id"].as_str(), answer.header("x-request-id"), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{said:?} is not in {detail:?}");
        assert!(problem["remedy"].is_string(), "{problem}");
        answer
    }

    /// Asserts what the problem says that the caller can do.
    #[track_caller]
    pub(crate) fn remedy(&self, word: &str) {
        let problem = self.json();
        assert_eq!(problem["remedy"], word, "{problem}");
    }
}
