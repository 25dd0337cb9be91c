//! The priority of a job.

use std::fmt;
use std::str::FromStr;

/// A priority from 0 to 9: 9 goes first, 5 is the default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

/// A priority outside 0 to 9.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("priority must be 0 to 9, where 9 goes first, not {0}")]
pub struct PriorityError(String);

impl Priority {
    /// The highest priority, 9.
    pub const HIGHEST: Self = Self(9);

    /// Checks the bound.
    ///
    /// # Errors
    /// When it is over 9.
    pub fn new(priority: u8) -> Result<Self, PriorityError> {
        if priority > Self::HIGHEST.0 {
            return Err(PriorityError(priority.to_string()));
        }
        Ok(Self(priority))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(5)
    }
}

impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, PriorityError> {
        text.parse().map_err(|_| PriorityError(text.to_owned())).and_then(Self::new)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_printed_as_its_number() {
        let priority = Priority::new(7).unwrap();
        assert_eq!((priority.to_string(), format!("{priority:?}")), ("7".to_owned(), "7".to_owned()));
        assert_eq!((Priority::default().get(), Priority::HIGHEST.get()), (5, 9));
    }

    #[test]
    fn a_priority_error_names_the_range() {
        assert_eq!(Priority::new(9), Ok(Priority::HIGHEST));
        for bad in ["10", "-1", "x"] {
            let error = bad.parse::<Priority>().unwrap_err().to_string();
            assert_eq!(error, format!("priority must be 0 to 9, where 9 goes first, not {bad}"));
        }
    }
}
