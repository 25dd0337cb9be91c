//! A stream that requires its peer to read.
//!
//! hyper limits how long a request may take to arrive, but not how long an answer may take to be sent: a peer that
//! reads nothing would keep its connection and its buffers forever. Here a write that is blocked for too long is an
//! error, which ends the connection. Any progress restarts the timer. Callers can observe whether a write is blocked.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The stream, and the timer of a blocked write.
pub(super) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    waits: Arc<AtomicBool>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, stalled: None, waits: Arc::default() }
    }

    /// Whether the last write is blocked by the peer. Only the task that polls the stream may rely on it.
    pub(super) fn waits(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.waits)
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.waits.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let deadline = Instant::now() + self.timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn a_peer_that_stops_reading_is_disconnected_and_a_slow_peer_is_not() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = WriteTimeout::new(near, TIMEOUT);
        let slow = async {
            let mut read = [0; 4];
            for _ in 0..3 {
                tokio::time::sleep(TIMEOUT / 5).await;
                far.read_exact(&mut read).await.unwrap();
            }
            far
        };
        let (written, far) = tokio::join!(near.write_all(&[0; 16]), slow);
        written.unwrap();
        let error = near.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
