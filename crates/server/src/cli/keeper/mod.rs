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
    /// Unit of session timeouts: they last 2 to 20 ticks unless they are set, and sessions expire up to one tick late.
    #[arg(long, default_value = "2s", value_parser = input::duration, value_name = "DURATION")]
    tick_time: Duration,
    /// Shortest session timeout [default: 2 ticks].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    min_session_timeout: Option<Duration>,
    /// Longest session timeout [default: 20 ticks].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    max_session_timeout: Option<Duration>,
    /// Maximum number of connections; 0 means no limit.
    #[arg(long, default_value_t = Limits::default().connections.unwrap_or_default(), value_name = "N")]
    connections: usize,
    /// Maximum number of connections from one address; 0 means no limit.
    #[arg(long, default_value_t = Limits::default().connections_per_address.unwrap_or_default(), value_name = "N")]
    connections_per_address: usize,
    /// Time limit for the TLS handshake and the first frame of a connection; after it the connection is closed.
    #[arg(long, default_value = "10s", value_parser = input::time_limit, value_name = "DURATION")]
    handshake_time: Duration,
    /// Memory for the requests and replies of all connections, in MiB; above it the connections that hold most are closed.
    #[arg(long, default_value_t = Limits::default().connection_memory as u64 / MIB, value_name = "MIB")]
    connection_memory_mib: u64,
    /// Maximum number of sessions; a client that asks for another one is disconnected.
    #[arg(long, default_value_t = Bounds::default().sessions, value_name = "N")]
    sessions: usize,
    /// Maximum number of watches of all clients; a request for another one fails.
    #[arg(long, default_value_t = Bounds::default().watches, value_name = "N")]
    watches: usize,
    /// Maximum total length of the paths of all watches, in MiB, counted once per connection; a request for another watch fails.
    #[arg(long, default_value_t = Bounds::default().watch_bytes as u64 / MIB, value_name = "MIB")]
    watch_mib: u64,
    /// Maximum number of znodes; the creation of another one fails.
    #[arg(long, default_value_t = Bounds::default().znodes, value_name = "N")]
    znodes: usize,
    /// Maximum total length of all paths and data, in MiB; a write that would exceed it fails.
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn options(options: &[&str]) -> Options {
        Command::parse_from([&["test"], options].concat()).options
    }

    #[test]
    fn without_options_a_keeper_has_the_limits_of_the_library() {
        let options = options(&[]);
        assert_eq!((options.limits(), options.bounds()), (Limits::default(), Bounds::default()));
        let library = bellwether_keeper::server::Keeper::builder();
        assert_eq!(format!("{:?}", options.builder()), format!("{library:?}"));
    }

    #[test]
    fn zero_connections_are_no_limit() {
        let limits = options(&["--connections", "0", "--connections-per-address", "0"]).limits();
        assert_eq!(limits, Limits::default().connections(None).connections_per_address(None));
    }

    #[test]
    fn each_limit_has_an_option() {
        let given = [
            ["--connections", "2"],
            ["--connections-per-address", "3"],
            ["--connection-memory-mib", "4"],
            ["--handshake-time", "5s"],
            ["--sessions", "6"],
            ["--watches", "7"],
            ["--watch-mib", "8"],
            ["--znodes", "9"],
            ["--data-mib", "10"],
            ["--tick-time", "11ms"],
            ["--min-session-timeout", "12ms"],
            ["--max-session-timeout", "13ms"],
        ];
        let options = options(given.as_flattened());
        // The debug output has every field, so a new limit without an option is noticed.
        let expected = "Limits { connections: Some(2), connections_per_address: Some(3), connection_memory: 4194304, \
                        handshake_time: 5s }";
        assert_eq!(format!("{:?}", options.limits()), expected);
        let expected =
            "Bounds { sessions: 6, watches: 7, watch_bytes: 8388608, znodes: 9, data_bytes: 10485760 }";
        assert_eq!(format!("{:?}", options.bounds()), expected);
        let builder = format!("{:?}", options.builder());
        let expected = "tick_time: 11ms, min_session_timeout: Some(12ms), max_session_timeout: Some(13ms)";
        assert!(builder.contains(expected), "{builder}");
    }
}
