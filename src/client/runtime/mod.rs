//! The environment of a client: a session's status, clocks, timers, tasks and randomness.
//!
//! A client uses them only through this interface. So the same code runs on tokio with a session actor (`on_tokio`),
//! and in the simulator in virtual time. Channels of `tokio::sync` and combinators of `futures` work on both, because
//! they only need wakers. Every `select!` is `biased`, so that a seed determines the run.

mod on_tokio;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::port::{Reply, Session};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_host::clock;
use bellwether_zk::NamespaceError;
use futures::future::BoxFuture;
use uuid::Uuid;

pub(super) use on_tokio::OnTokio;

/// A session. All clones share one connection and one order of requests.
pub type Zk = Arc<dyn Session>;

/// The status of the session.
#[derive(Clone)]
pub enum Status {
    /// There is no session.
    Connecting {
        /// Why the last attempt failed.
        error: Option<String>,
    },
    /// The session is connected, or was until a moment ago: see [`Session::is_connected`].
    Connected(Zk),
    /// The connection is lost.
    Disconnected,
    /// The namespace was refused. There will be no session.
    Refused(NamespaceError),
}

/// Observes the session's status.
pub trait Statuses: Send {
    /// Returns the current status; [`Statuses::changed`] waits for the next.
    fn now(&mut self) -> Status;
    /// Waits until the status differs from the last one that was returned. Returns `false` when the session is
    /// closed.
    fn changed(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

/// The environment of a client.
pub trait Runtime: Send + Sync {
    /// Returns the session's current status.
    fn status(&self) -> Status;
    /// Returns an observer of the session's status.
    fn statuses(&self) -> Box<dyn Statuses>;
    /// Returns the addresses of the servers, for errors.
    fn servers(&self) -> &str;
    /// Closes the session and waits a bounded time until ZooKeeper has closed it.
    fn close(&self) -> Reply<()>;
    /// Lists the znodes that anyone may change; `None` if that cannot be read now, or in a simulator, which has no access lists.
    fn exposed(&self) -> Reply<Option<Vec<String>>> {
        Box::pin(async { None })
    }
    /// Reads the monotonic clock.
    fn now(&self) -> Millis;
    /// Reads the wall clock: ZooKeeper's, as far as the session has read it.
    fn wall(&self) -> WallMillis;
    /// Sleeps until an instant of the monotonic clock.
    fn sleep_until(&self, at: Millis) -> Sleep;
    /// Spawns a task. It runs to completion.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Returns a new UUIDv7.
    fn uuid(&self) -> Uuid;
}

/// A sleep. On tokio it does not allocate, because every submission has one.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep(Timer);

enum Timer {
    Tokio(Millis),
    Other(BoxFuture<'static, ()>),
}

/// How late a sleep on tokio may end after a suspension of the machine. Each waiting call wakes this often.
const LATE: Duration = Duration::from_secs(10);

impl Sleep {
    /// Wraps the timer of another runtime.
    pub fn of(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Timer::Other(Box::pin(future)))
    }

    /// Waits until the sleep ends.
    pub async fn slept(self) {
        match self.0 {
            Timer::Tokio(at) => clock::sleep_in_steps(at, LATE).await,
            Timer::Other(sleep) => sleep.await,
        }
    }
}

/// The time limit has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elapsed;

impl dyn Runtime {
    pub(super) async fn sleep(&self, wait: Duration) {
        self.sleep_until(self.now() + wait).slept().await;
    }

    /// Awaits the future until `at`. A future that is ready counts, even if it is polled late.
    pub(super) async fn timeout_at<F: Future>(&self, at: Millis, future: F) -> Result<F::Output, Elapsed> {
        let slept = self.sleep_until(at).slept();
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = slept => Err(Elapsed),
        }
    }

    /// Awaits the future for at most `within`.
    pub(super) async fn timeout<F: Future>(&self, within: Duration, future: F) -> Result<F::Output, Elapsed> {
        self.timeout_at(self.now() + within, future).await
    }
}
