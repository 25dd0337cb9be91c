//! Classifies the errors of the client library as definite or unknown.
//!
//! An unknown outcome has many forms: a FIN is `ConnectionLoss`, an RST is `Custom(ConnectionReset)`, no reply is
//! `Custom("no response …")`, and an expiry may be reported after the write was applied. So the definite errors are
//! listed and all others are unknown, including those of future versions of the library.

use bellwether_core::outcome::Reason;
use zookeeper_client::Error;

/// The reason of a definite rejection; `None` if the outcome of the write is unknown.
pub(crate) fn refusal(error: &Error) -> Option<Reason> {
    match error {
        Error::NoNode => Some(Reason::NoNode),
        Error::NodeExists => Some(Reason::NodeExists),
        Error::BadVersion => Some(Reason::BadVersion),
        Error::NotEmpty => Some(Reason::NotEmpty),
        Error::NoAuth | Error::InvalidAcl => Some(Reason::NoAuth),
        Error::BadArguments(_)
        | Error::NoChildrenForEphemerals
        | Error::NotReadOnly
        | Error::QuotaExceeded
        | Error::Throttled
        | Error::MarshallingError
        | Error::Unimplemented
        | Error::SessionMoved
        | Error::NoWatcher
        | Error::ReconfigDisabled => Some(Reason::Other(error.to_string())),
        _ => None,
    }
}

pub use bellwether_core::port::ReadError;

/// Why a read failed.
pub(crate) fn read_error(error: &Error) -> ReadError {
    refusal(error).map_or(ReadError::Disconnected, ReadError::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_a_failed_operation_are_definite() {
        for (error, reason) in [
            (Error::NoNode, Reason::NoNode),
            (Error::NodeExists, Reason::NodeExists),
            (Error::BadVersion, Reason::BadVersion),
            (Error::NotEmpty, Reason::NotEmpty),
            (Error::NoAuth, Reason::NoAuth),
            (Error::InvalidAcl, Reason::NoAuth),
            (Error::QuotaExceeded, Reason::Other(Error::QuotaExceeded.to_string())),
        ] {
            assert_eq!(refusal(&error), Some(reason.clone()));
            assert_eq!(read_error(&error), ReadError::Refused(reason));
        }
        for lost in [Error::ConnectionLoss, Error::SessionExpired] {
            assert_eq!((refusal(&lost), read_error(&lost)), (None, ReadError::Disconnected));
        }
    }
}
