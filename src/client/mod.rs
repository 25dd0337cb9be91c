//! The client: submits jobs, watches them, and cancels or retries them.
//!
//! A [`Client`] is a cheap-to-clone handle. It has one ZooKeeper session, managed by an actor, and one task that
//! batches submissions. It survives lost connections and expired sessions: calls wait for a connected session, up to
//! the client's deadline, and resolve lost replies by reading back.
//!
//! Calls return boxed futures, so that this crate compiles their bodies, once. The body of an `async fn` is compiled by each crate
//! that awaits it: the gateway, the command, and every test program.
//!
//! | file | concern |
//! | --- | --- |
//! | `job` | the job builder, with validation before anything is sent |
//! | `runtime/` | the environment of a client: a session, clocks, timers, tasks, randomness |
//! | `session` | waiting for a usable session |
//! | `submit/` | batching, lost replies, full buckets |
//! | `packed` | reading jobs by id: records, and members of segments |
//! | `segments` | segments in lists of jobs, replaced by their members |
//! | `locate`, `cluster`, `get` | where a job is, and why it waits |
//! | `schedule/` | adding, changing and listing schedules |
//! | `group/` | groups: creating, sealing, members, views |
//! | `wait`, `list`, `page`, `lane_list`, `worker_jobs`, `control` | waiting, listing, cancelling and retrying |
//! | `result` | typed results of jobs, joins and finished handlers |
//! | `decode` | payloads and results through the client's codec |
//! | `error/` | the errors, by the calls that return them |
//! | `retention`, `purge` | how long records are kept, and removing them by hand |
//! | `placement` | the placement strategy of the namespace |
//! | `snapshot/`, `depths`, `clocks` | an overview of the whole namespace with a few requests |
//! | `timing` | earliest start and expiry of a job |
//! | `events/` | events of jobs, with one watch for all followers |
//! | `kinds`, `explain` | pausing kinds; why a job is not running |

mod attempts;
mod author;
mod bucket_page;
mod clocks;
mod cluster;
mod control;
mod decode;
mod depths;
mod error;
mod events;
mod explain;
mod get;
mod group;
#[cfg(test)]
mod in_memory;
mod job;
mod kinds;
mod lane_list;
mod lanes;
mod list;
mod locate;
mod packed;
mod page;
mod placement;
mod purge;
mod result;
mod retention;
#[doc(hidden)]
pub mod runtime;
mod schedule;
mod segments;
mod session;
mod setting;
#[cfg(test)]
mod settings_tests;
mod snapshot;
mod sub_jobs;
mod submit;
mod timestamp;
mod timing;
mod view;
mod wait;
mod worker_change;
mod worker_jobs;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_host::session::SessionConfig;
use bellwether_zk::Access;
pub use bellwether_zk::WrappingCount;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

pub use attempts::PastAttemptView;
pub use author::Changed;
pub use bellwether_core::budget::MAX_NOTE_BYTES;
use bellwether_core::change::Author;
pub use bellwether_core::change::ChangeKind;
use bellwether_core::clock_report::Process;
pub use bellwether_core::group::GroupError;
pub use bellwether_core::job::AttemptOutcome;
pub use bellwether_core::job::identity::{Accepted, IfExists};
pub use clocks::WrongClock;
pub use cluster::{
    ChangeWorkerError, DrainedWorker, LeaderView, WorkerInfo, WorkerSettings, WorkerSettingsError, WorkerView,
};
pub use control::{Cancelled, Retried};
pub use depths::{Depths, RecordTotals};
pub use error::{ConnectError, Error, ResultError, Subject, SubmitError, Unavailable, WaitError};
pub use events::{EVENT_BACKLOG, EVENT_BUFFER, Event, Events, Notification};
pub use explain::{Cause, Explanation, Shunned};
#[doc(hidden)]
pub use group::Attempt;
pub use group::{
    FurtherGroup, Group, GroupHandle, GroupRecordView, GroupStage, GroupSummary, GroupView, GroupWaitError,
    Member, MemberEnd, MemberError, Members,
};
pub use job::{AnyKind, Job, JobError, JobKind, JobOptions, JobTemplate, JoinKind, ParentKind, Untyped};
pub use kinds::{KindView, Paused};
pub use lane_list::LaneView;
pub use list::{Cursor, CursorError, Filter, Listing, PageLimits};
pub use page::{MAX_PAGE, Page};
pub use purge::{Ended, Purge, PurgeError, Purged};
pub use retention::{ChangeRetentionError, RetentionChange};
pub use schedule::{
    Added, PastTick, Rule, Schedule, ScheduleChange, ScheduleError, ScheduleRecordView, ScheduleState,
    ScheduleTicks, ScheduleView, Schedules,
};
pub use setting::Setting;
pub use snapshot::{Estimate, KindSample, OldestQueued, SAMPLE_SIZE, Snapshot, SnapshotOptions};
pub use submit::JobHandle;
pub use timestamp::rfc3339;
pub use timing::TimingError;
pub use view::{JobView, State, WaitReason};
pub use wait::MAX_WATCHED;
pub use worker_change::WorkerChange;

