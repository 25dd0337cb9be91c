//! ZooKeeper's error codes.

/// The error of a request, with its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// An operation of a failed multi, after the one that failed.
    RuntimeInconsistency = -2,
    /// The request is malformed.
    MarshallingError = -5,
    /// The server does not support the request.
    Unimplemented = -6,
    /// A path or a mode is invalid.
    BadArguments = -8,
    /// The znode does not exist.
    NoNode = -101,
    /// The client has no permission.
    NoAuth = -102,
    /// The version of the znode differs.
    BadVersion = -103,
    /// The parent is ephemeral, and ephemeral znodes cannot have children.
    NoChildrenForEphemerals = -108,
    /// The znode exists.
    NodeExists = -110,
    /// The znode has children.
    NotEmpty = -111,
    /// The session has expired.
    SessionExpired = -112,
    /// The ACL is empty or invalid.
    InvalidAcl = -114,
    /// The credentials were rejected.
    AuthFailed = -115,
    /// The session has moved to another connection.
    SessionMoved = -118,
    /// The watch does not exist.
    NoWatcher = -121,
    /// `reconfig` needs an ensemble.
    ReconfigDisabled = -123,
    /// A further znode or its data would exceed the server's bounds. ZooKeeper uses it for the quota of a subtree.
    QuotaExceeded = -125,
    /// The server has as many watches as it may have. ZooKeeper uses it for requests that wait too long.
    Throttled = -127,
}

impl ErrorCode {
    /// Returns the number on the wire.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }
}
