//! ZooKeeper's framing: a big-endian length, then that many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::raw::be_i32;

/// By default ZooKeeper rejects requests of 1 MiB, and replies have a similar size; a longer one is not a frame.
const LONGEST: u32 = 64 << 20;

/// The xid of a watch event.
pub(super) const EVENT_XID: i32 = -1;

/// A complete frame, including its length prefix.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
}

impl Frame {
    /// Reads one frame. End of file is an error, both inside and between frames.
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

    /// Returns the bytes after the length prefix.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[4..]
    }

    /// Returns the xid; valid for every frame after the handshake.
    pub(super) fn xid(&self) -> Option<i32> {
        be_i32(self.body(), 0)
    }

    /// Returns the opcode; valid for every request after the handshake.
    pub(super) fn op(&self) -> Option<i32> {
        be_i32(self.body(), 4)
    }
}
