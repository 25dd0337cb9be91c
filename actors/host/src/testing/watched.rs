//! An actor whose messages pass a probe.

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::kind::{Kinds, of_child};
use super::probe::{Ambient, Life};
use super::roster::roster;

/// An actor with a name whose messages have kinds.
pub trait Probed: Actor<Msg: Kinds> {
    /// The actor's name in the roster.
    const NAME: &'static str;
    /// Whether the actor receives supervision events about children.
    const SUPERVISES: bool;
}

/// An actor in the scope in which it was started.
pub(crate) struct Watched<A> {
    actor: A,
    /// Dropped with the actor, for whatever reason it ends.
    life: Option<Life>,
}

/// Watches an actor if it is started in a scope.
pub(crate) fn watch<A: Probed>(actor: A) -> Watched<A> {
    let listed = roster().iter().any(|entry| entry.actor == A::NAME);
    assert!(listed, "{} is not in the roster, so no test injects faults into it", A::NAME);
    Watched { actor, life: Ambient::here().map(|ambient| ambient.begin(A::NAME)) }
}

impl<A: Probed> Watched<A> {
    async fn within<T>(&self, handle: impl Future<Output = T>) -> T {
        match &self.life {
            Some(life) => life.ambient().scope(handle).await,
            None => handle.await,
        }
    }
}

impl<A: Probed> Actor for Watched<A> {
    type Msg = A::Msg;
    type State = A::State;
    type Arguments = A::Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<A::Msg>,
        args: A::Arguments,
    ) -> Result<A::State, ActorProcessingErr> {
        self.within(self.actor.pre_start(myself, args)).await
    }

    async fn post_start(
        &self,
        myself: ActorRef<A::Msg>,
        state: &mut A::State,
    ) -> Result<(), ActorProcessingErr> {
        self.within(self.actor.post_start(myself, state)).await
    }

    async fn post_stop(
        &self,
        myself: ActorRef<A::Msg>,
        state: &mut A::State,
    ) -> Result<(), ActorProcessingErr> {
        self.within(self.actor.post_stop(myself, state)).await
    }

    async fn handle(
        &self,
        myself: ActorRef<A::Msg>,
        message: A::Msg,
        state: &mut A::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(life) = &self.life {
            life.meet(message.kind(), &myself.get_cell()).await;
        }
        self.within(self.actor.handle(myself, message, state)).await
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<A::Msg>,
        event: SupervisionEvent,
        state: &mut A::State,
    ) -> Result<(), ActorProcessingErr> {
        if let (Some(life), Some(kind), true) = (&self.life, of_child(&event), A::SUPERVISES) {
            life.meet(kind, &myself.get_cell()).await;
        }
        self.within(self.actor.handle_supervisor_evt(myself, event, state)).await
    }
}
