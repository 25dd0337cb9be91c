//! The machine's requests as ZooKeeper's. Each is sent before the function returns, so their order is the machine's.

use bellwether_core::machine::campaign::{self, Ticket};
use bellwether_core::machine::leadership::{Findings, Reply, Request, Sighting};
use bellwether_core::name::NodeId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_zk::{Node, ReadError, ReadResult, Zk};
use futures::FutureExt;
use futures::future::BoxFuture;
use ractor::ActorRef;

use super::ElectionMsg;
use crate::clock;
use crate::task::{Owned, report, tell};

/// Sends a request and reports its reply. What a watch returns takes the watch back when it is dropped.
pub(super) fn send(
    zk: &Zk,
    node: &NodeId,
    ticket: Ticket,
    request: Request,
    to: &ActorRef<ElectionMsg>,
) -> Option<Owned> {
    let reply: BoxFuture<'static, Reply> = match request {
        Request::Campaign(campaign::Request::Watch { path }) => {
            return Some(watch(zk, ticket, path, to.clone()));
        }
        Request::Campaign(campaign::Request::CreateParent { path }) => {
            create(zk, path, Vec::new(), Lifetime::Persistent)
        }
        Request::Campaign(campaign::Request::CreateEphemeral { path, data }) => {
            create(zk, path, data, Lifetime::Ephemeral)
        }
        Request::Campaign(campaign::Request::CreateSequential { prefix, data }) => {
            let created = zk.create_sequential(prefix, data);
            created.map(|outcome| campaigned(campaign::Reply::Created(outcome.map(|_path| ())))).boxed()
        }
        Request::Campaign(campaign::Request::List { path }) => {
            let listed = synced(zk, path, |zk| zk.children(path.to_owned()));
            listed.map(|read| campaigned(campaign::Reply::Listed(children(read)))).boxed()
        }
        Request::Campaign(campaign::Request::Owner { path }) => {
            let owner = synced(zk, path, |zk| zk.get(path.to_owned()));
            let owner = owner.map(|read| outcome(read.map(|node| node.map(|node| node.owner))));
            owner.map(|owner| campaigned(campaign::Reply::Owner(owner))).boxed()
        }
        Request::Campaign(campaign::Request::Delete { path }) => {
            let deleted = zk.commit(vec![Op::Delete { path, version: None }]);
            deleted.map(|outcome| campaigned(campaign::Reply::Deleted(outcome))).boxed()
        }
        Request::ReadEpoch => {
            let epoch = synced(zk, path::EPOCH, |zk| zk.get(path::EPOCH.to_owned()));
            let seen = epoch.map(|read| outcome(read.map(|node| node.as_ref().map(sighting))));
            seen.map(Reply::Epoch).boxed()
        }
        Request::Claim(claim) => zk.commit(claim.ops(node, clock::wall())).map(Reply::Claimed).boxed(),
        Request::Verify { candidate } => {
            let paths = vec![candidate, path::EPOCH.to_owned()];
            let read = synced(zk, path::EPOCH, |zk| zk.get_many(paths));
            read.map(|read| Reply::Verified(outcome(read.and_then(findings)))).boxed()
        }
    };
    report(to, reply, move |reply| ElectionMsg::Reply(ticket, reply));
    None
}

/// A read that sees every write before it, on whichever server.
fn synced<T, F: Future<Output = ReadResult<T>>, S: FnOnce(&Zk) -> F>(
    zk: &Zk,
    path: &str,
    send: S,
) -> impl Future<Output = ReadResult<T>> + use<T, F, S> {
    let sync = zk.sync(path.to_owned());
    let read = send(zk);
    async move { sync.await.and(read.await) }
}

fn watch(zk: &Zk, ticket: Ticket, path: String, to: ActorRef<ElectionMsg>) -> Owned {
    let there = zk.exists_and_glance(path);
    let answer = move |reply| tell(&to, ElectionMsg::Reply(ticket, campaigned(reply)));
    Owned::spawn(async move {
        match there.await {
            Ok((exists, glance)) => {
                answer(campaign::Reply::Watched(Outcome::Applied(exists)));
                glance.changed().await;
                answer(campaign::Reply::Changed);
            }
            Err(error) => answer(campaign::Reply::Watched(outcome(Err(error)))),
        }
    })
}

fn campaigned(reply: campaign::Reply) -> Reply {
    Reply::Campaign(reply)
}

fn create(zk: &Zk, path: &str, data: Vec<u8>, lifetime: Lifetime) -> BoxFuture<'static, Reply> {
    let path = path.to_owned();
    let created = zk.commit(vec![Op::Create { path, data, lifetime }]);
    created.map(|outcome| campaigned(campaign::Reply::Created(outcome))).boxed()
}

fn children(read: ReadResult<Option<Vec<String>>>) -> Outcome<Vec<String>> {
    let absent = || Outcome::Rejected(Rejection { at: 0, reason: Reason::NoNode });
    match outcome(read) {
        Outcome::Applied(Some(children)) => Outcome::Applied(children),
        Outcome::Applied(None) => absent(),
        Outcome::Rejected(rejection) => Outcome::Rejected(rejection),
        Outcome::Unknown => Outcome::Unknown,
    }
}

fn findings(nodes: Vec<Option<Node>>) -> ReadResult<Findings> {
    match nodes.as_slice() {
        [candidate, epoch] => Ok(Findings {
            owner: candidate.as_ref().map(|node| node.owner),
            epoch: epoch.as_ref().map(sighting),
        }),
        other => {
            let reason = format!("asked for 2 znodes, got {}", other.len());
            Err(ReadError::Refused(Reason::Other(reason)))
        }
    }
}

fn sighting(node: &Node) -> Sighting {
    let (sighting, error) = Sighting::new(node.version, &node.data);
    if let Some(error) = error {
        tracing::warn!(%error, version = node.version, "/epoch holds no claim that this build reads; its version counts");
    }
    sighting
}

fn outcome<T>(read: ReadResult<T>) -> Outcome<T> {
    match read {
        Ok(value) => Outcome::Applied(value),
        Err(ReadError::Refused(reason)) => Outcome::Rejected(Rejection { at: 0, reason }),
        Err(ReadError::Disconnected) => Outcome::Unknown,
    }
}
