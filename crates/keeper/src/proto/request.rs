//! What clients ask.

use std::sync::Arc;

/// The first frame of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The newest transaction that the client has seen: a server behind it must refuse.
    pub last_zxid_seen: i64,
    /// In milliseconds; the server clamps it.
    pub timeout_ms: i32,
    /// 0 asks for a new session.
    pub session_id: i64,
    /// Proves the right to an existing session.
    pub password: Vec<u8>,
    /// Whether a read-only server will do; `None` from clients older than 3.4, whose answer lacks the flag, too.
    pub read_only: Option<bool>,
}

/// Who a permission is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// `world`, `auth`, `digest`, `ip`, `super`, `x509`, …
    pub scheme: String,
    /// The scheme's own spelling.
    pub id: String,
}

/// One entry of an access control list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Acl {
    /// Bits: read 1, write 2, create 4, delete 8, admin 16.
    pub permissions: i32,
    /// For whom.
    pub id: Id,
}

/// What a created znode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateMode {
    /// Stays until deleted.
    Persistent,
    /// Persistent, with a number appended to its name.
    PersistentSequential,
    /// Goes with its session.
    Ephemeral,
    /// Ephemeral, with a number appended to its name.
    EphemeralSequential,
    /// Goes after its last child went.
    Container,
    /// As [`Container`](Self::Container), with a number appended to its name.
    ContainerSequential,
    /// Goes after this many milliseconds without a change, when it has no children.
    Ttl(i64),
    /// As [`Ttl`](Self::Ttl), with a number appended to its name.
    TtlSequential(i64),
}

/// How a watch of `addWatch` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddWatchMode {
    /// On a znode and its list of children.
    Persistent,
    /// On a znode and all below it.
    PersistentRecursive,
}

/// Which watches `checkWatches` and `removeWatches` are about: the number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherKind {
    /// One-shot watches on children.
    Children,
    /// One-shot watches on data and existence.
    Data,
    /// All on the path.
    Any,
    /// Persistent watches (3.9 clients).
    Persistent,
    /// Persistent recursive watches (3.9 clients).
    PersistentRecursive,
}

/// One operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// `create`, `create2`, `createContainer`, `createTTL`; `stat` tells whether the answer has one.
    Create {
        /// Which znode.
        path: String,
        /// Its data. A null buffer is kept apart from an empty one, as the server keeps it.
        data: Option<Arc<[u8]>>,
        /// Who may do what.
        acl: Vec<Acl>,
        /// What it is.
        mode: CreateMode,
        /// Whether the answer carries the new znode's stat.
        stat: bool,
    },
    /// `delete`; version −1 is any.
    Delete {
        /// Which znode.
        path: String,
        /// Its version, or −1.
        version: i32,
    },
    /// `setData`; version −1 is any.
    SetData {
        /// Which znode.
        path: String,
        /// Its new data.
        data: Option<Arc<[u8]>>,
        /// Its version, or −1.
        version: i32,
    },
    /// `check`; version −1 is any.
    Check {
        /// Which znode.
        path: String,
        /// Its version, or −1.
        version: i32,
    },
    /// A code that a multi cannot hold, or a create with flags that nobody knows.
    Unknown {
        /// The code on the wire.
        code: i32,
    },
}

/// What a request was to be that could not be read behind its header. Servers do not treat all of them alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Neither of the others.
    Read,
    /// A single write.
    Write,
    /// A multi.
    Multi,
    /// `auth`
    Auth,
}