use runtime::{OnTokio, Runtime};
use session::Session;
use submit::{Inbox, Turns};

use crate::codec::{Codec, PayloadCodec};
use crate::connection::Connection;
use crate::node::{NodeBuilder, host_name};

/// The default deadline of a call: longer than the session timeout, so that a call survives a reconnection within the
/// session. It may not survive an expiry, which the ZooKeeper client reports up to 1.8 timeouts late.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(15);

/// A handle on a namespace. Cheap to clone. The session ends when the last clone is dropped and all requests in
/// flight are done.
#[derive(Clone)]
pub struct Client(Handle);

/// What all clones share, and the author of the changes of this one.
#[derive(Clone)]
struct Handle {
    shared: Arc<Inner>,
    author: Option<Author>,
}

impl std::ops::Deref for Handle {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.shared
    }
}

struct Inner {
    inbox: Inbox,
    session: Session,
    deadline: Duration,
    /// A permit for each watched job.
    watches: Semaphore,
    events: events::Known,
    codec: Option<Codec>,
    /// The order of the submissions of each lane, while the codec encodes them.
    turns: Turns,
    /// `None` in a simulator.
    node: Option<NodeBuilder>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("deadline", &self.0.deadline).finish_non_exhaustive()
    }
}

/// Builds a [`Client`].
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    connection: Connection,
    create_namespace: bool,
    deadline: Duration,
    codec: Option<Codec>,
    author: Author,
}

