//! Infrastructure for Bellwether's tests: a real server per test process, faults on the wire, and one way to wait.
//!
//! There are no mocks. A test uses a server in a child process, Bellwether's keeper or Apache ZooKeeper
//! (`BELLWETHER_TEST_SERVER=zookeeper`). A fault is a frame that [`Proxy`] withholds or a connection that it cuts, so
//! the client under test runs its production code.
//!
//! | a test needs | use |
//! | --- | --- |
//! | its own namespace | [`namespace`]: a new chroot on the server shared by the test process |
//! | to kill, freeze or restart the server | its own [`ZooKeeperServer`] |
//! | an ensemble, with a majority to lose | an [`Ensemble`] |
//! | a lost reply, a partition, an expired session | [`Proxy`] in front of either |
//! | to start the command, signal it and read its output | a [`Process`] |
//! | to wait for a condition | [`eventually`]: a condition and a deadline, never a sleep |
//! | to check the content of the server independently | [`RawClient`]: the protocol without a client library |
//! | to test a decoder | [`fuzz::Corpus`]: the corpus of a fuzzer, replayed and mutated |
//!
//! No server survives the test process: see [`ZooKeeperServer`] for how this is ensured after an abort or a SIGKILL.

mod eventually;
mod fourletter;
pub mod fuzz;
mod process;
mod proxy;
mod raw;
mod server;
mod shared;

pub use eventually::{eventually, eventually_some, pause_after};
pub use fourletter::four_letter_word;
pub use process::Process;
pub use proxy::{Cut, Direction, Fault, HeldReply, Matches, Proxy, Request};
pub use raw::{Credentials, RawClient};
pub use server::{
    Builder, Ensemble, EnsembleBuilder, Installation, Missing, Profile, Program, StartError, ZooKeeperServer,
    binary_or, command, unused_address,
};
pub use shared::{namespace, shared};

/// Request codes of the ZooKeeper protocol that the tests use.
pub mod op {
    /// `create`
    pub const CREATE: i32 = 1;
    /// `delete`
    pub const DELETE: i32 = 2;
    /// `exists`
    pub const EXISTS: i32 = 3;
    /// `getData`
    pub const GET_DATA: i32 = 4;
    /// `setData`
    pub const SET_DATA: i32 = 5;
    /// `getACL`
    pub const GET_ACL: i32 = 6;
    /// `setACL`
    pub const SET_ACL: i32 = 7;
    /// `sync`
    pub const SYNC: i32 = 9;
    /// `ping`
    pub const PING: i32 = 11;
    /// `getChildren2`
    pub const GET_CHILDREN2: i32 = 12;
    /// `check`, only inside a multi
    pub const CHECK: i32 = 13;
    /// `multi`
    pub const MULTI: i32 = 14;
    /// `create2`: a create whose reply contains the stat
    pub const CREATE2: i32 = 15;
    /// `removeWatches`
    pub const REMOVE_WATCHES: i32 = 18;
    /// `createContainer`
    pub const CREATE_CONTAINER: i32 = 19;
    /// `createTTL`
    pub const CREATE_TTL: i32 = 21;
    /// `multiRead`
    pub const MULTI_READ: i32 = 22;
    /// `setWatches2`
    pub const SET_WATCHES2: i32 = 105;
    /// `addWatch`
    pub const ADD_WATCH: i32 = 106;
    /// `closeSession`
    pub const CLOSE_SESSION: i32 = -11;
}
