//! A socket with frames.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A server that takes longer has hung. Far longer than a garbage collection on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time after which the run checks with a ping whether a reply will come at all.
const DOUBT: Duration = Duration::from_millis(500);

/// One connection to a server under test.
#[derive(Debug)]
pub(crate) struct Connection(TcpStream);

/// The result of a read.
#[derive(Debug)]
pub(crate) enum Received {
    Frame(Vec<u8>),
    /// End of stream or a reset: which of them depends on the bytes that the server did not read.
    Closed,
    /// Nothing within [`PATIENCE`].
    Silence,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the server under test listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("the duration is not zero");
        stream.set_nodelay(true).expect("a TCP socket has this option");
        Self(stream)
    }

    /// Sends the bytes unchanged. If the server has closed the connection, the next [`receive`](Self::receive) reports
    /// it.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        drop(self.0.write_all(bytes));
    }

    /// Closes the sending side.
    pub(crate) fn end(&mut self) {
        drop(self.0.shutdown(Shutdown::Write));
    }

    /// Returns whether bytes or the end of the stream arrive within [`DOUBT`].
    pub(crate) fn comes(&mut self) -> bool {
        self.0.set_read_timeout(Some(DOUBT)).expect("the duration is not zero");
        let nothing = self.0.peek(&mut [0]).is_err_and(|error| is_patience_over(&error));
        self.0.set_read_timeout(Some(PATIENCE)).expect("the duration is not zero");
        !nothing
    }

    pub(crate) fn receive(&mut self) -> Received {
        let mut length = [0; 4];
        let frame = self.0.read_exact(&mut length).and_then(|()| {
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            self.0.read_exact(&mut frame)?;
            Ok(frame)
        });
        match frame {
            Ok(frame) => Received::Frame(frame),
            Err(error) if is_patience_over(&error) => Received::Silence,
            Err(_) => Received::Closed,
        }
    }
}

fn is_patience_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns a frame: the length and the content.
pub(crate) fn framed(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("test frames are far below 4 GiB");
    [&length.to_be_bytes(), content].concat()
}
