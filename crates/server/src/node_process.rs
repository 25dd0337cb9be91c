//! What one `bellwether node` process runs: a node, an HTTP gateway, or both.

use std::net::SocketAddr;

use bellwether::Node;
use bellwether::node::{Drained, RunError, run_until_signal};

use bellwether_gateway::{Gateway, GatewayError, MetricsServer};

/// Why the process ends with an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Node(#[from] RunError),
    /// The gateway stopped without a request. The node still runs.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

/// The running parts. Both run until they are stopped, whether or not this value is kept.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    pub(crate) node: Option<Node>,
    pub(crate) gateway: Option<Gateway>,
    /// Serves until the process ends.
    pub(crate) metrics_server: Option<MetricsServer>,
}

impl NodeProcess {
    /// The address of the gateway.
    pub(crate) fn http(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().map(Gateway::address)
    }

    /// The address of the metrics.
    pub(crate) fn metrics(&self) -> Option<SocketAddr> {
        self.metrics_server.as_ref().map(MetricsServer::address)
    }

    /// Runs until SIGTERM or ctrl-c, then stops the gateway and drains the node. A second signal ends the wait immediately.
    pub(crate) async fn run(&self) -> Result<(), ServeError> {
        let ended = async {
            tokio::select! {
                ended = self.node_ended() => Ok(ended?),
                ended = self.gateway_ended() => Ok(ended?),
            }
        };
        run_until_signal(ended, self.stop()).await
    }

    async fn stop(&self) -> Option<Drained> {
        if let Some(gateway) = &self.gateway {
            gateway.stop().await;
        }
        match &self.node {
            Some(node) => node.stop().await,
            None => None,
        }
    }

    async fn node_ended(&self) -> Result<(), RunError> {
        match &self.node {
            Some(node) => Ok(node.ended().await?),
            None => std::future::pending().await,
        }
    }

    async fn gateway_ended(&self) -> Result<(), GatewayError> {
        match &self.gateway {
            Some(gateway) => gateway.ended().await,
            None => std::future::pending().await,
        }
    }
}
