//! Tasks that end with the actor that started them.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ractor::{ActorRef, Message};
use tokio::task::AbortHandle;
use tokio::time::sleep;

#[cfg(feature = "testing")]
pub(crate) use crate::testing::period;

/// What a task does with its result: it sends a message to an actor. Boxed, so that tasks are not compiled for each type of actor.
pub(crate) type Then<T> = Box<dyn FnOnce(T) + Send>;

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

/// Calls `then` after a wait, unless the timer is dropped first.
pub(crate) fn after(wait: Duration, then: Then<()>) -> Owned {
    Owned::spawn(async move {
        sleep(wait).await;
        then(());
    })
}

/// The period of a periodic listing.
#[cfg(not(feature = "testing"))]
pub(crate) const fn period(every: Duration) -> Duration {
    every
}

/// Sends a message. A message to a stopped actor is dropped, like the contents of its mailbox.
pub(crate) fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    if actor.cast(message).is_err() {
        tracing::trace!(actor = ?actor.get_id(), "a message to a stopped actor was dropped");
    }
}

/// Awaits `future` in a task and passes its output on. The task is not cancelled with the actor that waits for it: a sent
/// request is always awaited, and [`tell`] drops an answer to an actor that has ended.
pub(crate) fn report<T: 'static>(future: impl Future<Output = T> + Send + 'static, then: Then<T>) {
    let task = async move { then(future.await) };
    spawn(task.boxed());
}
