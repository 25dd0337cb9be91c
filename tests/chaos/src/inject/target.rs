//! The selection of a fault's target among the running processes.

use bellwether_core::path;
use fastrand::Rng;

use crate::fault::Target;
use crate::servers::Kind;
use crate::stage::Stage;

pub(super) fn servers(stage: &Stage) -> std::ops::Range<usize> {
    match stage.kind {
        Kind::Ensemble => 0..3,
        Kind::Keeper => 0..1,
    }
}

/// Returns a running node: the leader, or another.
pub(super) async fn node(stage: &Stage, target: Target, rng: &mut Rng) -> Option<usize> {
    let leader = stage.operator.leader().await.and_then(|node| stage.index_of(&node));
    let leader = leader.filter(|leader| stage.nodes[*leader].runs());
    match target {
        Target::Leader => leader,
        Target::Other => {
            let others = (0..stage.nodes.len()).filter(|node| Some(*node) != leader);
            let others: Vec<_> = others.filter(|node| stage.nodes[*node].runs()).collect();
            rng.choice(others)
        }
    }
}

pub(super) fn any_node(stage: &Stage, rng: &mut Rng) -> Option<usize> {
    rng.choice((0..stage.nodes.len()).filter(|node| stage.nodes[*node].runs()).collect::<Vec<_>>())
}

pub(super) fn server(stage: &Stage, target: Target, rng: &mut Rng) -> Option<usize> {
    let leader = stage.servers.leader()?;
    match target {
        Target::Leader => Some(leader),
        Target::Other => rng.choice(servers(stage).filter(|member| *member != leader).collect::<Vec<_>>()),
    }
}

/// Returns the leader's candidate, which is the oldest.
pub(super) async fn candidate(stage: &mut Stage) -> Option<String> {
    let zk = stage.operator.zk().await.ok()?;
    let candidates = zk.children(path::ELECTION.to_owned()).await.ok()??;
    candidates.into_iter().min_by_key(|name| name.rsplit('-').next().map(str::to_owned))
}
