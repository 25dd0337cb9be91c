//! The releases of ZooKeeper.

/// The release whose behaviour clients see where releases differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// 3.9 and newer.
    #[default]
    V3_9,
    /// 3.8.0 as shipped by Debian, but with the fix for CVE-2024-23944: clients are only notified of znodes that they
    /// may read. A `create2` inside a multi is answered as a `create`, notifications carry zxid −1, `exists` needs no
    /// permission, a connection has one watch per table and path, `checkWatches` finds the watches of all connections,
    /// a malformed write consumes a zxid, a single check is executed, unknown flags of a create do not make a multi
    /// malformed, and the flags of a `createContainer` inside a multi override its code.
    V3_8_0,
}
