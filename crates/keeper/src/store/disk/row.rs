//! The encoding of rows.
//!
//! ```text
//!  node row     version │ data │ czxid │ mzxid−czxid │ pzxid−czxid │ ctime │ mtime−ctime │ version │ creates
//!               │ aversion │ owner │ ACL
//!  data         0: null │ 1: in a separate row │ n+2, then n bytes
//!  ACL          0: world:anyone with all permissions │ n+1, then n × (permissions │ scheme │ id)
//!  session row  version │ timeout │ password
//!  text, bytes  length │ bytes
//! ```
//!
//! Numbers are zigzag LEB128: a typical row takes 26 bytes instead of 86, and a batch changes fewer pages. The first
//! byte is the version of the row, so that a later layout can coexist with this one without a rewrite of the file.
//!
//! The decoder is safe for hostile input. It never panics, allocates no more than the length of the row, and accepts
//! exactly the output of the encoder: no trailing bytes, no value out of range.

use std::sync::Arc;

use crate::proto::{Acl, Id};
use crate::store::{NodeRow, SessionRow};

/// The version of the layout above.
pub(super) const ROW_VERSION: u8 = 2;
/// A 64-bit number takes at most ten groups of seven bits.
const MAX_GROUPS: u32 = 10;
/// Permissions, scheme and id take at least one byte each; this limits the count of entries that is accepted.
const MIN_ACL_ENTRY: usize = 3;

/// Data up to this length is part of the znode's row: creating or deleting a znode changes one row instead of one in
/// each of two tables. Longer data has a separate row, so that a parent whose children are created and deleted does not
/// rewrite it each time.
pub(super) const INLINE_BYTES: usize = 1_024;

const NO_DATA: usize = 0;
const DATA_APART: usize = 1;
const DATA_INLINE: usize = 2;

/// The data of a znode, as stored in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowData<'a> {
    /// The null buffer.
    Null,
    /// In the row.
    Inline(&'a [u8]),
    /// In a separate row.
    Apart,
}

impl<'a> RowData<'a> {
    pub(super) fn of(data: Option<&'a [u8]>) -> Self {
        match data {
            None => Self::Null,
            Some(data) if data.len() <= INLINE_BYTES => Self::Inline(data),
            Some(_) => Self::Apart,
        }
    }
}

/// The reason why a row cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// Another version of this program wrote the row, or it is not a row.
    #[error("row version {0} is unknown; this program reads version {ROW_VERSION}")]
    Version(u8),
    /// The row ends inside a field.
    #[error("the row ends inside the field {0}")]
    Short(&'static str),
    /// A number is too long or too large for its field.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// Text is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(&'static str),
    /// Bytes follow the last field.
    #[error("{0} bytes follow the last field")]
    Trailing(usize),
    /// A table contains an invalid key.
    #[error("the key is malformed")]
    Key,
    /// Separate data that no znode's row refers to.
    #[error("the data belongs to no znode with separate data")]
    Orphan,
    /// The separate data of a znode is missing.
    #[error("the data row is missing")]
    NoData,
    /// A change of an unknown type.
    #[error("change {0} is unknown")]
    Change(u8),
    /// A mandatory row is missing.
    #[error("the row is missing")]
    Missing,
}

/// Returns the key of a znode's row and of its separate data: the transaction that created it, then its path. Znodes that were created
/// together usually change and end together, wherever they are in the tree. So their rows share pages.
pub(super) fn key(czxid: i64, path: &str) -> Vec<u8> {
    [&czxid.to_be_bytes(), path.as_bytes()].concat()
}

/// Appends a [`key`] with its length.
pub(super) fn encode_key(czxid: i64, path: &str, to: &mut Vec<u8>) {
    length(size_of_val(&czxid) + path.len(), to);
    to.extend_from_slice(&czxid.to_be_bytes());
    to.extend_from_slice(path.as_bytes());
}

