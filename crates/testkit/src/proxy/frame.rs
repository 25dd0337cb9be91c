//! ZooKeeper's framing: a big-endian length, then that many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::raw::be_i32;

/// ZooKeeper refuses a request of 1 MiB by default and replies stay near it; above this it is no frame.
const LONGEST: u32 = 64 << 20;

/// The xid of a watch event.
pub(super) const EVENT_XID: i32 = -1;

/// A whole frame, its length prefix included.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
}

impl Frame {
    /// Reads one frame; an end of file, even inside a frame, is an error.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let length = from.read_u32().await?;
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ZooKeeper frame"));
        }
        let mut bytes = vec![0; 4 + length as usize];
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        from.read_exact(&mut bytes[4..]).await?;
        Ok(Self { bytes })
    }

    /// All behind the length prefix.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[4..]
    }

    /// The xid, of any frame behind the handshake.
    pub(super) fn xid(&self) -> Option<i32> {
        be_i32(self.body(), 0)
    }

    /// The opcode, of any request behind the handshake.
    pub(super) fn op(&self) -> Option<i32> {
        be_i32(self.body(), 4)
    }
}
