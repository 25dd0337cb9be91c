//! Answers a leadership's requests from a ZooKeeper model.

use crate::machine::election::campaign::test_server;
use crate::machine::election::leadership::{Findings, Reply, Request, Sighting};
use crate::name::NodeId;
use crate::outcome::Outcome;
use crate::path;
use crate::time::WallMillis;
use crate::zookeeper::ZooKeeper;

pub(super) fn answer(zookeeper: &mut ZooKeeper, session: i64, request: &Request) -> Reply {
    let epoch = zookeeper.get(path::EPOCH).map(|znode| Sighting::new(znode.version, &znode.data).0);
    match request {
        Request::Campaign(request) => Reply::Campaign(test_server::answer(zookeeper, session, request)),
        Request::ReadEpoch => Reply::Epoch(Outcome::Applied(epoch)),
        Request::Claim(claim) => {
            let node = NodeId::new("model").unwrap();
            Reply::Claimed(zookeeper.commit(session, &claim.ops(&node, WallMillis(0))))
        }
        Request::Verify { candidate } => {
            let owner = zookeeper.get(candidate).map(|znode| znode.owner);
            Reply::Verified(Outcome::Applied(Findings { owner, epoch }))
        }
    }
}

/// Returns the reply to a request whose answer is lost.
pub(super) fn unknown(request: &Request) -> Reply {
    match request {
        Request::ReadEpoch => Reply::Epoch(Outcome::Unknown),
        Request::Claim(_) => Reply::Claimed(Outcome::Unknown),
        Request::Verify { .. } => Reply::Verified(Outcome::Unknown),
        Request::Campaign(request) => Reply::Campaign(test_server::unknown(request)),
    }
}
