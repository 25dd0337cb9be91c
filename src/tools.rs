//! What a node gives its handlers beyond their context: a client of its own.
//!
//! The client is connected when the first handler asks for it, and ends with the node. It is a session of its own: what
//! a handler submits, or reads of a group, neither waits for the worker's requests nor holds them up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::name::Kind;
use bellwether_host::worker::{HandlerError, JobContext, Tools as Given};
use bellwether_zk::Access;
use tokio::sync::OnceCell;

use crate::client::{Client, ConnectError};

/// How long a call of a handler may take: an election of ZooKeeper's leader, and an expired session, are survived.
const DEADLINE: Duration = Duration::from_secs(60);

/// The tools of one node.
#[derive(Debug)]
pub(crate) struct Tools {
    zookeeper: String,
    access: Access,
    session_timeout: Duration,
    kinds: BTreeSet<Kind>,
    client: OnceCell<Client>,
}

impl Tools {
    pub(crate) fn new(
        zookeeper: &str,
        access: Access,
        session_timeout: Duration,
        kinds: BTreeSet<Kind>,
    ) -> Self {
        Self { zookeeper: zookeeper.to_owned(), access, session_timeout, kinds, client: OnceCell::new() }
    }

    /// Those of a handler's node.
    pub(crate) fn of(context: &JobContext) -> Result<Arc<Self>, HandlerError> {
        context.tools().ok_or_else(|| HandlerError::new("this context has no node, so no namespace to ask"))
    }

    /// Connects, the first time.
    pub(crate) async fn client(&self) -> Result<&Client, ConnectError> {
        let connect = || {
            Client::builder()
                .access(self.access.clone())
                .session_timeout(self.session_timeout)
                .create_namespace(false)
                .deadline(DEADLINE)
                .connect(&self.zookeeper)
        };
        self.client.get_or_try_init(connect).await
    }

    /// Whether this node has a handler for a kind.
    pub(crate) fn handles(&self, kind: &Kind) -> bool {
        self.kinds.contains(kind)
    }
}

impl From<Tools> for Given {
    fn from(tools: Tools) -> Self {
        Self::new(Arc::new(tools))
    }
}