/// Returns the transaction and the path of a key.
pub(super) fn parse_key(key: &[u8]) -> Result<(i64, &str), RowError> {
    let (czxid, path) = key.split_first_chunk().ok_or(RowError::Key)?;
    let path = std::str::from_utf8(path).map_err(|_| RowError::NotUtf8("path"))?;
    if path.starts_with('/') { Ok((i64::from_be_bytes(*czxid), path)) } else { Err(RowError::Key) }
}

/// Appends the row of a znode.
pub(super) fn encode_node(row: &NodeRow, data: RowData<'_>, to: &mut Vec<u8>) {
    to.push(ROW_VERSION);
    match data {
        RowData::Null => length(NO_DATA, to),
        RowData::Apart => length(DATA_APART, to),
        RowData::Inline(data) => {
            length(data.len() + DATA_INLINE, to);
            to.extend_from_slice(data);
        }
    }
    number(row.czxid, to);
    number(row.mzxid.wrapping_sub(row.czxid), to);
    number(row.pzxid.wrapping_sub(row.czxid), to);
    number(row.ctime, to);
    number(row.mtime.wrapping_sub(row.ctime), to);
    number(row.version.into(), to);
    number(row.creates.into(), to);
    number(row.aversion.into(), to);
    number(row.ephemeral_owner, to);
    encode_acl(&row.acl, to);
}

/// Decodes the row of a znode. Equal ACLs are shared through `acls`, because few different ones exist.
pub(super) fn decode_node<'a>(
    bytes: &'a [u8],
    acls: &mut AclPool,
) -> Result<(NodeRow, RowData<'a>), RowError> {
    let mut from = Input::versioned(bytes)?;
    let data = from.data()?;
    let czxid = from.number("czxid")?;
    let mzxid = from.number("mzxid")?.wrapping_add(czxid);
    let pzxid = from.number("pzxid")?.wrapping_add(czxid);
    let ctime = from.number("ctime")?;
    let mtime = from.number("mtime")?.wrapping_add(ctime);
    let row = NodeRow {
        czxid,
        mzxid,
        pzxid,
        ctime,
        mtime,
        version: from.small("version")?,
        creates: from.small("creates")?,
        aversion: from.small("aversion")?,
        ephemeral_owner: from.number("owner")?,
        acl: acls.shared(from.acl()?),
    };
    from.end()?;
    Ok((row, data))
}

/// Returns whether a row has separate data.
pub(super) fn is_apart(bytes: &[u8]) -> Result<bool, RowError> {
    Ok(Input::versioned(bytes)?.data()? == RowData::Apart)
}

/// Appends the row of a session.
pub(super) fn encode_session(row: &SessionRow, to: &mut Vec<u8>) {
    to.push(ROW_VERSION);
    number(row.timeout_ms.into(), to);
    bytes(&row.password, to);
}

/// Decodes the row of a session.
pub(super) fn decode_session(bytes: &[u8]) -> Result<SessionRow, RowError> {
    let mut from = Input::versioned(bytes)?;
    let row = SessionRow { timeout_ms: from.small("timeout")?, password: from.bytes("password")?.to_vec() };
    from.end()?;
    Ok(row)
}

/// ACLs that were decoded before.
#[derive(Debug, Default)]
pub(super) struct AclPool(std::collections::HashSet<Arc<[Acl]>>);

impl AclPool {
    fn shared(&mut self, acl: Vec<Acl>) -> Arc<[Acl]> {
        if let Some(known) = self.0.get(acl.as_slice()) {
            return Arc::clone(known);
        }
        let acl: Arc<[Acl]> = acl.into();
        self.0.insert(Arc::clone(&acl));
        acl
    }
}

/// All permissions for world:anyone, the ACL of nearly every znode.
fn open_acl() -> Acl {
    Acl { permissions: 31, id: Id { scheme: "world".to_owned(), id: "anyone".to_owned() } }
}

