//! An ensemble of Apache ZooKeeper servers.
//!
//! Each member is a [`ZooKeeperServer`] with its own ports, directory and watchdog, so that it can be killed, frozen
//! and started again like any other server. Clients connect to the members directly or through one proxy per member;
//! the connections between members use no proxy.
//!
//! **Ports:** a member has three ports, two of which are only used between members. They are chosen when all are free.
//! If another process takes one of them first, the whole start is repeated with other ports.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::builder::{Profile, TICK_MS};
use super::config::{Home, Quorum};
use super::program::Program;
use super::{StartError, State, ZooKeeperServer, port, ready};

/// Attempts to start on other ports; after several the cause must be different.
const PORT_TRIES: u32 = 5;
/// Three JVMs that start concurrently on a busy machine, and an election.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// An ensemble for one test. Dropping it kills its members and deletes their directories.
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<ZooKeeperServer>,
}

impl Ensemble {
    /// Starts an ensemble with the settings of [`Profile::Test`]; returns when all members accept requests.
    ///
    /// # Panics
    /// If ZooKeeper is not installed, or the members do not start.
    pub fn start(members: usize) -> Self {
        match Self::try_start(members) {
            Ok(ensemble) => ensemble,
            Err(StartError::Missing(missing)) => panic!("{missing}"),
            Err(error @ (StartError::Io(_) | StartError::Exited { .. } | StartError::NotReady { .. })) => {
                panic!("{error} {error:?}")
            }
        }
    }

    /// Starts an ensemble; returns when all members accept requests.
    pub fn try_start(members: usize) -> Result<Self, StartError> {
        let mut tries = 1;
        loop {
            match Self::on_free_ports(members) {
                Err(StartError::Exited { .. }) if tries < PORT_TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    fn on_free_ports(members: usize) -> Result<Self, StartError> {
        let program = Program::Apache.find()?;
        let mut clients = free(3 * members)?;
        let peers = clients.split_off(members);
        let ports: Vec<_> = peers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let mut started = Vec::new();
        for (index, address) in clients.into_iter().enumerate() {
            let dir = tempfile::Builder::new().prefix("bellwether-member-").tempdir()?;
            let data = dir.path().join("data");
            let quorum = Some(Quorum { id: index + 1, ports: ports.clone() });
            let program = program.clone();
            let profile = Profile::Test;
            let home = Home {
                program,
                dir,
                data,
                address,
                tick_ms: TICK_MS,
                memory: false,
                profile,
                quorum,
                settings: Vec::new(),
                java_flags: Vec::new(),
            };
            let process = home.spawn()?;
            started.push((home, process));
        }
        for (home, process) in &mut started {
            ready::wait(process, home)?;
        }
        let members = started
            .into_iter()
            .map(|(home, process)| ZooKeeperServer { home, state: State::Running(process) })
            .collect();
        Ok(Self { members })
    }

    /// Returns the members, in the order of their numbers.
    pub fn members(&self) -> &[ZooKeeperServer] {
        &self.members
    }

    /// Returns a member, to kill, freeze or [launch](ZooKeeperServer::launch) it.
    ///
    /// # Panics
    /// If the member does not exist.
    pub fn member(&mut self, index: usize) -> &mut ZooKeeperServer {
        &mut self.members[index]
    }

    /// Returns the connect string of all members: `127.0.0.1:{port},127.0.0.1:{port},…`.
    pub fn connect_string(&self) -> String {
        self.members.iter().map(ZooKeeperServer::connect_string).collect::<Vec<_>>().join(",")
    }

    /// Returns the index of the leader, if there is one.
    pub fn leader(&self) -> Option<usize> {
        self.members.iter().position(|member| {
            member.serves()
                && member.four_letter_word("srvr").is_ok_and(|answer| answer.contains("Mode: leader"))
        })
    }

    /// Thaws frozen members and launches killed ones; returns when all members accept requests.
    ///
    /// # Panics
    /// If they do not within a minute.
    pub fn heal(&mut self) {
        for member in &mut self.members {
            member.thaw();
            member.launch();
        }
        let start = Instant::now();
        while let Some(late) = self.members.iter().find(|member| !member.serves()) {
            assert!(
                start.elapsed() < DEADLINE,
                "{} accepted no requests within {DEADLINE:?}",
                late.address()
            );
            thread::sleep(POLL_EVERY);
        }
    }
}

/// Returns `count` different addresses that are free at this moment.
fn free(count: usize) -> Result<Vec<SocketAddr>, StartError> {
    let mut held = Vec::new();
    let mut addresses = BTreeSet::new();
    while addresses.len() < count {
        let address = port::unused()?;
        // Kept open until all are found: otherwise the same address could be found again.
        held.push(std::net::TcpListener::bind(address)?);
        addresses.insert(address);
    }
    drop(held);
    Ok(addresses.into_iter().collect())
}
