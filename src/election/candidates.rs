//! The members of an election.

use std::time::SystemTime;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::machine::election::campaign;
use bellwether_core::name::NodeId;
use bellwether_core::path;
use bellwether_core::port::{Node, ReadResult, Requests};
use bellwether_core::wire;
use bellwether_core::worker::EpochRecord;

/// The most candidates that are read. More candidates than nodes are a mistake, or hostile.
const MAX_CANDIDATES: usize = 1_000;

/// The candidates of an election, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Candidates {
    /// The candidates in their order: the first one is the leader, or the next one to claim. With
    /// [`Strategy::Single`](super::Strategy::Single) only the owner of the one znode is known.
    pub list: Vec<Candidate>,
    /// Children of the election's znode that are not listed: foreign znodes, and candidates beyond the first 1,000.
    pub unreadable: usize,
}

/// A candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The node's name; `None` if the znode contains no name. The candidate has its place all the same.
    pub node: Option<NodeId>,
    /// The ZooKeeper session that owns the candidate. 0 for a znode that an operator has created: it has its place until
    /// it is deleted.
    pub session: i64,
    /// When it registered, by ZooKeeper's clock.
    pub since: SystemTime,
    /// Whether its session holds the current epoch.
    pub leads: bool,
}

impl Candidate {
    fn new(node: &Node, leader: Option<i64>) -> Self {
        let name = str::from_utf8(&node.data).ok();
        Self {
            node: name.and_then(|name| NodeId::new(name).ok()),
            session: node.owner,
            since: node.modified.into(),
            leads: leader.is_some_and(|leader| leader == node.owner),
        }
    }
}

/// Reads the candidates, after a `sync`: a candidate that another process has seen is found.
pub(crate) async fn read(zk: &dyn Requests) -> ReadResult<Candidates> {
    let (synced, names) = (zk.sync(path::ELECTION.to_owned()), zk.children(path::ELECTION.to_owned()));
    synced.await?;
    let names = names.await?.unwrap_or_default();
    let mut candidates = campaign::in_order(&names);
    candidates.truncate(MAX_CANDIDATES);
    let unreadable = names.len() - candidates.len();
    let mut nodes = Vec::new();
    for names in candidates.chunks(MAX_READ_BATCH) {
        nodes.extend(zk.get_many(names.iter().map(|name| path::candidate(name)).collect()).await?);
    }
    // The epoch last: the leader that it names has been a candidate.
    let found = zk.get_many(vec![path::EPOCH.to_owned(), path::LEADER.to_owned()]).await?;
    let (epoch, single) = (found.first().cloned().flatten(), found.get(1).cloned().flatten());
    let leader = epoch.and_then(|epoch| wire::decode::<EpochRecord>(&epoch.data).ok());
    let leader = leader.map(|record| record.session);
    let nodes = single.iter().chain(nodes.iter().flatten());
    Ok(Candidates { list: nodes.map(|node| Candidate::new(node, leader)).collect(), unreadable })
}
