//! Requests of clients.

use std::sync::Arc;

/// The first frame of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The newest transaction that the client has seen; a server with an older state must refuse the client.
    pub last_zxid_seen: i64,
    /// The requested session timeout in milliseconds; the server clamps it.
    pub timeout_ms: i32,
    /// The session, or 0 for a new one.
    pub session_id: i64,
    /// The password of an existing session.
    pub password: Vec<u8>,
    /// Whether a read-only server is acceptable; `None` for clients older than 3.4, whose reply lacks the flag too.
    pub read_only: Option<bool>,
}

/// An identity in an ACL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// `world`, `auth`, `digest`, `ip`, `super`, `x509`, …
    pub scheme: String,
    /// The identity in the format of the scheme.
    pub id: String,
}

/// One entry of an access control list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Acl {
    /// Bits: read 1, write 2, create 4, delete 8, admin 16.
    pub permissions: i32,
    /// The identity.
    pub id: Id,
}

/// The mode of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateMode {
    /// Exists until it is deleted.
    Persistent,
    /// Persistent, with a sequence number appended to its name.
    PersistentSequential,
    /// Deleted when its session ends.
    Ephemeral,
    /// Ephemeral, with a sequence number appended to its name.
    EphemeralSequential,
    /// Deleted after its last child is deleted.
    Container,
    /// As [`Container`](Self::Container), with a sequence number appended to its name.
    ContainerSequential,
    /// Deleted after this number of milliseconds without a change, if it has no children.
    Ttl(i64),
    /// As [`Ttl`](Self::Ttl), with a sequence number appended to its name.
    TtlSequential(i64),
}

/// The mode of `addWatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddWatchMode {
    /// Watches a znode and its list of children.
    Persistent,
    /// Watches a znode and all its descendants.
    PersistentRecursive,
}

/// The kind of watches in `checkWatches` and `removeWatches`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherKind {
    /// One-shot watches on children.
    Children,
    /// One-shot watches on data and existence.
    Data,
    /// All watches on the path.
    Any,
    /// Persistent watches (3.9 clients).
    Persistent,
    /// Persistent recursive watches (3.9 clients).
    PersistentRecursive,
}

/// One operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// `create`, `create2`, `createContainer`, `createTTL`.
    Create {
        /// The path.
        path: String,
        /// The data. A null buffer differs from an empty one.
        data: Option<Arc<[u8]>>,
        /// The ACL.
        acl: Vec<Acl>,
        /// The mode.
        mode: CreateMode,
        /// Whether the reply contains the stat of the new znode.
        stat: bool,
    },
    /// `delete`; version −1 matches any.
    Delete {
        /// The path.
        path: String,
        /// The expected version, or −1.
        version: i32,
    },
    /// `setData`; version −1 matches any.
    SetData {
        /// The path.
        path: String,
        /// The new data.
        data: Option<Arc<[u8]>>,
        /// The expected version, or −1.
        version: i32,
    },
    /// `check`; version −1 matches any.
    Check {
        /// The path.
        path: String,
        /// The expected version, or −1.
        version: i32,
    },
    /// An operation that is not allowed in a multi, or a create with unknown flags.
    Unknown {
        /// The code on the wire.
        code: i32,
    },
}

/// The intended kind of a malformed request. ZooKeeper handles the kinds differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Any other request.
    Read,
    /// A single write.
    Write,
    /// A single check.
    Check,
    /// A multi.
    Multi,
    /// `auth`
    Auth,
}

/// A request without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A single write.
    Write(Op),
    /// All operations or none.
    Multi(Vec<Op>),
    /// Reads in one round trip: only `getData` and `getChildren`.
    MultiRead(Vec<Request>),
    /// `exists`
    Exists {
        /// The path.
        path: String,
        /// Whether to set a one-shot watch.
        watch: bool,
    },
    /// `getData`
    GetData {
        /// The path.
        path: String,
        /// Whether to set a one-shot watch.
        watch: bool,
    },
    /// `getChildren`, or `getChildren2` if `stat` is true.
    GetChildren {
        /// The path.
        path: String,
        /// Whether to set a one-shot watch.
        watch: bool,
        /// Whether the reply contains the stat of the znode.
        stat: bool,
    },
    /// `getAllChildrenNumber`
    CountDescendants {
        /// The path.
        path: String,
    },
    /// `getEphemerals`
    GetEphemerals {
        /// The prefix of the paths.
        prefix: String,
    },
    /// `getACL`
    GetAcl {
        /// The path.
        path: String,
    },
    /// `setACL`; version −1 matches any.
    SetAcl {
        /// The path.
        path: String,
        /// The new ACL.
        acl: Vec<Acl>,
        /// The expected version of the ACL, or −1.
        version: i32,
    },
    /// `sync`
    Sync {
        /// The path.
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
    /// `setWatches` and `setWatches2`: sets a client's watches again after a reconnect.
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
        /// The path.
        path: String,
        /// The mode.
        mode: AddWatchMode,
    },
    /// `checkWatches`
    CheckWatches {
        /// The path.
        path: String,
        /// The kind.
        kind: WatcherKind,
    },
    /// `removeWatches`
    RemoveWatches {
        /// The path.
        path: String,
        /// The kind.
        kind: WatcherKind,
    },
    /// `whoAmI`
    WhoAmI,
    /// `closeSession`
    CloseSession,
    /// A malformed request with a valid header.
    Malformed(Intent),
    /// `reconfig`, `sasl` and unknown codes.
    Unsupported {
        /// The code on the wire.
        code: i32,
    },
}

impl Request {
    /// Returns the memory of the request's lists in addition to their texts, including unused capacity. A frame of 1 MB
    /// can contain 70,000 reads.
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
