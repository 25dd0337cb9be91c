//! The actor itself: feeds the machine and carries out its effects.

use std::time::Duration;

use bellwether_core::machine::leadership::{Config, Effect, Event, Inactive, Leadership, Status, Why};
use bellwether_core::name::NodeId;
use bellwether_core::time::Millis;
use bellwether_zk::Zk;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::publish::Publisher;
use super::{ElectionConfig, ElectionMsg, LeadershipEvent, requests};
use crate::clock;
use crate::session::SessionEvent;
use crate::task::{Owned, tell};

pub(super) struct ElectionActor;

pub(super) struct State {
    node: NodeId,
    machine: Leadership,
    publisher: Publisher,
    zk: Option<Zk>,
    /// The campaign's one watch; a new one replaces it.
    watch: Option<Owned>,
    timer: Option<(Millis, Owned)>,
    /// Who waits for the candidate to be gone.
    leavers: Vec<oneshot::Sender<()>>,
}

impl Actor for ElectionActor {
    type Msg = ElectionMsg;
    type State = State;
    type Arguments = (ElectionConfig, Publisher);

    async fn pre_start(
        &self,
        _: ActorRef<ElectionMsg>,
        (config, publisher): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let ElectionConfig { node, strategy, policy, identity } = config;
        let seed = Uuid::from_u128(fastrand::u128(..));
        let machine = Leadership::new(Config { node: node.clone(), strategy, policy, identity, seed });
        let (zk, watch, timer, leavers) = (None, None, None, Vec::new());
        Ok(State { node, machine, publisher, zk, watch, timer, leavers })
    }

    async fn handle(
        &self,
        myself: ActorRef<ElectionMsg>,
        message: ElectionMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.trust(&myself);
        match message {
            ElectionMsg::Subscribe(subscriber) => state.publisher.subscribe(subscriber),
            ElectionMsg::Stand => state.feed(&myself, Event::Stand),
            ElectionMsg::StepDown(done) => {
                state.leavers.push(done);
                state.feed(&myself, Event::StepDown);
            }
            ElectionMsg::FencedOut(epoch) => state.feed(&myself, Event::FencedOut { epoch }),
            ElectionMsg::Session(event) => state.session(&myself, event),
            ElectionMsg::Reply(ticket, reply) => state.feed(&myself, Event::Reply(ticket, reply)),
            ElectionMsg::Tick => {
                state.timer = None;
                state.feed(&myself, Event::Tick);
            }
        }
        state.arm(&myself);
        Ok(())
    }
}

impl State {
    fn session(&mut self, myself: &ActorRef<ElectionMsg>, event: SessionEvent) {
        if let SessionEvent::Connected { zk, .. } = &event {
            self.zk = Some(zk.clone());
        }
        let Some(zk) = &self.zk else {
            // Nothing is told of a session before its Connected.
            return;
        };
        let (session, timeout) = (zk.session_id(), zk.session_timeout());
        match event {
            SessionEvent::Connected { .. } | SessionEvent::Reconnected => {
                self.feed(myself, Event::Connected { session, timeout });
            }
            SessionEvent::Disconnected { .. } => self.feed(myself, Event::Disconnected { session }),
            SessionEvent::Expired => {
                (self.zk, self.watch) = (None, None);
                self.feed(myself, Event::Expired { session });
            }
        }
    }

    /// Any answered request on the session is evidence that it lives.
    fn trust(&mut self, myself: &ActorRef<ElectionMsg>) {
        if let Some(zk) = &self.zk {
            let (session, until) = (zk.session_id(), clock::at(zk.trusted_until()));
            self.feed(myself, Event::Trust { session, until });
        }
    }

    fn feed(&mut self, myself: &ActorRef<ElectionMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), event, &mut effects);
        self.publisher.permit(self.machine.may_act_until());
        for effect in effects {
            self.carry_out(myself, effect);
        }
        if self.machine.status() != Status::Inactive(Inactive::Leaving) {
            for leaver in self.leavers.drain(..) {
                if leaver.send(()).is_err() {
                    tracing::trace!("who asked to step down no longer waits");
                }
            }
        }
    }

    fn carry_out(&mut self, myself: &ActorRef<ElectionMsg>, effect: Effect) {
        match effect {
            Effect::Send(ticket, request) => {
                let Some(zk) = &self.zk else {
                    debug_assert!(false, "{request:?} is sent only while a session is connected");
                    return;
                };
                if let Some(watch) = requests::send(zk, &self.node, ticket, request, myself) {
                    self.watch = Some(watch);
                }
            }
            Effect::Tell(status) => self.tell(status),
            Effect::Lost { epoch, why: why @ Why::SteppedDown } => {
                tracing::info!(node = %self.node, epoch, why = why.as_str(), "leadership given up");
            }
            Effect::Lost { epoch, why } => {
                tracing::warn!(node = %self.node, epoch, why = why.as_str(), "leadership lost");
            }
            Effect::Refused(rejection) => {
                tracing::warn!(node = %self.node, %rejection, "ZooKeeper refused a step of the election; trying again");
            }
            Effect::EpochsUsedUp => {
                tracing::error!("no epoch is left in this namespace: it cannot have another leader");
            }
        }
    }

    fn tell(&mut self, status: Status) {
        let event = match (status, &self.zk) {
            (Status::Active(term), Some(zk)) => {
                tracing::info!(node = %self.node, epoch = term.epoch(), "leading");
                LeadershipEvent::Active { zk: zk.clone(), term }
            }
            (Status::Paused(term, _), _) => LeadershipEvent::Paused { term },
            (Status::Inactive(inactive), _) => {
                tracing::debug!(node = %self.node, ?inactive, "not leading");
                LeadershipEvent::Inactive(inactive)
            }
            (Status::Active(term), None) => {
                debug_assert!(false, "{term:?} without a session");
                return;
            }
        };
        self.publisher.tell(&event);
    }

    /// One timer, for the machine's next wish.
    fn arm(&mut self, myself: &ActorRef<ElectionMsg>) {
        let wake = self.machine.next_wake();
        if self.timer.as_ref().map(|(at, _)| *at) == wake {
            return;
        }
        self.timer = wake.map(|at| {
            // The clock counts whole milliseconds: one more, so as not to wake just before it.
            let wait = at.since(clock::now()) + Duration::from_millis(1);
            let myself = myself.clone();
            let timer = Owned::spawn(async move {
                tokio::time::sleep(wait).await;
                tell(&myself, ElectionMsg::Tick);
            });
            (at, timer)
        });
    }
}
