//! The leader wing: the concerns of one term of leadership, started and stopped together.
//!
//! *One for all*: when a member dies, all members are stopped and restarted in the same term, because they build their
//! state from each other's messages. After too many restarts the wing fails.
//!
//! A paused term needs no message to the wing. The hosts refuse every request of a member while the election does not
//! permit this node to act ([`crate::Paused`]). When the term is active again, the wing sends `Resume` to each
//! member.

use bellwether_core::metric;
use metrics::counter;

use crate::intensity::{Intensity, too_many};
use crate::{Concern, Context};

/// The wing has no watch and no timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {}

/// A node's role as the leader.
pub struct LeaderWing {
    /// The epoch of the current term.
    epoch: Option<i32>,
    restarts: Intensity,
}

/// Messages to the leader wing.
pub enum LeaderWingMsg {
    /// This node is the leader: a new term, or the current term after a pause. The host switches to the term's session.
    Active(i32),
    /// This node is not the leader.
    Inactive,
    /// A write of this epoch was rejected by its fence.
    FencedOut(i32),
}

kinds!(LeaderWingMsg { Active, Inactive, FencedOut });

/// Messages of the leader wing to its members, the election and its host.
pub enum Tell {
    /// Start the members of a term.
    Start(i32),
    /// Stop the members, in order.
    Stop,
    /// To each member: the term is active again.
    Resume,
    /// To the election: another leader has claimed.
    FencedOut(i32),
    /// The wing fails, because its members died too often.
    Fail(String),
}

impl Concern for LeaderWing {
    const NAME: &'static str = "leader_wing";
    type Msg = LeaderWingMsg;
    type Args = ();
    type Key = Key;
    type Tell = Tell;

    fn start(_: &mut Context<'_, Self>, (): ()) -> Self {
        Self { epoch: None, restarts: Intensity::default() }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: LeaderWingMsg) {
        match (msg, self.epoch) {
            (LeaderWingMsg::Active(epoch), Some(present)) if present == epoch => {
                tracing::info!(epoch, "the node resumed its leadership term");
                cx.tell(Tell::Resume);
            }
            (LeaderWingMsg::Active(epoch), _) => {
                self.end_term(cx);
                tracing::info!(epoch, "the node started a leadership term");
                self.epoch = Some(epoch);
                cx.tell(Tell::Start(epoch));
            }
            (LeaderWingMsg::Inactive, _) => self.end_term(cx),
            (LeaderWingMsg::FencedOut(epoch), Some(present)) if present == epoch => {
                tracing::warn!(
                    epoch,
                    "another node has claimed the leadership: the term of this node is over"
                );
                counter!(metric::LEADERSHIP_TERMS_FENCED).increment(1);
                self.end_term(cx);
                cx.tell(Tell::FencedOut(epoch));
            }
            // From a term that has ended.
            (LeaderWingMsg::FencedOut(_), _) => {}
        }
    }
}

impl LeaderWing {
    /// Handles the unexpected end of a member. The host calls this only for the members of the current term.
    pub fn member_ended(&mut self, cx: &mut Context<'_, Self>, why: &str) {
        let Some(epoch) = self.epoch else { return };
        tracing::error!(epoch, reason = why, "an actor of the leader wing died");
        if self.restarts.allows(cx.now) {
            tracing::info!(epoch, "the node restarts the actors of the leader wing");
            counter!(metric::ACTOR_RESTARTS).increment(1);
            cx.tell(Tell::Stop);
            cx.tell(Tell::Start(epoch));
        } else {
            cx.tell(Tell::Fail(too_many("leader wing")));
        }
    }

    fn end_term(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(epoch) = self.epoch.take() {
            tracing::info!(epoch, "the node ended its leadership term");
            cx.tell(Tell::Stop);
        }
    }
}
