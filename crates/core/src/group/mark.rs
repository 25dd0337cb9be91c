//! Marks. When a job of a group ends, a mark is created whose name contains the member and, as one letter, how it
//! ended. A further group of a parent leaves one in the first group, too. So listing the children of a group is enough to count it: no record is read.

use crate::job::{JobState, Role, Verdict};

/// How a job of a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// With a result.
    Succeeded,
    /// By a request to cancel it.
    Cancelled,
    /// By its failures or losses, or because it was invalid or expired.
    Dead,
}

crate::impl_names!(End { Succeeded = "succeeded", Cancelled = "cancelled", Dead = "dead" });

impl End {
    /// How a job ended; `None` while it is open.
    #[must_use]
    pub fn of(state: &JobState) -> Option<Self> {
        match state {
            JobState::Open { .. } => None,
            JobState::Terminal { verdict: Verdict::Succeeded(_), .. } => Some(Self::Succeeded),
            JobState::Terminal { verdict: Verdict::Cancelled, .. } => Some(Self::Cancelled),
            JobState::Terminal { verdict: Verdict::Dead, .. } => Some(Self::Dead),
        }
    }

    /// Its letter in the name of a mark.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Succeeded => 's',
            Self::Cancelled => 'c',
            Self::Dead => 'd',
        }
    }

    /// Parses the letter.
    #[must_use]
    pub fn from_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| letter.len() == 1 && letter.starts_with(end.letter()))
    }
}

/// The job, or the further group, whose end a mark records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// The member with this number.
    Member(u32),
    /// The parent.
    Parent,
    /// The join.
    Join,
    /// The parent's finished job.
    Finish,
    /// The parent's further group with this number. The mark shows how the parent ended.
    Further(u32),
}

impl From<Role> for Mark {
    fn from(role: Role) -> Self {
        match role {
            Role::Member(number) => Self::Member(number),
            Role::Join => Self::Join,
            Role::Finish => Self::Finish,
        }
    }
}
