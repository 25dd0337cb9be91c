//! ZooKeeper's protocol as types: what clients ask, what they are answered, what they are notified of.

mod code;
mod request;
mod response;

pub use code::ErrorCode;
pub use request::{Acl, AddWatchMode, ConnectRequest, CreateMode, Id, Op, Request, WatcherKind};
pub use response::{ConnectResponse, EventKind, OpResult, Reply, Response, Stat, WatchedEvent};
