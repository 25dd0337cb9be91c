//! The servers of a run: three members of an Apache ZooKeeper ensemble, or one keeper.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_testkit::{Ensemble, RawClient, four_letter_word, unused_address};
use clap::ValueEnum;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::failure::Failure;
use crate::txn::Txn;
use crate::wait::until;
use crate::{keeper, zklog};

/// ZooKeeper's `tickTime`.
pub(crate) const TICK: Duration = Duration::from_millis(200);
const MEMBERS: usize = 3;
const SERVES_WITHIN: Duration = Duration::from_secs(60);
/// Much longer than an election.
const GIVE_WITHIN: Duration = Duration::from_secs(20);

/// The kind of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Three members of Apache ZooKeeper.
    Ensemble,
    /// One keeper.
    Keeper,
}

/// The servers of a run.
pub(crate) enum Servers {
    Ensemble(Ensemble),
    Keeper(Keeper),
}

impl Servers {
    /// As with ZooKeeper's defaults, a follower that is cut off from its leader answers reads for longer than the session
    /// timeout of nodes: twice as long.
    pub(crate) async fn start(kind: Kind, session: Duration, dir: &Path) -> Result<Self, Failure> {
        let sync_limit = (2 * session).as_millis().div_ceil(TICK.as_millis());
        let sync_limit = u32::try_from(sync_limit).expect("a session has few ticks");
        let mut servers = match kind {
            Kind::Ensemble => Self::Ensemble(Ensemble::builder(MEMBERS).sync_limit(sync_limit).try_start()?),
            Kind::Keeper => Self::Keeper(Keeper::new(dir)?),
        };
        servers.launch(0)?;
        // A member may report that it serves while others are still synchronising.
        until("every server reports that it serves", SERVES_WITHIN, async || servers.say_so()).await?;
        if servers.give_sessions(SERVES_WITHIN).await {
            return Ok(servers);
        }
        Err(Failure::new("the servers give no sessions"))
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Ensemble(ensemble) => ensemble.members().iter().map(|member| member.address()).collect(),
            Self::Keeper(keeper) => vec![keeper.address],
        }
    }

    /// The member that leads the others.
    pub(crate) fn leader(&self) -> Option<usize> {
        match self {
            Self::Ensemble(ensemble) => ensemble.leader(),
            Self::Keeper(_) => Some(0),
        }
    }

    pub(crate) fn kill(&mut self, member: usize) {
        match self {
            Self::Ensemble(ensemble) => ensemble.member(member).kill(),
            Self::Keeper(keeper) => keeper.kill(),
        }
    }

    pub(crate) fn freeze(&mut self, member: usize) {
        match self {
            Self::Ensemble(ensemble) => ensemble.member(member).freeze(),
            Self::Keeper(keeper) => keeper.signal(Signal::SIGSTOP),
        }
    }

    pub(crate) fn thaw(&mut self, member: usize) {
        match self {
            Self::Ensemble(ensemble) => ensemble.member(member).thaw(),
            Self::Keeper(keeper) => keeper.signal(Signal::SIGCONT),
        }
    }

    /// Cuts a member off from the others. Clients still reach it.
    pub(crate) fn cut_off(&self, member: usize) {
        if let Self::Ensemble(ensemble) = self {
            ensemble.cut_off(member);
        }
    }

    /// Delays what a member sends to the others and receives from them.
    pub(crate) fn delay(&self, member: usize, delay: Duration) {
        if let Self::Ensemble(ensemble) = self {
            ensemble.delay(member, delay);
        }
    }

    /// Ends the cuts and delays between members.
    pub(crate) fn reconnect(&self) {
        if let Self::Ensemble(ensemble) = self {
            ensemble.reconnect();
        }
    }

    /// Restarts a killed member.
    pub(crate) fn launch(&mut self, member: usize) -> Result<(), Failure> {
        match self {
            Self::Ensemble(ensemble) => ensemble.member(member).launch(),
            Self::Keeper(keeper) => keeper.launch()?,
        }
        Ok(())
    }

    /// Waits until every member serves. Returns `true` if all had to be restarted because they were up but gave no
    /// sessions. Apache ZooKeeper 3.8.0 did this for minutes after all members were killed and then frozen. The
    /// members' status is saved in `dir`.
    pub(crate) async fn all_serve(&mut self, dir: &Path) -> Result<bool, Failure> {
        let say_so = until("every server reports that it serves", SERVES_WITHIN, async || self.say_so());
        say_so.await?;
        if self.give_sessions(GIVE_WITHIN).await {
            return Ok(false);
        }
        self.leave_evidence(dir)?;
        let members = 0..self.addresses().len();
        members.clone().for_each(|member| self.kill(member));
        for member in members {
            self.launch(member)?;
        }
        until("every server reports that it serves", SERVES_WITHIN, async || self.say_so()).await?;
        if self.give_sessions(SERVES_WITHIN).await {
            return Ok(true);
        }
        Err(Failure::new("the servers give no sessions after a restart"))
    }

    fn say_so(&self) -> bool {
        match self {
            Self::Ensemble(ensemble) => ensemble.members().iter().all(|member| member.serves()),
            Self::Keeper(keeper) => {
                four_letter_word(keeper.address, "srvr").is_ok_and(|answer| answer.contains("Mode:"))
            }
        }
    }

    /// Returns whether every server gives a new client a session, which takes a transaction.
    pub(crate) async fn give_sessions(&self, within: Duration) -> bool {
        let gives = async |address| {
            let session = move || RawClient::connect(address).and_then(RawClient::close).is_ok();
            tokio::task::spawn_blocking(session).await.unwrap_or(false)
        };
        for address in self.addresses() {
            if until("the server gives a session", within, async || gives(address).await).await.is_err() {
                return false;
            }
        }
        true
    }

    fn leave_evidence(&self, dir: &Path) -> Result<(), Failure> {
        let mut text = String::new();
        for address in self.addresses() {
            for word in ["srvr", "mntr", "cons"] {
                let answer = four_letter_word(address, word).unwrap_or_else(|error| error.to_string());
                text.push_str(&format!("--- {address} {word}\n{answer}\n"));
            }
        }
        if let Self::Ensemble(ensemble) = self {
            for member in ensemble.members() {
                // `jstack` is a tool of the JDK, which may not be installed.
                let pid = member.process_id().map(|pid| pid.to_string()).unwrap_or_default();
                let threads = Command::new("jstack").arg(&pid).output().map(|output| output.stdout);
                let threads = threads.unwrap_or_else(|error| error.to_string().into_bytes());
                text.push_str(&format!(
                    "--- {} jstack\n{}\n",
                    member.address(),
                    String::from_utf8_lossy(&threads)
                ));
            }
        }
        Ok(std::fs::write(dir.join(format!("servers-stuck-at-{}.txt", crate::record::now())), text)?)
    }

    /// Stops the servers and returns their logs: committed and rejected transactions in order, and the number that were
    /// logged but never committed. All servers must serve, and no process may write.
    pub(crate) fn into_log(mut self) -> Result<(Vec<Txn>, usize), Failure> {
        match &mut self {
            Self::Ensemble(ensemble) => {
                (0..MEMBERS).for_each(|member| ensemble.member(member).kill());
                let members: Vec<_> = ensemble.members().iter().map(|member| member.data_dir()).collect();
                let merged = zklog::read(&members)?;
                Ok((merged.committed, merged.dropped))
            }
            Self::Keeper(keeper) => {
                keeper.kill();
                Ok((keeper::read(&keeper.log)?, 0))
            }
        }
    }
}

