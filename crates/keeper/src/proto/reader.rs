//! Reads the protocol's primitives out of one frame, and believes none of its lengths.

use std::sync::Arc;

use super::{Acl, Id, Stat};

/// The frame's bytes are not what they claim to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {at}")]
pub struct Malformed {
    /// What was being read.
    pub what: &'static str,
    /// Where in the frame.
    pub at: usize,
}

/// An ACL entry without any text: permissions and two lengths.
const SMALLEST_ACL: usize = 12;
/// The length of the null vector.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// A length without text.
const SMALLEST_STRING: usize = 4;

/// A position in a frame. Bytes behind the last field are left alone, as Java leaves them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    frame: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(frame: &'a [u8]) -> Self {
        Self { frame, at: 0 }
    }

    pub(super) fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.frame.len()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.frame[self.at..]
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let Some(taken) = self.rest().get(..length) else { return Err(self.malformed(what)) };
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array("int").map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array("long").map(i64::from_be_bytes)
    }

    /// Any byte but 0 is true.
    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        self.array("boolean").map(|[byte]| byte != 0)
    }

    /// A length and as many bytes; length −1 is the null buffer.
    pub(super) fn buffer(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| self.malformed("length of a buffer"))?;
        self.take(length, "buffer").map(Some)
    }

    /// Data as the tree will hold it.
    pub(super) fn data(&mut self) -> Result<Option<Arc<[u8]>>, Malformed> {
        Ok(self.buffer()?.map(Arc::from))
    }

    /// Text. As in Java, bytes that are no UTF-8 become U+FFFD, which no path may contain.
    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        let bytes = self.buffer()?.ok_or_else(|| self.malformed("null string"))?;
        Ok(text(bytes))
    }

    /// [`string`](Self::string), where Java takes null for nothing.
    pub(super) fn string_or_empty(&mut self) -> Result<String, Malformed> {
        Ok(self.buffer()?.map(text).unwrap_or_default())
    }

    /// The length of a vector whose elements take at least `smallest` bytes each. Java counts up to it, so that any
    /// negative one but −1, which is the null vector, is an empty one.
    fn count(&mut self, smallest: usize) -> Result<usize, Malformed> {
        let count = self.i32()?;
        if count < -1 {
            return Ok(0);
        }
        let possible = (self.frame.len() - self.at) / smallest;
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= possible)
            .ok_or_else(|| self.malformed("length of a vector"))
    }

    pub(super) fn strings(&mut self) -> Result<Vec<String>, Malformed> {
        (0..self.count(SMALLEST_STRING)?).map(|_| self.string()).collect()
    }

    /// The null list is as invalid as the empty one, and no more malformed.
    pub(super) fn acl(&mut self) -> Result<Vec<Acl>, Malformed> {
        if self.rest().starts_with(&NULL) {
            self.i32()?;
            return Ok(Vec::new());
        }
        (0..self.count(SMALLEST_ACL)?)
            .map(|_| {
                let permissions = self.i32()?;
                // A null scheme is an invalid ACL and not a malformed request; no scheme is called "".
                let scheme = self.string_or_empty()?;
                // A null id is malformed only where somebody looks at it: kazoo sends one with `auth`.
                let id = match scheme.as_str() {
                    "world" | "digest" | "ip" => self.string()?,
                    _ => self.string_or_empty()?,
                };
                Ok(Acl { permissions, id: Id { scheme, id } })
            })
            .collect()
    }

    pub(super) fn ids(&mut self) -> Result<Vec<Id>, Malformed> {
        (0..self.count(2 * SMALLEST_STRING)?)
            .map(|_| Ok(Id { scheme: self.string()?, id: self.string()? }))
            .collect()
    }

    pub(super) fn stat(&mut self) -> Result<Stat, Malformed> {
        Ok(Stat {
            czxid: self.i64()?,
            mzxid: self.i64()?,
            ctime: self.i64()?,
            mtime: self.i64()?,
            version: self.i32()?,
            cversion: self.i32()?,
            aversion: self.i32()?,
            ephemeral_owner: self.i64()?,
            data_length: self.i32()?,
            num_children: self.i32()?,
            pzxid: self.i64()?,
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
