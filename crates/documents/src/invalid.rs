//! Requests whose values do not fit together.

/// Why a combination of values is refused, as a sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub String);

impl From<Invalid> for String {
    fn from(Invalid(reason): Invalid) -> Self {
        reason
    }
}
