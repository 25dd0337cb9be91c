//! Making a namespace, and refusing one that is not ours.

use std::cmp::Ordering;
use std::collections::HashSet;

use bellwether_core::budget::MAX_IN_FLIGHT;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Bucket};
use bellwether_core::retention::Retention;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire::{self, LAYOUT_VERSION, Layout, WireError};
use futures::stream::{self, StreamExt, TryStreamExt};
use zookeeper_client::{CreateMode, Error};

use crate::error::{ReadError, read_error};
use crate::exposure;
use crate::session::Zk;

/// Why a namespace cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// It was laid out by a newer build.
    #[error(
        "namespace {chroot} has layout version {found}; this build serves version {known}: upgrade this build"
    )]
    Newer {
        /// Where it is.
        chroot: String,
        /// Its layout's version.
        found: u16,
        /// The version that this build serves.
        known: u16,
    },
    /// It was laid out by an older build, whose jobs this one cannot read.
    #[error(
        "namespace {chroot} has layout version {found}, of a build before the first release; \
         this build serves version {known}: start with an empty namespace"
    )]
    Older {
        /// Where it is.
        chroot: String,
        /// Its layout's version.
        found: u16,
        /// The version that this build serves.
        known: u16,
    },
    /// Its `/layout` cannot be read.
    #[error(
        "namespace {chroot} has an unreadable /layout where this build expects version {known}: {reason}"
    )]
    Unreadable {
        /// Where it is.
        chroot: String,
        /// The version that this build serves.
        known: u16,
        /// What is wrong with it.
        reason: WireError,
    },
    /// Somebody else lives there.
    #[error(
        "{chroot} holds other data ({found}) and has no layout version; this build serves version {known}: \
         give a chroot of its own, such as …/bellwether"
    )]
    Foreign {
        /// Where it is.
        chroot: String,
        /// Some of what is there.
        found: String,
        /// The version that this build serves.
        known: u16,
    },
    /// There is nothing and nothing was to be made.
    #[error(
        "there is no namespace at {chroot}, so no layout version; this build serves version {known}: \
         start a node there first, or check the chroot"
    )]
    Absent {
        /// Where it would be.
        chroot: String,
        /// The version that this build serves.
        known: u16,
    },
    /// ZooKeeper does not believe who we say we are.
    #[error("ZooKeeper refused the login of {who}: check zookeeper_user, its password and zookeeper_auth")]
    LoginRefused {
        /// Who that was.
        who: String,
    },
    /// Its access lists keep this session out.
    #[error(
        "namespace {chroot} is closed to {who}: {may_not}. Give the zookeeper_user and the password of \
         those who made it, or have its access lists changed (docs/operations.md)"
    )]
    Forbidden {
        /// Where it is.
        chroot: String,
        /// Who asked.
        who: String,
        /// What was not allowed.
        may_not: String,
    },
    /// The connection was lost meanwhile: try again.
    #[error("the connection to ZooKeeper was lost while opening the namespace")]
    Disconnected,
    /// ZooKeeper refused to make or read it.
    #[error("ZooKeeper refused to open namespace {chroot}: {reason}")]
    Refused {
        /// Where it is.
        chroot: String,
        /// Why.
        reason: Reason,
    },
}

impl NamespaceError {
    /// Whether another try may succeed: the connection was lost, or the server was too busy to serve.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Disconnected => true,
            Self::Refused { .. } => true,
            Self::LoginRefused { .. }
            | Self::Forbidden { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Unreadable { .. }
            | Self::Foreign { .. }
            | Self::Absent { .. } => false,
        }
    }
}

