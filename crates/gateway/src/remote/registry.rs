//! The remote workers of this gateway, by their keys.
//!
//! A key belongs to the token that registered it: for a caller with another token the worker is unknown.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether::NodeBuilder;
use bellwether::metrics::HttpRefusal;
use futures::future::join_all;
use uuid::Uuid;

use super::settings::Settings;
use super::worker::{Former, RemoteWorker};
use crate::metrics::refused;
use crate::problem::{Fault, Problem};

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RemoteWorkers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    workers: Mutex<Workers>,
}

#[derive(Debug, Default)]
struct Workers {
    by_key: HashMap<Uuid, Arc<RemoteWorker>>,
    /// The gateway stops: no worker may register.
    stopping: bool,
}

impl RemoteWorkers {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Inner { most, workers: Mutex::default() }))
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.0.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the worker with this key and notes the call.
    pub(crate) fn called(&self, key: Uuid, owner: &str) -> Result<Arc<RemoteWorker>, Problem> {
        let found = self.workers().by_key.get(&key).filter(|worker| *worker.owner == *owner).cloned();
        let worker = found.ok_or_else(|| {
            Fault::UnknownWorker.because(format!(
                "this gateway has no remote worker {key}: register it again with what it runs"
            ))
        })?;
        worker.called();
        Ok(worker)
    }

    /// Registers a worker, or returns the one with this key and these settings.
    pub(crate) fn register(
        &self,
        key: Uuid,
        owner: &Arc<str>,
        settings: Settings,
        former: Option<Former>,
        node: NodeBuilder,
    ) -> Result<Arc<RemoteWorker>, Problem> {
        let mut workers = self.workers();
        if workers.stopping {
            return Err(Fault::Unavailable.because("the gateway is stopping: register on another one"));
        }
        let count = workers.by_key.len();
        let worker = match workers.by_key.entry(key) {
            Entry::Occupied(known) if known.get().owner != *owner || known.get().settings != settings => {
                return Err(Fault::Conflict.because(format!(
                    "the remote worker {key} is registered with other settings: delete it first, or draw another key"
                )));
            }
            Entry::Occupied(known) if known.get().is_left_behind(former.as_ref()) => {
                let worker = Arc::clone(known.get());
                tokio::spawn(async move { worker.leave().await });
                return Err(Fault::Unavailable
                    .because("an earlier worker of this process is being removed: repeat the registration"));
            }
            Entry::Occupied(known) => {
                known.get().called();
                return Ok(Arc::clone(known.get()));
            }
            Entry::Vacant(_) if count >= self.0.most => {
                refused(HttpRefusal::RemoteWorkers);
                return Err(Fault::Saturated.because(format!(
                    "the limit of {} remote workers of this gateway is reached",
                    self.0.most
                )));
            }
            Entry::Vacant(free) => {
                let worker = RemoteWorker::new(key, Arc::clone(owner), settings, former.as_ref());
                Arc::clone(free.insert(Arc::new(worker)))
            }
        };
        drop(workers);
        tokio::spawn(Arc::clone(&worker).live(node, former, self.clone()));
        Ok(worker)
    }

    /// Removes a worker that has ended.
    pub(super) fn forget(&self, worker: &Arc<RemoteWorker>) {
        let mut workers = self.workers();
        if let Entry::Occupied(known) = workers.by_key.entry(worker.key)
            && Arc::ptr_eq(known.get(), worker)
        {
            known.remove();
        }
    }

    /// Hands back the attempts of all workers and ends them, because the gateway stops.
    pub(crate) async fn stop(&self) {
        let all = {
            let mut workers = self.workers();
            workers.stopping = true;
            workers.by_key.values().cloned().collect::<Vec<_>>()
        };
        join_all(all.iter().map(|worker| worker.hand_back())).await;
    }
}
