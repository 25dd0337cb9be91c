//! The client that a node gives to its handlers.
//!
//! It connects when the first handler needs it, and ends with the node. It has its own session, so a handler's
//! requests neither wait for the worker's requests nor delay them.

use std::time::Duration;

use bellwether_zk::Access;
use tokio::sync::OnceCell;

use crate::client::{Client, ConnectError};

/// The deadline of a handler's call: long enough to survive a leader election in ZooKeeper or an expired session.
const DEADLINE: Duration = Duration::from_secs(60);

/// The client of one node's handlers.
#[derive(Debug)]
pub(crate) struct NodeClient {
    zookeeper: String,
    access: Access,
    session_timeout: Duration,
    client: OnceCell<Client>,
}

impl NodeClient {
    pub(crate) fn new(zookeeper: &str, access: Access, session_timeout: Duration) -> Self {
        Self { zookeeper: zookeeper.to_owned(), access, session_timeout, client: OnceCell::new() }
    }

    /// Returns the client. The first call connects.
    pub(super) async fn get(&self) -> Result<&Client, ConnectError> {
        let connect = || {
            Client::builder(&self.zookeeper)
                .access(self.access.clone())
                .session_timeout(self.session_timeout)
                .create_namespace(false)
                .deadline(DEADLINE)
                .connect()
        };
        self.client.get_or_try_init(connect).await
    }
}
