//! The runtime of a client in production: tokio, the machine's clocks and an unsupervised [`Session`] actor.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::chain::chain;
use bellwether_core::port::Reply;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_host::clock;
use bellwether_host::session::{Session, SessionConfig, SessionStatus};
use bellwether_zk::exposed;
use futures::future::BoxFuture;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Runtime, Sleep, Status, Statuses, Timer};
use crate::client::error::Unavailable;

/// How long [`Runtime::close`] waits for the actor, which waits up to 2 s for ZooKeeper.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// The session actor of one client. Dropping it closes the session.
#[derive(Debug)]
pub(in crate::client) struct OnTokio {
    session: Session,
    servers: String,
}

impl OnTokio {
    pub(in crate::client) async fn start(config: SessionConfig) -> Result<Self, Unavailable> {
        let servers = config.connect.servers().join(", ");
        let session = Session::start(config, None).await.map_err(|_| Unavailable::Closed)?;
        Ok(Self { session, servers })
    }
}

impl Drop for OnTokio {
    fn drop(&mut self) {
        self.session.cell().stop(None);
    }
}

impl Runtime for OnTokio {
    fn status(&self) -> Status {
        status(&self.session.status().borrow())
    }

    fn statuses(&self) -> Box<dyn Statuses> {
        Box::new(self.session.status())
    }

    fn servers(&self) -> &str {
        &self.servers
    }

    fn close(&self) -> Reply<()> {
        let cell = self.session.cell();
        Box::pin(async move {
            if cell.stop_and_wait(None, Some(CLOSE_WITHIN)).await.is_err() {
                tracing::debug!("the session actor had already ended, or did not end in time");
            }
        })
    }

    fn exposed(&self) -> Reply<Option<Vec<String>>> {
        let status = self.session.status().borrow().clone();
        Box::pin(async move {
            let SessionStatus::Connected(zk) = status else { return None };
            match exposed(&zk).await {
                Ok(exposed) => Some(exposed.into_iter().map(|exposed| exposed.path).collect()),
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the client could not check the access lists");
                    None
                }
            }
        })
    }

    fn now(&self) -> Millis {
        clock::now()
    }

    fn wall(&self) -> WallMillis {
        self.session.wall()
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        Sleep(Timer::Tokio(at))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

impl Statuses for watch::Receiver<SessionStatus> {
    fn now(&mut self) -> Status {
        status(&self.borrow_and_update())
    }

    fn changed(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async { watch::Receiver::changed(self).await.is_ok() })
    }
}

fn status(status: &SessionStatus) -> Status {
    match status {
        SessionStatus::Connecting { error } => Status::Connecting { error: error.clone() },
        SessionStatus::Connected(zk) => Status::Connected(Arc::new(zk.clone())),
        SessionStatus::Disconnected => Status::Disconnected,
        SessionStatus::Refused(error) => Status::Refused(error.clone()),
    }
}
