//! Who the command is to ZooKeeper.
//!
//! A password is in a file or in an environment variable, never an argument: those are shown to all users of a machine.

use std::env::{self, VarError};
use std::path::{Path, PathBuf};

use bellwether::{Access, Scheme};
use clap::{Args, ValueEnum};

use super::exit::Failure;

/// Where the password may stand instead of a file. No option and no key, so that nothing shows it.
const PASSWORD: &str = "BELLWETHER_ZOOKEEPER_PASSWORD";

/// How to log in to ZooKeeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    /// ZooKeeper's own scheme; any server takes it.
    Digest,
}

impl From<Auth> for Scheme {
    fn from(auth: Auth) -> Self {
        match auth {
            Auth::Digest => Self::Digest,
        }
    }
}

/// Of every command that talks to ZooKeeper.
#[derive(Debug, Args)]
pub(crate) struct AccessOptions {
    /// Log in to ZooKeeper as this user; what is created is then for that user alone. One and the same for all nodes
    /// and clients of a namespace.
    #[arg(
        long,
        global = true,
        env = "BELLWETHER_ZOOKEEPER_USER",
        value_name = "NAME",
        hide_env_values = true
    )]
    zookeeper_user: Option<String>,
    /// The file with the user's password. Or give it in the environment variable BELLWETHER_ZOOKEEPER_PASSWORD.
    #[arg(
        long,
        global = true,
        env = "BELLWETHER_ZOOKEEPER_PASSWORD_FILE",
        value_name = "FILE",
        hide_env_values = true
    )]
    zookeeper_password_file: Option<PathBuf>,
    /// How the user logs in.
    #[arg(
        long,
        global = true,
        env = "BELLWETHER_ZOOKEEPER_AUTH",
        value_enum,
        default_value = "digest",
        hide_env_values = true
    )]
    zookeeper_auth: Auth,
}

impl AccessOptions {
    /// What the options and the environment come to. Nothing is connected to.
    pub(crate) fn access(&self) -> Result<Access, Failure> {
        let Some(user) = &self.zookeeper_user else {
            return match &self.zookeeper_password_file {
                None => Ok(Access::default()),
                Some(_) => {
                    Err(Failure::usage("zookeeper_password_file needs zookeeper_user: give both, or neither"))
                }
            };
        };
        let password = match (&self.zookeeper_password_file, env::var(PASSWORD)) {
            (Some(file), Err(VarError::NotPresent)) => read(file)?,
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
        Access::login(self.zookeeper_auth.into(), user, password)
            .map_err(|error| Failure::usage(error.to_string()))
    }

    /// For a command that brings its own nodes, which are told of no login.
    pub(crate) fn none(&self, command: &str) -> Result<(), Failure> {
        if self.access()?.is_login() {
            return Err(Failure::usage(format!(
                "{command} logs in nowhere: run it on a ZooKeeper for tests, without zookeeper_user"
            )));
        }
        Ok(())
    }
}

/// The first line, as editors and `echo` end it.
fn read(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("cannot read zookeeper_password_file {}: {error}", file.display()))
    })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
