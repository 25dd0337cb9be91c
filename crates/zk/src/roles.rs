//! Logins by role: which identity may change which znode of a namespace.
//!
//! A file names the identities of five roles, and every process of the namespace has the same file. The login of a process
//! decides its role. A session of a role creates each znode with an access list that names the roles and their permissions, so
//! that the login of a worker or of a client cannot change the leadership, the settings, the pauses, the schedules or an
//! access list. Only the operator has the permission `ADMIN`, and only the operator creates a namespace.
//!
//! ZooKeeper checks `CREATE` and `DELETE` at the parent, and an access list cannot tell one worker from another. So a login
//! can damage the jobs of its namespace; [`permissions`] is what it can do. A worker's registration and inbox are an exception: only
//! the session that created them may write them, beside roles that it trusts. For this purpose each process has a second
//! identity with a random password ([`OWNER`]).

mod permissions;

use std::fmt;
use std::str::FromStr;

use zookeeper_client::{Acl, AuthId, Permission};

pub(crate) use permissions::permissions;

/// A role of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Everything, including access lists; it alone creates a namespace.
    Operator,
    /// Leads, and runs jobs.
    Candidate,
    /// Runs jobs.
    Worker,
    /// Serves HTTP: what a client may do, remote workers, settings, pauses and schedules.
    Gateway,
    /// Submits, reads, cancels and reopens jobs.
    Client,
}

impl Role {
    /// All roles, in the order of access lists.
    pub const ALL: [Self; 5] = [Self::Operator, Self::Candidate, Self::Worker, Self::Gateway, Self::Client];

    /// The name in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Candidate => "candidate",
            Self::Worker => "worker",
            Self::Gateway => "gateway",
            Self::Client => "client",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = RolesError;

    fn from_str(text: &str) -> Result<Self, RolesError> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| RolesError::Role { given: text.to_owned() })
    }
}

/// Why a file of roles is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RolesError {
    /// A word is not a role.
    #[error("{given:?} is not one of the roles operator, candidate, worker, gateway and client")]
    Role {
        /// The word.
        given: String,
    },
    /// A line has another form.
    #[error(
        "line {line} is not a role and an identity, such as `worker digest:NAME:HASH` or `client sasl:NAME`"
    )]
    Line {
        /// Its number, from 1.
        line: usize,
    },
    /// Two roles have the same identity.
    #[error("line {line} has the identity of another line")]
    Twice {
        /// The number of the second line, from 1.
        line: usize,
    },
    /// There is no operator.
    #[error("no line names an operator, who alone can create the namespace and change access lists")]
    NoOperator,
    /// The access list of a znode would be too long.
    #[error(
        "the identities have {bytes} bytes: at most {MAX_LIST_BYTES} are allowed, because each znode stores them"
    )]
    TooLong {
        /// Their size in an access list.
        bytes: usize,
    },
}

/// Limit of the size of an access list. A transaction of the most operations and bytes, in which every operation creates a
/// znode, must stay below ZooKeeper's default request limit of 1 MB.
const MAX_LIST_BYTES: usize = 1_000;

/// The user name of the second identity of a process, by which it alone may change its own registrations.
pub(crate) const OWNER: &str = "owner";

/// The identities of the roles of a namespace, without passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles(Vec<(Role, AuthId)>);

impl FromStr for Roles {
    type Err = RolesError;

    /// Reads one role and identity per line. Empty lines and those that begin with `#` are ignored. A role may have several
    /// identities, for example while a password is changed.
    fn from_str(text: &str) -> Result<Self, RolesError> {
        let mut ids: Vec<(Role, AuthId)> = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (role, id) = text.split_once(char::is_whitespace).ok_or(RolesError::Line { line })?;
            let (role, id) = (role.parse()?, identity(id.trim()).ok_or(RolesError::Line { line })?);
            if ids.iter().any(|(_, other)| *other == id) {
                return Err(RolesError::Twice { line });
            }
            ids.push((role, id));
        }
        if !ids.iter().any(|(role, _)| *role == Role::Operator) {
            return Err(RolesError::NoOperator);
        }
        // Permissions, two lengths, and the texts.
        let bytes = ids.iter().map(|(_, id)| 12 + id.scheme().len() + id.id().len()).sum();
        if bytes > MAX_LIST_BYTES {
            return Err(RolesError::TooLong { bytes });
        }
        Ok(Self(ids))
    }
}

