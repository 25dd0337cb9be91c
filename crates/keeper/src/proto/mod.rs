//! ZooKeeper's wire protocol: requests, replies and notifications, and their encoding. Hostile bytes are rejected here:
//! the other modules can trust every length.

#[cfg(test)]
pub(crate) mod arbitrary;
#[cfg(any(test, feature = "client"))]
pub mod client;
mod code;
mod compat;
mod decode;
mod encode;
mod opcode;
mod reader;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod writer;

pub use code::ErrorCode;
pub use compat::Compat;
pub use decode::{decode_connect, decode_request};
pub use encode::{encode_connected, encode_event, encode_reply};
pub use reader::Malformed;
pub use request::{Acl, AddWatchMode, ConnectRequest, CreateMode, Id, Intent, Op, Request, WatcherKind};
pub use response::{ConnectResponse, EventKind, OpResult, Reply, Response, Stat, WatchedEvent};
