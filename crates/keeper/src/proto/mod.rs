//! ZooKeeper's protocol: what clients ask, what they are answered, what they are notified of, and how all of it is
//! spelled on the wire. Hostile bytes end here: nothing behind this module sees a length that it would have to doubt.

#[cfg(test)]
pub(crate) mod arbitrary;
pub mod client;
mod code;
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
pub use decode::{decode_connect, decode_request};
pub use encode::{encode_connected, encode_event, encode_reply};
pub use reader::Malformed;
pub use request::{Acl, AddWatchMode, ConnectRequest, CreateMode, Id, Intent, Op, Request, WatcherKind};
pub use response::{ConnectResponse, EventKind, OpResult, Reply, Response, Stat, WatchedEvent};
