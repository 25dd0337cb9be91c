//! The host of the worker wing: starts and stops the children of an incarnation.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_actors::worker::executor_pool::{self, ExecutorPool, ExecutorPoolMsg};
use bellwether_actors::worker::inbox_watcher::InboxWatcher;
use bellwether_actors::worker::pulse::{Notify, Word};
use bellwether_actors::worker::status_reporter::{StatusReporter, StatusReporterMsg};
use bellwether_actors::worker::wing::{Tell, WorkerWing};
use bellwether_actors::{Concern, Context};
use bellwether_core::machine::worker::wing::Drained;
use bellwether_core::name::WorkerId;
use bellwether_core::worker::WorkerSettings;
use bellwether_zk::Zk;
use ractor::{ActorCell, ActorProcessingErr, SpawnErr};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::links::{ExecutorLinks, InboxLinks, Later, ReporterLinks};
use super::runs::{self, Abandoned, HandlerRuns};
use super::slots::Slots;
use super::{WorkerConfig, WorkerStatus};
use crate::host::{self, Hosted, Hosting, Ref, send};
use crate::spawn::spawn;
use crate::task::Owned;

/// The time after which a child that has not stopped is killed. No child's handler awaits I/O.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// The largest number of handler reports in one message.
const WORDS: usize = 256;

/// The callers that wait for the end of a drain.
#[derive(Debug, Clone, Default)]
pub(super) struct DrainCallers(Arc<Mutex<Vec<oneshot::Sender<Drained>>>>);

impl DrainCallers {
    pub(super) fn wait(&self) -> oneshot::Receiver<Drained> {
        let (done, drained) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        drained
    }

    fn answer(&self, how: Drained) {
        for done in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if done.send(how).is_err() {
                tracing::debug!("the caller that asked to drain no longer waits");
            }
        }
    }
}

/// The wing's children, and the state that its effects need.
pub(crate) struct WingLinks {
    pub(super) config: WorkerConfig,
    pub(super) publish: watch::Sender<WorkerStatus>,
    /// The slots outlive incarnations: a blocking handler keeps its permit until it returns.
    pub(super) slots: Slots,
    pub(super) abandoned: Abandoned,
    pub(super) callers: DrainCallers,
    pub(super) children: Option<Children>,
}

