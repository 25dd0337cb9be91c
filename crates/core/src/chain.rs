//! An error with its sources, in one line.

use std::error::Error;

/// Formats an error and its sources as one line: `the outer error: its source: the source of that`.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Reason;
    use crate::port::ReadError;

    #[test]
    fn sources_follow_the_error_and_none_is_printed_twice() {
        let refused = ReadError::Refused(Reason::NoAuth);
        assert_eq!(chain(&refused), "ZooKeeper refused the read: not authorised");
        assert_eq!(chain(&ReadError::Disconnected), "the connection to ZooKeeper is lost");
    }
}
