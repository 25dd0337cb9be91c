//! `bellwether keeper`: a server for one machine, with backup and restore.

mod admin;
mod backup;
mod serve;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_keeper::server::{Bounds, Limits};
use clap::{Args, Subcommand, ValueEnum};

use super::exit::Failure;
use super::input;
use super::output::Output;

pub(crate) use serve::start;

const MIB: u64 = 1024 * 1024;

/// The environment variable for the digest of the superuser, as an alternative to the file. It is not an option, because
/// other users can read process arguments, and can try passwords on the digest.
pub(crate) const SUPER_DIGEST: &str = "BELLWETHER_KEEPER_SUPER_DIGEST";

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
    /// Copy a keeper's data to a new file, even while the keeper runs.
    Backup {
        /// The keeper's data directory.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// The backup file to create. It must not exist.
        to: PathBuf,
    },
    /// Create a data directory from a backup.
    Restore {
        /// The data directory to create. It must be absent or empty.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// The backup file.
        from: PathBuf,
    },
}

/// The release of ZooKeeper whose visible behaviour the keeper has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// ZooKeeper 3.8.0: a create inside a multi returns an empty stat, events have no transaction id, and `exists`
    /// needs no permission.
    #[value(name = "3.8.0")]
    V3_8_0,
    /// ZooKeeper 3.9.
    #[value(name = "3.9")]
    V3_9,
}

#[derive(Debug, Args)]
struct Serve {
    /// Address for client connections. Port 0 selects a free port. An address that other machines can reach requires
    /// --tls-cert, --tls-key and --tls-client-ca.
    #[arg(long, default_value = "127.0.0.1:2181", value_name = "ADDR")]
    listen: SocketAddr,
    #[command(flatten)]
    place: DataLocation,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    protection: Protection,
}

/// What protects a keeper that other machines can reach.
#[derive(Debug, Default, Args)]
pub(crate) struct Protection {
    /// Accept only TLS connections, with this certificate chain in PEM format.
    #[arg(long, requires = "tls_key", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the first certificate, in PEM format.
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Accept only clients with a certificate that one of the authorities in this PEM file has signed.
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Listen on an address that other machines can reach although TLS or the certificates of clients are missing. Use it
    /// only if something else protects the keeper.
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Where the data is stored.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct DataLocation {
    /// Store the data in this directory. It is created if absent, and locked while the keeper runs.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Store the data in memory. It is lost when the keeper ends.
    #[arg(long)]
    memory: bool,
}

/// Further options of a keeper.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Behave like this release of ZooKeeper.
    #[arg(long, value_enum, default_value = "3.9")]
    compat: Compat,
    /// Unit of session timeouts: they last 2 to 20 ticks, and sessions expire up to one tick late.
    #[arg(long, default_value = "2s", value_parser = input::duration, value_name = "DURATION")]
    tick_time: Duration,
    /// Longest session timeout [default: 20 ticks].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    max_session_timeout: Option<Duration>,
    /// Maximum number of connections; 0 means no limit.
    #[arg(long, default_value_t = Limits::default().connections, value_name = "N")]
    connections: usize,
    /// Maximum number of connections from one address; 0 means no limit.
    #[arg(long, default_value_t = Limits::default().connections_per_address, value_name = "N")]
    connections_per_address: usize,
    /// Memory in MiB for the requests and replies of all connections; above it those that hold most are closed.
    #[arg(long, default_value_t = Limits::default().connection_memory as u64 / MIB, value_name = "MIB")]
    connection_memory_mib: u64,
    /// Maximum number of sessions; a client that asks for another one is disconnected.
    #[arg(long, default_value_t = Bounds::default().sessions, value_name = "N")]
    sessions: usize,
    /// Maximum number of watches of all clients; a request for another one fails.
    #[arg(long, default_value_t = Bounds::default().watches, value_name = "N")]
    watches: usize,
    /// Maximum number of znodes; the creation of another one fails.
    #[arg(long, default_value_t = Bounds::default().znodes, value_name = "N")]
    znodes: usize,
    /// Maximum length of all paths and data in MiB; a write that would exceed it fails.
    #[arg(long, default_value_t = Bounds::default().data_bytes / MIB, value_name = "MIB")]
    data_mib: u64,
    /// File with the digest of the superuser, who passes every ACL check: user:base64(sha1(user:password)), as in ZooKeeper.
    /// Alternatively set the environment variable BELLWETHER_KEEPER_SUPER_DIGEST.
    #[arg(long, env = "BELLWETHER_KEEPER_SUPER_DIGEST_FILE", hide_env_values = true, value_name = "FILE")]
    super_digest_file: Option<PathBuf>,
}

pub(crate) async fn run(output: Output, keeper: Keeper) -> Result<(), Failure> {
    match keeper.command {
        None => serve::run(output, keeper.serve).await,
        Some(Command::Backup { data_dir, to }) => backup::backup(output, data_dir, to).await,
        Some(Command::Restore { data_dir, from }) => backup::restore(output, &data_dir, &from),
    }
}
