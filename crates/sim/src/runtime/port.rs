//! The runtime of the product's client.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether::client::runtime::{Runtime, Sleep, Status, Statuses};
use bellwether_core::port::{Reply, Session as Port};
use bellwether_core::time::{Millis, WallMillis};
use futures::future::BoxFuture;
use uuid::Uuid;

use super::Shared;
use super::session::Session;
use super::shared::Until;
use crate::zk::{Published, Zk};

/// A handle to the shared state of a process, held by its tasks.
#[derive(Clone)]
pub(crate) struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Returns a session of this process.
    pub(crate) fn session(&self, zk: Zk) -> Arc<dyn Port> {
        Arc::new(Session { shared: Arc::clone(&self.0), zk })
    }

    pub(crate) async fn sleep(&self, wait: Duration) {
        let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let at_us = self.0.now_us().saturating_add(wait_us);
        Until::new(Arc::clone(&self.0), at_us).await;
    }

    fn status_of(&self, published: Published) -> Status {
        match published {
            Published::Connecting { error } => Status::Connecting { error },
            Published::Connected(zk) => Status::Connected(self.session(zk)),
            Published::Disconnected => Status::Disconnected,
        }
    }
}

impl Runtime for Handle {
    fn status(&self) -> Status {
        self.status_of(self.0.published().0)
    }

    fn statuses(&self) -> Box<dyn Statuses> {
        Box::new(Following { handle: self.clone(), seen: 0 })
    }

    fn servers(&self) -> &str {
        "the simulated server"
    }

    fn close(&self) -> Reply<()> {
        // The world closes the session when it ends the process.
        Box::pin(std::future::ready(()))
    }

    fn now(&self) -> Millis {
        Millis(self.0.now_us() / 1_000)
    }

    fn wall(&self) -> WallMillis {
        self.0.wall()
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        Sleep::of(Until::new(Arc::clone(&self.0), at.0.saturating_mul(1_000)))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }

    fn uuid(&self) -> Uuid {
        self.0.uuid()
    }
}

struct Following {
    handle: Handle,
    seen: u64,
}

impl Statuses for Following {
    fn now(&mut self) -> Status {
        let (published, number) = self.handle.0.published();
        self.seen = number;
        self.handle.status_of(published)
    }

    fn changed(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            std::future::poll_fn(|context| self.handle.0.poll_published(self.seen, context)).await;
            true
        })
    }
}
