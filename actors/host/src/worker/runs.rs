//! Runs handlers on tokio, in slots that outlive the incarnation.
//!
//! When the executor pool ends, for whatever reason, this is dropped with it. Then each run's token fires and each run
//! is aborted, together with the resources of its handler, such as a process group. A blocking handler cannot be
//! aborted: it keeps its slot until it returns.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bellwether_actors::worker::executor_pool::{ExecutorPool, ExecutorPoolMsg};
use bellwether_actors::worker::pulse::{Notify, Pulse, Word};
use bellwether_actors::worker::runs::Runs;
use bellwether_core::job::Progress;
use bellwether_core::machine::worker::Start;
use bellwether_core::machine::worker::executor_pool::{Ended, Run, Stop};
use bellwether_core::name::{JobId, Kind, WorkerId};
use bellwether_core::time::Millis;
use bellwether_zk::Trust;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::handler::{Registered, Registry, RunContext, Slot};
use super::run::{Bounds, Guard, run};
use super::slots::{SlotPermit, Slots};
use crate::clock;
use crate::host::{self, Ref};
use crate::task::Owned;
use crate::trace;

/// The largest number of ends in one message.
const ENDS: usize = 256;

/// Events of runs and slots for the executor pool.
#[derive(Debug)]
pub(super) enum Happened {
    /// A run has ended.
    Ended(Ended),
    /// A slot was granted.
    Slot,
}

/// The runs of one incarnation.
pub(super) struct HandlerRuns {
    worker: WorkerId,
    handlers: Registry,
    slots: Slots,
    trust: Trust,
    notify: Notify,
    to: UnboundedSender<Happened>,
    runs: HashMap<JobId, Running>,
    abandoned: Abandoned,
    granted: Arc<Mutex<Option<SlotPermit>>>,
    waiter: Option<Owned>,
}

struct Running {
    _task: Owned,
    pulse: Arc<Pulse>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
    limited: Option<Limited>,
}

/// The slot of a run whose kind has a concurrency limit.
#[derive(Debug)]
struct Limited {
    kind: Kind,
    slot: Weak<SlotPermit>,
}

/// The slots of runs that have ended, of kinds with a concurrency limit, while code of the runs still owns the slots. They
/// belong to the process, as the slots do.
#[derive(Debug, Clone, Default)]
pub(super) struct Abandoned(Arc<Mutex<Vec<Limited>>>);

impl Abandoned {
    fn lock(&self) -> MutexGuard<'_, Vec<Limited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: Option<Running>) {
        self.lock().extend(run.and_then(|run| run.limited));
    }

    fn count(&self) -> BTreeMap<Kind, u32> {
        let mut left = self.lock();
        left.retain(|run| run.slot.strong_count() > 0);
        let mut count = BTreeMap::new();
        for run in &*left {
            *count.entry(run.kind.clone()).or_default() += 1;
        }
        count
    }
}

impl HandlerRuns {
    /// Creates the runs. `notify` is called when a handler reports; events are sent to `to`.
    pub(super) fn new(
        worker: WorkerId,
        handlers: Registry,
        slots: Slots,
        abandoned: Abandoned,
        trust: Trust,
        notify: Notify,
        to: UnboundedSender<Happened>,
    ) -> Self {
        let (runs, granted, waiter) = (HashMap::new(), Arc::default(), None);
        Self { worker, handlers, slots, trust, notify, to, runs, abandoned, granted, waiter }
    }

    fn grant(&self, permit: Option<SlotPermit>) -> Option<SlotPermit> {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *granted, permit)
    }
}

impl Runs for HandlerRuns {
    fn pulse(&mut self, of: Word, until: Millis, progress: Progress) -> Arc<Pulse> {
        Arc::new(Pulse::new(of, Some(Arc::clone(&self.notify)), until, progress))
    }

    fn auto_renews(&self, kind: &Kind) -> bool {
        self.handlers.registered(kind).is_some_and(|registered| registered.auto_renew)
    }

    fn abandoned(&mut self) -> BTreeMap<Kind, u32> {
        self.abandoned.count()
    }

