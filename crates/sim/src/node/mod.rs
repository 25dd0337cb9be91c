//! One process of a node: the actors without their runtime.
//!
//! Each part is a thin copy of its actor: it feeds the same machine from `bellwether-core` and carries out its effects in
//! the same order. Mailboxes and tasks are the world's: what is told by one part to another arrives in order and a
//! little later, and what was asked of ZooKeeper comes back as a message, in any order. Supervision, metrics and logs
//! are left out; the death of a child or of a member is a fault that the world injects.

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
use bellwether_core::machine::campaign::Strategy;
use bellwether_core::machine::leadership::{Config, Policy};
use bellwether_core::name::NodeId;
use uuid::Uuid;

use self::context::Context;
use self::host::{Hosted, Letter};
use self::leader::MemberMsg;
use self::worker::{ChildMsg, Offer, RunMsg};
use crate::client::{Client, Shell, Task};
use crate::zk::{SessionEvent, View};

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
    /// To a task.
    Task(u64),
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
    tasks: Client,
    election: Hosted<Election>,
    leader: Hosted<LeaderWing>,
    worker: Hosted<WorkerWing>,
}

impl Node {
    /// `number` is of this process: its tasks' calls are told by it.
    pub(crate) fn start(cx: &mut Context<'_>, config: &NodeConfig, seed: u64, number: u32) -> Self {
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
        let tasks = Client::of_node(number, cx.skew_ms, seed ^ u64::from(number));
        Self { tasks, election, leader, worker }
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
            Msg::Task(task) => cx.out.extend(self.tasks.poll(cx.now_us, cx.view, task)),
            Msg::Opened(_) | Msg::Nothing => {}
        }
    }

    /// Begins a task of one of its parts.
    pub(crate) fn begin(
        &mut self,
        now_us: u64,
        view: View,
        task: Box<dyn FnOnce(Shell) -> Task>,
    ) -> Vec<Out> {
        self.tasks.begin(now_us, view, task)
    }

    /// Those that have something to wait for.
    pub(crate) fn tasks(&self) -> Vec<u64> {
        self.tasks.tasks()
    }

    /// What the session actor tells its subscribers.
    pub(crate) fn session(cx: &mut Context<'_>, event: SessionEvent) {
        let letter = election::session::<Election>(cx.view, event, ElectionMsg::Session);
        cx.tell(Route::SessionToElection, Msg::Election(letter));
        let letter = election::session::<WorkerWing>(cx.view, event, WorkerWingMsg::Session);
        cx.tell(Route::SessionToWorker, Msg::Worker(letter));
    }
}
