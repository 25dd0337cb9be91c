//! `bellwether keeper`: a server for one machine, and copies of what it keeps.

mod admin;
mod backup;
mod serve;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_keeper::server::Limits;
use clap::{Args, Subcommand, ValueEnum};

use super::exit::Failure;
use super::input;
use super::output::Output;

pub(crate) use serve::start;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Keeper {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy a keeper's data to a new file, also while it serves.
    Backup {
        /// The keeper's data directory.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// The file to make. It must not exist.
        to: PathBuf,
    },
    /// Make a data directory out of a backup.
    Restore {
        /// The directory to make. It must be absent or empty.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// The backup.
        from: PathBuf,
    },
}

/// Which server it behaves as, where a client can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// ZooKeeper 3.8.0: a create inside a multi answers a blank stat, events have no transaction number.
    #[value(name = "3.8.0")]
    V3_8_0,
    /// ZooKeeper 3.9.
    #[value(name = "3.9")]
    V3_9,
}

#[derive(Debug, Args)]
struct Serve {
    /// Where clients connect. Port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:2181", value_name = "ADDR")]
    listen: SocketAddr,
    #[command(flatten)]
    place: DataLocation,
    #[command(flatten)]
    options: Options,
}

/// Where the data are.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct DataLocation {
    /// Keep the data here. It is made when absent, and locked while the keeper runs.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Keep the data in memory: they are gone with the keeper.
    #[arg(long)]
    memory: bool,
}

/// What else a keeper may be told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Behave as this release of ZooKeeper.
    #[arg(long, value_enum, default_value = "3.9")]
    compat: Compat,
    /// The unit of session timeouts: they last 2 to 20 ticks, and expire up to a tick late.
    #[arg(long, default_value = "2s", value_parser = input::duration, value_name = "DURATION")]
    tick_time: Duration,
    /// The longest session timeout [default: 20 ticks].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    max_session_timeout: Option<Duration>,
    /// Most connections; 0 is no limit.
    #[arg(long, default_value_t = Limits::default().connections, value_name = "N")]
    max_connections: usize,
    /// Most connections from one address; 0 is no limit.
    #[arg(long, default_value_t = Limits::default().connections_per_address, value_name = "N")]
    max_connections_per_address: usize,
    /// Who passes every ACL: user:base64(sha1(user:password)), as ZooKeeper spells it.
    #[arg(long, env = "BELLWETHER_KEEPER_SUPER_DIGEST", hide_env_values = true, value_name = "DIGEST")]
    super_digest: Option<String>,
}

pub(crate) async fn run(output: Output, keeper: Keeper) -> Result<(), Failure> {
    match keeper.command {
        None => serve::run(output, keeper.serve).await,
        Some(Command::Backup { data_dir, to }) => backup::backup(output, data_dir, to).await,
        Some(Command::Restore { data_dir, from }) => backup::restore(output, &data_dir, &from),
    }
}
