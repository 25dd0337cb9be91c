//! Roles. Each role includes the permissions of the ones before it.

use std::fmt;
use std::str::FromStr;

/// The permissions of a caller. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read jobs, workers, the leader, metrics and events.
    Read,
    /// Submit jobs.
    Submit,
    /// Change what others submitted: cancel and retry jobs, pause kinds, drain workers, change schedules.
    Operate,
    /// Set the retention and purge records.
    Admin,
}

impl Role {
    /// All roles, the lowest first.
    pub const ALL: [Self; 4] = [Self::Read, Self::Submit, Self::Operate, Self::Admin];

    /// Returns the name in files and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not a role. The error does not contain it, because it may be a misplaced token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a role: allowed are read, submit, operate, admin")]
pub struct RoleError;

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(RoleError)
    }
}
