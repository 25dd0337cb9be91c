//! Which client errors are definite.
//!
//! An unknown outcome has many faces: a FIN is `ConnectionLoss`, an RST is `Custom(ConnectionReset)`, silence
//! is `Custom("no response …")`, and an expiry may come after the write was applied. So the definite ones are
//! listed and everything else is unknown, also what a later client version may add.

use bellwether_core::outcome::Reason;
use zookeeper_client::Error;

/// The reason of a definite refusal; `None` when nobody knows what became of the write.
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

/// Why a read has no answer.
pub(crate) fn read_error(error: &Error) -> ReadError {
    refusal(error).map_or(ReadError::Disconnected, ReadError::Refused)
}
