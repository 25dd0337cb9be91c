//! The environment of a client that never has a session, in virtual time: a sleep ends at once and moves the clock.

use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};

use bellwether::client::runtime::{Runtime, Sleep, Status, Statuses};
use bellwether_core::port::Reply;
use bellwether_core::time::{Millis, WallMillis};
use futures::future::BoxFuture;
use uuid::Uuid;

/// 2026-11-21T11:33:00Z.
const BEGINNING: u64 = 1_795_260_780_000;

#[derive(Default)]
pub(super) struct WithoutSession {
    /// Milliseconds since the beginning.
    passed: AtomicU64,
    tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
    woken: Arc<Woken>,
}

impl WithoutSession {
    pub(super) fn woken(&self) -> Arc<Woken> {
        Arc::clone(&self.woken)
    }

    /// Polls each task of the clients once.
    pub(super) fn poll_tasks(&self, context: &mut Context<'_>) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().expect("no task panics"));
        tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
        let mut further = self.tasks.lock().expect("no task panics");
        if !further.is_empty() {
            self.woken.0.store(true, Ordering::Relaxed);
        }
        further.append(&mut tasks);
    }
}

impl Runtime for WithoutSession {
    fn status(&self) -> Status {
        Status::Disconnected
    }

    fn statuses(&self) -> Box<dyn Statuses> {
        Box::new(Never)
    }

    fn servers(&self) -> &str {
        "server:2181"
    }

    fn close(&self) -> Reply<()> {
        Box::pin(ready(()))
    }

    fn now(&self) -> Millis {
        Millis(self.passed.load(Ordering::Relaxed))
    }

    fn wall(&self) -> WallMillis {
        WallMillis(BEGINNING)
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        self.passed.fetch_max(at.0, Ordering::Relaxed);
        Sleep::of(ready(()))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.tasks.lock().expect("no task panics").push(task);
    }

    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// A status that does not change.
struct Never;

impl Statuses for Never {
    fn now(&mut self) -> Status {
        Status::Disconnected
    }

    fn changed(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(pending())
    }
}

/// Whether anything can go on.
#[derive(Default)]
pub(super) struct Woken(AtomicBool);

impl Woken {
    pub(super) fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
