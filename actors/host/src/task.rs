//! Tasks that live no longer than the actor that started them.

use std::future::Future;
use std::time::Duration;

use ractor::{ActorRef, Message};
use tokio::task::AbortHandle;
use tokio::time::sleep;

#[cfg(feature = "testing")]
use crate::testing::period;

/// Aborts its task when dropped, so that an actor's state owns its pumps and timers.
#[derive(Debug)]
pub(crate) struct Owned(AbortHandle);

impl Owned {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a message later, unless the timer is dropped before.
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

/// As [`after`], for looking at everything again although nothing seems wrong. Sent anew by whoever handles it, so that
/// a slow actor gets one, not many.
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

/// Sends a message; one to an actor that has stopped is dropped, as its mailbox would have been.
pub(crate) fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    if actor.cast(message).is_err() {
        tracing::trace!(actor = ?actor.get_id(), "message to a stopped actor dropped");
    }
}

/// Awaits `future` in a task and sends what `message` makes of its output to the actor, if anything. The task is not
/// cancelled with the actor: a request that was sent is answered, and [`tell`] drops an answer to an actor that has ended.
pub(crate) fn report<T, M: Message>(
    actor: &ActorRef<M>,
    future: impl Future<Output = T> + Send + 'static,
    message: impl FnOnce(T) -> Option<M> + Send + 'static,
) {
    let actor = actor.clone();
    tokio::spawn(async move {
        if let Some(message) = message(future.await) {
            tell(&actor, message);
        }
    });
}
