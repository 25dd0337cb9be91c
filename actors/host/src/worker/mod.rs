//! The worker wing: a node's role as a worker, one incarnation after the other.
//!
//! ```text
//!  session ──events──▶ wing ──▶ inbox watcher ──▶ executor pool ──▶ status reporter
//!                       │            ▲ closed ────────┘ ▲ closed ───────┘
//!                       └─ registers, drains, retires (Incarnation)
//! ```
//!
//! The wing feeds the machine [`bellwether_core::machine::worker::incarnation`]. Its answers come back with the *term* that they were asked in; a
//! new incarnation begins a new term, and what belongs to an older one is dropped. The three children of an
//! incarnation are stopped in their order, and never started again by themselves: if one dies, the incarnation
//! ends with it (the machine says why).

mod config;
mod handler;
mod links;
mod run;
mod runs;
mod wing;

pub use bellwether_core::machine::worker::incarnation::{Drained, Stage};
pub use config::{WorkerConfig, WorkerConfigError};
pub use handler::{
    Handler, HandlerError, HandlerResult, JobContext, OnInvalid, Registered, Registry, RegistryError, Tools,
};
pub use wing::WorkerMsg;

use std::time::Duration;

use bellwether_core::machine::worker::incarnation::DRAIN_MARGIN;
use bellwether_core::name::WorkerId;
use futures::FutureExt as _;
use ractor::{ActorCell, ActorRef, SpawnErr};
use tokio::sync::watch;

use crate::session::Session;
use crate::spawn::{Started, spawn};
use wing::Wing;

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    use bellwether_actors::worker::executor_pool::ExecutorPool;
    use bellwether_actors::worker::inbox_watcher::InboxWatcher;
    use bellwether_actors::worker::status_reporter::StatusReporter;

    use crate::host::Hosted;
    use crate::testing::entry;
    vec![
        entry::<Wing>(),
        entry::<Hosted<InboxWatcher>>(),
        entry::<Hosted<ExecutorPool>>(),
        entry::<Hosted<StatusReporter>>(),
    ]
}

/// Which incarnation something belongs to.
type Term = u64;

/// What the worker is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Where its incarnation is in its life.
    pub stage: Stage,
    /// The incarnation's id; of the last one, between two.
    pub id: Option<WorkerId>,
}

/// Talks to a worker wing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Worker {
    actor: ActorRef<WorkerMsg>,
    status: watch::Receiver<WorkerStatus>,
}

impl Worker {
    /// Starts the wing under a supervisor, or by itself. It registers whenever the session serves.
    ///
    /// # Errors
    /// A configuration beyond its bounds ([`WorkerConfigError`] inside), or a failure of the actor system.
    pub async fn start(
        config: WorkerConfig,
        session: &Session,
        supervisor: Option<ActorCell>,
    ) -> Result<Self, SpawnErr> {
        let status = WorkerStatus { stage: Stage::Away, id: None };
        let (publish, status) = watch::channel(status);
        let actor = start(config, publish, supervisor).await?;
        session.subscribe(actor.clone(), WorkerMsg::Session);
        Ok(Self { actor, status })
    }

    /// Takes nothing new, finishes what runs within `grace`, hands back the rest, and leaves. Returns when no
    /// job depends on this worker any more; it takes none again afterwards.
    ///
    /// When ZooKeeper cannot be reached it gives up a few seconds after the grace: [`Drained::Abandoned`]. Then,
    /// and when the wing has stopped, the leader recovers what is left once the session is over. Dropping the
    /// future does not call the drain off.
    pub async fn drain(&self, grace: Duration) -> Drained {
        let patience = grace.saturating_add(DRAIN_MARGIN * 2);
        let drained = self.actor.call(|reply| WorkerMsg::Drain(grace, reply), Some(patience)).await;
        match drained {
            Ok(ractor::rpc::CallResult::Success(drained)) => drained,
            Ok(ractor::rpc::CallResult::Timeout | ractor::rpc::CallResult::SenderError) | Err(_) => {
                Drained::Abandoned
            }
        }
    }

    /// Follows the status. Changes that come close together are seen as the last of them.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<WorkerStatus> {
        self.status.clone()
    }

    /// The wing's actor.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

fn start(
    config: WorkerConfig,
    publish: watch::Sender<WorkerStatus>,
    supervisor: Option<ActorCell>,
) -> Started<WorkerMsg> {
    spawn(Wing, (config, publish), supervisor).boxed()
}
