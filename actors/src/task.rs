//! Tasks that live no longer than the actor that started them.

use std::future::Future;

use ractor::{ActorRef, Message};
use tokio::task::AbortHandle;

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

/// Sends a message; one to an actor that has stopped is dropped, as its mailbox would have been.
pub(crate) fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    if actor.cast(message).is_err() {
        tracing::trace!(actor = ?actor.get_id(), "message to a stopped actor dropped");
    }
}

/// Awaits `future` elsewhere and sends what `message` makes of its output to the actor. Not cancelled with the
/// actor: a request that was sent is answered, and what nobody waits for is dropped in [`tell`].
pub(crate) fn report<T, M: Message>(
    actor: &ActorRef<M>,
    future: impl Future<Output = T> + Send + 'static,
    message: impl FnOnce(T) -> M + Send + 'static,
) {
    let actor = actor.clone();
    tokio::spawn(async move {
        let output = future.await;
        tell(&actor, message(output));
    });
}
