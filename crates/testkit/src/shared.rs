//! One ZooKeeper for all tests of a process, and a chroot of its own for each.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{RawClient, ZooKeeperServer};

static SHARED: OnceLock<ZooKeeperServer> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// The server that all tests of this process share, started by the first that asks.
///
/// It comes as a shared reference, and killing or freezing takes an exclusive one, so no test can pull it away
/// from the others. It is never dropped; its watchdog ends it with the process.
///
/// # Panics
/// When ZooKeeper is not installed or does not start, with what to do about it.
pub fn shared() -> &'static ZooKeeperServer {
    SHARED.get_or_init(|| ZooKeeperServer::builder().memory().start())
}

/// A connect string into an empty namespace of the [`shared`] server: `127.0.0.1:{port}/{name}-{n}`.
///
/// The chroot node exists already, so clients that expect it to may be pointed at it at once. Two calls never
/// answer the same namespace, whatever their names.
///
/// # Panics
/// As [`shared`] does, and when `name` cannot be part of a znode name.
pub fn namespace(name: &str) -> String {
    let server = shared();
    let chroot = format!("/{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    RawClient::connect(server.address())
        .and_then(|mut client| client.create(&chroot, b""))
        .unwrap_or_else(|error| panic!("no chroot {chroot} on the shared ZooKeeper: {error}"));
    format!("{}{chroot}", server.connect_string())
}
