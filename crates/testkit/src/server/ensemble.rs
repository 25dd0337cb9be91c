//! Several Apache ZooKeeper servers that agree.
//!
//! Each member is a [`ZooKeeperServer`] on ports of its own, with a directory and a watchdog of its own, so that it can
//! be killed, frozen and started again like any other. Clients meet the members directly or through a proxy for each;
//! what the members say to each other passes no proxy.
//!
//! **Ports:** a member has three, two of which only the other members know. They are drawn when all are free, and a
//! race for one of them that is lost makes the whole start be tried again on others.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::builder::{Profile, TICK_MS};
use super::config::{Home, Quorum};
use super::program::Program;
use super::{StartError, State, ZooKeeperServer, port, ready};

/// Lost races for a port before it must be something else.
const PORT_TRIES: u32 = 5;
/// Three JVMs that start at once on a busy machine, and an election.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// An ensemble of this test's own. Dropping it kills its members and wipes their directories.
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<ZooKeeperServer>,
}

impl Ensemble {
    /// Starts an ensemble with the settings of [`Profile::Test`]; returns when all members serve.
    ///
    /// # Panics
    /// When ZooKeeper is not installed, or the members do not come up.
    pub fn start(members: usize) -> Self {
        match Self::try_start(members) {
            Ok(ensemble) => ensemble,
            Err(StartError::Missing(missing)) => panic!("{missing}"),
            Err(error @ (StartError::Io(_) | StartError::Exited { .. } | StartError::NotReady { .. })) => {
                panic!("{error} {error:?}")
            }
        }
    }

    /// Starts an ensemble; returns when all members serve.
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

    /// The members, in the order of their numbers.
    pub fn members(&self) -> &[ZooKeeperServer] {
        &self.members
    }

    /// A member, to be killed, frozen, [launched](ZooKeeperServer::launch) again.
    ///
    /// # Panics
    /// When there is no such member.
    pub fn member(&mut self, index: usize) -> &mut ZooKeeperServer {
        &mut self.members[index]
    }

    /// All members: `127.0.0.1:{port},127.0.0.1:{port},…`.
    pub fn connect_string(&self) -> String {
        self.members.iter().map(ZooKeeperServer::connect_string).collect::<Vec<_>>().join(",")
    }

    /// The index of the member that leads the others, if one does.
    pub fn leader(&self) -> Option<usize> {
        self.members.iter().position(|member| {
            member.serves()
                && member.four_letter_word("srvr").is_ok_and(|answer| answer.contains("Mode: leader"))
        })
    }

    /// Thaws and launches whatever is frozen or dead, and returns when all members serve.
    ///
    /// # Panics
    /// When they do not within a minute.
    pub fn heal(&mut self) {
        for member in &mut self.members {
            member.thaw();
            member.launch();
        }
        let start = Instant::now();
        while let Some(late) = self.members.iter().find(|member| !member.serves()) {
            assert!(start.elapsed() < DEADLINE, "{} does not serve within {DEADLINE:?}", late.address());
            thread::sleep(POLL_EVERY);
        }
    }
}

/// As many different addresses, each free at this moment.
fn free(count: usize) -> Result<Vec<SocketAddr>, StartError> {
    let mut held = Vec::new();
    let mut addresses = BTreeSet::new();
    while addresses.len() < count {
        let address = port::unused()?;
        // Held until all are found, or the same one would be found again.
        held.push(std::net::TcpListener::bind(address)?);
        addresses.insert(address);
    }
    drop(held);
    Ok(addresses.into_iter().collect())
}
