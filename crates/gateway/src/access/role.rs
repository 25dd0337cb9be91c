//! Roles. `read`, `submit`, `operate` and `admin` each include the permissions of the ones before. `work` stands apart: a
//! remote worker needs no other permission, and only `admin` includes it.

use std::fmt;
use std::str::FromStr;

/// The permissions of a caller: see [`Role::permits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read jobs, workers, the leader, metrics and events.
    Read,
    /// Submit jobs.
    Submit,
    /// Change what others submitted: cancel and retry jobs, pause kinds, drain workers, change schedules.
    Operate,
    /// Set the retention and purge records.
    Admin,
    /// Run jobs as a remote worker, and nothing else.
    Work,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Read, Self::Submit, Self::Operate, Self::Admin, Self::Work];

    /// Returns the name in files and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Operate => "operate",
            Self::Admin => "admin",
            Self::Work => "work",
        }
    }

    /// Whether a caller with this role may use an operation that needs another one. Of `read`, `submit`, `operate` and
    /// `admin` each includes the ones before; `admin` also includes `work`.
    #[must_use]
    pub fn permits(self, needed: Self) -> bool {
        match (self, needed) {
            (Self::Admin, _) | (Self::Work, Self::Work) => true,
            (Self::Work, _) | (_, Self::Work) => false,
            (Self::Operate, needed) => needed != Self::Admin,
            (Self::Submit, needed) => matches!(needed, Self::Read | Self::Submit),
            (Self::Read, needed) => needed == Self::Read,
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
#[error("not a role: allowed are read, submit, operate, admin, work")]
#[non_exhaustive]
pub struct RoleError;

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(RoleError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_include_the_ones_before_and_work_only_itself() {
        let permitted = Role::ALL.map(|role| {
            let needed = Role::ALL.iter().filter(|needed| role.permits(**needed));
            needed.map(|needed| needed.as_str()).collect::<Vec<_>>().join(" ")
        });
        let expected =
            ["read", "read submit", "read submit operate", "read submit operate admin work", "work"];
        assert_eq!(permitted, expected);
    }
}
