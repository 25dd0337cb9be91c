//! Starts actors. All actors are started here.
//!
//! In a release build this is ractor's own spawn. With the feature `testing` every message passes the
//! [probe](crate::testing) of the scope in which its actor was started, so a test can panic, kill or stall any actor at
//! any message. clippy rejects ractor's spawn elsewhere (`clippy.toml`), and with the feature an actor whose messages
//! have no kinds does not compile.
//!
//! A future is compiled in the crate that awaits it. Actors that other crates start are therefore boxed in a function
//! of this crate ([`Started`]). So the tree of actors, three minutes of a release build, is compiled once here and not
//! again in each program and test.

use futures::future::BoxFuture;
use ractor::{Actor, ActorCell, ActorRef, SpawnErr};

/// The start of an actor for another crate.
pub(crate) type Started<M> = BoxFuture<'static, Result<ActorRef<M>, SpawnErr>>;

/// The bound of an actor that can be started here.
#[cfg(not(feature = "testing"))]
pub(crate) trait Spawn: Actor {}

#[cfg(not(feature = "testing"))]
impl<A: Actor> Spawn for A {}

/// The bound of an actor that can be started here.
#[cfg(feature = "testing")]
pub(crate) trait Spawn: crate::testing::Probed {}

#[cfg(feature = "testing")]
impl<A: crate::testing::Probed> Spawn for A {}

/// Starts an actor, under a supervisor if one is given.
#[expect(clippy::disallowed_methods, reason = "the only place that spawns actors")]
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
