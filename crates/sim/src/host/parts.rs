//! The parts of a node. The root of a process starts and stops them, as the node concern decides.
//!
//! Each running part has a *life*, a number that is unique in the process. A message carries the life of its receiver,
//! so a message to a part that has ended is dropped. The root receives the death of a part like any other message;
//! until then the other parts continue.

use std::collections::BTreeMap;

use bellwether_actors::Mail;
use bellwether_actors::election::Election;
use bellwether_actors::leader::wing::LeaderWing;
use bellwether_actors::node::{Key, Node as Root, NodeMsg, Part, Tell};
use bellwether_actors::worker::wing::WorkerWing;
use bellwether_core::machine::election::leadership::{Config, Policy};
use uuid::Uuid;

use super::concern::{Hosted, Hosting};
use super::context::{Context, Lives, Out, Route};
use super::session::Subscriber;
use super::worker::{RunMsg, Runs};
use super::{Msg, NodeConfig, election, leader, session, worker};
use crate::history::{EventKind, Life};
use crate::zk::Zk;

/// The running parts of a process.
pub(crate) struct Parts {
    config: NodeConfig,
    seed: u64,
    /// The process's identity among the candidates.
    identity: Uuid,
    started: u64,
    pub(super) lives: Lives,
    /// Whether the session supervisor runs. The world holds it, with the session.
    session: bool,
    pub(super) election: Option<Hosted<Election>>,
    pub(super) leader: Option<Hosted<LeaderWing>>,
    pub(super) worker: Option<Hosted<WorkerWing>>,
    /// The runs of wings that have ended, by life, as long as handler code still runs.
    outlived: BTreeMap<u64, Runs>,
    /// The stalled parts, and the messages held back for them.
    stalled: Vec<(Part, Vec<Msg>)>,
}

impl Parts {
    pub(super) fn new(cx: &mut Context<'_>, config: NodeConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            identity: Uuid::from_u128(cx.rng.u128(..)),
            started: 0,
            lives: Lives::default(),
            session: false,
            election: None,
            leader: None,
            worker: None,
            outlived: BTreeMap::new(),
            stalled: Vec::new(),
        }
    }

    /// Returns the current life of a part.
    pub(super) fn life(&self, part: Part) -> u64 {
        match part {
            Part::Session => self.lives.session,
            Part::Election => self.lives.election,
            Part::LeaderWing => self.lives.leader,
            Part::WorkerWing => self.lives.worker,
        }
    }

    /// Delivers a message to the runs of a wing that has ended.
    pub(super) fn run_outlived(&mut self, cx: &mut Context<'_>, life: u64, msg: RunMsg) {
        let Some(runs) = self.outlived.get_mut(&life) else { return };
        runs.handle(cx, msg);
        if runs.is_empty() {
            self.outlived.remove(&life);
        }
    }

    fn start(&mut self, cx: &mut Context<'_>, part: Part) {
        self.started += 1;
        let life = self.started;
        match part {
            Part::Session => {
                self.lives.session = life;
                cx.lives = self.lives;
                self.session = true;
                cx.out.push(Out::StartSession(life));
            }
            Part::Election => {
                self.lives.election = life;
                cx.lives = self.lives;
                let config = Config {
                    node: self.config.name.clone(),
                    strategy: self.config.campaign,
                    policy: Policy::AtMostOne,
                    identity: self.identity,
                    seed: Uuid::from_u128(cx.rng.u128(..)),
                };
                let links = election::Links::default();
                self.election = Some(Hosted::supervise(cx, None, life, links, config));
                session::subscribe(cx, Subscriber::Election(life));
            }
            Part::LeaderWing => {
                self.lives.leader = life;
                cx.lives = self.lives;
                self.leader = Some(leader::start(cx, self.config.strategies.clone(), life));
                if let Some(election) = &self.election {
                    election.links.announce(cx);
                }
            }
            Part::WorkerWing => {
                self.lives.worker = life;
                cx.lives = self.lives;
                let (offer, takeover) = (self.config.offer.clone(), self.config.takeover.take());
                self.worker = Some(worker::start(cx, offer, takeover, self.seed, life));
                session::subscribe(cx, Subscriber::Worker(life));
            }
        }
    }

    /// Stalls a part: it handles no messages until [`Parts::go_on`].
    pub(super) fn stall(&mut self, cx: &mut Context<'_>, part: Part) {
        if !self.stalled.iter().any(|(stalled, _)| *stalled == part) {
            self.stalled.push((part, Vec::new()));
            self.record_stall(cx, part, Life::ElectionStalled);
        }
    }

    /// Ends a stall. Returns the messages that were held back.
    pub(super) fn go_on(&mut self, cx: &mut Context<'_>, part: Part) -> Vec<Msg> {
        let Some(at) = self.stalled.iter().position(|(stalled, _)| *stalled == part) else {
            return Vec::new();
        };
        self.record_stall(cx, part, Life::ElectionGoesOn);
        self.stalled.swap_remove(at).1
    }

    fn record_stall(&self, cx: &mut Context<'_>, part: Part, is: Life) {
        if part == Part::Election {
            cx.record(EventKind::Node { node: self.config.name.clone(), is });
        }
    }

    /// Holds back a message to a stalled part. Returns other messages.
    pub(super) fn unless_stalled(&mut self, msg: Msg) -> Option<Msg> {
        let of = msg.part();
        match self.stalled.iter_mut().find(|(stalled, _)| Some(*stalled) == of) {
            Some((_, waiting)) => {
                waiting.push(msg);
                None
            }
            None => Some(msg),
        }
    }

    /// Ends a part if it runs, because the root stopped it or because it died. Messages held back for it are lost;
    /// their callers are informed of its end.
    pub(super) fn end(&mut self, cx: &mut Context<'_>, part: Part) -> bool {
        for msg in self.go_on(cx, part) {
            match msg {
                Msg::Drain(_) => cx.tell(Route::PartToNode, Msg::StepDown),
                Msg::StepDown => cx.out.push(Out::Left),
                _ => {}
            }
        }
        match part {
            Part::Session => {
                if self.session {
                    cx.out.push(Out::SessionEnded);
                }
                std::mem::take(&mut self.session)
            }
            Part::Election => {
                let election = self.election.take().map(|election| election.end(cx).withdraw(cx));
                election.is_some()
            }
            Part::LeaderWing => self.leader.take().map(|wing| wing.end(cx)).is_some(),
            Part::WorkerWing => {
                let Some(links) = self.worker.take().map(|wing| wing.end(cx)) else { return false };
                if links.draining {
                    // The caller that waits for the drain is informed of the worker's end.
                    cx.tell(Route::PartToNode, Msg::StepDown);
                }
                if let Some(runs) = links.end(cx) {
                    self.outlived.insert(self.lives.worker, runs);
                }
                true
            }
        }
    }
}

impl Hosting for Root {
    type Address = ();
    type Links = Parts;

    fn mail((): (), mail: Mail<NodeMsg, Key>) -> Msg {
        match mail.msg {}
    }

    fn tell(parts: &mut Parts, (): (), _: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        match tell {
            Tell::Start(part) => parts.start(cx, part),
            Tell::Stop(part) => {
                parts.end(cx, part);
                if part == Part::Session {
                    cx.out.push(Out::CloseSession);
                }
            }
            Tell::Started => {}
            Tell::Fail(_) => cx.out.push(Out::Fail),
        }
    }
}
