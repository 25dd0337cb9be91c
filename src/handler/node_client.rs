//! The client that a node gives to its handlers.
//!
//! It is connected when the first handler asks for it, and ends with the node. It is a session of its own: what
//! a handler submits, or reads of a group, neither waits for the worker's requests nor holds them up.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::name::Kind;
use bellwether_zk::Access;
use tokio::sync::OnceCell;

use crate::client::{Client, ConnectError};

/// How long a call of a handler may take: an election of ZooKeeper's leader, and an expired session, are survived.
const DEADLINE: Duration = Duration::from_secs(60);

/// The client of one node's handlers.
#[derive(Debug)]
pub(crate) struct NodeClient {
    zookeeper: String,
    access: Access,
    session_timeout: Duration,
    kinds: BTreeSet<Kind>,
    client: OnceCell<Client>,
}

impl NodeClient {
    pub(crate) fn new(
        zookeeper: &str,
        access: Access,
        session_timeout: Duration,
        kinds: BTreeSet<Kind>,
    ) -> Self {
        Self { zookeeper: zookeeper.to_owned(), access, session_timeout, kinds, client: OnceCell::new() }
    }

    /// Connects, the first time.
    pub(super) async fn get(&self) -> Result<&Client, ConnectError> {
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
    pub(super) fn handles(&self, kind: &Kind) -> bool {
        self.kinds.contains(kind)
    }
}
