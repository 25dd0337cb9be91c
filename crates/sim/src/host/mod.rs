//! One process of a node: the concerns of `bellwether-actors`, hosted in virtual time.
//!
//! The world holds mailboxes and tasks: messages between two concerns arrive in order and with a short delay, and a
//! reply from ZooKeeper comes back as a message, in any order. The world injects the death of a part, a child or a
//! member as a fault; the root and the wings decide what follows.

pub(crate) mod concern;
pub(crate) mod context;
pub(crate) mod election;
pub(crate) mod leader;
mod parts;
mod requests;
pub(crate) mod session;
pub(crate) mod worker;

use std::time::Duration;

use bellwether_actors::election::ElectionMsg;
use bellwether_actors::leader::wing::LeaderWingMsg;
use bellwether_actors::node::{Ended, Node as Root, Part};
use bellwether_actors::session::{self as supervisor, SessionMsg};
use bellwether_actors::worker::takeover::Takeover;
use bellwether_actors::worker::wing::WorkerWingMsg;
use bellwether_actors::{
    election as election_concern, leader::wing as leader_wing, worker::wing as worker_wing,
};
use bellwether_core::clock::Reading;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::name::NodeId;
use bellwether_core::placement::OwnStrategies;

use self::concern::{Hosted, Letter};
use self::context::Context;
use self::leader::{MemberMsg, Unit};
use self::parts::Parts;
use self::worker::{ChildMsg, Incarnation, Offer, RunMsg};

pub(crate) use self::context::{Out, Route};

/// A message to a part of a node.
pub(crate) enum Msg {
    /// To the session supervisor of this life.
    Session(u64, Letter<SessionMsg<session::Passed>, supervisor::Key>),
    /// To the election of this life.
    Election(u64, Letter<ElectionMsg, election_concern::Key>),
    /// To the leader wing of this life.
    Leader(u64, Letter<LeaderWingMsg, leader_wing::Key>),
    /// To a member of this unit.
    Member(Unit, MemberMsg),
    /// To the worker wing of this life.
    Worker(u64, Letter<WorkerWingMsg, worker_wing::Key>),
    /// To a child of this incarnation.
    Child(Incarnation, ChildMsg),
    /// To the handler runs of the worker wing of this life.
    Run(u64, RunMsg),
    /// The process drains its worker.
    Drain(Duration),
    /// The process gives up leadership and candidacy.
    StepDown,
    /// An actor of the leader wing dies.
    LeaderMemberDies,
    /// An actor of the worker wing dies.
    WorkerChildDies,
    /// A part dies.
    PartDies(Part),
    /// A part handles no messages until [`Msg::PartGoesOn`].
    PartStalls(Part),
    /// A stalled part handles its messages, in their order.
    PartGoesOn(Part),
    /// To the root: the part of this life has died, with the reason.
    PartEnded(Part, u64, String),
    /// To a task that was woken.
    Task(u64),
    /// To the tasks: a timer has expired.
    Timer(u64),
    /// To the client library: report the current state of the session to its supervisor.
    State,
    /// To the client library: the namespace of the new session with this number is open, with a reading of the server's
    /// clock.
    Opened(u64, Option<Reading>),
    /// An answer without a receiver.
    Nothing,
}

impl Msg {
    /// Returns the part that handles it, if there is one.
    fn part(&self) -> Option<Part> {
        match self {
            Self::Session(..) => Some(Part::Session),
            Self::Election(..) | Self::StepDown => Some(Part::Election),
            Self::Leader(..) | Self::LeaderMemberDies => Some(Part::LeaderWing),
            Self::Worker(..) | Self::WorkerChildDies | Self::Drain(_) => Some(Part::WorkerWing),
            _ => None,
        }
    }
}

/// The reason recorded for a part that the world kills.
const KILLED: &str = "killed by the simulator";

/// The configuration of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeConfig {
    pub(crate) name: NodeId,
    pub(crate) campaign: Strategy,
    pub(crate) strategies: OwnStrategies,
    pub(crate) offer: Offer,
    /// What the process takes over: its predecessor was the gateway of a remote process, which is alive.
    pub(crate) takeover: Option<Takeover>,
}

/// One process of a node.
pub(crate) struct Node(Hosted<Root>);

