//! The builder of an election.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::name::{NameError, NodeId};
use bellwether_core::remedy::ErrorClass;
use bellwether_host::election::{Election as Actor, ElectionConfig};
use bellwether_host::session::{Session, SessionConfig, SessionStatus};
use bellwether_zk::{Access, NamespaceError};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::{Election, Inner, Policy, Strategy};
use crate::client::DEFAULT_DEADLINE;
use crate::connection::{Connection, InvalidConnection};
use crate::node::default_id;

/// The settings of a participant in an election.
#[derive(Debug, Clone)]
pub struct ElectionBuilder {
    connection: Connection,
    node_id: Option<String>,
    election: Strategy,
    policy: Policy,
    deadline: Duration,
}

/// A node cannot take part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings of the connection are invalid.
    #[error(transparent)]
    Connection(#[from] InvalidConnection),
    /// The node's name is malformed.
    #[error(transparent)]
    Node(#[from] NameError),
    /// The namespace is foreign or has another layout version.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// No ZooKeeper server accepted a session in time.
    #[error("ZooKeeper did not serve within {within:?}: {reason}")]
    Unreachable {
        /// How long the call waited.
        within: Duration,
        /// Each server and the reason why it did not serve.
        reason: String,
    },
    /// The actor system failed.
    #[error("the election could not be started: {0}")]
    Actors(String),
}

impl StartError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connection(_) | Self::Node(_) => ErrorClass::Invalid,
            Self::Namespace(error) => error.class(),
            Self::Unreachable { .. } => ErrorClass::Unavailable,
            Self::Actors(_) => ErrorClass::Failed,
        }
    }
}

bellwether_core::impl_remedy!(StartError);

impl ElectionBuilder {
    pub(super) fn new(zookeeper: String) -> Self {
        Self {
            connection: Connection::new(zookeeper),
            node_id: None,
            election: Strategy::default(),
            policy: Policy::default(),
            deadline: DEFAULT_DEADLINE,
        }
    }

    /// Sets the identity of the session to ZooKeeper. By default the session is not authenticated.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.connection.access = access;
        self
    }

    /// Sets the node's name for people; by default the host name and the process id. It need not be unique.
    #[must_use]
    pub fn node_id(mut self, id: impl Into<String>) -> Self {
        self.node_id = Some(id.into());
        self
    }

    /// Sets how candidates are ordered. The first candidate of a namespace decides; one with another
    /// strategy is refused ([`NamespaceError`]). Default
    /// [`Strategy::Queue`].
    #[must_use]
    pub fn election(mut self, strategy: Strategy) -> Self {
        self.election = strategy;
        self
    }

    /// Sets whether a leader without a connection may act. Default [`Policy::AtMostOne`]; see
    /// [at least one](super#at-least-one).
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the session timeout that is requested from ZooKeeper, which may grant another. Default 10 s, at least 100
    /// ms.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.connection.session_timeout = timeout;
        self
    }

    /// Sets how long [`ElectionBuilder::start`] waits for ZooKeeper. Default 15 s.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Connects, creates the namespace if it is absent, and takes part. Returns when the namespace is open, which is
    /// before a leader is elected.
    ///
    /// # Errors
    /// [`StartError`]. After the start, the node survives any loss of ZooKeeper.
    ///
    /// # Cancellation
    /// Dropping the future while it waits for ZooKeeper ends everything that it started.
    pub async fn start(self) -> Result<Election, StartError> {
        self.started().await
    }

    /// Boxed, so that the future is compiled in this crate and not again in each program.
    fn started(self) -> BoxFuture<'static, Result<Election, StartError>> {
        self.open().boxed()
    }

    async fn open(self) -> Result<Election, StartError> {
        let connect = self.connection.check()?;
        let node = NodeId::new(self.node_id.unwrap_or_else(default_id))?;
        let chroot = connect.chroot().to_owned();
        let session = SessionConfig {
            owner: node.to_string(),
            is_trusted: true,
            election: Some(self.election),
            connect,
            access: self.connection.access,
            session_timeout: self.connection.session_timeout,
            create_namespace: true,
            reads_clock: None,
        };
        let actors = |error: &dyn std::fmt::Display| StartError::Actors(error.to_string());
        let session = Session::start(session, None).await.map_err(|error| actors(&error))?;
        let config =
            ElectionConfig { strategy: self.election, policy: self.policy, ..ElectionConfig::new(node) };
        let actor = match Actor::start(config, &session, None).await {
            Ok(actor) => actor,
            Err(error) => {
                session.cell().stop(None);
                return Err(actors(&error));
            }
        };
        // From here on an early return drops the election, which ends both actors.
        let election = Election(Arc::new(Inner { actor, session, chroot }));
        election.opened(self.deadline).await?;
        Ok(election)
    }
}

impl Election {
    async fn opened(&self, within: Duration) -> Result<(), StartError> {
        let mut status = self.0.session.status();
        let settled = |status: &SessionStatus| {
            matches!(status, SessionStatus::Connected(_) | SessionStatus::Refused(_))
        };
        let waited = timeout(within, status.wait_for(settled)).await.is_ok();
        let reason = match &*status.borrow() {
            SessionStatus::Connected(_) if waited => return Ok(()),
            SessionStatus::Refused(error) => return Err(error.clone().into()),
            SessionStatus::Connecting { error: Some(error) } => error.clone(),
            SessionStatus::Connecting { error: None }
            | SessionStatus::Connected(_)
            | SessionStatus::Disconnected => "no answer".to_owned(),
        };
        Err(StartError::Unreachable { within, reason })
    }
}
