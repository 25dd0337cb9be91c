//! One znode in memory.

use std::sync::Arc;

use crate::by_path::Paths;
use crate::proto::{Acl, Stat};
use crate::store::NodeRow;

/// One znode. There can be millions, so fields that most znodes do not need are behind a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) pzxid: i64,
    pub(super) ctime: i64,
    pub(super) mtime: i64,
    pub(super) version: i32,
    /// The number of created children: the next sequence number. Deletions do not count.
    pub(super) creates: i32,
    pub(super) aversion: i32,
    pub(super) owner: Owner,
    pub(super) acl: Arc<[Acl]>,
    pub(super) data: Option<Arc<[u8]>>,
    /// Full paths, shared with the keys of the tree. Unsorted: keeping the paths of 100,000 siblings sorted would
    /// compare their long common prefixes, each in a different place in memory.
    children: Option<Box<Paths>>,
}

/// The lifetime of a znode, encoded as the `ephemeralOwner` of its stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(pub(super) i64);

/// The decoded lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Until deleted.
    Persistent,
    /// Until this session ends.
    Session(i64),
    /// Until its last child is deleted.
    Container,
    /// Until this number of milliseconds passes without a change.
    Ttl(i64),
}

const CONTAINER: i64 = i64::MIN;
/// The top byte of a TTL; session ids never have it.
const TTL_MARK: u64 = 0xff << 56;
/// The bits that contain the milliseconds.
const TTL_BITS: u64 = (1 << 40) - 1;

impl Owner {
    pub(super) const PERSISTENT: Self = Self(0);
    pub(super) const CONTAINER: Self = Self(CONTAINER);

    /// Returns `None` if the TTL is out of range.
    pub(super) fn ttl(ms: i64) -> Option<Self> {
        let ms = u64::try_from(ms).ok().filter(|ms| (1..=TTL_BITS).contains(ms))?;
        Some(Self((TTL_MARK | ms).cast_signed()))
    }

    /// Returns the owner that clients see: the markers are internal.
    fn session(self) -> i64 {
        match self.lifetime() {
            Lifetime::Session(session) => session,
            Lifetime::Persistent | Lifetime::Container | Lifetime::Ttl(_) => 0,
        }
    }

    pub(super) fn lifetime(self) -> Lifetime {
        match self.0 {
            0 => Lifetime::Persistent,
            CONTAINER => Lifetime::Container,
            number if number.cast_unsigned() & TTL_MARK == TTL_MARK => {
                Lifetime::Ttl((number.cast_unsigned() & TTL_BITS).cast_signed())
            }
            session => Lifetime::Session(session),
        }
    }
}

impl Node {
    pub(super) fn new(
        zxid: i64,
        wall_ms: i64,
        owner: Owner,
        acl: Arc<[Acl]>,
        data: Option<Arc<[u8]>>,
    ) -> Self {
        Self {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: wall_ms,
            mtime: wall_ms,
            version: 0,
            creates: 0,
            aversion: 0,
            owner,
            acl,
            data,
            children: None,
        }
    }

    /// Creates a znode without its children, which have their own rows.
    pub(super) fn from_row(row: &NodeRow, acl: Arc<[Acl]>, data: Option<Arc<[u8]>>) -> Self {
        Self {
            czxid: row.czxid,
            mzxid: row.mzxid,
            pzxid: row.pzxid,
            ctime: row.ctime,
            mtime: row.mtime,
            version: row.version,
            creates: row.creates,
            aversion: row.aversion,
            owner: Owner(row.ephemeral_owner),
            acl,
            data,
            children: None,
        }
    }

    pub(super) fn row(&self) -> NodeRow {
        NodeRow {
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            creates: self.creates,
            aversion: self.aversion,
            ephemeral_owner: self.owner.0,
            acl: Arc::clone(&self.acl),
        }
    }

    pub(super) fn stat(&self) -> Stat {
        let children = count(self.child_count());
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // Creations plus deletions: each created child that no longer exists counts twice.
            cversion: self.creates.wrapping_mul(2).wrapping_sub(children),
            aversion: self.aversion,
            ephemeral_owner: self.owner.session(),
            data_length: count(self.data_length()),
            num_children: children,
            pzxid: self.pzxid,
        }
    }

    pub(super) fn data_length(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.len())
    }

    pub(super) fn child_count(&self) -> usize {
        self.children.as_ref().map_or(0, |children| children.len())
    }

    /// Returns the full paths of the children, unsorted.
    pub(super) fn children(&self) -> impl Iterator<Item = &Arc<str>> {
        self.children.iter().flat_map(|children| children.iter())
    }

    pub(super) fn add_child(&mut self, path: Arc<str>) {
        self.children.get_or_insert_default().insert(path);
    }

    pub(super) fn remove_child(&mut self, path: &str) {
        if let Some(children) = &mut self.children {
            children.remove(path);
            if children.is_empty() {
                self.children = None;
            }
        }
    }
}

/// Converts a length to the protocol's 32 bits, saturating.
pub(super) fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_encodes_containers_ttls_and_sessions() {
        let ttl = |ms| Owner::ttl(ms).map(Owner::lifetime);
        assert_eq!(Owner::PERSISTENT.lifetime(), Lifetime::Persistent);
        assert_eq!(Owner::CONTAINER.lifetime(), Lifetime::Container);
        assert_eq!(ttl(1), Some(Lifetime::Ttl(1)));
        assert_eq!(ttl((1 << 40) - 1), Some(Lifetime::Ttl((1 << 40) - 1)));
        assert_eq!((ttl(0), ttl(-1), ttl(1 << 40)), (None, None, None));
        assert_eq!(Owner(0x0100_0000_0000_0001).lifetime(), Lifetime::Session(0x0100_0000_0000_0001));
    }
}
