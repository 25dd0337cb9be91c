//! A durable, single-node ZooKeeper: the real wire protocol over a pure model, in one process, without a JVM.
//!
//! ```text
//!  sockets ── frames ──► proto (decode) ──► model (pure) ──► store (durable) ──► proto (encode) ──► sockets
//!             └──────────── server: tokio tasks, one engine thread that owns model and store ──────────┘
//! ```
//!
//! * [`proto`]: the wire format. Hostile bytes are rejected here.
//! * [`model`]: ZooKeeper's semantics: tree, sessions, watches, transactions. No I/O, no clock, no randomness.
//! * [`store`]: durable storage. Committed data survives a process kill and a power loss.
//! * `server` (feature): sockets, four-letter words, limits.
//!
//! Start an embedded server:
//!
//! ```no_run
//! # #[cfg(feature = "server")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use bellwether_keeper::server::{Keeper, Storage};
//!
//! let keeper = Keeper::builder().store(Storage::Directory("/var/lib/keeper".into())).start().await?;
//! println!("clients connect to {}", keeper.connect_string());
//! keeper.stop().await?;
//! # Ok(())
//! # }
//! ```

mod by_path;
#[cfg(all(test, feature = "server"))]
mod error_classes;
pub mod model;
pub mod proto;
#[cfg(feature = "server")]
pub mod server;
pub mod store;

pub use bellwether_remedy::{ErrorClass, Remedy};
