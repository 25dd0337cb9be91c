//! A stream that requires its peer to read.
//!
//! hyper limits how long a request may take to arrive, but not how long an answer may take to be sent: a peer that
//! reads nothing would keep its connection and its buffers forever, and so would one that reads a byte now and then.
//!
//! So a peer has an allowance of time. The time in which a write is blocked uses it up, and each byte that is written gives
//! back the time that the peer may take for it. Without an allowance the write is an error, which ends the connection. Time
//! in which nothing is to be sent does not count. Callers can observe whether a write is blocked.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How fast a peer must read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How long it may read nothing.
    pub(super) pause: Duration,
    /// Bytes per second, averaged over that time.
    pub(super) rate: u32,
}

/// The stream, and the timer of a blocked write.
pub(super) struct WriteTimeout<S> {
    stream: S,
    pace: Pace,
    allowance: Duration,
    stalled: Option<Stalled>,
    waits: Arc<AtomicBool>,
}

/// A blocked write.
struct Stalled {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, pace: Pace) -> Self {
        Self { stream, pace, allowance: pace.pause, stalled: None, waits: Arc::default() }
    }

    /// Whether the last write is blocked by the peer. Only the task that polls the stream may rely on it.
    pub(super) fn waits(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.waits)
    }

    fn wrote(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let bytes = match &written {
            Poll::Ready(Ok(bytes)) => *bytes,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        self.watch(cx, written, bytes)
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
        bytes: usize,
    ) -> Poll<io::Result<T>> {
        self.waits.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            let blocked = self.stalled.take().map_or(Duration::ZERO, |stalled| stalled.since.elapsed());
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            let earned = Duration::from_secs(1).mul_f64(f64::from(bytes) / f64::from(self.pace.rate));
            self.allowance = (self.allowance.saturating_sub(blocked) + earned).min(self.pace.pause);
            return written;
        }
        let (since, allowance) = (Instant::now(), self.allowance);
        let timer = || Stalled { since, timer: Box::pin(sleep_until(since + allowance)) };
        match self.stalled.get_or_insert_with(timer).timer.as_mut().poll(cx) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer reads too slowly")))
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
        self.wrote(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wrote(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, flushed, 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, shut, 0)
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
        let mut near = WriteTimeout::new(near, Pace { pause: TIMEOUT, rate: 1 });
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

    #[tokio::test]
    async fn a_peer_that_reads_a_byte_now_and_then_is_disconnected_and_one_that_keeps_the_pace_is_not() {
        let reads = async |every: Duration, bytes: usize| {
            let (near, mut far) = tokio::io::duplex(4);
            let pace = Pace { pause: 4 * TIMEOUT, rate: 10 };
            let mut near = WriteTimeout::new(near, pace);
            let started = Instant::now();
            let slow = tokio::spawn(async move {
                let mut read = vec![0; bytes];
                loop {
                    tokio::time::sleep(every).await;
                    if far.read_exact(&mut read).await.is_err() {
                        break;
                    }
                }
            });
            let written = near.write_all(&[0; 300]).await;
            slow.abort();
            (written.map_err(|error| error.kind()), started.elapsed())
        };
        let (cut, after) = reads(3 * TIMEOUT, 1).await;
        assert_eq!(cut, Err(io::ErrorKind::TimedOut));
        assert!(after < 20 * TIMEOUT, "{after:?}");
        let (complete, after) = reads(TIMEOUT / 10, 4).await;
        assert_eq!(complete, Ok(()));
        assert!(after > 5 * TIMEOUT, "{after:?}");
    }
}