/// A request behind its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A single write.
    Write(Op),
    /// All or none.
    Multi(Vec<Op>),
    /// Reads in one round trip: `getData` and `getChildren` only.
    MultiRead(Vec<Request>),
    /// `exists`
    Exists {
        /// Which znode.
        path: String,
        /// Whether to leave a one-shot watch.
        watch: bool,
    },
    /// `getData`
    GetData {
        /// Which znode.
        path: String,
        /// Whether to leave a one-shot watch.
        watch: bool,
    },
    /// `getChildren` and `getChildren2`; `stat` tells which.
    GetChildren {
        /// Which znode.
        path: String,
        /// Whether to leave a one-shot watch.
        watch: bool,
        /// Whether the answer carries the parent's stat.
        stat: bool,
    },
    /// `getAllChildrenNumber`
    CountDescendants {
        /// Which znode.
        path: String,
    },
    /// `getEphemerals`
    GetEphemerals {
        /// How the paths begin.
        prefix: String,
    },
    /// `getACL`
    GetAcl {
        /// Which znode.
        path: String,
    },
    /// `setACL`; version −1 is any.
    SetAcl {
        /// Which znode.
        path: String,
        /// The new list.
        acl: Vec<Acl>,
        /// The list's version, or −1.
        version: i32,
    },
    /// `sync`
    Sync {
        /// Which znode.
        path: String,
    },
    /// `ping`
    Ping,
    /// `auth`: adds an identity to the connection.
    Auth {
        /// `digest`, `ip`, `super`, …
        scheme: String,
        /// The credentials.
        auth: Vec<u8>,
    },
    /// `setWatches` and `setWatches2`: a client's watches after a reconnection.
    SetWatches {
        /// The newest transaction that the client has seen.
        relative_zxid: i64,
        /// One-shot watches on data.
        data: Vec<String>,
        /// One-shot watches on absent znodes.
        exist: Vec<String>,
        /// One-shot watches on children.
        child: Vec<String>,
        /// Persistent watches.
        persistent: Vec<String>,
        /// Persistent recursive watches.
        recursive: Vec<String>,
    },
    /// `addWatch`
    AddWatch {
        /// Which znode.
        path: String,
        /// How it stays.
        mode: AddWatchMode,
    },
    /// `checkWatches`
    CheckWatches {
        /// Which znode.
        path: String,
        /// Which kind.
        kind: WatcherKind,
    },
    /// `removeWatches`
    RemoveWatches {
        /// Which znode.
        path: String,
        /// Which kind.
        kind: WatcherKind,
    },
    /// `whoAmI`
    WhoAmI,
    /// `closeSession`
    CloseSession,
    /// A request that could not be read behind its header.
    Malformed(Intent),
    /// `reconfig`, `sasl` and codes that nobody knows.
    Unsupported {
        /// The code on the wire.
        code: i32,
    },
}

impl Request {
    /// What its parts take in memory beside their texts: a frame of a megabyte spells out 70,000 reads, and what a
    /// list grew by is memory, too.
    #[must_use]
    pub fn parts_bytes(&self) -> usize {
        match self {
            Self::Write(op) => op.parts_bytes(),
            Self::Multi(ops) => held(ops) + ops.iter().map(Op::parts_bytes).sum::<usize>(),
            Self::MultiRead(reads) => held(reads),
            Self::SetAcl { acl, .. } => held(acl),
            Self::SetWatches { data, exist, child, persistent, recursive, .. } => {
                let lists = [data, exist, child, persistent, recursive];
                lists.into_iter().map(held).sum()
            }
            Self::Exists { .. }
            | Self::GetData { .. }
            | Self::GetChildren { .. }
            | Self::CountDescendants { .. }
            | Self::GetEphemerals { .. }
            | Self::GetAcl { .. }
            | Self::Sync { .. }
            | Self::Ping
            | Self::Auth { .. }
            | Self::AddWatch { .. }
            | Self::CheckWatches { .. }
            | Self::RemoveWatches { .. }
            | Self::WhoAmI
            | Self::CloseSession
            | Self::Malformed(_)
            | Self::Unsupported { .. } => 0,
        }
    }
}

impl Op {
    fn parts_bytes(&self) -> usize {
        match self {
            Self::Create { acl, .. } => held(acl),
            Self::Delete { .. } | Self::SetData { .. } | Self::Check { .. } | Self::Unknown { .. } => 0,
        }
    }
}

fn held<T>(parts: &Vec<T>) -> usize {
    parts.capacity() * size_of::<T>()
}
