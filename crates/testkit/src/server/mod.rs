//! A real server as a child process: Apache ZooKeeper, or the keeper of the `bellwether` command.
//!
//! **Why not a mock:** coordinators fail on ZooKeeper's actual behaviour in edge cases (a session that outlives its
//! socket, a commit whose reply is lost), and a mock only repeats the assumptions of its author.
//!
//! **Cleanup:** a test process can end by panic, abort or SIGKILL, so destructors are not sufficient. [`watchdog`]
//! reads a pipe whose other end is held only by the test process. When the pipe closes for any reason, the watchdog
//! kills the server and deletes its directory.
//!
//! **Isolation:** each server has its own directory and port. It has started only when the process that replies on the
//! port identifies itself as ours ([`ready`]), so a lost race for a port is detected.

mod builder;
mod config;
mod ensemble;
mod error;
mod installation;
mod link;
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
pub use ensemble::{Ensemble, EnsembleBuilder};
pub use error::StartError;
pub use installation::{Installation, Missing};
pub use port::unused as unused_address;
pub use program::{Program, binary_or, command};

use crate::four_letter_word;
use config::Home;
use process::Guarded;

/// A server for one test: standalone, with its own port on 127.0.0.1 and its own directory. [`Program`] selects the
/// kind.
///
/// Dropping it kills the server and deletes its directory. If the test process ends without dropping it, the watchdog
/// kills the server within milliseconds.
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
    /// If ZooKeeper is not installed (the message names the package), or the server does not start.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Returns a builder for other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the connect string for clients, `127.0.0.1:{port}`. A chroot can be appended.
    pub fn connect_string(&self) -> String {
        self.home.address.to_string()
    }

    /// Returns the data directory; Apache ZooKeeper's logs and snapshots are in its subdirectory `version-2`.
    pub fn data_dir(&self) -> &Path {
        &self.home.data
    }

    /// Returns the listen address, which does not change after a [`restart`](Self::restart).
    pub fn address(&self) -> SocketAddr {
        self.home.address
    }

    /// Returns the process id of the server; `None` while it is killed.
    pub fn process_id(&self) -> Option<u32> {
        match &self.state {
            State::Running(process) | State::Frozen(process) => Some(process.id()),
            State::Killed => None,
        }
    }

    /// Kills the server with SIGKILL and waits for its end; keeps its data. Does nothing if it is already killed.
    pub fn kill(&mut self) {
        match std::mem::replace(&mut self.state, State::Killed) {
            State::Running(process) | State::Frozen(process) => drop(process),
            State::Killed => {} // Already killed.
        }
    }

    /// Kills the server if it runs, and starts it again on the same port and data; returns when it accepts requests.
    ///
    /// Sessions survive because ZooKeeper stores them in its log: a client that reconnects in time keeps its
    /// ephemerals.
    ///
    /// # Panics
    /// If the server does not start again.
    pub fn restart(&mut self) {
        self.kill();
        match self.home.launch() {
            Ok(process) => self.state = State::Running(process),
            Err(error) => panic!("the server on {} did not start again: {error}", self.home.address),
        }
    }

    /// Starts a killed server again without waiting until it accepts requests, because a member of an ensemble without
    /// a majority does not accept any. See [`serves`](Self::serves).
    ///
    /// # Panics
    /// If the process cannot be started.
    pub fn launch(&mut self) {
        if let State::Killed = self.state {
            match self.home.spawn() {
                Ok(process) => self.state = State::Running(process),
                Err(error) => panic!("the server on {} could not be launched: {error}", self.home.address),
            }
        }
    }

    /// Returns whether the server reports that it serves.
    pub fn serves(&self) -> bool {
        matches!(self.state, State::Running(_)) && ready::serves(self.home.address)
    }

    /// Stops the server with SIGSTOP and waits until it has stopped: connections stay open and get no replies. Does
    /// nothing if it is not running.
    pub fn freeze(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Killed) {
            State::Running(process) => {
                process.stop();
                State::Frozen(process)
            }
            unchanged @ (State::Frozen(_) | State::Killed) => unchanged,
        };
    }

    /// Continues a [frozen](Self::freeze) server with SIGCONT. Does nothing if it is not frozen.
    ///
    /// Time has also passed for the server: a session whose timeout is shorter than the freeze can expire.
    pub fn thaw(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Killed) {
            State::Frozen(process) => {
                process.go_on();
                State::Running(process)
            }
            unchanged @ (State::Running(_) | State::Killed) => unchanged,
        };
    }

    /// Sends a [four-letter word](four_letter_word) to the server; all words are enabled.
    pub fn four_letter_word(&self, word: &str) -> io::Result<String> {
        four_letter_word(self.home.address, word)
    }

    /// Waits until the server ends, for one that runs in the foreground. Returns `None` for a killed server.
    pub fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.state {
            State::Running(process) | State::Frozen(process) => process.wait().map(Some),
            State::Killed => Ok(None),
        }
    }
}
