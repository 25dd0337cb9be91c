//! The subset of ZooKeeper's encoding that is needed here, in logs and on the wire. `None` is the end of the data, or
//! invalid data.

use bellwether_sim::history::Bytes;

/// The remaining data.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// Reads a buffer. A null buffer counts as empty.
    pub(crate) fn buffer(&mut self) -> Option<&'a [u8]> {
        match self.int()? {
            -1 => Some(&[]),
            length => self.bytes(usize::try_from(length).ok()?),
        }
    }

    pub(crate) fn data(&mut self) -> Option<Bytes> {
        Some(self.buffer()?.to_vec().into())
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.buffer()?.to_vec()).ok()
    }

    pub(crate) fn acl(&mut self) -> Option<()> {
        for _ in 0..self.int()?.max(0) {
            self.int()?;
            self.buffer()?;
            self.buffer()?;
        }
        Some(())
    }
}
