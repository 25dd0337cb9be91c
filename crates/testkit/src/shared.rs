//! One server for all tests of a process, and a separate chroot for each test.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{RawClient, ZooKeeperServer};

static SHARED: OnceLock<ZooKeeperServer> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// Returns the server shared by all tests of this process; the first call starts it.
///
/// It is returned as a shared reference, and killing or freezing needs an exclusive one, so no test can stop it for the
/// others. It is never dropped; its watchdog kills it when the process ends.
///
/// # Panics
/// If the server is not installed or does not start; the message says how to fix it.
pub fn shared() -> &'static ZooKeeperServer {
    SHARED.get_or_init(|| ZooKeeperServer::builder().memory().start())
}

/// Returns a connect string for a new, empty namespace on the [`shared`] server: `127.0.0.1:{port}/{name}-{n}`.
///
/// The chroot node already exists, so clients that require it can connect immediately. Every call returns a different
/// namespace, even for the same name.
///
/// # Panics
/// As [`shared`], and if `name` cannot be part of a znode name.
pub fn namespace(name: &str) -> String {
    let server = shared();
    let chroot = format!("/{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    RawClient::connect(server.address())
        .and_then(|mut client| client.create(&chroot, b""))
        .unwrap_or_else(|error| panic!("could not create the chroot {chroot} on the shared server: {error}"));
    format!("{}{chroot}", server.connect_string())
}
