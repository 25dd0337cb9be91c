//! The client: submits jobs, follows them, and changes their fate.
//!
//! A [`Client`] is a handle, cheap to clone. Behind it is one ZooKeeper session, kept by an actor, and one task
//! that batches submissions. It outlives lost connections and expired sessions: calls wait for a session that
//! serves, up to the client's deadline, and resolve lost replies by reading back.
//!
//! | file | concern |
//! | --- | --- |
//! | `job` | what to submit, checked before anything is sent |
//! | `runtime/` | what a client runs on: a session, clocks, timers, tasks, randomness |
//! | `link` | waiting for a usable session |
//! | `submit/` | batching, lost replies, full buckets |
//! | `locate`, `cluster`, `get` | where a job is, and why it waits |
//! | `schedule/` | adding, changing and listing schedules |
//! | `group/` | groups: making, sealing, members, views |
//! | `wait`, `list`, `page`, `control` | waiting, listing, cancelling and retrying |
//! | `retention`, `purge` | how long records are kept, and removing them by hand |
//! | `snapshot/`, `depths` | the whole namespace at a glance, for what a few requests cost |
//! | `timing` | from when and until when a job may start |
//! | `events/` | what happens to jobs, by one watch for all who follow |
//! | `kinds`, `explain` | pausing kinds; why a job is not running |

mod cluster;
mod control;
mod depths;
mod document;
mod error;
mod events;
mod explain;
mod get;
mod group;
mod job;
mod kinds;
mod lanes;
mod link;
mod list;
mod locate;
mod page;
mod purge;
mod retention;
#[doc(hidden)]
pub mod runtime;
mod schedule;
mod snapshot;
mod submit;
mod timestamp;
mod timing;
mod view;
mod wait;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_host::session::SessionConfig;
pub use bellwether_zk::Tally;
use bellwether_zk::{Access, ConnectString};
use tokio::sync::Semaphore;

pub use bellwether_core::group::GroupError;
pub use bellwether_core::job::identity::{Accepted, IfExists};
pub use cluster::{DrainedWorker, LeaderView, WorkerView};
pub use control::{Cancelled, Retried};
pub use depths::{Churn, Depths};
pub use error::{ConnectError, Error, ResultError, SubmitError, Unavailable, WaitError};
pub use events::{Event, Events, Heard, MAX_PENDING, RING};
pub use explain::{Explanation, Why};
#[doc(hidden)]
pub use group::Attempt;
pub use group::{
    Group, GroupCursor, GroupHandle, GroupPage, GroupSaid, GroupStage, GroupSummary, GroupView,
    GroupWaitError, Member, MemberEnd, Members,
};
pub use job::{Job, JobError, JobKind, Untyped};
pub use kinds::{KindView, Paused};
pub use list::{Filter, Listing};
pub use page::{Cursor, CursorError, MAX_PAGE, Page};
pub use purge::{Ended, Purge, Purged};
pub use retention::SetRetentionError;
pub use schedule::{Added, Schedule, ScheduleError, ScheduleView, Schedules};
pub use snapshot::{Estimate, Look, SAMPLE, Shares, Snapshot};
pub use submit::JobHandle;
pub use timestamp::rfc3339;
pub use timing::TimingError;
pub use view::{JobView, State, WaitReason};
pub use wait::MAX_WATCHED;

use link::Link;
use runtime::{OnTokio, Runtime};
use submit::Inbox;

use crate::session_timeout;

/// Asked of ZooKeeper unless said otherwise: long enough for an election of its leader.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a call may take unless said otherwise: longer than the session timeout, so that a reconnection within
/// the session is survived. An expiry, which the client reports up to 1.8 timeouts late, may not be.
const DEADLINE: Duration = Duration::from_secs(15);

/// A handle on a client, cheap to clone. The session ends with the last clone and with what is in flight.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    inbox: Inbox,
    link: Link,
    deadline: Duration,
    /// A permit for each job that is watched.
    watches: Semaphore,
    events: events::Known,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("deadline", &self.0.deadline).finish_non_exhaustive()
    }
}

/// How to connect.
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    access: Access,
    session_timeout: Duration,
    create_namespace: bool,
    deadline: Duration,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            access: Access::default(),
            session_timeout: SESSION_TIMEOUT,
            create_namespace: true,
            deadline: DEADLINE,
        }
    }
}

impl ClientBuilder {
    /// Who the client is to ZooKeeper. By default nobody in particular.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Asked of ZooKeeper, which may grant less or more. Default 10 s, at least 100 ms.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// Whether to make the namespace when it is absent. Default yes; a reader says no, so that a misspelt chroot
    /// is refused rather than made.
    #[must_use]
    pub fn create_namespace(mut self, create: bool) -> Self {
        self.create_namespace = create;
        self
    }

    /// How long a call may take, lost connections included. Default 15 s. Waits have bounds of their own.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Connects to `HOST:PORT[,HOST:PORT…][/CHROOT]`; returns when the namespace is open.
    ///
    /// # Errors
    /// When the string is malformed, the session timeout is out of its bounds, no server serves within the deadline (each is named, with its reason), or
    /// the namespace is absent, foreign, of another layout or closed to [`access`](Self::access).
    pub async fn connect(self, to: &str) -> Result<Client, ConnectError> {
        let client = self.open(to).await?;
        client.0.link.usable_by(client.by()).await?;
        Ok(client)
    }

    /// As [`ClientBuilder::connect`], and does not wait for a server: calls do, up to the deadline.
    ///
    /// # Errors
    /// When the string is malformed, or the session timeout is out of its bounds.
    pub async fn open(self, to: &str) -> Result<Client, ConnectError> {
        let connect = to.parse::<ConnectString>()?;
        let Self { access, session_timeout, create_namespace, deadline } = self;
        let session_timeout = session_timeout::check(session_timeout)?;
        let config = SessionConfig { connect, access, session_timeout, create_namespace };
        Ok(Client::over(Arc::new(OnTokio::start(config).await?), deadline))
    }
}

impl Client {
    /// As [`ClientBuilder::connect`] with every setting at its default.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn connect(to: &str) -> Result<Self, ConnectError> {
        Self::builder().connect(to).await
    }

    /// The settings.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client that runs on something else than tokio and a session of its own: in a simulator.
    #[doc(hidden)]
    #[must_use]
    pub fn over(runtime: Arc<dyn Runtime>, deadline: Duration) -> Self {
        let link = Link::new(runtime);
        let inbox = submit::start(link.clone());
        let watches = Semaphore::new(MAX_WATCHED);
        Self(Arc::new(Inner { inbox, link, deadline, watches, events: events::Known::default() }))
    }

    /// Whether ZooKeeper serves this client at the moment.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.link.is_usable()
    }

    /// Ends the session now, for all clones, and waits until ZooKeeper knows, up to 3 s. Calls under way end as
    /// closed; a submission under way ends as unknown.
    pub async fn close(self) {
        self.0.link.close().await;
    }
}
