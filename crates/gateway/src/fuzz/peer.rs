//! The other end of a connection: it has sent everything, and takes whatever it is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) struct Peer {
    sent: Vec<u8>,
    read: usize,
    /// Whether it disconnects after its last byte. Otherwise it stays connected and silent.
    disconnects: bool,
}

impl Peer {
    pub(super) fn new(sent: &[u8], disconnects: bool) -> Self {
        Self { sent: sent.to_vec(), read: 0, disconnects }
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.sent[self.read..];
        let count = rest.len().min(into.remaining());
        if count == 0 && !self.disconnects {
            return Poll::Pending;
        }
        into.put_slice(&rest[..count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Peer {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
