//! The access lists of a namespace: an inspection, and the repair of one that this user does not have alone.
//!
//! A [`Client`](crate::Client) or a [`Node`](crate::Node) with a login refuses such a namespace, so these functions connect
//! without opening it.

use std::time::Duration;

use bellwether_core::remedy::ErrorClass;
use bellwether_zk::{Access, NamespaceError, ReadError, connect_as, open_namespace};

use crate::connection::{Connection, InvalidConnection};

pub use bellwether_zk::{Exposed, Repaired, Role, Roles, RolesError};

/// The access lists were not inspected or not all repaired. A repair may be repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessListError {
    /// The settings of the connection are invalid.
    #[error(transparent)]
    Connection(#[from] InvalidConnection),
    /// There is no user whose alone the znodes could be.
    #[error("a namespace is closed for the user of a login: give a user and its password")]
    NoLogin,
    /// No server gave a session, or the login was refused. Nothing was changed.
    #[error("{0}")]
    Connect(String),
    /// The connection was lost. Lists may have been changed; run it again.
    #[error("the connection was lost, and not all access lists were visited: run it again")]
    Disconnected,
    /// This user may not read or change a list. Others may have been changed.
    #[error("ZooKeeper refused to read or change an access list: {0}")]
    Refused(String),
    /// The namespace of the roles was not created. Its lists were changed.
    #[error("the namespace was not created")]
    Namespace(#[source] NamespaceError),
}

impl AccessListError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connection(_) | Self::NoLogin => ErrorClass::Invalid,
            Self::Connect(_) | Self::Disconnected => ErrorClass::Unavailable,
            Self::Namespace(error) => error.class(),
            Self::Refused(_) => ErrorClass::Failed,
        }
    }
}

bellwether_core::impl_remedy!(AccessListError);

/// Visits every znode of a namespace, and returns how many have not an access list for the user of the login alone, or for the
/// [`Roles`] of the access.
///
/// # Errors
/// [`AccessListError`].
pub async fn inspect(
    zookeeper: &str,
    access: &Access,
    session_timeout: Duration,
) -> Result<Repaired, AccessListError> {
    visit(zookeeper, access, session_timeout, false).await
}

/// As [`inspect`], and gives each of those znodes an access list for the user of the login alone, its root first.
///
/// With [`Roles`], each list has the permissions of the roles, and the namespace is created if it does not exist. Only the operator
/// can do both.
///
/// The user must be allowed to change the lists, as everyone is in a namespace that was created without a login. Stop all nodes
/// and clients of the namespace first, because a process of another user may create further znodes.
///
/// # Errors
/// [`AccessListError`]: the repair may be incomplete. Run it again.
///
/// # Cancellation
/// Dropping the future leaves the repair incomplete, as after an error.
pub async fn repair(
    zookeeper: &str,
    access: &Access,
    session_timeout: Duration,
) -> Result<Repaired, AccessListError> {
    visit(zookeeper, access, session_timeout, true).await
}

async fn visit(
    zookeeper: &str,
    access: &Access,
    session_timeout: Duration,
    change: bool,
) -> Result<Repaired, AccessListError> {
    let access = access.clone();
    let connection = Connection { zookeeper: zookeeper.to_owned(), access, session_timeout };
    let connect = connection.check()?;
    let access = &connection.access;
    if !access.is_login() {
        return Err(AccessListError::NoLogin);
    }
    let zk = connect_as(&connect, access, session_timeout).await;
    let zk = zk.map_err(|error| AccessListError::Connect(error.to_string()))?;
    let visited = bellwether_zk::repair(&zk, change).await.map_err(|error| match error {
        ReadError::Disconnected => AccessListError::Disconnected,
        ReadError::Refused(reason) => AccessListError::Refused(reason.to_string()),
    })?;
    if change && access.role() == Some(Role::Operator) {
        open_namespace(&zk, true).await.map_err(AccessListError::Namespace)?;
    }
    Ok(visited)
}
