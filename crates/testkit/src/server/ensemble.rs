//! An ensemble of Apache ZooKeeper servers.
//!
//! Each member is a [`ZooKeeperServer`] with its own ports, directory and watchdog, so that it can be killed, frozen
//! and started again like any other server. Clients connect to the members directly or through one proxy per member.
//! The connections of followers to their leader can be cut and delayed ([`Ensemble::cut_off`], [`Ensemble::delay`]).
//!
//! **Ports:** a member has three ports, two of which are only used between members. They are chosen when all are free.
//! If another process takes one of them first, the whole start is repeated with other ports.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use super::builder::{MAX_SESSION_MS, Profile, TICK_MS};
use super::config::{Home, Quorum};
use super::link::Link;
use super::program::Program;
use super::{StartError, State, ZooKeeperServer, port, ready};

/// Attempts to start on other ports; after several the cause must be different.
const PORT_TRIES: u32 = 5;
/// Three JVMs that start concurrently on a busy machine, and an election.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// One second, so that tests need not wait long for the loss of a member.
const SHORT_SYNC_LIMIT: u32 = 5;

/// An ensemble for one test. Dropping it kills its members and deletes their directories.
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<ZooKeeperServer>,
    links: Vec<MemberLink>,
}

/// The link of one member to the quorum port of another.
#[derive(Debug)]
struct MemberLink {
    from: usize,
    to: usize,
    link: Link,
}

/// Settings for starting an [`Ensemble`]; the defaults are for tests.
#[derive(Debug, Clone)]
pub struct EnsembleBuilder {
    members: usize,
    sync_limit: u32,
    tick_ms: u32,
    profile: Profile,
    first_port: Option<u16>,
}

impl EnsembleBuilder {
    /// Sets ZooKeeper's `syncLimit`: the number of ticks of silence after which a follower gives up its leader. Until
    /// then it answers reads, even if the leader has expired the sessions of its clients. Default: 5, which is one second.
    pub fn sync_limit(self, sync_limit: u32) -> Self {
        Self { sync_limit, ..self }
    }

    /// Sets ZooKeeper's tick. Default: 200 ms.
    pub fn tick_ms(self, tick_ms: u32) -> Self {
        Self { tick_ms, ..self }
    }

    /// Sets the tuning of the members. Default: [`Profile::Test`].
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Sets the client port of the first member; the others have the ports after it. Default: any free ports.
    pub fn first_port(self, port: u16) -> Self {
        Self { first_port: Some(port), ..self }
    }

    /// Starts the ensemble; returns when all members accept requests.
    ///
    /// # Panics
    /// If ZooKeeper is not installed, or the members do not start.
    pub fn start(self) -> Ensemble {
        match self.try_start() {
            Ok(ensemble) => ensemble,
            Err(StartError::Missing(missing)) => panic!("{missing}"),
            Err(error @ (StartError::Io(_) | StartError::Exited { .. } | StartError::NotReady { .. })) => {
                panic!("{error} {error:?}")
            }
        }
    }

    /// Starts the ensemble; returns when all members accept requests.
    pub fn try_start(self) -> Result<Ensemble, StartError> {
        let mut tries = if self.first_port.is_some() { PORT_TRIES } else { 1 };
        loop {
            match self.on_free_ports() {
                Err(StartError::Exited { .. }) if tries < PORT_TRIES => tries += 1,
                // Another process took a port between its choice and its use.
                Err(StartError::Io(error))
                    if error.kind() == io::ErrorKind::AddrInUse && tries < PORT_TRIES =>
                {
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn client_addresses(&self, free: &mut Vec<SocketAddr>) -> Result<Vec<SocketAddr>, StartError> {
        let Some(first) = self.first_port else { return Ok(free.split_off(free.len() - self.members)) };
        let port = |member: usize| u16::try_from(member).ok().and_then(|member| first.checked_add(member));
        let ports = (0..self.members).map(|member| port(member).ok_or(io::ErrorKind::AddrNotAvailable));
        let address = |port: Result<u16, io::ErrorKind>| {
            Ok((Ipv4Addr::LOCALHOST, port.map_err(io::Error::from)?).into())
        };
        ports.map(address).collect()
    }

    fn on_free_ports(&self) -> Result<Ensemble, StartError> {
        let program = Program::Apache.find()?;
        // Held until the links have their own ports: otherwise a link could take one of these.
        let (mut peers, held) = free(3 * self.members)?;
        let clients = self.client_addresses(&mut peers)?;
        let ports: Vec<_> = peers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).take(self.members).collect();
        let (mut started, mut links, mut views) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..self.members {
            let mut reached = ports.clone();
            for (to, [quorum_port, _]) in reached.iter_mut().enumerate().filter(|(to, _)| *to != index) {
                let link = Link::to(*quorum_port)?;
                *quorum_port = link.address();
                links.push(MemberLink { from: index, to, link });
            }
            views.push(reached);
        }
        drop(held);
        for (index, (address, reached)) in clients.into_iter().zip(views).enumerate() {
            let dir = tempfile::Builder::new().prefix("bellwether-member-").tempdir()?;
            let data = dir.path().join("data");
            let quorum = Some(Quorum { id: index + 1, ports: reached, sync_limit: self.sync_limit });
            let program = program.clone();
            let home = Home {
                program,
                dir,
                data,
                address,
                tick_ms: self.tick_ms,
                max_session_ms: MAX_SESSION_MS,
                memory: false,
                profile: self.profile,
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
        Ok(Ensemble { members, links })
    }
}

impl Ensemble {
    /// Returns a builder for an ensemble of this many members.
    pub fn builder(members: usize) -> EnsembleBuilder {
        let (tick_ms, profile) = (TICK_MS, Profile::Test);
        EnsembleBuilder { members, sync_limit: SHORT_SYNC_LIMIT, tick_ms, profile, first_port: None }
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

    /// Cuts the connections between a member's quorum port and the others, until [`reconnect`](Self::reconnect). A
    /// follower is cut off from its leader, a leader from all its followers. Clients still reach the member, and it answers
    /// their reads until the sync limit.
    pub fn cut_off(&self, member: usize) {
        self.links_of(member).for_each(Link::cut);
    }

    /// Delays everything between this member and the others, in each direction, until
    /// [`reconnect`](Self::reconnect). A follower applies transactions that much later.
    pub fn delay(&self, member: usize, delay: Duration) {
        self.links_of(member).for_each(|link| link.delay(delay));
    }

    /// Ends the cuts and delays of all members. Connections that were cut are closed.
    pub fn reconnect(&self) {
        self.links.iter().for_each(|link| link.link.delay(Duration::ZERO));
    }

    fn links_of(&self, member: usize) -> impl Iterator<Item = &Link> {
        let of = move |link: &&MemberLink| link.from == member || link.to == member;
        self.links.iter().filter(of).map(|link| &link.link)
    }

    /// Reconnects all members, thaws frozen ones and launches killed ones; returns when all members accept requests.
    ///
    /// # Panics
    /// If they do not within a minute.
    pub fn heal(&mut self) {
        self.reconnect();
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

/// Returns `count` different addresses that are free at this moment, and the listeners that hold them.
fn free(count: usize) -> Result<(Vec<SocketAddr>, Vec<TcpListener>), StartError> {
    let mut held = Vec::new();
    let mut addresses = BTreeSet::new();
    while addresses.len() < count {
        let address = port::unused()?;
        held.push(TcpListener::bind(address)?);
        addresses.insert(address);
    }
    Ok((addresses.into_iter().collect(), held))
}
