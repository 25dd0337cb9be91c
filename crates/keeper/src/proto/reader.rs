//! Decodes primitives from one frame. No length is trusted.

use std::sync::Arc;

use super::{Acl, Id};

/// A frame that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {at}")]
pub struct Malformed {
    /// The field.
    pub what: &'static str,
    /// The offset in the frame.
    pub at: usize,
}

/// The size of an ACL entry with empty texts: permissions and two lengths.
const SMALLEST_ACL: usize = 12;
/// The length of the null vector.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// The size of an empty string.
pub(super) const SMALLEST_STRING: usize = 4;

/// A position in a frame. As in Java, bytes after the last field are ignored.
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

    /// Every byte except 0 is true.
    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        self.array("boolean").map(|[byte]| byte != 0)
    }

    /// Reads a length and that many bytes; length −1 is the null buffer.
    pub(super) fn buffer(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| self.malformed("length of a buffer"))?;
        self.take(length, "buffer").map(Some)
    }

    /// Reads the data of a znode.
    pub(super) fn data(&mut self) -> Result<Option<Arc<[u8]>>, Malformed> {
        Ok(self.buffer()?.map(Arc::from))
    }

    /// Reads a string. As in Java, invalid UTF-8 becomes U+FFFD, which is not allowed in paths.
    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        let bytes = self.buffer()?.ok_or_else(|| self.malformed("null string"))?;
        Ok(text(bytes))
    }

    /// As [`string`](Self::string), but null is the empty string.
    pub(super) fn string_or_empty(&mut self) -> Result<String, Malformed> {
        Ok(self.buffer()?.map(text).unwrap_or_default())
    }

    /// Reads the length of a vector whose elements take at least `smallest` bytes. Java loops up to the length, so a
    /// negative length other than −1, the null vector, is an empty vector.
    pub(super) fn count(&mut self, smallest: usize) -> Result<usize, Malformed> {
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

    /// Reads an ACL. The null list is read as the empty list: it is an invalid ACL and not a malformed request.
    pub(super) fn acl(&mut self) -> Result<Vec<Acl>, Malformed> {
        if self.rest().starts_with(&NULL) {
            self.i32()?;
            return Ok(Vec::new());
        }
        (0..self.count(SMALLEST_ACL)?)
            .map(|_| {
                let permissions = self.i32()?;
                // A null scheme is an invalid ACL and not a malformed request; no scheme is named "".
                let scheme = self.string_or_empty()?;
                // A null id is malformed only for schemes that use the id: kazoo sends a null id with `auth`.
                let id = match scheme.as_str() {
                    "world" | "digest" | "ip" => self.string()?,
                    _ => self.string_or_empty()?,
                };
                Ok(Acl { permissions, id: Id { scheme, id } })
            })
            .collect()
    }
}

/// Decodes text as Java does: an encoded surrogate becomes one U+FFFD, and other invalid bytes are replaced as in Rust.
fn text(bytes: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.to_owned();
    }
    let (mut text, mut rest) = (String::new(), bytes);
    while let Some(at) = rest.windows(3).position(is_surrogate) {
        text.push_str(&String::from_utf8_lossy(&rest[..at]));
        text.push(char::REPLACEMENT_CHARACTER);
        rest = &rest[at + 3..];
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

/// Returns whether the bytes encode a surrogate, U+D800 to U+DFFF, in the UTF-8 scheme.
fn is_surrogate(bytes: &[u8]) -> bool {
    matches!(bytes, [0xed, 0xa0..=0xbf, 0x80..=0xbf])
}