/// Checks the session's namespace and, when `create`, makes what is missing: the chroot and its parents, the
/// parents and buckets, the epoch, and last `/layout`, so that whoever sees it sees everything. What an operator
/// deleted of a namespace is made again too.
///
/// Every step may be repeated and may race another node's: what is there already is left alone. With `create`, also
/// one that lets this session read and not write is refused: a node would stand in it and do nothing.
///
/// # Errors
/// [`NamespaceError`], which says whether another try may help ([`NamespaceError::may_pass`]).
pub async fn open_namespace(zk: &Zk, create: bool) -> Result<(), NamespaceError> {
    let made = check_layout(zk).await? || (made_meanwhile(zk).await? && check_layout(zk).await?);
    match (made, create) {
        (true, true) => {
            make_parts(zk).await?;
            return check_writable(zk).await;
        }
        (true, false) => return Ok(()),
        (false, _) => {}
    }
    if !create {
        return Err(NamespaceError::Absent { chroot: chroot(zk), known: LAYOUT_VERSION });
    }
    make_chroot(zk).await?;
    make_parts(zk).await?;
    // Once: what an operator deletes later stays so, and nothing is removed without it.
    make(zk, path::RETENTION.to_owned(), wire::encode(&Retention::default())).await?;
    make(zk, path::LAYOUT.to_owned(), wire::encode(&Layout { version: LAYOUT_VERSION })).await?;
    check_layout(zk).await?;
    check_writable(zk).await
}

/// Refuses a namespace whose parents do not let this session create, delete and set. Does not ask when there is no login
/// and all access lists say that anyone may. Asks by a dry run, in one transaction that cannot succeed. ZooKeeper looks at each
/// operation's access list before it looks at its version, so the last one's refusal says that all are allowed.
async fn check_writable(zk: &Zk) -> Result<(), NamespaceError> {
    /// No epoch gets so far: that is two billion changes of leader.
    const NO_VERSION: i32 = i32::MAX;
    if !zk.access().is_login() && exposure::everywhere(zk).await.map_err(|error| lost(zk, error))? {
        return Ok(());
    }
    let mut ops = Vec::new();
    for parent in path::PARENTS {
        let path = format!("{parent}/may-this-be-written");
        ops.push(Op::Create { path: path.clone(), data: Vec::new(), lifetime: Lifetime::Persistent });
        ops.push(Op::Delete { path, version: None });
    }
    ops.push(Op::Set { path: path::EPOCH.to_owned(), data: Vec::new(), version: NO_VERSION });
    let tried = ops.iter().map(|op| op.path().to_owned()).collect::<Vec<_>>();
    match zk.commit(ops).await {
        Outcome::Rejected(Rejection { at, reason: Reason::NoAuth }) => {
            let path = tried.get(at).map_or("/", String::as_str);
            Err(forbidden(zk, format!("it may not write {path}")))
        }
        Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) => Err(NamespaceError::Disconnected),
        // Of the last operation; or of one that raced an operator, which says nothing about access lists.
        Outcome::Rejected(_) | Outcome::Unknown | Outcome::Applied(()) => Ok(()),
    }
}

/// Makes the parents, the buckets and the epoch, as far as they are missing.
async fn make_parts(zk: &Zk) -> Result<(), NamespaceError> {
    let top = path::PARENTS.into_iter().chain([path::EPOCH]).map(str::to_owned);
    make_all(zk, missing(zk, "", top.collect()).await?).await?;
    make_all(zk, missing(zk, path::JOBS, Bucket::all().map(Bucket::jobs).collect()).await?).await?;
    make_all(zk, missing(zk, path::QUEUE, Bucket::all().map(Bucket::queue).collect()).await?).await?;
    make_all(zk, missing(zk, path::LANES, Bucket::all().map(Bucket::lanes).collect()).await?).await?;
    make_all(zk, missing(zk, path::GROUPS, Bucket::all().map(Bucket::groups).collect()).await?).await?;
    make_all(zk, missing(zk, path::MEMBERS, Bucket::all().map(Bucket::members).collect()).await?).await
}

/// Those of `paths`, all children of `parent`, that are not there.
async fn missing(zk: &Zk, parent: &str, mut paths: Vec<String>) -> Result<Vec<String>, NamespaceError> {
    let listed = zk.children(if parent.is_empty() { "/" } else { parent }.to_owned()).await;
    let there =
        listed.map_err(|error| lost(zk, error))?.unwrap_or_default().into_iter().collect::<HashSet<_>>();
    paths.retain(|path| !there.contains(&path[parent.len() + 1..]));
    Ok(paths)
}

