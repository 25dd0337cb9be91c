//! The watched actors, the counted messages, and the planned faults.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::ActorCell;
use tokio::sync::watch;

use super::kind::Kind;

/// A fault that is injected before an actor handles a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The handler panics.
    Panic,
    /// The actor is killed from outside, as by a supervisor: `post_stop` does not run.
    Kill,
    /// The handler stalls for this time. The rest of the node continues.
    Stall(Duration),
}

/// A planned fault. Dropping this handle does not cancel the fault.
#[derive(Debug, Clone)]
pub struct Planned(watch::Receiver<Option<InjectedFault>>);

impl Planned {
    /// Waits until the fault was injected.
    ///
    /// # Panics
    /// If the probe was dropped, so the fault can no longer be injected.
    pub async fn injected(&self) -> InjectedFault {
        let mut injected = self.0.clone();
        let seen = injected.wait_for(Option::is_some).await.expect("the probe of a planned fault exists");
        seen.clone().expect("wait_for returned a value")
    }

    /// Whether the fault was injected.
    #[must_use]
    pub fn is_injected(&self) -> bool {
        self.0.borrow().is_some()
    }
}

/// Where a planned fault was injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedFault {
    /// The label of the scope, which identifies the node.
    pub scope: String,
    /// The number of actors of each name that the scope had started by then.
    pub started: BTreeMap<&'static str, usize>,
}

/// Watches the actors that are started in its scopes. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Probe(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The longest period of a sweep, if set.
    sweep: Option<Duration>,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    plans: Vec<Plan>,
    met: BTreeMap<(&'static str, Kind), usize>,
    started: BTreeMap<(String, &'static str), usize>,
    alive: BTreeMap<(String, &'static str), usize>,
}

#[derive(Debug)]
struct Plan {
    actor: &'static str,
    kind: Kind,
    /// The number of matching messages to skip.
    spared: usize,
    fault: Fault,
    injected: watch::Sender<Option<InjectedFault>>,
}

impl Probe {
    /// Creates a probe without planned faults, which only counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`Probe::new`], but the actors repeat their periodic listings at least this often.
    #[must_use]
    pub fn sweeping(every: Duration) -> Self {
        Self(Arc::new(Inner { sweep: Some(every), ..Inner::default() }))
    }

    /// Watches all actors that `start` starts, directly or indirectly, under a label.
    pub async fn scope<T>(&self, label: &str, start: impl Future<Output = T>) -> T {
        Ambient { probe: self.clone(), label: label.to_owned() }.scope(start).await
    }

    /// Plans a fault for the next message of this kind to this actor, after `spared` such messages were skipped.
    pub fn plan(&self, actor: &'static str, kind: Kind, spared: usize, fault: Fault) -> Planned {
        let (injected, planned) = watch::channel(None);
        self.log().plans.push(Plan { actor, kind, spared, fault, injected });
        Planned(planned)
    }

    /// The number of messages of each kind so far.
    #[must_use]
    pub fn met(&self) -> BTreeMap<(&'static str, Kind), usize> {
        self.log().met.clone()
    }

    /// The number of actors of each name that were started in the scopes of this label.
    #[must_use]
    pub fn started(&self, label: &str) -> BTreeMap<&'static str, usize> {
        counts(&self.log().started, label)
    }

    /// The number of live actors of each name in the scopes of this label.
    #[must_use]
    pub fn alive(&self, label: &str) -> BTreeMap<&'static str, usize> {
        counts(&self.log().alive, label)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // No holder of the lock can panic between two changes.
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counts(all: &BTreeMap<(String, &'static str), usize>, label: &str) -> BTreeMap<&'static str, usize> {
    let of_label = all.iter().filter(|((scope, _), _)| scope == label);
    of_label.map(|((_, actor), count)| (*actor, *count)).collect()
}

tokio::task_local! {
    static AMBIENT: Ambient;
}

/// The scope of a task.
#[derive(Debug, Clone)]
pub(super) struct Ambient {
    probe: Probe,
    label: String,
}

impl Ambient {
    pub(super) fn here() -> Option<Self> {
        AMBIENT.try_with(Clone::clone).ok()
    }

    pub(super) async fn scope<T>(&self, future: impl Future<Output = T>) -> T {
        AMBIENT.scope(self.clone(), future).await
    }

    pub(super) fn begin(self, actor: &'static str) -> Life {
        let key = (self.label.clone(), actor);
        let mut log = self.probe.log();
        *log.started.entry(key.clone()).or_default() += 1;
        *log.alive.entry(key).or_default() += 1;
        drop(log);
        Life { ambient: self, actor }
    }
}

/// An actor's life, from its start to its end.
pub(super) struct Life {
    ambient: Ambient,
    actor: &'static str,
}

impl Life {
    pub(super) fn ambient(&self) -> &Ambient {
        &self.ambient
    }

    /// Counts a message, and injects the fault that is planned for it.
    pub(super) async fn meet(&self, kind: Kind, cell: &ActorCell) {
        let Some(fault) = self.fault_at(kind) else { return };
        tracing::warn!(actor = self.actor, %kind, ?fault, node = self.ambient.label, "the test injects a planned fault");
        match fault {
            Fault::Panic => panic!("planned: {} panics at {kind}", self.actor),
            Fault::Kill => {
                cell.kill();
                pending().await
            }
            Fault::Stall(time) => tokio::time::sleep(time).await,
        }
    }

    fn fault_at(&self, kind: Kind) -> Option<Fault> {
        let Ambient { probe, label } = &self.ambient;
        let mut log = probe.log();
        *log.met.entry((self.actor, kind)).or_default() += 1;
        let at = log.plans.iter().position(|plan| (plan.actor, plan.kind) == (self.actor, kind))?;
        let plan = &mut log.plans[at];
        if plan.spared > 0 {
            plan.spared -= 1;
            return None;
        }
        let Plan { fault, injected, .. } = log.plans.remove(at);
        injected
            .send_replace(Some(InjectedFault { scope: label.clone(), started: counts(&log.started, label) }));
        Some(fault)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let Ambient { probe, label } = &self.ambient;
        let mut log = probe.log();
        if let Some(alive) = log.alive.get_mut(&(label.clone(), self.actor)) {
            *alive -= 1;
            if *alive == 0 {
                log.alive.remove(&(label.clone(), self.actor));
            }
        }
    }
}

/// The period of a sweep, shortened by the probe of the current scope.
pub(crate) fn period(usual: Duration) -> Duration {
    let sweep = Ambient::here().and_then(|ambient| ambient.probe.0.sweep);
    sweep.map_or(usual, |sweep| sweep.min(usual))
}
