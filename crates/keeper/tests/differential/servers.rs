//! The servers under comparison, each fresh: nobody has asked it anything yet.

use std::net::SocketAddr;

use bellwether_keeper::model::{Compat, Config};
use bellwether_keeper::server::Keeper;
use bellwether_testkit::ZooKeeperServer;
use tokio::runtime::Runtime;

/// Sessions from 60 s to 600 s: none expires within a run, which would be at another moment on each server.
const TICK_MS: u16 = 30_000;
/// Longer than any run: what the keeper cleans away, ZooKeeper cleans away at another moment.
const CLEANING_INTERVAL_MS: u64 = 3_600_000;

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
    Keeper {
        keeper: Keeper,
        /// Runs the keeper's tasks.
        _runtime: Runtime,
    },
}

impl Server {
    /// Starts one that holds nothing.
    ///
    /// # Panics
    /// When it cannot be started; when ZooKeeper is not installed, it says what to install.
    pub(crate) fn fresh(kind: Kind) -> Self {
        match kind {
            Kind::ZooKeeper => Self::ZooKeeper(ZooKeeperServer::builder().tick_ms(TICK_MS.into()).start()),
            Kind::Keeper => {
                let config = Config {
                    tick_ms: TICK_MS.into(),
                    cleaning_interval_ms: CLEANING_INTERVAL_MS,
                    compat: Compat::V3_8_0,
                    ..Config::default()
                };
                let runtime = Runtime::new().expect("a runtime for the keeper");
                let keeper = runtime.block_on(Keeper::builder().config(config).start());
                Self::Keeper { keeper: keeper.expect("the keeper starts"), _runtime: runtime }
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::ZooKeeper(server) => server.address(),
            Self::Keeper { keeper, _runtime: _ } => keeper.address(),
        }
    }
}
