//! Creates a namespace, and refuses one that this build must not use.

use std::cmp::Ordering;
use std::collections::HashSet;

use bellwether_core::budget::{MAX_IN_FLIGHT, MAX_READ_BATCH};
use bellwether_core::change::Noted;
use bellwether_core::failover::Failover;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::Shard;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::retention::Retention;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_core::wire::{self, LAYOUT_VERSION, Layout, WireError};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use zookeeper_client::{Acls, CreateMode, Error};

use crate::closed::{self, Closed};
use crate::error::{ReadError, read_error};
use crate::exposure;
use crate::roles::Role;
use crate::session::Zk;

/// Why a namespace cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// A newer build created it.
    #[error(
        "namespace {chroot} has layout version {found}; this build serves version {known}: upgrade this build"
    )]
    Newer {
        /// The path of the namespace.
        chroot: String,
        /// The version of its layout.
        found: u16,
        /// The version that this build serves.
        known: u16,
    },
    /// An older build created it, whose jobs this build cannot read.
    #[error(
        "namespace {chroot} has layout version {found}, of a build before the first release; \
         this build serves version {known}: start with an empty namespace"
    )]
    Older {
        /// The path of the namespace.
        chroot: String,
        /// The version of its layout.
        found: u16,
        /// The version that this build serves.
        known: u16,
    },
    /// Its `/layout` cannot be read.
    #[error("namespace {chroot} has an unreadable /layout where this build expects version {known}")]
    Unreadable {
        /// The path of the namespace.
        chroot: String,
        /// The version that this build serves.
        known: u16,
        /// Why it cannot be read.
        #[source]
        reason: WireError,
    },
    /// Its `/config/failover` cannot be read.
    #[error(
        "namespace {chroot} has an unreadable /config/failover: restore it, or delete it while no node runs"
    )]
    UnreadableFailover {
        /// The path of the namespace.
        chroot: String,
        /// Why it cannot be read.
        #[source]
        reason: WireError,
    },
    /// Another application uses the path.
    #[error(
        "{chroot} holds other data ({found}) and has no layout version; this build serves version {known}: \
         give an empty chroot, such as …/bellwether"
    )]
    Foreign {
        /// The path.
        chroot: String,
        /// Some of the existing znodes.
        found: String,
        /// The version that this build serves.
        known: u16,
    },
    /// It does not exist, and it was not to be created.
    #[error(
        "there is no namespace at {chroot}, so no layout version; this build serves version {known}: \
         start a node there first, or check the chroot"
    )]
    Absent {
        /// The path of the namespace.
        chroot: String,
        /// The version that this build serves.
        known: u16,
    },
    /// Its candidates are ordered in another way. Candidates of two strategies do not see each other and would replace each
    /// other as leader again and again.
    #[error(
        "the candidates of namespace {chroot} use the election strategy {found}, not {given}: use {found}, or stop all \
         candidates, delete {chroot}/layout and start them again"
    )]
    Strategy {
        /// The path of the namespace.
        chroot: String,
        /// The strategy of the namespace.
        found: Strategy,
        /// The strategy of this candidate.
        given: Strategy,
    },
    /// ZooKeeper refused the login.
    #[error("ZooKeeper refused the login of {who}: check the user, the password and the scheme")]
    LoginRefused {
        /// The refused identity.
        who: String,
    },
    /// The access lists refuse this session.
    #[error(
        "namespace {chroot} is closed to {who}: {may_not}. Log in as \
         the user that created it, or have its access lists changed (docs/operations.md)"
    )]
    Forbidden {
        /// The path of the namespace.
        chroot: String,
        /// The identity of the session.
        who: String,
        /// The refused operation.
        may_not: String,
    },
    /// Others than the user of the login may change it, or the user may not.
    #[error(
        "namespace {chroot} does not belong to {who} alone: {found}. Find out who created it. To close it, stop all nodes and \
         clients of it and run `bellwether access repair` with the login of its owner"
    )]
    NotClosed {
        /// The path of the namespace.
        chroot: String,
        /// The identity of the session.
        who: String,
        /// Some of the znodes and their permissions.
        found: String,
    },
    /// The connection was lost while opening it: try again.
    #[error("the connection to ZooKeeper was lost while opening the namespace")]
    Disconnected,
    /// ZooKeeper refused to create or read it.
    #[error("ZooKeeper refused to open namespace {chroot}")]
    Refused {
        /// The path of the namespace.
        chroot: String,
        /// The reason.
        #[source]
        reason: Reason,
    },
}

