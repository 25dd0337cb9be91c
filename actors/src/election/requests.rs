//! Translates the machine's requests into ZooKeeper requests, in the machine's order.

use bellwether_core::machine::election::campaign::{self, Ticket};
use bellwether_core::machine::election::leadership::{Beat, Findings, Reply, Request, Sighting};
use bellwether_core::name::NodeId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::port::{Node, ReadError, ReadResult};
use bellwether_core::txn::{self, Lifetime, Op, Seat};

use super::{Election, ElectionMsg, Key};
use crate::Context;

/// Sends a request. Each read follows a `sync`, so it sees every earlier write on any server.
pub(super) fn send(cx: &mut Context<'_, Election>, node: &NodeId, ticket: Ticket, request: Request) {
    let reply = move |reply| ElectionMsg::Reply(ticket, reply);
    let campaigned = move |answer| reply(Reply::Campaign(answer));
    match request {
        Request::Campaign(campaign::Request::Watch { target, path }) => cx.glance(
            Key::Candidate(target),
            path,
            move |exists| campaigned(campaign::Reply::Watched(outcome(exists))),
            campaigned(campaign::Reply::Changed),
        ),
        Request::Campaign(campaign::Request::CreateParent { path }) => {
            create(cx, ticket, path, Vec::new(), Lifetime::Persistent);
        }
        Request::Campaign(campaign::Request::CreateEphemeral { path, data }) => {
            create(cx, ticket, path, data, Lifetime::Ephemeral);
        }
        Request::Campaign(campaign::Request::CreateSequential { prefix, data }) => {
            cx.task(move |zk| {
                let created = zk.create_sequential(prefix, data);
                async move { campaigned(campaign::Reply::Created(created.await.map(|_path| ()))) }
            });
        }
        Request::Campaign(campaign::Request::List { path }) => cx.task(move |zk| {
            let (synced, listed) = (zk.sync(path.to_owned()), zk.children(path.to_owned()));
            async move {
                let listed = synced.await.and(listed.await);
                campaigned(campaign::Reply::Listed(children(listed)))
            }
        }),
        Request::Campaign(campaign::Request::Owner) => cx.task(move |zk| {
            let paths = [path::LEADING, path::LEADER].map(str::to_owned).to_vec();
            let (synced, read) = (zk.sync(path::LEADER.to_owned()), zk.get_many(paths));
            async move {
                let read = synced.await.and(read.await);
                campaigned(campaign::Reply::Owner(outcome(read.and_then(ownership))))
            }
        }),
        Request::Campaign(campaign::Request::Delete { fence, path }) => {
            cx.commit(campaign::Request::delete_ops(fence, path), move |_, outcome| {
                Some(campaigned(campaign::Reply::Deleted(outcome)))
            });
        }
        Request::Read { candidate } => cx.task(move |zk| {
            // The candidate last: see `Findings::owner`.
            let paths = vec![path::EPOCH.to_owned(), path::LEADING.to_owned(), candidate];
            let (synced, read) = (zk.sync(path::EPOCH.to_owned()), zk.get_many(paths));
            async move {
                let read = synced.await.and(read.await);
                reply(Reply::Read(outcome(read.and_then(findings))))
            }
        }),
        Request::Claim(claim) => {
            if let Seat::Queued { .. } | Seat::Replacement = claim.seat() {
                tracing::warn!(%node, epoch = claim.epoch(), "the leader is silent: the node replaces it");
            }
            cx.commit(claim.ops(node, cx.wall), move |_, outcome| Some(reply(Reply::Claimed(outcome))))
        }
        Request::Beat { epoch, candidate } => {
            cx.commit(txn::beat(epoch, candidate), move |_, outcome| Some(reply(Reply::Beaten(outcome))))
        }
        Request::WatchBeats => cx.glance(
            Key::Beats,
            path::LEADING.to_owned(),
            move |exists| reply(Reply::Watched(outcome(exists.map(|_exists| ())))),
            reply(Reply::Changed),
        ),
    }
}

fn create(cx: &mut Context<'_, Election>, ticket: Ticket, path: &str, data: Vec<u8>, lifetime: Lifetime) {
    let op = Op::Create { path: path.to_owned(), data, lifetime };
    cx.commit(vec![op], move |_, outcome| {
        Some(ElectionMsg::Reply(ticket, Reply::Campaign(campaign::Reply::Created(outcome))))
    });
}

fn children(read: ReadResult<Option<Vec<String>>>) -> Outcome<Vec<String>> {
    match outcome(read) {
        Outcome::Applied(Some(children)) => Outcome::Applied(children),
        Outcome::Applied(None) => Outcome::Rejected(Rejection { at: 0, reason: Reason::NoNode }),
        Outcome::Rejected(rejection) => Outcome::Rejected(rejection),
        Outcome::Unknown => Outcome::Unknown,
    }
}

fn ownership(nodes: Vec<Option<Node>>) -> ReadResult<campaign::Ownership> {
    match nodes.as_slice() {
        [leading, leader] => Ok(campaign::Ownership {
            owner: leader.as_ref().map(|node| node.owner),
            leading: leading.as_ref().map(|node| node.version),
        }),
        other => Err(unexpected(2, other.len())),
    }
}

fn findings(nodes: Vec<Option<Node>>) -> ReadResult<Findings> {
    match nodes.as_slice() {
        [epoch, leading, candidate] => Ok(Findings {
            owner: candidate.as_ref().map(|node| node.owner),
            epoch: epoch.as_ref().map(sighting),
            beat: leading.as_ref().map(|node| Beat {
                version: node.version,
                written: node.written,
                epoch: txn::claimed_epoch(&node.data),
            }),
        }),
        other => Err(unexpected(3, other.len())),
    }
}

fn unexpected(requested: usize, got: usize) -> ReadError {
    ReadError::Refused(Reason::Other(format!("requested {requested} znodes, got {got}")))
}

fn sighting(node: &Node) -> Sighting {
    let (sighting, error) = Sighting::new(node.version, &node.data);
    if let Some(error) = error {
        tracing::warn!(%error, version = node.version, "the znode /epoch contains no claim that this build can read: the node uses only its version");
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
