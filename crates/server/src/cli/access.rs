//! ZooKeeper login and TLS options of the command line.
//!
//! The password comes from a file or an environment variable, never from an argument: other users of the machine can
//! read process arguments.

use std::env::{self, VarError};
use std::path::{Path, PathBuf};

use bellwether::access_lists::Roles;
use bellwether::{Access, Scheme};
use clap::Args;

use super::exit::Failure;

/// The environment variable for the password, as an alternative to the file. It is neither an option nor a key of the
/// configuration file, so that no output shows it.
pub(crate) const PASSWORD: &str = "BELLWETHER_ZOOKEEPER_PASSWORD";

/// Options of every command that talks to ZooKeeper.
#[derive(Debug, Args)]
pub(crate) struct AccessOptions {
    /// Log in to ZooKeeper as this user. Only this user can then access the znodes that are created. All nodes and
    /// clients of a namespace must use the same user, unless zookeeper_roles is given.
    #[arg(long, global = true, value_name = "NAME")]
    zookeeper_user: Option<String>,
    /// File with the user's password. Alternatively set the environment variable BELLWETHER_ZOOKEEPER_PASSWORD.
    #[arg(long, global = true, value_name = "FILE")]
    zookeeper_password_file: Option<PathBuf>,
    /// File with the user's former password, while the password is being changed: znodes of both passwords can be used. Only
    /// for zookeeper_scheme digest. See docs/operations.md.
    #[arg(long, global = true, value_name = "FILE")]
    zookeeper_former_password_file: Option<PathBuf>,
    /// File with the identities of the roles operator, candidate, worker, gateway and client, the same for all processes of the
    /// namespace: one line per identity, as printed by `bellwether access identity`. The user must be one of them. See
    /// docs/operations.md.
    #[arg(long, global = true, value_name = "FILE")]
    zookeeper_roles: Option<PathBuf>,
    /// How the user logs in.
    #[arg(long, global = true, default_value = "digest")]
    zookeeper_scheme: Scheme,
    /// Connect only with TLS, to servers whose certificate is signed by one of the authorities in this PEM file.
    #[arg(long, global = true, value_name = "FILE")]
    zookeeper_tls_ca: Option<PathBuf>,
    /// Client certificate for servers that require one, in PEM format.
    #[arg(long, global = true, value_name = "FILE")]
    zookeeper_tls_cert: Option<PathBuf>,
    /// Private key of the client certificate, in PEM format.
    #[arg(long, global = true, value_name = "FILE")]
    zookeeper_tls_key: Option<PathBuf>,
    /// Send the password to ZooKeeper servers on other machines although TLS is missing. Use it only if something else
    /// protects the network.
    #[arg(long, global = true)]
    zookeeper_insecure: bool,
}

impl AccessOptions {
    /// Combines the options and the environment into an `Access`. Does not connect.
    pub(crate) fn access(&self) -> Result<Access, Failure> {
        let login = self.with_roles(self.login()?)?.insecure(self.zookeeper_insecure);
        let identity = match (&self.zookeeper_tls_cert, &self.zookeeper_tls_key) {
            (Some(certificate), Some(key)) => Some((certificate.as_path(), key.as_path())),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("give zookeeper_tls_cert and zookeeper_tls_key, or neither"));
            }
        };
        match (&self.zookeeper_tls_ca, identity) {
            (Some(authorities), identity) => with_tls(login, authorities, identity),
            (None, None) => Ok(login),
            (None, Some(_)) => {
                Err(Failure::usage("zookeeper_tls_cert needs zookeeper_tls_ca: give both, or neither"))
            }
        }
    }

    fn login(&self) -> Result<Access, Failure> {
        let Some(user) = &self.zookeeper_user else {
            return match (&self.zookeeper_password_file, &self.zookeeper_former_password_file) {
                (None, None) => Ok(Access::default()),
                (Some(_), _) | (None, Some(_)) => {
                    Err(Failure::usage("zookeeper_password_file needs zookeeper_user: give both, or neither"))
                }
            };
        };
        let password = match (&self.zookeeper_password_file, env::var(PASSWORD)) {
            (Some(file), Err(VarError::NotPresent)) => read("zookeeper_password_file", file)?,
            (None, Ok(password)) => password,
            (Some(_), Ok(_) | Err(VarError::NotUnicode(_))) => {
                return Err(Failure::usage(format!("give zookeeper_password_file or {PASSWORD}, not both")));
            }
            (None, Err(VarError::NotPresent)) => {
                return Err(Failure::usage(format!(
                    "zookeeper_user needs a password: give zookeeper_password_file, or the environment variable {PASSWORD}"
                )));
            }
            (None, Err(VarError::NotUnicode(_))) => {
                return Err(Failure::usage(format!("{PASSWORD} is not UTF-8")));
            }
        };
        let access = Access::login(self.zookeeper_scheme, user, password);
        let former = self.zookeeper_former_password_file.as_deref();
        let former = former.map(|file| read("zookeeper_former_password_file", file)).transpose()?;
        checked(match former {
            Some(former) => access.former_password(former),
            None => access,
        })
    }

    fn with_roles(&self, access: Access) -> Result<Access, Failure> {
        let Some(file) = &self.zookeeper_roles else { return Ok(access) };
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::usage(format!("cannot read zookeeper_roles {}: {error}", file.display()))
        })?;
        let roles = text.parse::<Roles>().map_err(|error| {
            Failure::usage(format!("zookeeper_roles {} is invalid: {error}", file.display()))
        })?;
        checked(access.roles(roles))
    }

    /// Returns the identity of the user, without the roles: their file may not have it yet.
    pub(crate) fn identity(&self) -> Result<String, Failure> {
        self.login()?.identity().ok_or_else(|| Failure::usage("give zookeeper_user and its password"))
    }

    /// Rejects a login and TLS for a command that starts its own nodes, because the nodes do not receive these
    /// options.
    pub(crate) fn none(&self, command: &str) -> Result<(), Failure> {
        if self.access()?.is_login() || self.zookeeper_tls_ca.is_some() {
            return Err(Failure::usage(format!(
                "{command} does not support a login or TLS: run it on a test server, without zookeeper_user and zookeeper_tls_ca"
            )));
        }
        Ok(())
    }
}

/// Refuses an invalid login before anything is done.
fn checked(access: Access) -> Result<Access, Failure> {
    access.check_login().map(|()| access).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(feature = "zookeeper-tls")]
fn with_tls(access: Access, authorities: &Path, identity: Option<(&Path, &Path)>) -> Result<Access, Failure> {
    let tls = bellwether::Tls::ca(authorities);
    let tls = match identity {
        Some((certificate, key)) => tls.identity(certificate, key),
        None => tls,
    };
    tls.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(access.tls(tls))
}

#[cfg(not(feature = "zookeeper-tls"))]
fn with_tls(_: Access, _: &Path, _: Option<(&Path, &Path)>) -> Result<Access, Failure> {
    // Continuing without TLS would send the password in clear text.
    Err(Failure::usage(
        "this build has no TLS to ZooKeeper: use one with the feature zookeeper-tls, or remove zookeeper_tls_ca",
    ))
}

/// Reads the file and removes one line ending from its end, because editors and `echo` add one.
fn read(option: &str, file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {option} {}: {error}", file.display())))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
