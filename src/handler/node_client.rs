//! The client that a node gives to its handlers.
//!
//! It connects when the first handler needs it, and ends with the node. It has its own session, so a handler's
//! requests neither wait for the worker's requests nor delay them.

use std::time::Duration;

use tokio::sync::OnceCell;

use crate::client::{Client, ClientBuilder, ConnectError};

/// The deadline of a handler's call: long enough to survive a leader election in ZooKeeper or an expired session.
const DEADLINE: Duration = Duration::from_secs(60);

/// The client of one node's handlers.
#[derive(Debug)]
pub(crate) struct NodeClient {
    builder: ClientBuilder,
    client: OnceCell<Client>,
}

impl NodeClient {
    pub(crate) fn new(builder: ClientBuilder) -> Self {
        Self { builder: builder.create_namespace(false).deadline(DEADLINE), client: OnceCell::new() }
    }

    /// Returns the client. The first call connects.
    pub(super) async fn get(&self) -> Result<&Client, ConnectError> {
        self.client.get_or_try_init(|| self.builder.clone().connect()).await
    }
}