impl NamespaceError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        if self.may_pass() { ErrorClass::Unavailable } else { ErrorClass::Closed }
    }

    /// Whether a retry may succeed: the connection was lost, or the server was overloaded.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Disconnected => true,
            Self::Refused { .. } => true,
            Self::LoginRefused { .. }
            | Self::Strategy { .. }
            | Self::Forbidden { .. }
            | Self::NotClosed { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Unreadable { .. }
            | Self::UnreadableFailover { .. }
            | Self::Foreign { .. }
            | Self::Absent { .. } => false,
        }
    }
}

bellwether_core::impl_remedy!(NamespaceError);

/// Checks the session's namespace. With `create` it also creates what is missing: the chroot and its parents, the
/// parents and buckets, the epoch, and last `/layout`, so that a namespace with a layout is complete. It also creates
/// the znodes again that an operator deleted.
///
/// Every step may be repeated and may run concurrently with another node: existing znodes are not changed. With
/// `create`, a namespace that this session can read but not write is refused, because a node in it could do nothing.
/// Returns the times of the namespace's leaders.
///
/// # Errors
/// [`NamespaceError`]; [`NamespaceError::may_pass`] states whether a retry may help.
pub async fn open_namespace(zk: &Zk, create: bool) -> Result<Failover, NamespaceError> {
    open(zk, create).await?;
    failover(zk).await
}

async fn open(zk: &Zk, create: bool) -> Result<(), NamespaceError> {
    // With logins by role only the operator may create znodes at the top.
    let repairs = zk.access().role().is_none_or(|role| role == Role::Operator);
    let made = check_layout(zk).await? || (made_meanwhile(zk).await? && check_layout(zk).await?);
    match (made, create) {
        (true, true) => {
            if repairs {
                make_parts(zk).await?;
            }
            check_writable(zk).await?;
            return check_closed(zk).await;
        }
        (true, false) => return Ok(()),
        (false, _) => {}
    }
    if !create || !repairs {
        return Err(NamespaceError::Absent { chroot: chroot(zk), known: LAYOUT_VERSION });
    }
    make_chroot(zk).await?;
    make_parts(zk).await?;
    // Only at the creation: if an operator deletes it later, it stays deleted and nothing is removed.
    make(zk, path::RETENTION.to_owned(), wire::encode(&Noted::<Retention>::default())).await?;
    make(zk, path::LAYOUT.to_owned(), wire::encode(&Layout::new(LAYOUT_VERSION))).await?;
    check_layout(zk).await?;
    check_writable(zk).await?;
    check_closed(zk).await
}

/// Refuses a namespace that does not belong to the user of this session's login alone. A session without a login creates open
/// znodes and expects no others.
async fn check_closed(zk: &Zk) -> Result<(), NamespaceError> {
    /// Znodes that the error names.
    const NAMED: usize = 3;
    if !zk.access().is_login() {
        return Ok(());
    }
    match closed::closed(zk).await.map_err(|error| lost(zk, error))? {
        Closed::Entirely | Closed::ReadableByOthers(_) => Ok(()),
        Closed::Not(exposed) => {
            let named =
                exposed.iter().take(NAMED).map(|exposed| format!("{}: {}", exposed.path, exposed.may));
            let mut found = named.collect::<Vec<_>>().join(", ");
            if let Some(more) = exposed.len().checked_sub(NAMED).filter(|more| *more > 0) {
                found = format!("{found} and {more} more");
            }
            let who = match zk.access().role() {
                Some(_) => "the users of its roles".to_owned(),
                None => zk.access().to_string(),
            };
            Err(NamespaceError::NotClosed { chroot: chroot(zk), who, found })
        }
    }
}

/// The times of the namespace's leaders. They are absent only if an operator deleted them: then the next node creates
/// them again, with the defaults.
async fn failover(zk: &Zk) -> Result<Failover, NamespaceError> {
    match zk.get(path::FAILOVER.to_owned()).await.map_err(|error| lost(zk, error))? {
        Some(node) => wire::decode(&node.data)
            .map_err(|reason| NamespaceError::UnreadableFailover { chroot: chroot(zk), reason }),
        None => Ok(Failover::default()),
    }
}

/// Limit of attempts when candidates start at the same time: the first write is final.
const TRIES: u32 = 3;

