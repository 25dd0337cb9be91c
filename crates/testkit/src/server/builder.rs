//! The settings of a server, and the race for its port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::config::Home;
use super::{Installation, StartError, State, ZooKeeperServer, port};

/// Sessions may be as short as two ticks: 400 ms, so that an expiry is a matter of one test second.
const TICK_MS: u32 = 200;
/// Lost races for a port before it must be something else. One is rare already.
const PORT_TRIES: u32 = 5;

/// What the JVM is tuned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A fast start and a small heap, and no fsync: a killed process loses nothing that the kernel has.
    Test,
    /// The optimizing compiler, a larger heap, and every transaction fsynced: for benchmarks, and for people.
    Production,
}

impl Profile {
    pub(super) fn java_flags(self) -> &'static [&'static str] {
        match self {
            Self::Test => {
                &["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no"]
            }
            Self::Production => &["-Xmx1g"],
        }
    }
}

/// How to start a [`ZooKeeperServer`]; the defaults are those for tests.
#[derive(Debug, Clone)]
pub struct Builder {
    tick_ms: u32,
    profile: Profile,
    port: Option<u16>,
    data_dir: Option<PathBuf>,
}

impl Default for Builder {
    fn default() -> Self {
        Self { tick_ms: TICK_MS, profile: Profile::Test, port: None, data_dir: None }
    }
}

impl Builder {
    /// ZooKeeper's tick; sessions last at least two of them. Default: 200 ms.
    pub fn tick_ms(self, tick_ms: u32) -> Self {
        Self { tick_ms, ..self }
    }

    /// What the JVM is tuned for. Default: [`Profile::Test`].
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// A port that must be this one. Default: any free one.
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// A directory for the data that outlives the server. Default: a temporary one.
    pub fn data_dir(self, data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: Some(data_dir.into()), ..self }
    }

    /// Starts the server; returns when it serves.
    ///
    /// # Panics
    /// With the error of [`try_start`](Self::try_start).
    pub fn start(self) -> ZooKeeperServer {
        match self.try_start() {
            Ok(server) => server,
            Err(StartError::Missing(missing)) => panic!("{missing}"),
            Err(error @ (StartError::Io(_) | StartError::Exited { .. } | StartError::NotReady { .. })) => {
                panic!("{error} {error:?}")
            }
        }
    }

    /// Starts the server; returns when it serves.
    pub fn try_start(self) -> Result<ZooKeeperServer, StartError> {
        let installation = Installation::find()?;
        let mut tries = 1;
        loop {
            let home = self.home(installation.clone())?;
            match home.launch() {
                Ok(jvm) => {
                    return Ok(ZooKeeperServer { home, state: State::Running(jvm) });
                }
                Err(StartError::Exited { .. }) if self.port.is_none() && tries < PORT_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn home(&self, installation: Installation) -> Result<Home, StartError> {
        let dir = tempfile::Builder::new().prefix("bellwether-zookeeper-").tempdir()?;
        let data = match &self.data_dir {
            Some(data_dir) => std::path::absolute(data_dir)?,
            None => dir.path().join("data"),
        };
        let address = match self.port {
            Some(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            None => port::unused()?,
        };
        Ok(Home { installation, dir, data, address, tick_ms: self.tick_ms, profile: self.profile })
    }
}
