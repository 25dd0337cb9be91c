//! The server's handling of election requests.

use bellwether_core::machine::election::campaign;
use bellwether_core::machine::election::leadership::{Beat, Findings, Reply, Request, Sighting};
use bellwether_core::name::NodeId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Lifetime, Op};

use crate::zookeeper::ZooKeeper;

/// Serves a request. Also returns the changed znodes.
pub(crate) fn serve(zk: &mut ZooKeeper, session: i64, request: &Request) -> (Reply, Vec<String>) {
    let mut changed = Vec::new();
    let reply = match request {
        Request::Campaign(request) => Reply::Campaign(campaign(zk, session, request, &mut changed)),
        Request::Read { candidate } => Reply::Read(Outcome::Applied(Findings {
            owner: zk.znodes.get(candidate).map(|znode| znode.owner),
            epoch: sighting(zk),
            // No operator deletes it here, so its version identifies a beat.
            beat: zk.get(path::LEADING).map(|(data, version)| Beat {
                version,
                written: version.into(),
                epoch: txn::claimed_epoch(data),
            }),
        })),
        Request::Claim(claim) => {
            let node = NodeId::new("n").expect("a valid name");
            let ops = claim.ops(&node, WallMillis(0));
            Reply::Claimed(commit(zk, session, &ops, &mut changed))
        }
        Request::Beat { epoch, candidate } => {
            Reply::Beaten(commit(zk, session, &txn::beat(*epoch, candidate.clone()), &mut changed))
        }
        Request::WatchBeats => Reply::Watched(Outcome::Applied(())),
    };
    (reply, changed)
}

fn commit(zk: &mut ZooKeeper, session: i64, ops: &[Op], changed: &mut Vec<String>) -> Outcome<()> {
    let outcome = zk.commit(session, ops);
    if outcome == Outcome::Applied(()) {
        let writes = ops.iter().filter(|op| !matches!(op, Op::Check { .. }));
        changed.extend(writes.map(|op| op.path().to_owned()));
    }
    outcome
}

pub(crate) fn sighting(zk: &ZooKeeper) -> Option<Sighting> {
    zk.get(path::EPOCH).map(|(data, version)| Sighting::new(version, data).0)
}

fn campaign(
    zk: &mut ZooKeeper,
    session: i64,
    request: &campaign::Request,
    changed: &mut Vec<String>,
) -> campaign::Reply {
    let mut ephemeral = |zk: &mut ZooKeeper, path: String, data: &[u8]| {
        changed.push(path.clone());
        let op = Op::Create { path, data: data.to_vec(), lifetime: Lifetime::Ephemeral };
        campaign::Reply::Created(zk.commit(session, &[op]))
    };
    match request {
        campaign::Request::CreateParent { path } => {
            let path = (*path).to_owned();
            let op = Op::Create { path, data: Vec::new(), lifetime: Lifetime::Persistent };
            campaign::Reply::Created(zk.commit(session, &[op]))
        }
        campaign::Request::CreateSequential { prefix, data } => {
            let path = zk.sequential(prefix);
            ephemeral(zk, path, data)
        }
        campaign::Request::CreateEphemeral { path, data } => ephemeral(zk, (*path).to_owned(), data),
        campaign::Request::List { path } => {
            let names = zk.names(path).map(|(name, _)| name.to_owned()).collect();
            campaign::Reply::Listed(Outcome::Applied(names))
        }
        campaign::Request::Owner => campaign::Reply::Owner(Outcome::Applied(campaign::Ownership {
            owner: zk.znodes.get(path::LEADER).map(|znode| znode.owner),
            leading: zk.get(path::LEADING).map(|(_, version)| version),
        })),
        campaign::Request::Watch { path, .. } => {
            campaign::Reply::Watched(Outcome::Applied(zk.znodes.contains_key(path)))
        }
        campaign::Request::Delete { fence, path } => {
            let ops = campaign::Request::delete_ops(fence.clone(), path.clone());
            campaign::Reply::Deleted(commit(zk, session, &ops, changed))
        }
    }
}
