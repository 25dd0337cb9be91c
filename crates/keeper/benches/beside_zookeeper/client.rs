//! A client that is not the bottleneck: one blocking socket, requests encoded in advance, one write and one read per
//! iteration.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::wire;

/// Longer than any pause of a connection in a measurement.
const SESSION_MS: i32 = 30_000;
/// A server without a reply for this time has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const BUFFER: usize = 256 << 10;

/// A connection with its own session.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The number of bytes in the buffer.
    filled: usize,
}

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) replies: u64,
    pub(crate) elapsed: Duration,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut client = Self { stream, buffer: vec![0; BUFFER], filled: 0 };
        client.stream.write_all(&wire::connect(SESSION_MS))?;
        let mut answered = 0;
        while answered == 0 {
            answered = client.read(|_| Ok(()))?;
        }
        Ok(client)
    }

    /// Sends the requests that `next` appends, with at most `window` unanswered, until it appends none; returns after
    /// the last reply. A reply with an error ends the run with an error.
    pub(crate) fn run(
        &mut self,
        window: usize,
        multi: bool,
        mut next: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> io::Result<Run> {
        let begin = Instant::now();
        let (mut sent, mut replies) = (0, 0);
        let mut more = true;
        let mut out = Vec::new();
        loop {
            while more && sent - replies < window as u64 {
                more = next(&mut out);
                sent += u64::from(more);
            }
            self.stream.write_all(&out)?;
            out.clear();
            if sent == replies {
                return Ok(Run { replies, elapsed: begin.elapsed() });
            }
            replies += self.read(|frame| match wire::succeeded(frame, multi) {
                true => Ok(()),
                false => Err(io::Error::other(format!(
                    "the server rejected a request: {:?}",
                    &frame[..frame.len().min(32)]
                ))),
            })?;
        }
    }

    /// Sends one request and waits for its reply.
    pub(crate) fn call(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut once = Some(frame);
        self.run(1, false, |out| match once.take() {
            Some(frame) => {
                out.extend(frame);
                true
            }
            None => false,
        })?;
        Ok(())
    }

    /// Waits for `expected` notifications.
    pub(crate) fn notifications(&mut self, expected: u64) -> io::Result<()> {
        let mut seen = 0;
        while seen < expected {
            seen += self.read(|frame| match wire::xid(frame) {
                Some(-1) => Ok(()),
                _ => Err(io::Error::other("a reply without a request")),
            })?;
        }
        Ok(())
    }

    /// Reads once and passes every complete frame to `seen`.
    fn read(&mut self, mut seen: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
        let read = self.stream.read(&mut self.buffer[self.filled..])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.filled += read;
        let (mut at, mut frames) = (0, 0);
        while let Some(length) = self.buffer[at..self.filled].first_chunk() {
            let length = u32::from_be_bytes(*length) as usize;
            if length + 4 > self.buffer.len() {
                self.buffer.resize(length + 4, 0);
            }
            let Some(frame) = self.buffer[at..self.filled].get(4..4 + length) else { break };
            seen(frame)?;
            frames += 1;
            at += 4 + length;
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(frames)
    }
}