/// An identity `digest:NAME:HASH` or `sasl:NAME`.
fn identity(text: &str) -> Option<AuthId> {
    let (scheme, id) = text.split_once(':')?;
    let named = |name: &str| !name.is_empty() && !name.contains(|c: char| c == ':' || c.is_whitespace());
    let valid = match scheme {
        "digest" => {
            id.split_once(':').is_some_and(|(name, hash)| named(name) && named(hash) && name != OWNER)
        }
        "sasl" => named(id),
        _ => false,
    };
    valid.then(|| AuthId::new(scheme, id))
}

impl Roles {
    /// The role of an identity.
    pub(crate) fn of(&self, is_own: impl Fn(&AuthId) -> bool) -> Option<Role> {
        self.0.iter().find(|(_, id)| is_own(id)).map(|(role, _)| *role)
    }

    /// The access list of a znode; `owner` is the second identity of the process that creates it.
    pub(crate) fn list(&self, path: &str, owner: Option<&AuthId>) -> Vec<Acl> {
        let entries = self.0.iter().map(|(role, id)| Acl::new(permissions(path, *role), id.clone()));
        let owned = permissions::of_owner(path);
        let owner = owner.map(|id| Acl::new(owned, id.clone()));
        entries.chain(owner).filter(|entry| entry.permission() != Permission::NONE).collect()
    }

    /// How the access list of a znode differs from the one of the roles. ZooKeeper shows the hashes of digests only to
    /// operators, and `x` to others.
    pub(crate) fn difference(&self, path: &str, found: &[Acl]) -> Option<Difference> {
        let expected = self.list(path, None);
        let by_owner = |entry: &Acl| {
            let allowed = permissions::of_owner(path);
            entry.scheme() == "digest"
                && name(entry.id()) == OWNER
                && entry.permission() & allowed == entry.permission()
        };
        let mut readable = None;
        for entry in found.iter().filter(|entry| !by_owner(entry)) {
            let allowed = granted(&expected, entry.auth_id(), |expected, found| shows(found, expected));
            let excess: Vec<_> =
                EACH.into_iter().filter(|p| entry.permission().has(*p) && !allowed.has(*p)).collect();
            let told = || format!("{}:{} may {}", entry.scheme(), name(entry.id()), entry.permission());
            match excess[..] {
                [] => {}
                [Permission::READ] => readable = readable.or_else(|| Some(told())),
                _ => return Some(Difference::Changeable(told())),
            }
        }
        let lacking = expected.iter().find(|entry| {
            let has = granted(found, entry.auth_id(), shows);
            EACH.into_iter().any(|p| entry.permission().has(p) && !has.has(p))
        });
        let lacking = lacking.map(|entry| {
            let has = granted(found, entry.auth_id(), shows);
            Difference::Changeable(format!("{}:{} may only {has}", entry.scheme(), name(entry.id())))
        });
        lacking.or(readable.map(Difference::Readable))
    }
}

/// How a list differs from the expected one.
pub(crate) enum Difference {
    /// Others may read.
    Readable(String),
    /// Others may change it, or a user lacks a permission.
    Changeable(String),
}

const EACH: [Permission; 5] =
    [Permission::READ, Permission::WRITE, Permission::CREATE, Permission::DELETE, Permission::ADMIN];

/// The permissions of all entries of an identity.
fn granted(list: &[Acl], id: &AuthId, same: impl Fn(&AuthId, &AuthId) -> bool) -> Permission {
    let entries = list.iter().filter(|entry| same(entry.auth_id(), id));
    entries.fold(Permission::NONE, |may, entry| may | entry.permission())
}

/// Whether an entry that ZooKeeper shows is this identity.
fn shows(found: &AuthId, expected: &AuthId) -> bool {
    let masked = || expected.scheme() == "digest" && found.id() == format!("{}:x", name(expected.id()));
    found.scheme() == expected.scheme() && (found.id() == expected.id() || masked())
}

fn name(id: &str) -> &str {
    id.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
