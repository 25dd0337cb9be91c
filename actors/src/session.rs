//! What the session supervisor tells the concerns that make requests.

use std::time::Duration;

/// What happened to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEvent {
    /// A new session serves, with its namespace open. The host switches the concern's requests to it.
    Connected {
        /// Its id.
        session: i64,
        /// Its timeout, as the server granted it.
        timeout: Duration,
    },
    /// The connection is lost; the session may live.
    Disconnected,
    /// The same session serves again: set watches again, then read everything again.
    Reconnected,
    /// The session is over.
    Expired,
}

kinds!(SessionEvent { Connected, Disconnected, Reconnected, Expired });
