//! Requests whose values do not fit together.

/// Why a combination of values is refused, as a sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub String);

impl From<Invalid> for String {
    fn from(Invalid(reason): Invalid) -> Self {
        reason
    }
}

/// Refuses two values of which at most one may be given.
pub(crate) fn not_both(first: (&str, bool), second: (&str, bool)) -> Result<(), Invalid> {
    match (first, second) {
        ((first, true), (second, true)) => Err(Invalid(format!("give {first} or {second}, not both"))),
        _ => Ok(()),
    }
}
