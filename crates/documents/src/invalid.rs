//! Why a request is refused.

/// Why a request is refused, as a sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub String);
