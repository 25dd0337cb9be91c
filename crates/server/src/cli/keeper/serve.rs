//! A keeper in the foreground, or in the process of a node.

use std::env::VarError;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use bellwether_keeper::server::{self, Bounds, Builder, Keeper, Limits, StartError, Storage, Tls};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::admin::Admin;
use super::{Compat, MIB, Options, Protection, SUPER_DIGEST, Serve};
use crate::cli::exit::{Failure, chain};
use crate::cli::output::{Format, Output};
use crate::cli::process;

/// ZooKeeper's default port on this machine.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 2181);

/// A keeper, and the socket for backups if it stores data on disk.
pub(crate) struct Running {
    keeper: Keeper,
    admin: Option<Admin>,
}

#[derive(Serialize)]
struct Started {
    zookeeper: String,
}

pub(super) async fn run(output: Output, serve: Serve) -> Result<(), Failure> {
    process::protect_memory();
    let data_dir = serve.place.data_dir.as_deref();
    let keeper = start(Some(serve.listen), data_dir, &serve.options, &serve.protection).await?;
    // The signal handlers are installed before the address is printed, because a caller may stop the keeper as soon as
    // it reads it.
    let no_signals = |error| Failure::failed(format!("cannot listen for signals: {error}"));
    let mut term = signal(SignalKind::terminate()).map_err(no_signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let address = keeper.connect_string();
    match output.format {
        Format::Json => output.json(&Started { zookeeper: address })?,
        Format::Table => {
            output.text(&format!("serving on {address}: single node, no failover; Ctrl-C ends it"))?
        }
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = term.recv() => {}
        stopped = keeper.stopped() => return Err(stopped),
    }
    keeper.stop().await
}

/// Starts a keeper. Without an address it uses the default port, or any free port if the default one is in use.
pub(crate) async fn start(
    listen: Option<SocketAddr>,
    data_dir: Option<&Path>,
    options: &Options,
    protection: &Protection,
) -> Result<Running, Failure> {
    let super_digest = options.super_digest()?;
    let start_on = async |address| {
        let storage = data_dir.map_or(Storage::Memory, |dir| Storage::Directory(dir.to_owned()));
        let builder = options.builder().listen(address).store(storage).insecure(protection.insecure);
        let builder = match super_digest.clone() {
            Some(digest) => builder.super_digest(digest),
            None => builder,
        };
        match protection.tls() {
            Some(tls) => builder.tls(tls).start().await,
            None => builder.start().await,
        }
    };
    let started = match listen {
        Some(address) => start_on(address).await,
        None => match start_on(USUAL).await {
            Err(StartError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
                start_on((Ipv4Addr::LOCALHOST, 0).into()).await
            }
            started => started,
        },
    };
    let keeper = started.map_err(|error| {
        let options = match &error {
            StartError::Tick(_) => "--tick-time",
            StartError::SessionBounds { .. } => "--min-session-timeout, --max-session-timeout",
            StartError::Limit("connection_memory") => "--connection-memory-mib",
            StartError::Limit(name) => {
                return Failure::of(&error, format!("{error} (--{})", name.replace('_', "-")));
            }
            StartError::Listen { .. } => "--listen",
            StartError::Tls(_) => "--tls-cert, --tls-key, --tls-client-ca",
            StartError::Exposed(_) => {
                "--tls-cert, --tls-key and --tls-client-ca; `dev` has no TLS; or --insecure"
            }
            _ => return Failure::of(&error, chain(&error)),
        };
        Failure::of(&error, format!("{} ({options})", chain(&error)))
    })?;
    let admin = data_dir.and_then(|dir| match Admin::open(dir) {
        Ok(admin) => Some(admin),
        Err(error) => {
            tracing::warn!(%error, dir = %dir.display(), "the keeper has no backup socket: stop the keeper to make a backup");
            None
        }
    });
    Ok(Running { keeper, admin })
}

fn bytes(mib: u64) -> usize {
    usize::try_from(mib.saturating_mul(MIB)).unwrap_or(usize::MAX)
}

impl Options {
    pub(super) fn builder(&self) -> Builder {
        Keeper::builder()
            .tick_time(self.tick_time)
            .min_session_timeout(self.min_session_timeout)
            .max_session_timeout(self.max_session_timeout)
            .compat(self.compat.into())
            .bounds(self.bounds())
            .limits(self.limits())
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds::default()
            .sessions(self.sessions)
            .watches(self.watches)
            .watch_bytes(bytes(self.watch_mib))
            .znodes(self.znodes)
            .data_bytes(self.data_mib.saturating_mul(MIB))
    }

    pub(super) fn limits(&self) -> Limits {
        let limit = |count: usize| (count > 0).then_some(count);
        Limits::default()
            .connections(limit(self.connections))
            .connections_per_address(limit(self.connections_per_address))
            .connection_memory(bytes(self.connection_memory_mib))
            .handshake_time(self.handshake_time)
    }

    fn super_digest(&self) -> Result<Option<String>, Failure> {
        let variable = match std::env::var(SUPER_DIGEST) {
            Ok(digest) => Some(digest),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => {
                return Err(Failure::usage(format!("{SUPER_DIGEST} is not UTF-8")));
            }
        };
        let digest = match (&self.super_digest_file, variable) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(format!("give --super-digest-file or {SUPER_DIGEST}, not both")));
            }
            (Some(file), None) => Some(std::fs::read_to_string(file).map_err(|error| {
                Failure::usage(format!(
                    "cannot read the file of --super-digest-file {}: {error}",
                    file.display()
                ))
            })?),
            (None, variable) => variable,
        };
        Ok(digest.map(|digest| digest.trim().to_owned()))
    }
}

impl Protection {
    fn tls(&self) -> Option<Tls> {
        let tls = Tls::new(self.tls_cert.as_ref()?, self.tls_key.as_ref()?);
        Some(match &self.tls_client_ca {
            Some(authority) => tls.client_ca(authority),
            None => tls,
        })
    }
}

impl From<Compat> for server::Compat {
    fn from(compat: Compat) -> Self {
        match compat {
            Compat::V3_8_0 => Self::V3_8_0,
            Compat::V3_9 => Self::V3_9,
        }
    }
}

impl Running {
    /// Returns the address, such as `127.0.0.1:2181`, to which a chroot may be appended.
    pub(crate) fn connect_string(&self) -> String {
        self.keeper.connect_string()
    }

    /// Serves backup requests until the keeper stops without a call of `stop`, and returns the reason.
    pub(crate) async fn stopped(&self) -> Failure {
        let backups = async {
            match &self.admin {
                Some(admin) => admin.serve(&self.keeper).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = self.keeper.wait() => match ended {
                Ok(()) => Failure::failed("the keeper stopped"),
                Err(error) => error.into(),
            },
            () = backups => Failure::failed("the backup socket closed"),
        }
    }

    /// Sends the answers to committed requests and closes. Sessions survive, as in a restart of ZooKeeper.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        drop(self.admin);
        Ok(self.keeper.stop().await?)
    }
}
