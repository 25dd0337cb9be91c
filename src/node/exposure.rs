//! A self-check of a starting node: it warns if anyone may change the namespace.
//!
//! It runs once, in the first session, and changes nothing. If the connection is lost, the check is skipped until the
//! next start: it reminds the operator and does not protect the namespace.

use bellwether_core::chain::chain;
use bellwether_host::session::SessionStatus;
use bellwether_zk::{Exposed, Zk, exposed};

/// Paths that one log line names. In a namespace without access lists all paths are open, and the first is enough.
const NAMED: usize = 3;

/// Checks the access lists in the node's first session.
pub(super) fn watch(node: &bellwether_host::node::Node) {
    let mut parts = node.parts();
    tokio::spawn(async move {
        // Ends with the node.
        let Ok(Some(session)) =
            parts.wait_for(|parts| parts.session.is_some()).await.map(|parts| parts.session.clone())
        else {
            return;
        };
        let mut status = session.status();
        let connected = status.wait_for(|status| matches!(status, SessionStatus::Connected(_))).await;
        let Ok(SessionStatus::Connected(zk)) = connected.map(|status| status.clone()) else { return };
        match exposed(&zk).await {
            Ok(exposed) => tell(&zk, &exposed),
            Err(error) => tracing::debug!(error = %chain(&error), "the access lists were not checked"),
        }
    });
}

fn tell(zk: &Zk, exposed: &[Exposed]) {
    let (root, namespace): (Vec<_>, Vec<_>) = exposed.iter().partition(|exposed| exposed.path == "/");
    if !namespace.is_empty() {
        tracing::warn!(
            exposed = %list(&namespace),
            "THE NAMESPACE IS OPEN: anyone who reaches ZooKeeper may change it: run jobs on its workers, cancel and \
             delete jobs, and take the leadership. Give all nodes and clients one zookeeper_user and its password, and \
             close the existing znodes: docs/operations.md, \"Closing a namespace\""
        );
    }
    if !root.is_empty() {
        tracing::warn!(
            exposed = %list(&root),
            "THE ROOT OF ZOOKEEPER IS OPEN: anyone who reaches it may create znodes in / until its disk is full, and \
             take the place of a missing namespace. Close it: docs/operations.md, \"Closing a namespace\""
        );
    }
    if namespace.is_empty() {
        tracing::info!(who = %zk.access(), "the namespace is closed to others");
    }
}

fn list(exposed: &[&Exposed]) -> String {
    let places = exposed.iter().take(NAMED).map(|exposed| format!("{} ({})", exposed.path, exposed.may));
    let named = places.collect::<Vec<_>>().join(", ");
    match exposed.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
