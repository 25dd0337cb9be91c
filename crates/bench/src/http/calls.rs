//! A minimal HTTP client: one request after another on a keep-alive connection.

use std::net::SocketAddr;
use std::ops::Range;

use bellwether::error::chain;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(at: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(at).await.map_err(|error| chain(&error))?;
        stream.set_nodelay(true).map_err(|error| chain(&error))?;
        Ok(Self { stream, read: Vec::with_capacity(4_096) })
    }

    /// Sends a request and returns the body of its answer, which must have the status `expected`.
    pub(super) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        expected: u16,
    ) -> Result<&[u8], String> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await.map_err(|error| chain(&error))?;
        self.read.clear();
        let found = loop {
            let read = self.stream.read_buf(&mut self.read).await.map_err(|error| chain(&error))?;
            if read == 0 {
                return Err("the gateway closed a connection".into());
            }
            match body_of(&self.read) {
                Some(found) if self.read.len() >= found.end => break found,
                Some(_) | None => {}
            }
        };
        if self.read.starts_with(format!("HTTP/1.1 {expected} ").as_bytes()) {
            return Ok(&self.read[found]);
        }
        Err(format!("{method} {path} was answered with {}", String::from_utf8_lossy(&self.read)))
    }
}

/// Returns where the body of an answer is, once its head has been read.
fn body_of(read: &[u8]) -> Option<Range<usize>> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&read[..head]).ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let begin = head + 4;
    Some(begin..begin + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_after_its_body() {
        let answer = b"HTTP/1.1 201 Created\r\ncontent-length: 3\r\nx: y\r\n\r\nabc";
        assert_eq!(body_of(answer).map(|body| &answer[body]), Some(&b"abc"[..]));
        assert_eq!(body_of(&answer[..40]), None);
        assert_eq!(body_of(b"HTTP/1.1 204 No Content\r\n\r\n"), Some(27..27));
    }
}
