//! The one way by which an actor comes to life.
//!
//! In a shipped build this is ractor's own spawn and nothing else. With the feature `testing` every message passes the
//! [probe](crate::testing) of the scope that its actor was started in, so that a test can panic, kill or stall any
//! actor at any message. clippy refuses ractor's spawn elsewhere (`clippy.toml`), and an actor whose messages have no kinds
//! does not compile with the feature.
//!
//! A future is compiled where it is awaited. So what other crates start is boxed in a function of this one ([`Started`]): the
//! tree of actors behind it, three minutes of a release build, is compiled here once, and not in each program and test again.

use futures::future::BoxFuture;
use ractor::{Actor, ActorCell, ActorRef, SpawnErr};

/// An actor that is being started for another crate.
pub(crate) type Started<M> = BoxFuture<'static, Result<ActorRef<M>, SpawnErr>>;

/// What an actor needs to be started here.
#[cfg(not(feature = "testing"))]
pub(crate) trait Spawn: Actor {}

#[cfg(not(feature = "testing"))]
impl<A: Actor> Spawn for A {}

/// What an actor needs to be started here.
#[cfg(feature = "testing")]
pub(crate) trait Spawn: crate::testing::Probed {}

#[cfg(feature = "testing")]
impl<A: crate::testing::Probed> Spawn for A {}

/// Starts an actor under a supervisor, or by itself.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub(crate) async fn spawn<A: Spawn>(
    actor: A,
    args: A::Arguments,
    supervisor: Option<ActorCell>,
) -> Result<ActorRef<A::Msg>, SpawnErr> {
    #[cfg(feature = "testing")]
    let actor = crate::testing::watch(actor);
    let (actor, _) = match supervisor {
        Some(supervisor) => Actor::spawn_linked(None, actor, args, supervisor).await?,
        None => Actor::spawn(None, actor, args).await?,
    };
    Ok(actor)
}
