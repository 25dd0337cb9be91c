//! Everything in Bellwether that touches the ZooKeeper client.
//!
//! The rest of Bellwether sees five things:
//!
//! * [`ConnectString`]: where ZooKeeper is, checked before anything connects;
//! * [`Access`]: who a session is, and so who may touch what it creates;
//! * [`Zk`]: one session. Requests are sent in the order in which its methods are *called*; what comes back is
//!   a future that owns what it needs, to be awaited elsewhere;
//! * [`Outcome`](bellwether_core::outcome::Outcome) of a write, which tells a refusal from an unknown result;
//! * [`Watch`] and [`Glance`]: hints that something changed. They are never the truth: read again.
//!
//! One code path serves an embedded keeper and an ensemble; there is no mock.
#![forbid(unsafe_code)]

mod access;
mod connect_string;
mod contact;
mod eager;
mod error;
mod exposure;
mod metrics;
mod namespace;
mod read;
mod requests;
mod session;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod watch;
mod write;

pub use access::{Access, AccessError, Scheme};
pub use connect_string::{ConnectString, ConnectStringError};
pub use error::ReadError;
pub use exposure::{Exposed, exposed};
pub use namespace::{NamespaceError, open_namespace};
pub use read::{Node, ReadResult, Tally};
pub use session::{ConnectError, SessionState, Trust, Zk, connect, connect_as};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
pub use watch::{Change, ChangeKind, Glance, Watch};
