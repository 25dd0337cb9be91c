//! A mark: the name that a member's place gets when its job ends, which tells whose end it is and how it ended. A group
//! is counted by the names of its children, so an end is one letter there, and no record is read for it.

use crate::job::{JobState, Role, Verdict};

/// How a job of a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// With a result.
    Succeeded,
    /// By somebody's wish.
    Cancelled,
    /// By its failures or losses.
    Dead,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Succeeded, Self::Cancelled, Self::Dead];

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

    /// As people read it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    /// Reads the letter back.
    #[must_use]
    pub fn from_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| letter.len() == 1 && letter.starts_with(end.letter()))
    }
}

/// Whose end a mark tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// A member's.
    Member(u32),
    /// The parent's.
    Parent,
    /// The join's.
    Join,
    /// The parent's finished job's.
    Finish,
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
