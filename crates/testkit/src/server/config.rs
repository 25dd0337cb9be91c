//! The directory of a server: configuration, data, log.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tempfile::TempDir;

use super::builder::Profile;
use super::process::Guarded;
use super::program::Found;
use super::{Installation, StartError, ready};

const MAIN_CLASS: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
/// The time for a member to read its log and to catch up. A new leader that finds no followers waits so long before it votes
/// again, so it does not grow with the tick.
const INIT_LIMIT_MS: u32 = 10_000;
/// Elections retry soon after a lost vote, because clients that wait for them have short sessions. A member that was
/// down always receives the missing transactions from the leader's log and never a snapshot, so each member's log is
/// complete.
const QUORUM_FLAGS: [&str; 3] = [
    "-Dzookeeper.fastleader.maxNotificationInterval=400",
    "-Dzookeeper.cnxTimeout=500",
    "-Dzookeeper.snapshotSizeFactor=1000000",
];
/// The length of the log shown in errors: enough for the stack trace of one failure.
const LOG_TAIL: usize = 4_000;

/// The data to launch a server repeatedly on the same address and data directory.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) program: Found,
    pub(super) dir: TempDir,
    pub(super) data: PathBuf,
    pub(super) address: SocketAddr,
    pub(super) tick_ms: u32,
    pub(super) max_session_ms: u32,
    pub(super) memory: bool,
    pub(super) profile: Profile,
    /// Only for Apache ZooKeeper: the ensemble to which the server belongs.
    pub(super) quorum: Option<Quorum>,
    /// Only for Apache ZooKeeper: additional lines of its configuration.
    pub(super) settings: Vec<String>,
    /// Only for Apache ZooKeeper: additional arguments of its JVM.
    pub(super) java_flags: Vec<String>,
}

/// The role of a member in its ensemble.
#[derive(Debug, Clone)]
pub(super) struct Quorum {
    /// The number of the member, starting at 1.
    pub(super) id: usize,
    /// The ports of all members, as this member reaches them: for followers and for elections.
    pub(super) ports: Vec<[SocketAddr; 2]>,
    /// Ticks of silence after which a follower gives up its leader, and a leader its follower.
    pub(super) sync_limit: u32,
}

impl Home {
    /// Starts the server; returns when it accepts requests.
    pub(super) fn launch(&self) -> Result<Guarded, StartError> {
        let mut process = self.spawn()?;
        ready::wait(&mut process, self)?;
        Ok(process)
    }

    /// Starts the server without waiting: a member of an ensemble first waits for the others.
    pub(super) fn spawn(&self) -> Result<Guarded, StartError> {
        fs::create_dir_all(&self.data)?;
        if let Some(quorum) = &self.quorum {
            fs::write(self.data.join("myid"), quorum.id.to_string())?;
        }
        let log = File::options().create(true).append(true).open(self.log_path())?;
        let (program, args) = match &self.program {
            Found::Keeper(command) => (command, self.keeper_args()),
            Found::Apache(installation) => (&installation.java, self.java_args(installation)?),
        };
        Ok(Guarded::launch(program, &args, log, self.dir.path())?)
    }

    fn keeper_args(&self) -> Vec<String> {
        // The oldest supported behaviour.
        let mut args = ["keeper", "--compat", "3.8.0"].map(str::to_owned).to_vec();
        args.extend(["--max-session-timeout".to_owned(), format!("{}ms", self.max_session_ms)]);
        args.extend(["--tick-time".to_owned(), format!("{}ms", self.tick_ms)]);
        args.extend(["--listen".to_owned(), self.address.to_string()]);
        match self.memory {
            true => args.push("--memory".to_owned()),
            false => args.extend(["--data-dir".to_owned(), self.data.display().to_string()]),
        }
        args
    }

    fn java_args(&self, installation: &Installation) -> io::Result<Vec<String>> {
        let config = self.dir.path().join("zoo.cfg");
        fs::write(&config, self.zoo_cfg())?;
        let mut args: Vec<String> = self.profile.java_flags().iter().map(ToString::to_string).collect();
        args.extend(self.java_flags.iter().cloned());
        args.push("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".to_owned());
        if self.quorum.is_some() {
            args.extend(QUORUM_FLAGS.map(str::to_owned));
        }
        args.extend(["-cp".to_owned(), installation.class_path.clone(), MAIN_CLASS.to_owned()]);
        args.push(config.display().to_string());
        Ok(args)
    }

    fn zoo_cfg(&self) -> String {
        // TTL nodes are disabled by default. Without a worker pool, the selector threads are 2 to 3 times faster per
        // connection. The default of 60 connections per address would reject a test with many clients.
        let mut cfg = String::from(
            "admin.enableServer=false\n\
             4lw.commands.whitelist=*\n\
             extendedTypesEnabled=true\n\
             maxClientCnxns=0\n\
             nio.numWorkerThreads=0\n",
        );
        let (tick, max_session, data) = (self.tick_ms, self.max_session_ms, self.data.display());
        let (ip, port) = (self.address.ip(), self.address.port());
        writeln!(cfg, "tickTime={tick}\nmaxSessionTimeout={max_session}\ndataDir={data}")
            .expect("writing to a String cannot fail");
        writeln!(cfg, "clientPortAddress={ip}\nclientPort={port}").expect("writing to a String cannot fail");
        for line in &self.settings {
            writeln!(cfg, "{line}").expect("writing to a String cannot fail");
        }
        if let Some(quorum) = &self.quorum {
            let init_limit = INIT_LIMIT_MS.div_ceil(self.tick_ms);
            write!(cfg, "initLimit={init_limit}\nsyncLimit={}\n", quorum.sync_limit)
                .expect("writing to a String cannot fail");
            for (id, [peers, election]) in (1..).zip(&quorum.ports) {
                writeln!(cfg, "server.{id}={peers}:{}", election.port())
                    .expect("writing to a String cannot fail");
            }
        }
        cfg
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("server.log")
    }

    pub(super) fn log_tail(&self) -> String {
        let read =
            |path| -> io::Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
        match read(self.log_path()) {
            Ok(log) => {
                let tail: Vec<char> = log.chars().rev().take(LOG_TAIL).collect();
                tail.into_iter().rev().collect()
            }
            Err(error) => format!("(no log: {error})"),
        }
    }
}