/// Stores the election strategy of the first candidate of the namespace, and refuses a candidate with another one.
///
/// A lost reply is [`NamespaceError::Disconnected`]; the next call reads the layout again.
///
/// # Errors
/// [`NamespaceError::Strategy`], and those of [`open_namespace`].
pub async fn settle_strategy(zk: &Zk, given: Strategy) -> Result<(), NamespaceError> {
    for _ in 0..TRIES {
        let Some(node) = zk.get(path::LAYOUT.to_owned()).await.map_err(|error| lost(zk, error))? else {
            return Err(NamespaceError::Absent { chroot: chroot(zk), known: LAYOUT_VERSION });
        };
        let layout = wire::decode::<Layout>(&node.data).map_err(|reason| NamespaceError::Unreadable {
            chroot: chroot(zk),
            known: LAYOUT_VERSION,
            reason,
        })?;
        match layout.election {
            Some(found) if found == given => return Ok(()),
            Some(found) => return Err(NamespaceError::Strategy { chroot: chroot(zk), found, given }),
            None => {}
        }
        let data = wire::encode(&Layout { election: Some(given), ..layout });
        let set = Op::Set { path: path::LAYOUT.to_owned(), data, version: node.version };
        match zk.commit(vec![set]).await {
            Outcome::Applied(()) => return Ok(()),
            Outcome::Rejected(Rejection { reason: Reason::BadVersion | Reason::NoNode, .. }) => {}
            Outcome::Rejected(Rejection { reason: Reason::NoAuth, .. }) => {
                return Err(forbidden(zk, format!("it may not write {}", path::LAYOUT)));
            }
            Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) | Outcome::Unknown => {
                return Err(NamespaceError::Disconnected);
            }
            Outcome::Rejected(Rejection { reason, .. }) => {
                return Err(NamespaceError::Refused { chroot: chroot(zk), reason });
            }
        }
    }
    Err(NamespaceError::Disconnected)
}

/// Refuses a namespace whose parents do not allow this session to create, delete and set. Skips the check if there
/// is no login and all access lists allow everything to anyone. The check is a dry run in one transaction that
/// cannot succeed: ZooKeeper checks the access list of each operation before its version, so a rejected version of
/// the last operation shows that all operations are allowed.
async fn check_writable(zk: &Zk) -> Result<(), NamespaceError> {
    /// An epoch never reaches this version: it would take two billion changes of leader.
    const NO_VERSION: i32 = i32::MAX;
    // The lists of the roles are checked one by one.
    if zk.access().role().is_some() {
        return Ok(());
    }
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
        // Rejected at the last operation, or by a race with an operator, which does not concern access lists.
        Outcome::Rejected(_) | Outcome::Unknown | Outcome::Applied(()) => Ok(()),
    }
}

/// Creates the missing parents, buckets, the leader's znodes and the times of the leaders.
async fn make_parts(zk: &Zk) -> Result<(), NamespaceError> {
    let top = path::PARENTS.into_iter().chain([path::EPOCH, path::LEADING]).map(str::to_owned);
    make_all(zk, missing(zk, "", top.collect()).await?).await?;
    for absent in missing(zk, path::CONFIG, vec![path::FAILOVER.to_owned()]).await? {
        make(zk, absent, wire::encode(&Failover::default())).await?;
    }
    make_all(zk, missing(zk, path::JOBS, Bucket::all().map(Bucket::jobs).collect()).await?).await?;
    make_all(zk, missing_sub_buckets(zk).await?).await?;
    make_all(zk, missing(zk, path::READY, Shard::all().map(path::ready_shard).collect()).await?).await?;
    make_all(zk, missing(zk, path::LANES, Bucket::all().map(Bucket::lanes).collect()).await?).await?;
    make_all(zk, missing(zk, path::GROUPS, Bucket::all().map(Bucket::groups).collect()).await?).await?;
    make_all(zk, missing(zk, path::MEMBERS, Bucket::all().map(Bucket::members).collect()).await?).await
}

/// Returns the paths among `paths`, all children of `parent`, that do not exist.
async fn missing(zk: &Zk, parent: &str, mut paths: Vec<String>) -> Result<Vec<String>, NamespaceError> {
    let listed = zk.children(if parent.is_empty() { "/" } else { parent }.to_owned()).await;
    let there =
        listed.map_err(|error| lost(zk, error))?.unwrap_or_default().into_iter().collect::<HashSet<_>>();
    paths.retain(|path| !there.contains(&path[parent.len() + 1..]));
    Ok(paths)
}

