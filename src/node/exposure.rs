//! A self-check of a starting node: it warns if anyone may change the namespace.
//!
//! It runs once, in the first session, and changes nothing. If the connection is lost, the check is skipped until the
//! next start: it reminds the operator and does not protect the namespace.

use bellwether_core::chain::chain;
use bellwether_host::session::SessionStatus;
use bellwether_zk::{Closed, Exposed, ReadError, Zk, closed, exposed};

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
        match look(&zk).await {
            Ok((exposed, closed)) => tell(&zk, &exposed, closed.as_ref()),
            Err(error) => {
                tracing::debug!(error = %chain(&error), "the node could not check the access lists")
            }
        }
    });
}

/// Returns what anyone may change, and with a login whether the namespace belongs to its user alone.
async fn look(zk: &Zk) -> Result<(Vec<Exposed>, Option<Closed>), ReadError> {
    let exposed = exposed(zk).await?;
    let closed = if zk.access().is_login() { Some(closed(zk).await?) } else { None };
    Ok((exposed, closed))
}

fn tell(zk: &Zk, exposed: &[Exposed], closed: Option<&Closed>) {
    let (root, namespace): (Vec<_>, Vec<_>) = exposed.iter().partition(|exposed| exposed.path == "/");
    if !namespace.is_empty() {
        tracing::warn!(
            exposed = %list(&namespace),
            "THE NAMESPACE IS OPEN: anyone who reaches ZooKeeper may change it: run jobs on its workers, cancel and \
             delete jobs, and take the leadership. Give all nodes and clients one login, and \
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
    match closed {
        Some(Closed::Entirely) => {
            tracing::info!(login = %zk.access(), "the namespace is closed: only this user has access to its permanent znodes");
        }
        Some(Closed::ReadableByOthers(at)) => {
            tracing::info!(path = %at.path, may = %at.may, "the namespace is closed for changes: other users may only read it");
        }
        // An operator changed them since the session opened the namespace; the next session is refused.
        Some(Closed::Not(exposed)) if namespace.is_empty() => {
            tracing::warn!(exposed = %list(&exposed.iter().collect::<Vec<_>>()), "the namespace is not closed to other users");
        }
        Some(Closed::Not(_)) | None => {}
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
