//! The settings of a server, and the race for its port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::config::Home;
use super::program::{Found, Program};
use super::{StartError, State, ZooKeeperServer, port};

/// Sessions may be as short as two ticks: 400 ms, so that an expiry is a matter of one test second.
pub(super) const TICK_MS: u32 = 200;
/// Lost races for a port before it must be something else. One is rare already.
const PORT_TRIES: u32 = 5;

/// What Apache ZooKeeper is tuned for; the keeper has nothing to tune.
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
    program: Program,
    tick_ms: u32,
    memory: bool,
    profile: Profile,
    port: Option<u16>,
    data_dir: Option<PathBuf>,
    settings: Vec<String>,
    java_flags: Vec<String>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            program: Program::chosen(),
            tick_ms: TICK_MS,
            memory: false,
            profile: Profile::Test,
            port: None,
            data_dir: None,
            settings: Vec::new(),
            java_flags: Vec::new(),
        }
    }
}

impl Builder {
    /// ZooKeeper's tick; sessions last at least two of them. Default: 200 ms.
    pub fn tick_ms(self, tick_ms: u32) -> Self {
        Self { tick_ms, ..self }
    }

    /// Which server. Default: the one that the test run is about ([`Program::chosen`]).
    pub fn program(self, program: Program) -> Self {
        Self { program, ..self }
    }

    /// For a server that is never restarted: the keeper need not wait for its disk. Apache ZooKeeper, whose
    /// [`Profile::Test`] does not wait either, pays no heed.
    pub fn memory(self) -> Self {
        Self { memory: true, ..self }
    }

    /// What Apache ZooKeeper is tuned for; the keeper has nothing to tune. Default: [`Profile::Test`].
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

    /// One more line of Apache ZooKeeper's configuration: `authProvider.1=…`. The keeper has none, and a test that needs
    /// it names its [`program`](Self::program).
    pub fn setting(mut self, line: impl Into<String>) -> Self {
        self.settings.push(line.into());
        self
    }

    /// One more argument of Apache ZooKeeper's Java: `-D…`.
    pub fn java_flag(mut self, flag: impl Into<String>) -> Self {
        self.java_flags.push(flag.into());
        self
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
        let program = self.program.find()?;
        let mut tries = 1;
        loop {
            let home = self.home(program.clone())?;
            match home.launch() {
                Ok(process) => {
                    return Ok(ZooKeeperServer { home, state: State::Running(process) });
                }
                Err(StartError::Exited { .. }) if self.port.is_none() && tries < PORT_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn home(&self, program: Found) -> Result<Home, StartError> {
        let dir = tempfile::Builder::new().prefix("bellwether-server-").tempdir()?;
        let data = match &self.data_dir {
            Some(data_dir) => std::path::absolute(data_dir)?,
            None => dir.path().join("data"),
        };
        let address = match self.port {
            Some(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            None => port::unused()?,
        };
        let (tick_ms, memory, profile) = (self.tick_ms, self.memory, self.profile);
        let (settings, java_flags) = (self.settings.clone(), self.java_flags.clone());
        Ok(Home { program, dir, data, address, tick_ms, memory, profile, quorum: None, settings, java_flags })
    }
}
