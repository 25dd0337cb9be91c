//! The node: the supervisor of a node's parts.
//!
//! ```text
//! node ─┬─ session      owns the ZooKeeper client
//!       ├─ election     elects the leader                        } candidate
//!       ├─ leader wing  runs while this node is the leader       }
//!       └─ worker wing  registers, runs jobs, reports results      worker
//! ```
//!
//! *Rest for one*: when a part dies, it and the parts that depend on it are stopped in reverse order and restarted in
//! order. Every part depends on the session, and the leader wing depends on the election. The worker wing does not
//! depend on the election, so a fault of leadership costs no running job. After too many restarts the node ends with
//! the error, and the process decides. A refused namespace ends the node immediately, because a restart does not change
//! it.

use bellwether_core::metric;
use metrics::counter;

use crate::intensity::{Intensity, too_many};
use crate::{Concern, Context};

/// The node has no watch and no timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {}

/// The parts of a node, in the order in which they are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The session supervisor.
    Session,
    /// The election.
    Election,
    /// The leader wing.
    LeaderWing,
    /// The worker wing.
    WorkerWing,
}

impl Part {
    /// All parts, in the order in which they are started.
    pub const ALL: [Self; 4] = [Self::Session, Self::Election, Self::LeaderWing, Self::WorkerWing];

    /// Whether this part is stopped when `other` is stopped.
    #[must_use]
    pub fn builds_on(self, other: Self) -> bool {
        self == other || other == Self::Session || (other, self) == (Self::Election, Self::LeaderWing)
    }
}

/// Why a part ended unexpectedly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The part died. A restart may help.
    Died(String),
    /// The namespace was refused. A restart does not help.
    Refused(String),
}

/// Supervises a node's parts.
pub struct Node {
    restarts: Intensity,
}

/// The node receives no messages, only the ends of its children.
pub enum NodeMsg {}

kinds!(NodeMsg {});

/// Messages of the node to its host.
pub enum Tell {
    /// Start a part, if this node has the role.
    Start(Part),
    /// Stop a part, if it runs.
    Stop(Part),
    /// All parts are started: publish them.
    Started,
    /// The node ends with this error.
    Fail(Ended),
}

impl Concern for Node {
    const NAME: &'static str = "node";
    type Msg = NodeMsg;
    type Args = ();
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, (): ()) -> Self {
        start_from(cx, Part::Session);
        Self { restarts: Intensity::default() }
    }

    fn handle(&mut self, _: &mut Context<'_, Self>, msg: NodeMsg) {
        match msg {}
    }
}

impl Node {
    /// Handles the unexpected end of a part. The host calls this only for running parts.
    pub fn part_ended(&mut self, cx: &mut Context<'_, Self>, part: Part, ended: Ended) {
        let fails = match ended {
            Ended::Died(error) => {
                tracing::error!(?part, %error, "a part of the node died");
                if self.restarts.allows(cx.now) {
                    tracing::info!(?part, "the node restarts the part and those that depend on it");
                    counter!(metric::ACTOR_RESTARTS).increment(1);
                    stop_from(cx, part);
                    return start_from(cx, part);
                }
                Ended::Died(too_many("the node"))
            }
            refused @ Ended::Refused(_) => refused,
        };
        stop_from(cx, Part::Session);
        cx.tell(Tell::Fail(fails));
    }
}

fn start_from(cx: &mut Context<'_, Node>, first: Part) {
    let parts = Part::ALL.into_iter().filter(|part| part.builds_on(first));
    parts.for_each(|part| cx.tell(Tell::Start(part)));
    cx.tell(Tell::Started);
}

fn stop_from(cx: &mut Context<'_, Node>, first: Part) {
    let parts = Part::ALL.into_iter().rev().filter(|part| part.builds_on(first));
    parts.for_each(|part| cx.tell(Tell::Stop(part)));
}

#[cfg(test)]
mod tests {
    use bellwether_core::time::{Millis, WallMillis};

    use super::*;
    use crate::Out;

    fn told(act: impl FnOnce(&mut Context<'_, Node>)) -> Vec<String> {
        let (mut rng, mut out) = (fastrand::Rng::with_seed(1), Vec::new());
        let (now, wall) = (Millis(0), WallMillis(0));
        act(&mut Context { now, wall, local: wall, trust: None, rng: &mut rng, out: &mut out });
        let told = out.into_iter().map(|out| match out {
            Out::Tell(Tell::Start(part)) => format!("start {part:?}"),
            Out::Tell(Tell::Stop(part)) => format!("stop {part:?}"),
            Out::Tell(Tell::Started) => "started".to_owned(),
            Out::Tell(Tell::Fail(_)) => "fail".to_owned(),
            _ => panic!("the node only sends `Tell`s"),
        });
        told.collect()
    }

    #[test]
    fn a_part_that_dies_is_restarted_with_the_parts_that_depend_on_it() {
        let mut node = Node { restarts: Intensity::default() };
        let mut dies = |part| told(|cx| node.part_ended(cx, part, Ended::Died("a fault".to_owned())));
        let election = ["stop LeaderWing", "stop Election", "start Election", "start LeaderWing", "started"];
        assert_eq!(dies(Part::Election), election);
        assert_eq!(dies(Part::WorkerWing), ["stop WorkerWing", "start WorkerWing", "started"]);
        assert_eq!(dies(Part::Session).len(), 2 * Part::ALL.len() + 1);
    }

    #[test]
    fn a_part_that_dies_too_often_and_a_refused_namespace_end_the_node() {
        let mut node = Node { restarts: Intensity::default() };
        let mut ends = |ended: Ended| told(|cx| node.part_ended(cx, Part::Session, ended.clone()));
        let stopped = ["stop WorkerWing", "stop LeaderWing", "stop Election", "stop Session", "fail"]
            .map(str::to_owned);
        assert_eq!(ends(Ended::Refused("another layout".to_owned())), stopped);
        let died = Ended::Died("a fault".to_owned());
        assert!((0..10).all(|_| ends(died.clone()).last().is_some_and(|last| last == "started")));
        assert_eq!(ends(died), stopped);
    }
}