    fn want_slot(&mut self) -> bool {
        if let Some(permit) = self.slots.try_acquire() {
            drop(self.grant(Some(permit)));
            return true;
        }
        let (slots, granted, to) = (self.slots.clone(), Arc::clone(&self.granted), self.to.clone());
        self.waiter = Some(Owned::spawn(async move {
            let permit = slots.acquire().await;
            *granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
            if to.send(Happened::Slot).is_err() {
                tracing::trace!("a slot became free after the end of its executor pool");
            }
        }));
        false
    }

    fn resize(&mut self, slots: u32) {
        self.slots.resize(slots);
    }

    fn return_slot(&mut self) {
        drop(self.grant(None));
    }

    fn free(&self) -> usize {
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        self.slots.free() + usize::from(granted)
    }

    fn launch(&mut self, start: Start, pulse: Arc<Pulse>) -> Result<(), Run> {
        let slot = self.grant(None).expect("the machine launches only in a granted slot");
        let Some(Registered { handler, on_invalid, concurrency, .. }) =
            self.handlers.registered(&start.record.kind).cloned()
        else {
            return Err(Run::Failed(format!("no handler for kind {}", start.record.kind)));
        };
        let (slot, stop) = (Arc::new(slot), CancellationToken::new());
        let laned = start.record.placement.lane.is_some();
        let bounds =
            Bounds { timeout: start.record.policy.timeout, trust: laned.then(|| self.trust.clone()) };
        let trace = start.record.trace;
        let (epoch, attempt) = (start.assignment.epoch, start.assignment.attempt);
        let span = trace::run(&start.job, &start.record.kind, attempt, epoch, trace.as_ref());
        let context = RunContext {
            trace: trace::context(&span).or(trace),
            span: span.clone(),
            job: start.job.clone(),
            kind: start.record.kind,
            generation: start.record.generation,
            attempt,
            priority: start.record.priority,
            membership: start.record.membership,
            payload: start.record.payload,
            worker: self.worker,
            fencing_token: start.version,
            submission: start.record.token,
            taken_over: start.assignment.moved_from.is_some(),
            lease: start.assignment.lease,
            auto_renew: start.record.policy.auto_renew,
            timeout: start.record.policy.timeout,
            cancelled: stop.clone(),
            trust: self.trust.clone(),
            left: start.assignment.progress.or(start.record.progress),
            pulse,
            slot: Slot::of(&slot),
            launched: clock::now(),
        };
        let limited =
            concurrency.map(|_| Limited { kind: context.kind.clone(), slot: Arc::downgrade(&slot) });
        let guard = Guard::new(&context, self.to.clone());
        let pulse = Arc::clone(&context.pulse);
        let task = Owned::spawn(run(handler, on_invalid, context, bounds, slot, guard));
        let _stop_on_drop = stop.clone().drop_guard();
        self.runs.insert(start.job, Running { _task: task, pulse, stop, _stop_on_drop, limited });
        Ok(())
    }

    fn signal(&mut self, job: &JobId, stop: Stop) -> bool {
        let running = self.runs.get(job);
        if let Some(running) = running {
            // Before the token fires, so that the handler finds the reason.
            running.pulse.set_stop(stop);
            running.stop.cancel();
        }
        running.is_some()
    }

    fn abort(&mut self, job: &JobId) {
        // The guard of the run sends its end.
        self.abandoned.add(self.runs.remove(job));
    }

    fn forget(&mut self, job: &JobId) {
        self.abandoned.add(self.runs.remove(job));
    }
}

impl Drop for HandlerRuns {
    fn drop(&mut self) {
        self.runs.drain().for_each(|(_, run)| self.abandoned.add(Some(run)));
    }
}

/// Forwards events to the executor pool, in batches. Ends with the last run.
pub(super) async fn pump(mut happened: UnboundedReceiver<Happened>, to: Ref<ExecutorPool>) {
    loop {
        let mut batch = Vec::new();
        if happened.recv_many(&mut batch, ENDS).await == 0 {
            return;
        }
        let mut ends = Vec::new();
        for happened in batch {
            match happened {
                Happened::Ended(ended) => ends.push(ended),
                Happened::Slot => host::send(&to, ExecutorPoolMsg::Slot),
            }
        }
        if !ends.is_empty() {
            host::send(&to, ExecutorPoolMsg::Ended(ends));
        }
    }
}
