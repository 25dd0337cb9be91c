//! One process of a node: the concerns of `bellwether-actors`, hosted in virtual time.
//!
//! Mailboxes and tasks are the world's: what one concern tells another arrives in order and a little later, and an answer of
//! ZooKeeper comes back as a message, in any order. The death of a child or of a member is a fault that the world injects;
//! the wings decide what follows. The root of a node is not here.

pub(crate) mod context;
pub(crate) mod election;
pub(crate) mod host;
pub(crate) mod leader;
mod requests;
pub(crate) mod worker;

use std::time::Duration;

use bellwether_actors::election::{self as concern, Election, ElectionMsg};
use bellwether_actors::leader::wing::{self as leader_wing, LeaderWing, LeaderWingMsg};
use bellwether_actors::worker::wing::{self, WorkerWing, WorkerWingMsg};
use bellwether_core::machine::assigner;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::machine::election::leadership::{Config, Policy};
use bellwether_core::name::NodeId;
use uuid::Uuid;

use self::context::Context;
use self::host::{Hosted, Letter};
use self::leader::MemberMsg;
use self::worker::{ChildMsg, Offer, RunMsg};
use crate::zk::SessionEvent;

pub(crate) use self::context::{Out, Route};

/// To a part of a node.
pub(crate) enum Msg {
    Election(Letter<ElectionMsg, concern::Key>),
    Leader(Letter<LeaderWingMsg, leader_wing::Key>),
    /// An actor of the leader wing dies.
    LeaderMemberDies,
    /// To a member of the unit with this number.
    Member(u64, MemberMsg),
    Worker(Letter<WorkerWingMsg, wing::Key>),
    /// An actor of the worker dies.
    WorkerChildDies,
    /// The process tells its worker to drain.
    Drain(Duration),
    /// To a child of the incarnation with this term.
    Child(u64, ChildMsg),
    Run(RunMsg),
    /// To a task that was woken.
    Task(u64),
    /// To the tasks: the time of a timer has come.
    Timer(u64),
    /// To the tasks: the session has changed.
    Status,
    /// To the session: the namespace of the new session with this number is open.
    Opened(u64),
    /// An answer that nobody waits for.
    Nothing,
}

/// What a node is.
#[derive(Debug, Clone)]
pub(crate) struct NodeConfig {
    pub(crate) name: NodeId,
    pub(crate) campaign: Strategy,
    pub(crate) strategy: assigner::Strategy,
    pub(crate) offer: Offer,
}

pub(crate) struct Node {
    election: Hosted<Election>,
    leader: Hosted<LeaderWing>,
    worker: Hosted<WorkerWing>,
}

impl Node {
    pub(crate) fn start(cx: &mut Context<'_>, config: &NodeConfig, seed: u64) -> Self {
        let campaign = Config {
            node: config.name.clone(),
            strategy: config.campaign,
            policy: Policy::AtMostOne,
            identity: Uuid::from_u128(cx.rng.u128(..)),
            seed: Uuid::from_u128(cx.rng.u128(..)),
        };
        let election = Hosted::start(cx, None, (), campaign);
        let leader = leader::start(cx, config.strategy);
        let worker = worker::start(cx, config.offer.clone(), seed);
        Self { election, leader, worker }
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, msg: Msg) {
        match msg {
            Msg::Election(letter) => self.election.take(cx, letter),
            Msg::Leader(letter) => self.leader.take(cx, letter),
            Msg::LeaderMemberDies if self.leader.links.has_members() => {
                self.leader.act(cx, |wing, hands| wing.member_ended(hands, "killed by the simulator"));
            }
            Msg::LeaderMemberDies => {}
            Msg::Member(unit, msg) => self.leader.links.member(cx, unit, msg),
            Msg::Worker(letter) => self.worker.take(cx, letter),
            Msg::WorkerChildDies if self.worker.links.has_children() => {
                self.worker.act(cx, |wing, hands| wing.child_ended(hands, "killed by the simulator"));
            }
            Msg::WorkerChildDies => {}
            Msg::Drain(grace) => {
                self.worker.links.drain();
                self.worker.take(cx, Letter::Mail(WorkerWingMsg::Drain(grace).into()));
            }
            Msg::Child(term, msg) => self.worker.links.child(cx, term, msg),
            Msg::Run(msg) => self.worker.links.run(cx, msg),
            // The world hands these to others.
            Msg::Task(_) | Msg::Timer(_) | Msg::Status | Msg::Opened(_) | Msg::Nothing => {}
        }
    }

    /// What the session actor tells its subscribers.
    pub(crate) fn session(cx: &mut Context<'_>, event: SessionEvent) {
        let letter = election::session::<Election>(cx.view, event, ElectionMsg::Session);
        cx.tell(Route::SessionToElection, Msg::Election(letter));
        let letter = election::session::<WorkerWing>(cx.view, event, WorkerWingMsg::Session);
        cx.tell(Route::SessionToWorker, Msg::Worker(letter));
    }
}