impl Node {
    pub(crate) fn start(cx: &mut Context<'_>, config: &NodeConfig, seed: u64) -> Self {
        let parts = Parts::new(cx, config.clone(), seed);
        Self(Hosted::supervise(cx, None, (), parts, ()))
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, msg: Msg) {
        let parts = &mut self.0.links;
        cx.lives = parts.lives;
        cx.leads_in = parts.election.as_ref().and_then(|election| election.links.leads_in(cx.now()));
        let Some(msg) = parts.unless_stalled(msg) else { return };
        match msg {
            Msg::Election(life, letter) if life == parts.lives.election => {
                if let Some(election) = &mut parts.election {
                    election.take(cx, letter);
                }
            }
            Msg::Leader(life, letter) if life == parts.lives.leader => {
                if let Some(wing) = &mut parts.leader {
                    wing.take(cx, letter);
                    self.has_failed(cx);
                }
            }
            Msg::Worker(life, letter) if life == parts.lives.worker => {
                if let Some(wing) = &mut parts.worker {
                    wing.take(cx, letter);
                    self.has_failed(cx);
                }
            }
            // To a part that has ended.
            Msg::Election(..) | Msg::Leader(..) | Msg::Worker(..) => {}
            Msg::Member(unit, msg) => {
                if let Some(wing) = &mut parts.leader {
                    wing.links.member(cx, unit, msg);
                }
            }
            Msg::Child(incarnation, msg) => {
                if let Some(wing) = &mut parts.worker {
                    wing.links.child(cx, incarnation, msg);
                }
            }
            Msg::Run(life, msg) => match &mut parts.worker {
                Some(wing) if life == parts.lives.worker => wing.links.run(cx, msg),
                _ => parts.run_outlived(cx, life, msg),
            },
            Msg::Drain(grace) => match &mut parts.worker {
                Some(wing) => {
                    wing.links.draining = true;
                    wing.take(cx, Letter::Mail(WorkerWingMsg::Drain(grace).into()));
                    self.has_failed(cx);
                }
                None => cx.tell(Route::PartToNode, Msg::StepDown),
            },
            Msg::StepDown => match &mut parts.election {
                Some(election) => {
                    election.links.leaving = true;
                    election.take(cx, Letter::Mail(ElectionMsg::StepDown(0).into()));
                }
                // Its candidate is removed with the session.
                None => cx.out.push(Out::Left),
            },
            Msg::LeaderMemberDies => {
                if let Some(wing) = parts.leader.as_mut().filter(|wing| wing.links.has_members()) {
                    wing.act(cx, |wing, hands| wing.member_ended(hands, KILLED));
                    self.has_failed(cx);
                }
            }
            Msg::WorkerChildDies => {
                if let Some(wing) = parts.worker.as_mut().filter(|wing| wing.links.has_children()) {
                    wing.act(cx, |wing, hands| wing.child_ended(hands, KILLED));
                    self.has_failed(cx);
                }
            }
            Msg::PartDies(part) => self.dies(cx, part, KILLED),
            Msg::PartStalls(part) => parts.stall(cx, part),
            Msg::PartGoesOn(part) => {
                parts.go_on(cx, part).into_iter().for_each(|msg| self.handle(cx, msg));
            }
            Msg::PartEnded(part, life, why) if life == parts.life(part) => {
                self.0.act(cx, |root, hands| root.part_ended(hands, part, Ended::Died(why)));
            }
            // The part was stopped or restarted in the meantime.
            Msg::PartEnded(..) => {}
            // The message waited for the stalled session supervisor: the world delivers it.
            Msg::Session(..) => cx.out.push(Out::At(cx.now_us, msg)),
            // The world delivers these to other receivers.
            Msg::Task(_) | Msg::Timer(_) | Msg::State | Msg::Opened(..) | Msg::Nothing => {}
        }
    }

    /// What its worker runs.
    pub(crate) fn held(&self) -> Option<Takeover> {
        self.0.links.worker.as_ref()?.links.held()
    }

    /// Holds back a message to a stalled part. Returns other messages.
    pub(crate) fn unless_stalled(&mut self, msg: Msg) -> Option<Msg> {
        self.0.links.unless_stalled(msg)
    }

    /// Ends a wing that has given up.
    fn has_failed(&mut self, cx: &mut Context<'_>) {
        let parts = &mut self.0.links;
        if let Some(why) = parts.leader.as_mut().and_then(|wing| wing.links.failed.take()) {
            self.dies(cx, Part::LeaderWing, &why);
        } else if parts.worker.as_ref().is_some_and(|wing| wing.links.failed) {
            self.dies(cx, Part::WorkerWing, "its children keep dying");
        }
    }

    /// Ends a part as dead. The root is informed a little later.
    fn dies(&mut self, cx: &mut Context<'_>, part: Part, why: &str) {
        let parts = &mut self.0.links;
        if parts.end(cx, part) {
            cx.tell(Route::PartToNode, Msg::PartEnded(part, parts.life(part), why.to_owned()));
        }
    }
}