/// The parents of records that do not exist.
async fn missing_sub_buckets(zk: &Zk) -> Result<Vec<String>, NamespaceError> {
    let buckets = Bucket::all().collect::<Vec<_>>();
    let few = buckets.chunks(MAX_READ_BATCH).map(|few| few.iter().map(|bucket| bucket.jobs()).collect());
    let lists = try_join_all(few.map(|few| zk.children_many(few))).await.map_err(|error| lost(zk, error))?;
    let missing = buckets.into_iter().zip(lists.into_iter().flatten()).flat_map(|(bucket, names)| {
        let names = names.unwrap_or_default().into_iter().collect::<HashSet<_>>();
        let path = bucket.jobs();
        bucket.sub_buckets().map(SubBucket::path).filter(move |sub| !names.contains(&sub[path.len() + 1..]))
    });
    Ok(missing.collect())
}

/// Whether the layout exists; an error if this build does not serve it.
async fn check_layout(zk: &Zk) -> Result<bool, NamespaceError> {
    let known = LAYOUT_VERSION;
    let Some(node) = zk.get(path::LAYOUT.to_owned()).await.map_err(|error| lost(zk, error))? else {
        return Ok(false);
    };
    let chroot = chroot(zk);
    match wire::decode::<Layout>(&node.data) {
        Ok(Layout { version: found, election: _ }) => match found.cmp(&known) {
            Ordering::Equal => Ok(true),
            Ordering::Greater => Err(NamespaceError::Newer { chroot, found, known }),
            Ordering::Less => Err(NamespaceError::Older { chroot, found, known }),
        },
        // Includes a newer schema, whose version is not the version of the layout.
        Err(reason) => Err(NamespaceError::Unreadable { chroot, known, reason }),
    }
}

/// Refuses a path that another application uses. Returns whether the layout exists by now. A namespace that a
/// crashed node created in part contains only our parents.
async fn made_meanwhile(zk: &Zk) -> Result<bool, NamespaceError> {
    let children = zk.children("/".to_owned()).await.map_err(|error| lost(zk, error))?.unwrap_or_default();
    let ours = |name: &str| {
        path::PARENTS
            .iter()
            .chain([&path::EPOCH, &path::LEADER, &path::LEADING])
            .any(|path| &path[1..] == name)
            || (name == "zookeeper" && zk.client().path() == "/")
    };
    // Another node created the layout after this node looked for it.
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
    // If an operator created it, this session may not have access to its parent.
    if zk.client().check_stat("/").await.map_err(|error| lost(zk, read_error(&error)))?.is_some() {
        return Ok(());
    }
    let root = zk.client().clone().chroot("/").expect("/ is a valid root");
    let list = zk.access().list("/");
    let options = CreateMode::Persistent.with_acls(Acls::new(&list));
    match root.mkdir(path, &options).await {
        Ok(()) | Err(Error::NodeExists) => Ok(()),
        Err(Error::NoAuth) => Err(forbidden(zk, "it may not create it".to_owned())),
        Err(error) => Err(lost(zk, read_error(&error))),
    }
}

/// Creates znodes, a few in one multi. If another process creates them at the same time, it creates the rest one by one.
async fn make_all(zk: &Zk, paths: Vec<String>) -> Result<(), NamespaceError> {
    let few = paths.chunks(MAX_READ_BATCH).map(<[String]>::to_vec).collect::<Vec<_>>();
    let made = stream::iter(few).map(|few| make_few(zk, few)).buffer_unordered(MAX_IN_FLIGHT);
    made.try_collect().await
}

async fn make_few(zk: &Zk, paths: Vec<String>) -> Result<(), NamespaceError> {
    let create = |path| Op::Create { path, data: Vec::new(), lifetime: Lifetime::Persistent };
    match zk.commit(paths.iter().cloned().map(create).collect()).await {
        Outcome::Applied(()) => Ok(()),
        Outcome::Rejected(_) | Outcome::Unknown => {
            let made = stream::iter(paths).map(|path| make(zk, path, Vec::new()));
            made.buffer_unordered(MAX_IN_FLIGHT).try_collect().await
        }
    }
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
        // The outcome is unknown: the next try finds out.
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
