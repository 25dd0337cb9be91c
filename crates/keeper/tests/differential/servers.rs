//! The servers under comparison. Each one is new and has received no request.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bellwether_keeper::server::{Compat, Keeper};
use bellwether_testkit::{Installation, Program, ZooKeeperServer};
use tokio::runtime::Runtime;

/// A directory with the jars of a ZooKeeper, instead of the installed one.
const JARS: &str = "KEEPER_DIFF_ZOOKEEPER";
/// Sessions of 60 s to 600 s: none expires within a run, because the expiry times of the servers differ.
const TICK_MS: u16 = 30_000;
/// Longer than any run, because the cleaning times of the servers differ.
const CLEANING_INTERVAL_MS: u64 = 3_600_000;

/// The server that is compared with a ZooKeeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Another ZooKeeper of the same release.
    ZooKeeper,
    /// The keeper with the behaviour of that release.
    Keeper,
}

/// A running server to compare with the reference, stopped on drop.
#[derive(Debug)]
pub(crate) enum Server {
    ZooKeeper(ZooKeeperServer),
    Keeper {
        keeper: Keeper,
        /// Runs the keeper's tasks.
        _runtime: Runtime,
    },
}

/// Starts an empty ZooKeeper.
///
/// # Panics
/// If it cannot be started. If it is not installed, the message names the package.
pub(crate) fn reference() -> ZooKeeperServer {
    // Not the server of the test run, which is the keeper by default.
    let builder = ZooKeeperServer::builder().program(Program::Apache).tick_ms(TICK_MS.into());
    let builder = match std::env::var_os(JARS) {
        Some(jars) => {
            let installation = Installation::of_jars(Path::new(&jars));
            builder.installation(installation.unwrap_or_else(|missing| panic!("{missing}")))
        }
        None => builder,
    };
    builder.start()
}

/// Returns the release whose behaviour the keeper must have.
///
/// # Panics
/// If the keeper does not have the behaviour of this release.
pub(crate) fn release(reference: &ZooKeeperServer) -> Compat {
    let answer = reference.four_letter_word("srvr").expect("the server answers");
    let line = answer.lines().next().unwrap_or_default();
    match line.strip_prefix("Zookeeper version: ") {
        Some(version) if version.starts_with("3.8.") => Compat::V3_8_0,
        Some(version) if version.starts_with("3.9.") => Compat::V3_9,
        Some(_) | None => panic!("the keeper does not have the behaviour of {line:?}"),
    }
}

impl Server {
    /// Starts an empty server to compare with a reference of this release.
    pub(crate) fn fresh(kind: Kind, release: Compat) -> Self {
        match kind {
            Kind::ZooKeeper => Self::ZooKeeper(reference()),
            Kind::Keeper => {
                let builder = Keeper::builder()
                    .tick_time(Duration::from_millis(TICK_MS.into()))
                    .cleaning_interval(Duration::from_millis(CLEANING_INTERVAL_MS))
                    .compat(release);
                let runtime = Runtime::new().expect("a runtime for the keeper");
                let keeper = runtime.block_on(builder.start());
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
