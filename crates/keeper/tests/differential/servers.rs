//! The servers under comparison, each fresh: nobody has asked it anything yet.

use std::net::SocketAddr;

use bellwether_keeper::model::{Compat, Config};
use bellwether_testkit::ZooKeeperServer;

/// Sessions from 60 s to 600 s: none expires within a run, which would be at another moment on each server.
const TICK_MS: u32 = 30_000;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Apache ZooKeeper, as installed.
    ZooKeeper,
    /// The keeper, as the same release.
    Keeper,
}

/// A running server; it ends with this.
#[derive(Debug)]
pub(crate) enum Server {
    ZooKeeper(ZooKeeperServer),
    Keeper(SocketAddr),
}

impl Server {
    /// Starts one that holds nothing.
    ///
    /// # Panics
    /// When it cannot be started; when ZooKeeper is not installed, it says what to install.
    pub(crate) fn fresh(kind: Kind) -> Self {
        match kind {
            Kind::ZooKeeper => Self::ZooKeeper(ZooKeeperServer::builder().tick_ms(TICK_MS).start()),
            Kind::Keeper => Self::Keeper(crate::bare::start(Config {
                tick_ms: TICK_MS as i32,
                cleaning_interval_ms: u64::MAX / 4,
                compat: Compat::V3_8_0,
                ..Config::default()
            })),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::ZooKeeper(server) => server.address(),
            Self::Keeper(address) => *address,
        }
    }
}
