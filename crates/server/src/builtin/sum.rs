//! Adds numbers, and fails on overflow.

use serde::Deserialize;
use serde_json::Number;

use bellwether::handler::HandlerError;

#[derive(Deserialize)]
#[serde(untagged, expecting = r#"expected {"first": 1, "second": 2} or an array of numbers"#)]
pub(super) enum Numbers {
    Two { first: Number, second: Number },
    Many(Vec<Number>),
}

impl Numbers {
    /// The sum of integers is an integer, or an error on overflow; with one fraction the sum is a float.
    pub(super) fn sum(self) -> Result<Number, HandlerError> {
        let numbers = match self {
            Self::Two { first, second } => vec![first, second],
            Self::Many(numbers) => numbers,
        };
        if numbers.iter().any(Number::is_f64) {
            let sum = numbers.iter().filter_map(Number::as_f64).sum();
            return Number::from_f64(sum).ok_or_else(|| HandlerError::new("the sum is not finite"));
        }
        let whole = numbers.iter().map(Number::as_i64);
        let sum = whole.into_iter().try_fold(0_i64, |sum, number| sum.checked_add(number?));
        sum.map(Number::from).ok_or_else(|| HandlerError::new("the sum overflows 64 bits"))
    }
}