impl Drop for WingLinks {
    fn drop(&mut self) {
        // No drain can finish now. Closing the channels informs the callers.
        self.callers.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The slots of an incarnation that starts, and what an operator has set.
struct Offer {
    slots: u32,
    usable: u32,
    settings: WorkerSettings,
}

pub(super) struct Children {
    inbox: Ref<InboxWatcher>,
    executor: Ref<ExecutorPool>,
    reporter: Ref<StatusReporter>,
    /// The tasks that forward handler reports to the reporter, and events of runs and slots to the executor pool.
    _pumps: [Owned; 2],
}

impl Children {
    /// Lists the children in the order in which they are stopped: the inbox watcher first, so no new work arrives.
    fn cells(&self) -> [ActorCell; 3] {
        [self.inbox.get_cell(), self.executor.get_cell(), self.reporter.get_cell()]
    }
}

/// The wing's error after its children died too often. Its supervisor decides.
#[derive(Debug, thiserror::Error)]
#[error("the worker's actors keep failing")]
struct TooManyRestarts;

impl Hosting for WorkerWing {
    type Links = WingLinks;
    const SUPERVISES: bool = true;

    async fn tell(
        links: &mut WingLinks,
        zk: Option<&Zk>,
        me: &Ref<Self>,
        tell: Tell,
    ) -> Result<(), ActorProcessingErr> {
        match tell {
            Tell::Start { term, worker, former, usable, slots, settings } => {
                let zk = zk.expect("an incarnation has registered in its session").clone();
                let offer = Offer { slots, usable, settings };
                links.start_children(me, zk, term, (worker, former), offer).await?;
            }
            Tell::Stop => links.stop_children().await,
            Tell::Inbox(msg) => {
                if let Some(children) = &links.children {
                    send(&children.inbox, msg);
                }
            }
            Tell::Executor(event) => {
                if let Some(children) = &links.children {
                    send(&children.executor, ExecutorPoolMsg::Tell(event));
                }
            }
            Tell::Settings(slots, settings) => {
                if let Some(children) = &links.children {
                    send(&children.executor, ExecutorPoolMsg::Settings(slots, settings));
                }
            }
            Tell::Reporter(event) => {
                if let Some(children) = &links.children {
                    send(&children.reporter, StatusReporterMsg::Tell(event));
                }
            }
            Tell::TookOver(worker, taken) => {
                if let Some(takeover) = &links.config.takeover {
                    (takeover.report)(worker, taken);
                }
            }
            Tell::Status(stage, id) => {
                links.publish.send_replace(WorkerStatus { stage, id });
            }
            Tell::Drained(how) => links.callers.answer(how),
            Tell::Fail => return Err(TooManyRestarts.into()),
        }
        Ok(())
    }

    fn ended(
        &mut self,
        cx: &mut Context<'_, Self>,
        links: &WingLinks,
        who: &ActorCell,
        how: Result<String, ActorProcessingErr>,
    ) {
        let ours = |children: &Children| children.cells().iter().any(|cell| cell.get_id() == who.get_id());
        if links.children.as_ref().is_some_and(ours) {
            self.child_ended(cx, &how.unwrap_or_else(|error| error.to_string()));
        }
    }

    async fn stop(links: &mut WingLinks, _: &mut Option<Zk>) {
        links.stop_children().await;
    }
}

impl WingLinks {
    /// Starts the reporter first and the inbox watcher last, so work arrives only when its result can be reported.
    async fn start_children(
        &mut self,
        me: &Ref<WorkerWing>,
        zk: Zk,
        term: u64,
        (worker, former): (WorkerId, Vec<WorkerId>),
        Offer { slots, usable, settings }: Offer,
    ) -> Result<(), SpawnErr> {
        let wing = me.get_cell();
        let (executor, inbox) = (Later::<ExecutorPool>::default(), Later::<InboxWatcher>::default());
        let links = ReporterLinks { term, executor: Arc::clone(&executor), wing: me.clone() };
        let args =
            host::Args { zk: Some(zk.clone()), links, args: (worker, former), may_send: host::always() };
        let reporter = spawn(Hosted::<StatusReporter>::new(), args, Some(wing.clone())).await?;
        let (say, words) = unbounded_channel();
        let notify: Notify = Arc::new(move |word| {
            if say.send(word).is_err() {
                tracing::trace!("a handler reported after the end of its worker");
            }
        });
        let (to, happened) = unbounded_channel();
        let (handlers, permits) = (self.config.handlers.clone(), self.slots.clone());
        let (limits, abandoned) = (handlers.concurrency(), self.abandoned.clone());
        let runs = HandlerRuns::new(worker, handlers, permits, abandoned, zk.trust(), notify, to);
        let runs = Box::new(runs);
        let args = host::Args {
            zk: None,
            links: ExecutorLinks {
                term,
                inbox: Arc::clone(&inbox),
                reporter: reporter.clone(),
                wing: me.clone(),
            },
            args: executor_pool::Args { runs, slots, usable, settings, limits },
            may_send: host::always(),
        };
        let executor = started(&executor, spawn(Hosted::new(), args, Some(wing.clone())).await?);
        let links = InboxLinks { term, executor: executor.clone(), wing: me.clone() };
        let args = host::Args { zk: Some(zk), links, args: worker, may_send: host::always() };
        let inbox = started(&inbox, spawn(Hosted::new(), args, Some(wing)).await?);
        let _pumps = [
            Owned::spawn(pump(words, reporter.clone())),
            Owned::spawn(runs::pump(happened, executor.clone())),
        ];
        self.children = Some(Children { inbox, executor, reporter, _pumps });
        Ok(())
    }

    async fn stop_children(&mut self) {
        let Some(children) = self.children.take() else { return };
        for cell in children.cells() {
            if cell.stop_and_wait(None, Some(STOP_WITHIN)).await.is_err() {
                // It has already stopped, or does not stop in time.
                cell.kill();
            }
        }
    }
}

/// Makes a started actor known to its neighbours.
fn started<C: Concern>(later: &Later<C>, actor: Ref<C>) -> Ref<C> {
    let first = later.set(actor.clone()).is_ok();
    debug_assert!(first, "an actor is started once");
    actor
}

async fn pump(mut words: UnboundedReceiver<Word>, to: Ref<StatusReporter>) {
    loop {
        let mut said = Vec::new();
        if words.recv_many(&mut said, WORDS).await == 0 {
            return;
        }
        send(&to, StatusReporterMsg::Said(said));
    }
}
