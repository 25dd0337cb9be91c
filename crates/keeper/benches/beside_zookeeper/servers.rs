//! The two servers, each a process of its own with its data on the same file system.

use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_testkit::{Profile, Program, ZooKeeperServer};
use tempfile::TempDir;

/// The first argument of this program when it is the keeper.
pub(crate) const SERVE: &str = "--serve";
/// Java's default.
const TICK_MS: u32 = 2_000;
/// Linux tells processor time in hundredths of a second, whatever its own grain is.
const MILLISECONDS_PER_TICK: u64 = 10;

/// A server that can be measured.
pub(crate) trait Server {
    fn name(&self) -> &'static str;
    fn address(&self) -> SocketAddr;
    /// Its process.
    fn process_id(&self) -> io::Result<u32>;
    /// SIGKILL, and a start on the same data; returns when the process runs, perhaps before it serves.
    fn restart(&mut self) -> io::Result<()>;
}

/// This program again, as a keeper.
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

/// Starts the process and waits for its address, which it says when it serves.
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
    let address = line.trim().parse().map_err(|_| io::Error::other(format!("the keeper said {line:?}")))?;
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

/// The real one, with fsync and the optimizing compiler.
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
        Self::process_id(self).ok_or_else(|| io::Error::other("it does not run"))
    }

    fn restart(&mut self) -> io::Result<()> {
        Self::restart(self);
        Ok(())
    }
}

/// Resident bytes of a process.
pub(crate) fn resident(process_id: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other("the process is gone"))
}

/// Processor time of a process so far, in the grain of the kernel's clock.
pub(crate) fn processor_time(process_id: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat"))?;
    // Behind the name, which may hold anything; utime and stime are fields 14 and 15 of all.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * MILLISECONDS_PER_TICK))
}

/// Serves until it is killed, and says where.
pub(crate) fn serve(dir: &Path) -> io::Result<()> {
    use bellwether_keeper::server::{Keeper, Storage};

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let storage = Storage::Directory(dir.to_owned());
        let keeper =
            Keeper::builder().store(storage).tick_ms(TICK_MS).start().await.map_err(io::Error::other)?;
        println!("{}", keeper.address());
        keeper.wait().await.map_err(io::Error::other)
    })
}
