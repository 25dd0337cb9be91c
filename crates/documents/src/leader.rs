//! The leader.

use bellwether::InstantText;
use bellwether::client::LeaderView;
use serde::Serialize;
use utoipa::ToSchema;

/// The node that claimed the current epoch.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Leader)]
pub struct LeaderDocument {
    /// The node.
    node: String,
    /// The epoch: the fencing token of the leader's writes.
    epoch: i32,
    /// The ZooKeeper session of the leader.
    #[schema(example = "0x100000000000001")]
    session: String,
    /// When the epoch was claimed, by the leader's clock.
    since: InstantText,
    /// Whether the leader is still a candidate. If not, there is no leader now.
    standing: bool,
}

impl From<&LeaderView> for LeaderDocument {
    fn from(leader: &LeaderView) -> Self {
        Self {
            node: leader.node.to_string(),
            epoch: leader.epoch,
            session: format!("{:#x}", leader.session),
            since: InstantText(leader.since),
            standing: leader.standing,
        }
    }
}
