//! All code of Bellwether that uses the ZooKeeper client.
//!
//! The rest of Bellwether uses five items:
//!
//! * [`ConnectString`]: the servers and the chroot, checked before any connection is made;
//! * [`Access`]: the identity of a session, and so the access lists of the znodes that it creates;
//! * [`Zk`]: one session. Requests are sent in the order in which its methods are *called*; each returns a future that
//!   owns its data and can be awaited elsewhere;
//! * [`Outcome`](bellwether_core::outcome::Outcome) of a write, which distinguishes a rejection from an unknown
//!   outcome;
//! * [`Watch`] and [`Glance`]: hints that something changed. They carry no state: read again.
//!
//! The embedded keeper and an ensemble use the same code path; there is no mock.
#![forbid(unsafe_code)]

mod access;
pub mod clock;
mod closed;
mod connect_string;
mod contact;
mod eager;
mod error;
#[cfg(test)]
mod error_classes;
mod exposure;
mod metrics;
mod namespace;
mod read;
mod requests;
mod roles;
mod session;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod watch;
mod write;

pub use access::{Access, AccessError, Scheme};
pub use closed::{Closed, Repaired, closed, repair};
pub use connect_string::{ConnectString, ConnectStringError};
pub use error::ReadError;
pub use exposure::{Exposed, exposed};
pub use namespace::{NamespaceError, open_namespace, settle_strategy};
pub use read::{Node, ReadResult, WrappingCount};
pub use roles::{Role, Roles, RolesError};
pub use session::{
    ASK_WITHIN, ConnectError, SessionState, Trust, Zk, connect, connect_as, connect_trusted, shortest_timeout,
};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
pub use watch::{Change, ChangeKind, Glance, Watch};
