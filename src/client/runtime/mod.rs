//! What a client runs on: a session's status, clocks, timers, tasks and randomness.
//!
//! A client reaches none of them in another way. So its protocol runs on tokio and a session actor (`on_tokio`), and in
//! the simulator in virtual time. Channels and selections of `tokio::sync` and `futures` work on both, as they need
//! wakers only; selections are `biased`, so that a seed is one run.

mod on_tokio;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::port::{Reply, Session};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_zk::NamespaceError;
use futures::future::{BoxFuture, Either};
use uuid::Uuid;

pub(super) use on_tokio::OnTokio;

/// A session. All clones share one connection and one order of requests.
pub type Zk = Arc<dyn Session>;

/// How the session is now.
#[derive(Clone)]
pub enum Status {
    /// There is no session.
    Connecting {
        /// Why the last attempt failed.
        error: Option<String>,
    },
    /// A session serves, or did until a moment ago: see [`Session::is_connected`].
    Connected(Zk),
    /// The connection is lost.
    Disconnected,
    /// The namespace was refused. No session will come.
    Refused(NamespaceError),
}

/// Follows the session's status.
pub trait Statuses: Send {
    /// The status now; [`Statuses::changed`] waits for the next.
    fn now(&mut self) -> Status;
    /// Waits for another status than the last that was looked at. `false` when the session is closed.
    fn changed(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

/// What a client runs on.
pub trait Runtime: Send + Sync {
    /// The session's status now.
    fn status(&self) -> Status;
    /// Follows the session's status.
    fn statuses(&self) -> Box<dyn Statuses>;
    /// Where the session connects to, for errors.
    fn servers(&self) -> &str;
    /// Ends the session and waits until ZooKeeper knows, for a bounded time.
    fn close(&self) -> Reply<()>;
    /// The monotonic clock.
    fn now(&self) -> Millis;
    /// The wall clock.
    fn wall(&self) -> WallMillis;
    /// Sleeps until an instant of the monotonic clock.
    fn sleep_until(&self, at: Millis) -> Sleep;
    /// Starts a task, which runs until it ends by itself.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// A UUIDv7.
    fn uuid(&self) -> Uuid;
}

/// A sleep. On tokio it is no allocation, as every submission has one.
#[must_use = "a sleep is for waiting"]
pub struct Sleep(Either<tokio::time::Sleep, BoxFuture<'static, ()>>);

impl Sleep {
    /// One that another runtime wakes.
    pub fn of(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Either::Right(Box::pin(future)))
    }

    /// Waits.
    pub async fn slept(self) {
        self.0.await;
    }
}

/// It took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elapsed;

impl dyn Runtime {
    pub(super) async fn sleep(&self, wait: Duration) {
        self.sleep_until(self.now() + wait).slept().await;
    }

    /// Awaits, but no longer than until then. What is ready in time counts, also when it is looked at late.
    pub(super) async fn timeout_at<F: Future>(&self, at: Millis, future: F) -> Result<F::Output, Elapsed> {
        let slept = self.sleep_until(at).slept();
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = slept => Err(Elapsed),
        }
    }

    /// Awaits, but no longer than so long.
    pub(super) async fn timeout<F: Future>(&self, within: Duration, future: F) -> Result<F::Output, Elapsed> {
        self.timeout_at(self.now() + within, future).await
    }
}
