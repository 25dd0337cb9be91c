//! Cron expressions: five fields, or six with seconds first.
//!
//! The crate croner decides when an expression ticks. Input that croner accepts leniently (`JANFEB`, names in the
//! hour, nicknames, a year) is refused here first, so that an expression has its obvious meaning and an error names
//! the field.

use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use super::SpecError;

/// Longest expression in bytes: every field can be a long list.
pub const MAX_EXPRESSION_BYTES: usize = 256;

/// The years that are searched. An expression without a tick in them never ticks.
const YEARS: &str = "1970-2499";

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

impl Field {
    const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        }
    }

    const fn allowed(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "0-59 with * , - /",
            Self::Hour => "0-23 with * , - /",
            Self::DayOfMonth => "1-31 with * , - / ?, L for the last, 15W for the nearest working day",
            Self::Month => "1-12 or JAN-DEC with * , - /",
            Self::DayOfWeek => {
                "0-7 or SUN-SAT with * , - / ?, FRI#2 for the second, FRI#L for the last, \
                 a leading + to require the day of month too"
            }
        }
    }

    fn check(self, text: &str, fine: impl Fn(&str) -> bool) -> Result<(), SpecError> {
        let plain = match self {
            Self::DayOfWeek => text.strip_prefix('+').unwrap_or(text),
            Self::Second | Self::Minute | Self::Hour | Self::DayOfMonth | Self::Month => text,
        };
        if fine(plain) {
            return Ok(());
        }
        Err(SpecError::Field {
            field: self.name(),
            given: text.to_owned(),
            allowed: self.allowed().to_owned(),
        })
    }

    /// Whether the text is valid if all other fields are `*`. If not, the error belongs to this field.
    fn parses(self, text: &str) -> bool {
        let alone = Self::ALL.map(|other| if other == self { text } else { "*" }).join(" ");
        parser().parse(&format!("{alone} {YEARS}")).is_ok()
    }

    /// Whether the part between two separators has the form of this field. croner checks the ranges.
    fn takes(self, part: &str) -> bool {
        let number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let ends_with = |letter| part.strip_suffix(letter).is_some_and(number);
        number(part)
            || part == "*"
            || match self {
                Self::Second | Self::Minute | Self::Hour => false,
                Self::DayOfMonth => matches!(part, "?" | "L" | "W" | "LW") || ends_with('W'),
                Self::Month => MONTHS.contains(&part),
                Self::DayOfWeek => matches!(part, "?" | "L") || DAYS.contains(&part) || ends_with('L'),
            }
    }
}

/// A valid expression: its fields in upper case, separated by single spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CronExpression(String);

