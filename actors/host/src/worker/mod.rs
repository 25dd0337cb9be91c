//! The host of a node's role as a worker: its handle, its handlers and their runs.
//!
//! The concerns are those of [`bellwether_actors::worker`].

mod config;
mod handler;
mod links;
mod run;
mod runs;
mod slots;
mod wing;

pub use bellwether_actors::worker::pulse::{Attended, Closed, Pulse, Said};
pub use bellwether_actors::worker::takeover::Taken;
pub use bellwether_core::machine::worker::executor_pool::Stop;
pub use bellwether_core::machine::worker::wing::{Drained, Stage};
pub use config::{TakeoverConfig, WorkerConfig, WorkerConfigError};
pub use handler::{
    Handler, HandlerError, HandlerResult, OnInvalid, Registered, Registry, RegistryError, RunContext,
};

use std::time::Duration;

use bellwether_actors::worker::wing::{self as concern, WorkerWing, WorkerWingMsg};
use bellwether_core::machine::worker::wing::DRAIN_MARGIN;
use bellwether_core::name::WorkerId;
use futures::FutureExt as _;
use ractor::{ActorCell, SpawnErr};
use tokio::sync::watch;

use crate::host::{self, Hosted, Letter, Ref};
use crate::session::Session;
use crate::spawn::{Started, spawn};
use runs::Abandoned;
use slots::Slots;
use wing::{DrainCallers, WingLinks};

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    use bellwether_actors::worker::executor_pool::ExecutorPool;
    use bellwether_actors::worker::inbox_watcher::InboxWatcher;
    use bellwether_actors::worker::status_reporter::StatusReporter;

    use crate::testing::entry;
    vec![
        entry::<Hosted<WorkerWing>>(),
        entry::<Hosted<InboxWatcher>>(),
        entry::<Hosted<ExecutorPool>>(),
        entry::<Hosted<StatusReporter>>(),
    ]
}

/// The current state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The stage of the current incarnation.
    pub stage: Stage,
    /// The id of the current or last incarnation.
    pub id: Option<WorkerId>,
}

/// A handle of a worker wing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Worker {
    actor: Ref<WorkerWing>,
    status: watch::Receiver<WorkerStatus>,
    callers: DrainCallers,
}

impl Worker {
    /// Starts the wing, under a supervisor if one is given. It registers whenever the session is connected.
    ///
    /// # Errors
    /// An invalid configuration (with a [`WorkerConfigError`] inside), or a failure of the actor system.
    pub async fn start(
        config: WorkerConfig,
        session: &Session,
        supervisor: Option<ActorCell>,
    ) -> Result<Self, SpawnErr> {
        config.check().map_err(|error| SpawnErr::StartupFailed(error.into()))?;
        let status = WorkerStatus { stage: Stage::Away, id: None };
        let (publish, status) = watch::channel(status);
        let slots = Slots::new(config.slots);
        let shared = slots.clone();
        let free_slots = move || u32::try_from(shared.free()).unwrap_or(u32::MAX);
        let args = concern::Args {
            info: config.info(session.wall()),
            drain_grace: config.drain_grace,
            free_slots: Box::new(free_slots),
            takeover: config.takeover(),
        };
        let callers = DrainCallers::default();
        let (abandoned, waiting) = (Abandoned::default(), callers.clone());
        let links = WingLinks { config, publish, slots, abandoned, callers: waiting, children: None };
        let actor = start(host::Args { zk: None, links, args, may_send: host::always() }, supervisor).await?;
        session.subscribe(actor.clone(), |event| host::session(event, WorkerWingMsg::Session));
        Ok(Self { actor, status, callers })
    }

    /// Drains the worker: it takes no new jobs, finishes running jobs within `grace`, hands back the rest, and leaves.
    /// Returns when no job depends on this worker. The worker takes no jobs afterwards.
    ///
    /// If ZooKeeper is unreachable, the drain ends a few seconds after the grace period with [`Drained::Abandoned`]. In
    /// that case, and when the wing has stopped, the leader recovers the remaining jobs after the end of the session.
    ///
    /// # Cancellation
    /// Dropping the future does not cancel the drain.
    pub async fn drain(&self, grace: Duration) -> Drained {
        let within = grace.saturating_add(DRAIN_MARGIN * 2);
        let drained = self.callers.wait();
        if self.actor.cast(Letter::Mail(WorkerWingMsg::Drain(grace).into())).is_err() {
            return Drained::Abandoned;
        }
        match tokio::time::timeout(within, drained).await {
            Ok(Ok(drained)) => drained,
            // The wing has ended, or the drain takes too long.
            Ok(Err(_)) | Err(_) => Drained::Abandoned,
        }
    }

    /// Follows the status. Of several quick changes a receiver may see only the last.
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

fn start(args: host::Args<WorkerWing>, supervisor: Option<ActorCell>) -> Started<Letter<WorkerWing>> {
    spawn(Hosted::new(), args, supervisor).boxed()
}
