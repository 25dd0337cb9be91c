//! Event streams are taken over from hyper.
//!
//! hyper holds two buffers of 8 KiB per connection, and memory for every state of a connection. An event stream lives
//! for hours with a few bytes per minute, and there are thousands of them. So once hyper has written the head of such
//! an answer, the connection is taken over and the memory of hyper is freed:
//!
//! ```text
//! request ──▶ hyper ──▶ route: an answer marked EventStream ──▶ hyper writes its head, asks for its body
//!                                                              └─▶ Exit ──▶ the body is written here, chunk by chunk
//! ```
//!
//! **Limits.** The connection may be taken over only when hyper has written everything: it asked for the body, so the
//! head is in its buffer, and its last write did not block, so the buffer is empty. An answer without a chunked body
//! (HTTP/1.0) or without a body (HEAD) stays with hyper. The connection ends with the answer, and the head says
//! `Connection: close`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use axum::body::{Body, Bytes};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Method, Version};
use futures::stream;
use http_body_util::BodyExt;
use hyper::{Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Marks an answer, in its extensions, whose body is a stream that lasts as long as the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventStream;

/// Takes the body of an answer from hyper. Shared by the service that hyper calls, the stream that hyper writes to, and
/// the task that drives hyper. One task polls all three.
#[derive(Debug)]
pub(super) struct Exit {
    body: Mutex<Option<Body>>,
    /// Whether hyper's last write is blocked.
    waits: Arc<AtomicBool>,
}

impl Exit {
    pub(super) fn new(waits: Arc<AtomicBool>) -> Self {
        Self { body: Mutex::default(), waits }
    }

    /// Whether an answer to this request can leave hyper.
    pub(super) fn serves<B>(request: &Request<B>) -> bool {
        request.version() == Version::HTTP_11 && request.method() != Method::HEAD
    }

    /// Returns the answer for hyper. For an event stream this is the head with a body that yields nothing.
    pub(super) fn answer(self: Arc<Self>, answer: Response<Body>) -> Response<Body> {
        if answer.extensions().get::<EventStream>().is_none() {
            return answer;
        }
        let (mut head, body) = answer.into_parts();
        head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let mut body = Some(body);
        let silent = stream::poll_fn(move |_| {
            // hyper polls the body for the first time.
            if let Some(body) = body.take() {
                *self.body.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
            }
            Poll::<Option<io::Result<Bytes>>>::Pending
        });
        Response::from_parts(head, Body::from_stream(silent))
    }

    /// Returns the body to write from now on, once hyper has nothing left to write.
    pub(super) fn taken(&self) -> Option<Body> {
        if self.waits.load(Ordering::Relaxed) {
            return None;
        }
        self.body.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Writes a body in chunks until the body ends, which closes the connection, or until the peer disconnects. Input of
/// the peer is ignored, because the connection ends with this answer.
pub(super) async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    mut body: Body,
) -> io::Result<()> {
    let mut ignored = [0; 64];
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            read = stream.read(&mut ignored) => match read? {
                0 => return Ok(()),
                _ => continue,
            },
        };
        let Some(frame) = frame else {
            stream.write_all(b"0\r\n\r\n").await?;
            return stream.shutdown().await;
        };
        // An event stream has no trailers. An empty chunk would end the body.
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
        if !data.is_empty() {
            stream.write_all(&chunk(&data)).await?;
            stream.flush().await?;
        }
    }
}

fn chunk(data: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::StreamExt;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn body(parts: &[&'static str]) -> Body {
        Body::from_stream(stream::iter(parts.to_vec()).map(Ok::<_, io::Error>))
    }

    #[tokio::test]
    async fn a_body_is_written_in_chunks_and_its_end_ends_the_connection() {
        let (near, mut far) = tokio::io::duplex(1_024);
        write(near, body(&["a: 1\n\n", "", "0123456789abcdef"])).await.unwrap();
        let mut read = String::new();
        far.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "6\r\na: 1\n\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn input_of_the_peer_is_ignored_and_its_disconnect_is_detected() {
        let (near, mut far) = tokio::io::duplex(16);
        let silent = Body::from_stream(stream::pending::<io::Result<Bytes>>());
        let written = tokio::spawn(write(near, silent));
        far.write_all(&[b'x'; 1_000]).await.unwrap();
        assert!(!written.is_finished());
        drop(far);
        timeout(SOON, written).await.expect("the disconnect is detected").unwrap().unwrap();
    }

    #[test]
    fn only_a_marked_answer_leaves_hyper_and_only_after_all_is_written() {
        let waits = Arc::new(AtomicBool::new(false));
        let exit = Arc::new(Exit::new(Arc::clone(&waits)));
        let plain = Arc::clone(&exit).answer(Response::new(Body::from("x")));
        assert!(!plain.headers().contains_key(CONNECTION));
        let mut marked = Response::new(body(&["x"]));
        marked.extensions_mut().insert(EventStream);
        let mut silent = Arc::clone(&exit).answer(marked).into_body();
        assert!(exit.taken().is_none(), "hyper has not polled the body");
        let asked = futures::FutureExt::now_or_never(silent.frame());
        assert!(asked.is_none(), "the body yields nothing");
        waits.store(true, Ordering::Relaxed);
        assert!(exit.taken().is_none(), "the head is not written yet");
        waits.store(false, Ordering::Relaxed);
        assert!(exit.taken().is_some());
        assert!(exit.taken().is_none());
    }
}