impl CronExpression {
    /// Checks an expression.
    ///
    /// # Errors
    /// A [`SpecError`] with the field and its allowed values. Whether the expression ever ticks also depends on its
    /// zone: [`When::check`](super::When::check).
    pub fn new(given: &str) -> Result<Self, SpecError> {
        if given.len() > MAX_EXPRESSION_BYTES {
            return Err(SpecError::Bound {
                field: "cron expression",
                allowed: format!("at most {MAX_EXPRESSION_BYTES} bytes"),
                given: format!("{} bytes", given.len()),
            });
        }
        let fields = given.split_ascii_whitespace().map(str::to_ascii_uppercase).collect::<Vec<_>>();
        let missing = match fields.len() {
            5 => 1,
            6 => 0,
            count => return Err(SpecError::Fields { given: given.to_owned(), count }),
        };
        let fields = Field::ALL.into_iter().skip(missing).zip(&fields);
        for (field, text) in fields.clone() {
            field.check(text, |text| text.split([',', '-', '/', '#']).all(|part| field.takes(part)))?;
        }
        let expression = Self(fields.clone().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" "));
        if let Err(unnamed) = expression.pattern() {
            for (field, text) in fields {
                field.check(text, |_| field.parses(text))?;
            }
            return Err(unnamed);
        }
        Ok(expression)
    }

    /// The text of the expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The pattern of croner, including the years that are searched.
    pub(super) fn pattern(&self) -> Result<Cron, SpecError> {
        let seconds = if self.0.split(' ').count() == 5 { "0 " } else { "" };
        parser().parse(&format!("{seconds}{} {YEARS}", self.0)).map_err(|error| SpecError::Field {
            field: "expression",
            given: self.0.clone(),
            allowed: error.to_string(),
        })
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for CronExpression {
    type Err = SpecError;

    fn from_str(given: &str) -> Result<Self, SpecError> {
        Self::new(given)
    }
}

crate::text::impl_serde!(CronExpression, "a cron expression");

fn parser() -> CronParser {
    CronParser::builder().seconds(Seconds::Required).year(Year::Required).build()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(given: &str) -> String {
        CronExpression::new(given).unwrap_err().to_string()
    }

    #[test]
    fn an_expression_is_normalised() {
        let expression = CronExpression::new("  0   2 * jan mon-FRI ").unwrap();
        assert_eq!(expression.as_str(), "0 2 * JAN MON-FRI");
        assert_eq!(CronExpression::new(expression.as_str()), Ok(expression));
    }

    #[test]
    fn five_and_six_fields_are_accepted_with_all_their_syntax() {
        for given in [
            "* * * * *",
            "*/5 * * * * *",
            "0,30 9-17 * * 1-5",
            "0 0 L * *",
            "0 0 LW * ?",
            "0 0 15W * *",
            "0 0 * * FRI#2",
            "0 0 * * FRI#L",
            "0 0 * * 5L",
            "0 0 13 * +FRI",
            "0 0 * * 7",
            "59 59 23 31 12 *",
        ] {
            assert!(CronExpression::new(given).is_ok(), "{given}: {:?}", CronExpression::new(given));
        }
    }

    #[test]
    fn a_cron_error_names_the_field_and_its_allowed_values() {
        assert_eq!(refused("61 * * * *"), "cron field minute is \"61\": 0-59 with * , - / is allowed");
        assert!(refused("* 24 * * *").starts_with("cron field hour is \"24\": 0-23"));
        assert!(refused("* * 0 * *").starts_with("cron field day of month is \"0\": 1-31"));
        assert!(refused("* * * 13 *").starts_with("cron field month is \"13\": 1-12"));
        assert!(refused("* * * * 8").starts_with("cron field day of week is \"8\": 0-7"));
        assert!(refused("60 * * * * *").starts_with("cron field second is \"60\": 0-59"));
        assert!(refused("*/0 * * * *").starts_with("cron field minute is \"*/0\""));
        assert!(refused("5-1 * * * *").starts_with("cron field minute is \"5-1\""));
    }

    #[test]
    fn misleading_expressions_are_refused() {
        for given in [
            "0 0 1 JANFEB *",
            "0 MON * * *",
            "0 0 * * 1MON",
            "0 0 * * FRIL",
            "0 0 1 1 * 2026 *",
            "@daily",
            "",
            "* * *",
            "* * * * * * *",
            "0 0 ٣ * *",
            "0 0 * * +",
            "0 0 * * +*,",
        ] {
            assert!(CronExpression::new(given).is_err(), "{given}");
        }
        assert_eq!(
            refused("* * *"),
            "cron expression \"* * *\" has 3 fields: give 5 (minute, hour, day of month, month, day of week), \
             or 6 with the second before them"
        );
        let long = "1,".repeat(200);
        assert_eq!(refused(&long), "cron expression must be at most 256 bytes, not 400 bytes");
    }

    proptest! {
        /// Any input is refused or accepted without a panic, and an accepted expression has a pattern.
        #[test]
        fn no_expression_panics(given in "[-0-9*,/?#+LWA-Z@ é]{0,40}") {
            if let Ok(expression) = CronExpression::new(&given) {
                prop_assert!(expression.pattern().is_ok(), "{expression}");
            }
        }

        #[test]
        fn no_expression_of_the_right_shape_panics(
            fields in prop::collection::vec("[*0-9LW?#FRIMON,/+-]{1,6}", 5..=6),
        ) {
            if let Ok(expression) = CronExpression::new(&fields.join(" ")) {
                prop_assert!(expression.pattern().is_ok(), "{expression}");
            }
        }
    }
}
