//! The servers under comparison. Each one is new and has received no request.

use std::net::SocketAddr;

use bellwether_keeper::model::{Compat, Config};
use bellwether_keeper::server::Keeper;
use bellwether_testkit::{Program, ZooKeeperServer};
use tokio::runtime::Runtime;

/// Sessions of 60 s to 600 s: none expires within a run, because the expiry times of the servers differ.
const TICK_MS: u16 = 30_000;
/// Longer than any run, because the cleaning times of the servers differ.
const CLEANING_INTERVAL_MS: u64 = 3_600_000;

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Apache ZooKeeper, as installed.
    ZooKeeper,
    /// The keeper with `Compat::V3_8_0`.
    Keeper,
}

/// A running server, stopped on drop.
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
    /// Starts an empty server.
    ///
    /// # Panics
    /// If it cannot be started. If ZooKeeper is not installed, the message names the package.
    pub(crate) fn fresh(kind: Kind) -> Self {
        match kind {
            Kind::ZooKeeper => {
                // Not the server of the test run, which is the keeper by default.
                let builder = ZooKeeperServer::builder().program(Program::Apache);
                Self::ZooKeeper(builder.tick_ms(TICK_MS.into()).start())
            }
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