fn encode_acl(acl: &[Acl], to: &mut Vec<u8>) {
    if let [one] = acl
        && one.permissions == 31
        && one.id.scheme == "world"
        && one.id.id == "anyone"
    {
        return number(0, to);
    }
    length(acl.len() + 1, to);
    for entry in acl {
        number(entry.permissions.into(), to);
        bytes(entry.id.scheme.as_bytes(), to);
        bytes(entry.id.id.as_bytes(), to);
    }
}

pub(super) fn number(value: i64, to: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

fn length(value: usize, to: &mut Vec<u8>) {
    number(i64::try_from(value).expect("a length in memory fits into an i64"), to);
}

pub(super) fn bytes(value: &[u8], to: &mut Vec<u8>) {
    length(value.len(), to);
    to.extend_from_slice(value);
}

/// The bytes left to read.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn versioned(bytes: &'a [u8]) -> Result<Self, RowError> {
        match bytes.split_first() {
            Some((&ROW_VERSION, rest)) => Ok(Self(rest)),
            Some((&other, _)) => Err(RowError::Version(other)),
            None => Err(RowError::Short("version")),
        }
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<i64, RowError> {
        let mut value = 0_u64;
        for group in 0..MAX_GROUPS {
            let (&byte, rest) = self.0.split_first().ok_or(RowError::Short(field))?;
            self.0 = rest;
            // The tenth group has one bit.
            if group == MAX_GROUPS - 1 && byte > 1 {
                return Err(RowError::Range(field));
            }
            value |= u64::from(byte & 0x7f) << (7 * group);
            if byte < 0x80 {
                // A last group of zero is a second encoding of a shorter number.
                if byte == 0 && group > 0 {
                    return Err(RowError::Range(field));
                }
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(RowError::Range(field))
    }

    fn small(&mut self, field: &'static str) -> Result<i32, RowError> {
        i32::try_from(self.number(field)?).map_err(|_| RowError::Range(field))
    }

    fn length(&mut self, field: &'static str) -> Result<usize, RowError> {
        usize::try_from(self.number(field)?).map_err(|_| RowError::Range(field))
    }

    pub(super) fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], RowError> {
        let length = self.length(field)?;
        self.take(length, field)
    }

    fn data(&mut self) -> Result<RowData<'a>, RowError> {
        match self.length("data")? {
            NO_DATA => Ok(RowData::Null),
            DATA_APART => Ok(RowData::Apart),
            length if length - DATA_INLINE <= INLINE_BYTES => {
                Ok(RowData::Inline(self.take(length - DATA_INLINE, "data")?))
            }
            _ => Err(RowError::Range("data")),
        }
    }

    fn take(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], RowError> {
        let (value, rest) = self.0.split_at_checked(length).ok_or(RowError::Short(field))?;
        self.0 = rest;
        Ok(value)
    }

    fn text(&mut self, field: &'static str) -> Result<String, RowError> {
        std::str::from_utf8(self.bytes(field)?).map(str::to_owned).map_err(|_| RowError::NotUtf8(field))
    }

    fn acl(&mut self) -> Result<Vec<Acl>, RowError> {
        let Some(count) = self.length("ACL")?.checked_sub(1) else {
            return Ok(vec![open_acl()]);
        };
        if count > self.0.len() / MIN_ACL_ENTRY {
            return Err(RowError::Short("ACL"));
        }
        (0..count)
            .map(|_| {
                Ok(Acl {
                    permissions: self.small("permissions")?,
                    id: Id { scheme: self.text("scheme")?, id: self.text("id")? },
                })
            })
            .collect()
    }

    /// Returns the next byte; `None` at the end.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Returns the number of bytes left.
    pub(super) fn rest(&self) -> usize {
        self.0.len()
    }

    pub(super) fn end(self) -> Result<(), RowError> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(RowError::Trailing(more)),
        }
    }
}
