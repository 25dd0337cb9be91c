//! The settings of a server, and its start on a free port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::config::Home;
use super::program::{Found, Program};
use super::{Installation, StartError, State, ZooKeeperServer, port};

/// Session timeouts can be as short as two ticks: 400 ms, so that an expiry takes less than a second in a test.
pub(super) const TICK_MS: u32 = 200;
/// Far longer than any session in a test.
pub(super) const MAX_SESSION_MS: u32 = 600_000;
/// Attempts to start on another port. Even one lost race for a port is rare, so after several the cause must be
/// different.
const PORT_TRIES: u32 = 5;

/// Tuning of Apache ZooKeeper; it does not affect the keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Fast start, small heap, no fsync: a killed process loses no data, because the kernel has it.
    Test,
    /// Optimizing compiler, larger heap, and an fsync for every transaction: for benchmarks and manual use.
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

/// Settings for starting a [`ZooKeeperServer`]; the defaults are for tests.
#[derive(Debug, Clone)]
pub struct Builder {
    program: Program,
    installation: Option<Installation>,
    tick_ms: u32,
    max_session_ms: u32,
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
            installation: None,
            tick_ms: TICK_MS,
            max_session_ms: MAX_SESSION_MS,
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
    /// Sets ZooKeeper's tick; session timeouts are at least two ticks. Default: 200 ms.
    pub fn tick_ms(self, tick_ms: u32) -> Self {
        Self { tick_ms, ..self }
    }

    /// Sets the longest session timeout that the server grants. Default: ten minutes.
    pub fn max_session_ms(self, max_session_ms: u32) -> Self {
        Self { max_session_ms, ..self }
    }

    /// Sets the server program. Default: the one selected for the test run ([`Program::chosen`]).
    pub fn program(self, program: Program) -> Self {
        Self { program, ..self }
    }

    /// Sets the server program to this installation of Apache ZooKeeper.
    pub fn installation(self, installation: Installation) -> Self {
        Self { installation: Some(installation), ..self }
    }

    /// Lets the keeper store its data in memory, for a server that is never restarted. Apache ZooKeeper ignores it,
    /// because it does not wait for the disk with [`Profile::Test`] either.
    pub fn memory(self) -> Self {
        Self { memory: true, ..self }
    }

    /// Sets the tuning of Apache ZooKeeper; it does not affect the keeper. Default: [`Profile::Test`].
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Sets a fixed port. Default: any free port.
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Sets a data directory that is kept after the server. Default: a temporary directory.
    pub fn data_dir(self, data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: Some(data_dir.into()), ..self }
    }

    /// Adds a line to Apache ZooKeeper's configuration, such as `authProvider.1=…`. The keeper has no such
    /// configuration, so a test that needs it must set its [`program`](Self::program).
    pub fn setting(mut self, line: impl Into<String>) -> Self {
        self.settings.push(line.into());
        self
    }

    /// Adds an argument for Apache ZooKeeper's JVM, such as `-D…`.
    pub fn java_flag(mut self, flag: impl Into<String>) -> Self {
        self.java_flags.push(flag.into());
        self
    }

    /// Starts the server; returns when it accepts requests.
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

    /// Starts the server; returns when it accepts requests.
    pub fn try_start(self) -> Result<ZooKeeperServer, StartError> {
        let program = match &self.installation {
            Some(installation) => Found::Apache(installation.clone()),
            None => self.program.find()?,
        };
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
        let (tick_ms, max_session_ms) = (self.tick_ms, self.max_session_ms);
        let (memory, profile) = (self.memory, self.profile);
        let (settings, java_flags) = (self.settings.clone(), self.java_flags.clone());
        Ok(Home {
            program,
            dir,
            data,
            address,
            tick_ms,
            max_session_ms,
            memory,
            profile,
            quorum: None,
            settings,
            java_flags,
        })
    }
}
