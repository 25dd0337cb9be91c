//! How many items a list shows.

use std::borrow::Cow;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use bellwether::client::MAX_PAGE;
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::invalid::Invalid;

/// The maximum number of items, 1 to `MOST`. It is not checked when it is read: the command line reads as many pages as it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Limit<const DEFAULT: usize, const MOST: usize>(pub usize);

/// The maximum number of items of a page.
pub type PageLimit = Limit<100, MAX_PAGE>;

/// The maximum number of ticks. Each costs a search in the calendar, and each last tick a read of its job.
pub type TickLimit = Limit<5, 100>;

impl<const DEFAULT: usize, const MOST: usize> Limit<DEFAULT, MOST> {
    /// Returns the number if it is within the bounds.
    pub fn checked(self) -> Result<usize, Invalid> {
        let Self(limit) = self;
        if (1..=MOST).contains(&limit) {
            return Ok(limit);
        }
        Err(Invalid(format!("limit must be 1 to {MOST}, not {limit}")))
    }
}

impl<const DEFAULT: usize, const MOST: usize> Default for Limit<DEFAULT, MOST> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const DEFAULT: usize, const MOST: usize> FromStr for Limit<DEFAULT, MOST> {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl<const DEFAULT: usize, const MOST: usize> fmt::Display for Limit<DEFAULT, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<const DEFAULT: usize, const MOST: usize> PartialSchema for Limit<DEFAULT, MOST> {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new().schema_type(Type::Integer).default(Some(DEFAULT.into()));
        schema.minimum(Some(1)).maximum(Some(MOST)).into()
    }
}

impl<const DEFAULT: usize, const MOST: usize> ToSchema for Limit<DEFAULT, MOST> {
    fn name() -> Cow<'static, str> {
        format!("Limit{MOST}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_outside_the_bounds_is_refused_with_the_bounds() {
        assert_eq!(PageLimit::default().checked(), Ok(100));
        assert_eq!(TickLimit::default().checked(), Ok(5));
        assert_eq!(Limit::<5, 100>(100).checked(), Ok(100));
        for limit in [0, 101] {
            let refused = Invalid(format!("limit must be 1 to 100, not {limit}"));
            assert_eq!(Limit::<5, 100>(limit).checked(), Err(refused));
        }
    }
}
