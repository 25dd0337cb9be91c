//! A real server as a child process: Apache ZooKeeper, or the keeper that the `bellwether` command carries.
//!
//! **Why not a mock:** what breaks a coordinator is what ZooKeeper really does at the edges (a session that outlives
//! its socket, a commit whose reply is lost), and a mock only repeats what its author believed.
//!
//! **How nothing leaks:** a test process may end by panic, abort or SIGKILL, so no destructor can be trusted with the
//! server. [`watchdog`] reads a pipe whose other end only the test process holds; when it closes, for whatever reason,
//! the watchdog kills the server and wipes its directory.
//!
//! **How servers do not clash:** each has its own directory and port, and counts as started only when the process
//! that answers on the port tells that it is ours ([`ready`]), so a lost race for a port is noticed.

mod builder;
mod config;
mod ensemble;
mod error;
mod installation;
mod port;
mod process;
mod program;
mod ready;
mod watchdog;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;

pub use builder::{Builder, Profile};
pub use ensemble::Ensemble;
pub use error::StartError;
pub use installation::{Installation, Missing};
pub use port::unused as unused_address;
pub use program::{Program, binary_or, command};

use crate::four_letter_word;
use config::Home;
use process::Guarded;

/// A server of this test's own that speaks ZooKeeper's protocol: standalone, on a private port and directory of
/// 127.0.0.1. [`Program`] tells which one.
///
/// Dropping it kills the server and wipes its directory. When the test process dies without dropping anything, the
/// server dies all the same, within milliseconds.
#[derive(Debug)]
pub struct ZooKeeperServer {
    home: Home,
    state: State,
}

#[derive(Debug)]
enum State {
    Running(Guarded),
    Frozen(Guarded),
    Killed,
}

impl ZooKeeperServer {
    /// Starts a server with the defaults for tests (see [`Builder`]).
    ///
    /// # Panics
    /// When ZooKeeper is not installed, naming the package to install, or does not come up.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// The settings for a server that is not like the others.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `127.0.0.1:{port}`: what a client takes. A chroot may be appended to it.
    pub fn connect_string(&self) -> String {
        self.home.address.to_string()
    }

    /// Where its data are, Apache ZooKeeper's logs and snapshots under `version-2`.
    pub fn data_dir(&self) -> &Path {
        &self.home.data
    }

    /// Where it listens; stays the same over [`restart`](Self::restart).
    pub fn address(&self) -> SocketAddr {
        self.home.address
    }

    /// The process id of the server, for whoever measures it; `None` while it is killed.
    pub fn process_id(&self) -> Option<u32> {
        match &self.state {
            State::Running(process) | State::Frozen(process) => Some(process.id()),
            State::Killed => None,
        }
    }

    /// Kills the server with SIGKILL and returns when it is gone; its data stay. Killing a dead server does nothing.
    pub fn kill(&mut self) {
        match std::mem::replace(&mut self.state, State::Killed) {
            State::Running(process) | State::Frozen(process) => drop(process),
            State::Killed => {} // The test wanted it dead, and it is.
        }
    }

    /// Kills the server if it lives, and starts it again on the same port and data; returns when it serves.
    ///
    /// Sessions survive, as ZooKeeper keeps them in its log: a client that reconnects in time keeps its ephemerals.
    ///
    /// # Panics
    /// When the server does not come back.
    pub fn restart(&mut self) {
        self.kill();
        match self.home.launch() {
            Ok(process) => self.state = State::Running(process),
            Err(error) => panic!("ZooKeeper on {} did not come back: {error}", self.home.address),
        }
    }

    /// Starts a killed server again without waiting until it serves: a member of an ensemble without a majority does
    /// not. See [`serves`](Self::serves).
    ///
    /// # Panics
    /// When the machine refuses a process.
    pub fn launch(&mut self) {
        if let State::Killed = self.state {
            match self.home.spawn() {
                Ok(process) => self.state = State::Running(process),
                Err(error) => panic!("ZooKeeper on {} could not be launched: {error}", self.home.address),
            }
        }
    }

    /// Whether it answers that it serves.
    pub fn serves(&self) -> bool {
        matches!(self.state, State::Running(_)) && ready::serves(self.home.address)
    }

    /// Stops the server in its tracks (SIGSTOP) and returns when it stands still: connections stay open and nothing
    /// answers. Freezing what is not running does nothing.
    pub fn freeze(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Killed) {
            State::Running(process) => {
                process.stop();
                State::Frozen(process)
            }
            unchanged @ (State::Frozen(_) | State::Killed) => unchanged,
        };
    }

    /// Lets a [frozen](Self::freeze) server go on (SIGCONT). Thawing what is not frozen does nothing.
    ///
    /// Time has passed for the server too: a freeze longer than a session's timeout may expire that session.
    pub fn thaw(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Killed) {
            State::Frozen(process) => {
                process.go_on();
                State::Running(process)
            }
            unchanged @ (State::Running(_) | State::Killed) => unchanged,
        };
    }

    /// Asks the server a [four-letter word](four_letter_word); all are enabled.
    pub fn four_letter_word(&self, word: &str) -> io::Result<String> {
        four_letter_word(self.home.address, word)
    }

    /// Waits until the server ends by itself, for one that runs in the foreground. A killed server answers `None`.
    pub fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.state {
            State::Running(process) | State::Frozen(process) => process.wait().map(Some),
            State::Killed => Ok(None),
        }
    }
}
