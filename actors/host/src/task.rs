//! Tasks that end with the actor that started them.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ractor::{ActorRef, Message};
use tokio::task::AbortHandle;
use tokio::time::sleep;

#[cfg(feature = "testing")]
use crate::testing::period;

/// Aborts its task when dropped, so an actor's state owns its pumps and timers.
#[derive(Debug)]
pub(crate) struct Owned(AbortHandle);

impl Owned {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(spawn(task.boxed()))
    }
}

/// Starts a task. All tasks have one type: tokio's code is compiled for each type of task, and the actors have hundreds of them.
fn spawn(task: BoxFuture<'static, ()>) -> AbortHandle {
    tokio::spawn(task).abort_handle()
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a message after a wait, unless the timer is dropped first.
pub(crate) fn after<M: Message>(
    actor: &ActorRef<M>,
    wait: Duration,
    message: impl FnOnce() -> M + Send + 'static,
) -> Owned {
    let actor = actor.clone();
    Owned::spawn(async move {
        sleep(wait).await;
        tell(&actor, message());
    })
}

/// Like [`after`], for a periodic listing. The handler of the message sets the timer again, so a slow actor gets one
/// message, not many.
pub(crate) fn sweep<M: Message>(
    actor: &ActorRef<M>,
    every: Duration,
    message: impl FnOnce() -> M + Send + 'static,
) -> Owned {
    after(actor, period(every), message)
}

#[cfg(not(feature = "testing"))]
const fn period(every: Duration) -> Duration {
    every
}

/// Sends a message. A message to a stopped actor is dropped, like the contents of its mailbox.
pub(crate) fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    if actor.cast(message).is_err() {
        tracing::trace!(actor = ?actor.get_id(), "message to a stopped actor dropped");
    }
}

/// Awaits `future` in a task and sends the message that `message` creates from its output, if any, to the actor. The
/// task is not cancelled with the actor: a sent request is always awaited, and [`tell`] drops an answer to an actor
/// that has ended.
pub(crate) fn report<T, M: Message>(
    actor: &ActorRef<M>,
    future: impl Future<Output = T> + Send + 'static,
    message: impl FnOnce(T) -> Option<M> + Send + 'static,
) {
    let actor = actor.clone();
    let task = async move {
        if let Some(message) = message(future.await) {
            tell(&actor, message);
        }
    };
    spawn(task.boxed());
}