/// A keeper process.
pub(crate) struct Keeper {
    address: SocketAddr,
    data: PathBuf,
    log: PathBuf,
    output: PathBuf,
    child: Option<Child>,
}

impl Keeper {
    fn new(dir: &Path) -> Result<Self, Failure> {
        let (data, log) = (dir.join("keeper"), dir.join("keeper-transactions.jsonl"));
        Ok(Self { address: unused_address()?, data, log, output: dir.join("keeper.log"), child: None })
    }

    fn launch(&mut self) -> Result<(), Failure> {
        if self.child.is_some() {
            return Ok(());
        }
        let output = File::options().create(true).append(true).open(&self.output)?;
        // The kernel kills the process with the thread that started it, in case that thread cannot do it.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(std::env::current_exe()?)
            .arg("keeper")
            .args(["--listen", &self.address.to_string()])
            .arg("--data-dir")
            .arg(&self.data)
            .arg("--log")
            .arg(&self.log)
            .args(["--tick-ms", &TICK.as_millis().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only for a process that has ended.
            drop(child.kill());
            drop(child.wait());
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            let pid = Pid::from_raw(i32::try_from(child.id()).expect("Linux pids fit an i32"));
            if let Err(error) = kill(pid, signal) {
                tracing::debug!(%error, "the test cannot signal a process that has ended");
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.kill();
    }
}
