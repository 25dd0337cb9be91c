//! ZooKeeper's error codes.

/// Why a request was refused, as the number that clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// In a failed multi: an operation behind the one that failed.
    RuntimeInconsistency = -2,
    /// The request could not be read.
    MarshallingError = -5,
    /// This server does not know the request.
    Unimplemented = -6,
    /// A path or a mode that cannot be.
    BadArguments = -8,
    /// The znode is not there.
    NoNode = -101,
    /// The session may not do this.
    NoAuth = -102,
    /// The znode has another version.
    BadVersion = -103,
    /// An ephemeral znode has no children.
    NoChildrenForEphemerals = -108,
    /// The znode is there.
    NodeExists = -110,
    /// The znode has children.
    NotEmpty = -111,
    /// The session has ended.
    SessionExpired = -112,
    /// An empty or malformed ACL.
    InvalidAcl = -114,
    /// The credentials were refused.
    AuthFailed = -115,
    /// The session is served by another connection.
    SessionMoved = -118,
    /// No such watch is set.
    NoWatcher = -121,
    /// A quorum's business: one server has none.
    ReconfigDisabled = -123,
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }
}
