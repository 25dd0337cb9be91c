//! The two servers, each in a separate process with its data on the same file system.

use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_testkit::{Profile, Program, ZooKeeperServer};
use tempfile::TempDir;

/// The first argument of this program when it runs as the keeper.
pub(crate) const SERVE: &str = "--serve";
/// ZooKeeper's default.
const TICK_MS: u32 = 2_000;
/// Linux reports processor time in hundredths of a second, whatever its internal resolution is.
const MILLISECONDS_PER_TICK: u64 = 10;

/// A server under measurement.
pub(crate) trait Server {
    fn name(&self) -> &'static str;
    fn address(&self) -> SocketAddr;
    /// Returns the process id.
    fn process_id(&self) -> io::Result<u32>;
    /// Kills the process with SIGKILL and starts it on the same data; returns when the process runs, possibly before it
    /// accepts connections.
    fn restart(&mut self) -> io::Result<()>;
}

/// This program, started as a keeper.
pub(crate) struct Keeper {
    dir: TempDir,
    process: Child,
    address: SocketAddr,
}

impl Keeper {
    pub(crate) fn start() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("bellwether-keeper-").tempdir()?;
        let (process, address) = launch(dir.path())?;
        Ok(Self { dir, process, address })
    }

    fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

/// Starts the process and reads its address, which it prints when it accepts connections.
fn launch(dir: &Path) -> io::Result<(Child, SocketAddr)> {
    let mut process = Command::new(std::env::current_exe()?)
        .arg(SERVE)
        .arg(dir.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let out = process.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
    BufReader::new(out).read_line(&mut line)?;
    let address = line
        .trim()
        .parse()
        .map_err(|_| io::Error::other(format!("unexpected output of the keeper: {line:?}")))?;
    Ok((process, address))
}

impl Server for Keeper {
    fn name(&self) -> &'static str {
        "keeper"
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn process_id(&self) -> io::Result<u32> {
        Ok(self.process.id())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.kill()?;
        (self.process, self.address) = launch(self.dir.path())?;
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("the keeper could not be killed: {error}");
        }
    }
}

/// Starts Apache ZooKeeper with fsync and the optimizing compiler.
pub(crate) fn zookeeper() -> io::Result<ZooKeeperServer> {
    let builder =
        ZooKeeperServer::builder().program(Program::Apache).profile(Profile::Production).tick_ms(TICK_MS);
    builder.try_start().map_err(io::Error::other)
}

impl Server for ZooKeeperServer {
    fn name(&self) -> &'static str {
        "ZooKeeper"
    }

    fn address(&self) -> SocketAddr {
        Self::address(self)
    }

    fn process_id(&self) -> io::Result<u32> {
        Self::process_id(self).ok_or_else(|| io::Error::other("ZooKeeper is not running"))
    }

    fn restart(&mut self) -> io::Result<()> {
        Self::restart(self);
        Ok(())
    }
}

/// Returns the resident memory of a process in bytes.
pub(crate) fn resident(process_id: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other("the process has ended"))
}

/// Returns the processor time of a process so far, with the resolution of the kernel's clock.
pub(crate) fn processor_time(process_id: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat"))?;
    // The fields after the name, which can contain any character; utime and stime are fields 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * MILLISECONDS_PER_TICK))
}

/// Serves until the process is killed, and prints the address.
pub(crate) fn serve(dir: &Path) -> io::Result<()> {
    use bellwether_keeper::server::{Keeper, Storage};

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let storage = Storage::Directory(dir.to_owned());
        let keeper = Keeper::builder()
            .store(storage)
            .tick_time(Duration::from_millis(TICK_MS.into()))
            .start()
            .await
            .map_err(io::Error::other)?;
        println!("{}", keeper.address());
        keeper.wait().await.map_err(io::Error::other)
    })
}