/// Whether the layout is there and served by this build.
async fn check_layout(zk: &Zk) -> Result<bool, NamespaceError> {
    let known = LAYOUT_VERSION;
    let Some(node) = zk.get(path::LAYOUT.to_owned()).await.map_err(|error| lost(zk, error))? else {
        return Ok(false);
    };
    let chroot = chroot(zk);
    match wire::decode::<Layout>(&node.data) {
        Ok(Layout { version: found }) => match found.cmp(&known) {
            Ordering::Equal => Ok(true),
            Ordering::Greater => Err(NamespaceError::Newer { chroot, found, known }),
            Ordering::Less => Err(NamespaceError::Older { chroot, found, known }),
        },
        // Also of a newer schema, whose version is another count than the layout's.
        Err(reason) => Err(NamespaceError::Unreadable { chroot, known, reason }),
    }
}

/// Refuses one of somebody else; answers whether the layout is there by now. A namespace half made by a node that died has
/// our parents only.
async fn made_meanwhile(zk: &Zk) -> Result<bool, NamespaceError> {
    let children = zk.children("/".to_owned()).await.map_err(|error| lost(zk, error))?.unwrap_or_default();
    let ours = |name: &str| {
        path::PARENTS.iter().chain([&path::EPOCH, &path::LEADER]).any(|path| &path[1..] == name)
            || (name == "zookeeper" && zk.client().path() == "/")
    };
    // Another node has made it since it was looked for.
    if children.iter().any(|name| name == &path::LAYOUT[1..]) {
        return Ok(true);
    }
    let mut foreign = children.into_iter().filter(|name| !ours(name)).collect::<Vec<_>>();
    if foreign.is_empty() {
        return Ok(false);
    }
    foreign.sort();
    foreign.truncate(3);
    Err(NamespaceError::Foreign { chroot: chroot(zk), found: foreign.join(", "), known: LAYOUT_VERSION })
}

async fn make_chroot(zk: &Zk) -> Result<(), NamespaceError> {
    let path = zk.client().path();
    if path == "/" {
        return Ok(());
    }
    // One that an operator made for us may be in a place where we may make nothing.
    if zk.client().check_stat("/").await.map_err(|error| lost(zk, read_error(&error)))?.is_some() {
        return Ok(());
    }
    let root = zk.client().clone().chroot("/").expect("/ is a valid root");
    let options = CreateMode::Persistent.with_acls(zk.access().acls());
    match root.mkdir(path, &options).await {
        Ok(()) | Err(Error::NodeExists) => Ok(()),
        Err(Error::NoAuth) => Err(forbidden(zk, "it may not create it".to_owned())),
        Err(error) => Err(lost(zk, read_error(&error))),
    }
}

async fn make_all(zk: &Zk, paths: Vec<String>) -> Result<(), NamespaceError> {
    let made = stream::iter(paths).map(|path| make(zk, path, Vec::new())).buffer_unordered(MAX_IN_FLIGHT);
    made.try_collect().await
}

async fn make(zk: &Zk, path: String, data: Vec<u8>) -> Result<(), NamespaceError> {
    let create = Op::Create { path: path.clone(), data, lifetime: Lifetime::Persistent };
    match zk.commit(vec![create]).await {
        Outcome::Applied(()) => Ok(()),
        Outcome::Rejected(rejection) => match rejection.reason {
            Reason::NodeExists => Ok(()),
            Reason::NoAuth => Err(forbidden(zk, format!("it may not create {path}"))),
            Reason::NotSent => Err(NamespaceError::Disconnected),
            reason => Err(NamespaceError::Refused { chroot: chroot(zk), reason }),
        },
        // Made or not: the next try finds out.
        Outcome::Unknown => Err(NamespaceError::Disconnected),
    }
}

fn chroot(zk: &Zk) -> String {
    zk.client().path().to_owned()
}

fn forbidden(zk: &Zk, may_not: String) -> NamespaceError {
    NamespaceError::Forbidden { chroot: chroot(zk), who: zk.access().to_string(), may_not }
}

fn lost(zk: &Zk, error: ReadError) -> NamespaceError {
    match error {
        ReadError::Disconnected => NamespaceError::Disconnected,
        ReadError::Refused(Reason::NoAuth) => forbidden(zk, "it may not read it".to_owned()),
        ReadError::Refused(reason) => NamespaceError::Refused { chroot: chroot(zk), reason },
    }
}
