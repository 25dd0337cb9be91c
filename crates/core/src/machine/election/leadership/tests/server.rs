//! Answers a leadership's requests from a ZooKeeper model.

use crate::machine::election::campaign::test_server;
use crate::machine::election::leadership::{Beat, Findings, Reply, Request, Sighting};
use crate::name::NodeId;
use crate::outcome::Outcome;
use crate::path;
use crate::time::WallMillis;
use crate::txn;
use crate::zookeeper::{Znode, ZooKeeper};

pub(super) fn answer(zookeeper: &mut ZooKeeper, session: i64, request: &Request) -> Reply {
    match request {
        Request::Campaign(request) => Reply::Campaign(test_server::answer(zookeeper, session, request)),
        Request::Read { candidate } => {
            let sighting =
                zookeeper.get(path::EPOCH).map(|znode| Sighting::new(znode.version, &znode.data).0);
            let beat = zookeeper.get(path::LEADING).map(beat);
            let owner = zookeeper.get(candidate).map(|znode| znode.owner);
            Reply::Read(Outcome::Applied(Findings { owner, epoch: sighting, beat }))
        }
        Request::Claim(claim) => {
            let node = NodeId::new("model").unwrap();
            Reply::Claimed(zookeeper.commit(session, &claim.ops(&node, WallMillis(0))))
        }
        Request::Beat { epoch, candidate } => {
            Reply::Beaten(zookeeper.commit(session, &txn::beat(*epoch, candidate.clone())))
        }
        Request::WatchBeats => Reply::Watched(Outcome::Applied(())),
    }
}

fn beat(znode: &Znode) -> Beat {
    Beat { version: znode.version, written: znode.written, epoch: txn::claimed_epoch(&znode.data) }
}

/// Returns the reply to a request whose answer is lost.
pub(super) fn unknown(request: &Request) -> Reply {
    match request {
        Request::Read { .. } => Reply::Read(Outcome::Unknown),
        Request::Claim(_) => Reply::Claimed(Outcome::Unknown),
        Request::Beat { .. } => Reply::Beaten(Outcome::Unknown),
        Request::WatchBeats => Reply::Watched(Outcome::Unknown),
        Request::Campaign(request) => Reply::Campaign(test_server::unknown(request)),
    }
}