impl ClientBuilder {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            create_namespace: true,
            deadline: DEFAULT_DEADLINE,
            codec: None,
            author: Author::cut(&crate::node::default_id()),
        }
    }

    /// Names the author of this client's changes: of jobs, schedules, groups, pauses and settings, and of removals. It
    /// is a note for operators and no proof. Of a name of more than 256 bytes the end is kept. Default: the name of the
    /// host and the id of the process.
    #[must_use]
    pub fn author(mut self, author: &str) -> Self {
        self.author = Author::cut(author);
        self
    }

    /// Sets the identity of the session to ZooKeeper. By default the session is not authenticated.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.connection.access = access;
        self
    }

    /// Sets the session timeout that is requested from ZooKeeper, which may grant another. Default 10 s, at least 100
    /// ms.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.connection.session_timeout = timeout;
        self
    }

    /// Sets whether to create the namespace if it is absent. Default: yes. Disable it in clients that only read, so
    /// that a misspelt chroot is an error.
    #[must_use]
    pub fn create_namespace(mut self, create: bool) -> Self {
        self.create_namespace = create;
        self
    }

    /// Sets the deadline of a call, including lost connections. Default 15 s ([`DEFAULT_DEADLINE`]). Waits have their own limits.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Encodes the payloads of submissions, and decodes results, with this codec: see [`codec`](crate::codec). The workers of
    /// the jobs need it too. By default payloads are stored as they are.
    #[must_use]
    pub fn payload_codec(self, codec: impl PayloadCodec) -> Self {
        self.codec(Some(Codec::new(codec)))
    }

    pub(crate) fn codec(mut self, codec: Option<Codec>) -> Self {
        self.codec = codec;
        self
    }

    /// Connects. Returns when the namespace is open.
    ///
    /// # Errors
    /// Fails if the connect string is malformed, the session timeout is out of bounds, no server serves within the
    /// deadline (the error names each server and its reason), or the namespace is absent, foreign, of another layout
    /// version or closed to [`access`](Self::access).
    pub fn connect(self) -> BoxFuture<'static, Result<Client, ConnectError>> {
        async move {
            let client = self.open().await?;
            client.0.session.usable_by(client.by()).await?;
            Ok(client)
        }
        .boxed()
    }

    /// Like [`ClientBuilder::connect`], but does not wait for a server. Calls wait for it, up to the deadline.
    ///
    /// # Errors
    /// Fails if the connect string is malformed, the session timeout is out of bounds, or the password of
    /// [`access`](Self::access) would cross the network in clear text.
    pub fn open(self) -> BoxFuture<'static, Result<Client, ConnectError>> {
        async move {
            let Self { connection, create_namespace, deadline, codec, author } = self;
            let connect = connection.check()?;
            let node = NodeBuilder::new(connection.clone()).codec(codec.clone());
            let config = SessionConfig {
                owner: format!("client {author}"),
                is_trusted: false,
                election: None,
                connect,
                access: connection.access,
                session_timeout: connection.session_timeout,
                create_namespace,
                reads_clock: Some(Process { node: None, host: host_name() }),
            };
            let runtime = Arc::new(OnTokio::start(config).await?);
            Ok(Client::with(runtime, deadline, codec, Some(node), Some(author)))
        }
        .boxed()
    }
}

impl Client {
    /// Connects to `HOST:PORT[,HOST:PORT…][/CHROOT]` with default settings: see [`ClientBuilder::connect`].
    ///
    /// # Errors
    /// The errors of [`ClientBuilder::connect`].
    pub async fn connect(zookeeper: impl Into<String>) -> Result<Self, ConnectError> {
        Self::builder(zookeeper).connect().await
    }

    /// Returns a builder for a client of the namespace at `zookeeper`: `HOST:PORT[,HOST:PORT…][/CHROOT]`.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Connection::new(zookeeper))
    }

    /// Creates a client on another runtime than tokio, with another session: in a simulator.
    #[doc(hidden)]
    #[must_use]
    pub fn over(runtime: Arc<dyn Runtime>, deadline: Duration) -> Self {
        Self::with(runtime, deadline, None, None, None)
    }

    fn with(
        runtime: Arc<dyn Runtime>,
        deadline: Duration,
        codec: Option<Codec>,
        node: Option<NodeBuilder>,
        author: Option<Author>,
    ) -> Self {
        let session = Session::new(runtime);
        let inbox = submit::start(session.clone());
        let watches = Semaphore::new(MAX_WATCHED);
        let (events, turns) = (events::Known::default(), Turns::default());
        let shared = Arc::new(Inner { inbox, session, deadline, watches, events, codec, turns, node });
        Self(Handle { shared, author })
    }

    /// Returns a builder for a node of the client's namespace, with the client's identity, session timeout and codec. The
    /// node has its own session. `None` for a client of a simulator.
    #[must_use]
    pub fn node_builder(&self) -> Option<NodeBuilder> {
        self.0.node.clone()
    }

    /// Whether the client is connected to ZooKeeper at the moment.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.session.is_usable()
    }

    /// Lists the znodes of the namespace, and above it, that anyone who reaches ZooKeeper may change, by their paths from `/`.
    /// `None` if that cannot be read now.
    pub fn open_znodes(&self) -> BoxFuture<'_, Option<Vec<String>>> {
        self.0.session.exposed().boxed()
    }

    /// Closes the session for all clones, and waits until ZooKeeper has closed it, up to 3 s. Running calls fail as
    /// closed; a running submission ends as unknown.
    pub fn close(self) -> BoxFuture<'static, ()> {
        async move {
            self.0.session.close().await;
        }
        .boxed()
    }
}
