//! Answers a campaign's requests from a ZooKeeper model.

use super::{Ownership, Reply, Request};
use crate::outcome::Outcome;
use crate::path;
use crate::zookeeper::{CreateMode, ZooKeeper};

pub(in crate::machine::election) fn answer(
    zookeeper: &mut ZooKeeper,
    session: i64,
    request: &Request,
) -> Reply {
    let mut create = |path, data, mode| Reply::Created(zookeeper.create(session, path, data, mode));
    match request {
        Request::CreateParent { path } => create(path, &[], CreateMode::Persistent),
        Request::CreateSequential { prefix, data } => create(prefix, data, CreateMode::EphemeralSequential),
        Request::CreateEphemeral { path, data } => create(path, data, CreateMode::Ephemeral),
        Request::List { path } => Reply::Listed(Outcome::Applied(zookeeper.children(path))),
        Request::Owner => Reply::Owner(Outcome::Applied(Ownership {
            owner: zookeeper.get(path::LEADER).map(|znode| znode.owner),
            leading: zookeeper.get(path::LEADING).map(|znode| znode.version),
        })),
        Request::Watch { path, .. } => Reply::Watched(Outcome::Applied(zookeeper.get(path).is_some())),
        Request::Delete { fence, path } => {
            Reply::Deleted(zookeeper.commit(session, &Request::delete_ops(fence.clone(), path.clone())))
        }
    }
}

/// Returns the reply to a request whose answer is lost.
pub(in crate::machine::election) fn unknown(request: &Request) -> Reply {
    match request {
        Request::List { .. } => Reply::Listed(Outcome::Unknown),
        Request::Owner => Reply::Owner(Outcome::Unknown),
        Request::Watch { .. } => Reply::Watched(Outcome::Unknown),
        Request::Delete { .. } => Reply::Deleted(Outcome::Unknown),
        Request::CreateParent { .. } | Request::CreateSequential { .. } | Request::CreateEphemeral { .. } => {
            Reply::Created(Outcome::Unknown)
        }
    }
}
