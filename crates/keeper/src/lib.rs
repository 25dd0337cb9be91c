//! A durable ZooKeeper for one machine: the real wire protocol over a pure model, in one process, without a JVM.
//!
//! ```text
//!  sockets ── frames ──► proto (decode) ──► model (pure) ──► store (durable) ──► proto (encode) ──► sockets
//!             └──────────── server: tokio tasks, one engine thread that owns model and store ──────────┘
//! ```
//!
//! * [`proto`]: what is on the wire. Hostile bytes end here.
//! * [`model`]: what ZooKeeper does with it: tree, sessions, watches, transactions. No I/O, no clock, no randomness.
//! * [`store`]: what survives a kill and a power loss.
//! * `server` (feature): sockets, four-letter words, limits.

pub mod model;
pub mod proto;
pub mod store;
