//! A minimal HTTP client for submissions: one request after another on a keep-alive connection.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(at: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { stream, read: Vec::with_capacity(4_096) })
    }

    /// Submits one job and reads the complete answer.
    pub(super) async fn submit(&mut self, body: &str) -> Result<(), String> {
        let length = body.len();
        let request = format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        self.read.clear();
        loop {
            let read = self.stream.read_buf(&mut self.read).await.map_err(|error| error.to_string())?;
            if read == 0 {
                return Err("the gateway closed a connection".into());
            }
            let Some(end) = end(&self.read) else { continue };
            if self.read.len() >= end {
                break;
            }
        }
        if self.read.starts_with(b"HTTP/1.1 201 ") {
            return Ok(());
        }
        Err(format!("a submission was answered with {}", String::from_utf8_lossy(&self.read)))
    }
}

/// Returns where an answer ends, once its head has been read.
fn end(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&read[..head]).ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some(head + 4 + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_after_its_body() {
        let answer = b"HTTP/1.1 201 Created\r\ncontent-length: 3\r\nx: y\r\n\r\nabc";
        assert_eq!(end(answer), Some(answer.len()));
        assert_eq!(end(&answer[..40]), None);
        assert_eq!(end(b"HTTP/1.1 204 No Content\r\n\r\n"), Some(27));
    }
}
