//! The executor pool's port to the runs of its process. Slots are granted immediately; orders are carried out by the
//! process after the pool has handled its message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_actors::worker::pulse::{Notify, Pulse, Word};
use bellwether_actors::worker::runs::Runs;
use bellwether_core::job::Progress;
use bellwether_core::machine::worker::Start;
use bellwether_core::machine::worker::executor_pool::{Run, Stop};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::time::Millis;

use super::runs::serves;

/// An order of the pool.
pub(super) enum Order {
    Launch(Box<Start>, Arc<Pulse>),
    Signal(JobId),
    Abort(JobId),
}

/// State that a process shares with the port of its current executor pool.
#[derive(Clone)]
pub(super) struct Slots(Arc<Mutex<Shared>>);

struct Shared {
    /// Slots that are neither used by a run nor granted.
    free: u32,
    total: u32,
    /// Slots that end when their runs do, because the number of slots was lowered.
    owed: u32,
    granted: bool,
    wanted: bool,
    /// The runs that the pool supervises.
    attended: BTreeSet<JobId>,
    orders: Vec<Order>,
    /// The attempts whose handlers have reported progress or a renewal.
    words: Vec<Word>,
}

impl Shared {
    fn give_back(&mut self) {
        match self.owed.checked_sub(1) {
            Some(owed) => self.owed = owed,
            None => self.free += 1,
        }
    }

    fn resize(&mut self, slots: u32) {
        let more = slots.saturating_sub(self.total);
        let paid = more.min(self.owed);
        (self.owed, self.free) = (self.owed - paid, self.free + more - paid);
        let fewer = self.total.saturating_sub(slots);
        let now = fewer.min(self.free);
        (self.owed, self.free) = (self.owed + fewer - now, self.free - now);
        self.total = slots;
    }
}

impl Slots {
    pub(super) fn new(slots: u32) -> Self {
        Self(Arc::new(Mutex::new(Shared {
            free: slots,
            total: slots,
            owed: 0,
            granted: false,
            wanted: false,
            attended: BTreeSet::new(),
            orders: Vec::new(),
            words: Vec::new(),
        })))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn free(&self) -> u32 {
        self.shared().free
    }

    pub(super) fn give_back(&self) {
        self.shared().give_back();
    }

    pub(super) fn orders(&self) -> Vec<Order> {
        std::mem::take(&mut self.shared().orders)
    }

    pub(super) fn words(&self) -> Vec<Word> {
        std::mem::take(&mut self.shared().words)
    }

    /// Grants a slot if one is free and the pool waits for one.
    pub(super) fn grant(&self) -> bool {
        let mut shared = self.shared();
        let grants = shared.wanted && shared.free > 0;
        if grants {
            shared.free -= 1;
            (shared.wanted, shared.granted) = (false, true);
        }
        grants
    }

    pub(super) fn port(&self) -> Box<dyn Runs> {
        Box::new(Port(self.clone()))
    }
}

/// The port of one executor pool.
struct Port(Slots);

impl Runs for Port {
    fn pulse(&mut self, of: Word, until: Millis, progress: Progress) -> Arc<Pulse> {
        let slots = self.0.clone();
        let notify: Notify = Arc::new(move |word| slots.shared().words.push(word));
        Arc::new(Pulse::new(of, Some(notify), until, progress))
    }

    fn auto_renews(&self, _: &Kind) -> bool {
        false
    }

    fn abandoned(&mut self) -> BTreeMap<Kind, u32> {
        // No kind of the simulation has a concurrency limit.
        BTreeMap::new()
    }

    fn want_slot(&mut self) -> bool {
        self.0.shared().wanted = true;
        self.0.grant()
    }

    fn resize(&mut self, slots: u32) {
        self.0.shared().resize(slots);
    }

    fn return_slot(&mut self) {
        let mut shared = self.0.shared();
        if std::mem::take(&mut shared.granted) {
            shared.give_back();
        }
    }

    fn free(&self) -> usize {
        let shared = self.0.shared();
        shared.free as usize + usize::from(shared.granted)
    }

    fn launch(&mut self, start: Start, pulse: Arc<Pulse>) -> Result<(), Run> {
        let kind = &start.record.kind;
        let mut shared = self.0.shared();
        assert!(std::mem::take(&mut shared.granted), "a launch needs a granted slot");
        if !serves(kind) {
            shared.give_back();
            return Err(Run::Failed(format!("no handler for kind {kind}")));
        }
        shared.attended.insert(start.job.clone());
        shared.orders.push(Order::Launch(Box::new(start), pulse));
        Ok(())
    }

    fn signal(&mut self, job: &JobId, _: Stop) -> bool {
        let mut shared = self.0.shared();
        let attended = shared.attended.contains(job);
        if attended {
            shared.orders.push(Order::Signal(job.clone()));
        }
        attended
    }

    fn abort(&mut self, job: &JobId) {
        let mut shared = self.0.shared();
        shared.attended.remove(job);
        shared.orders.push(Order::Abort(job.clone()));
    }

    fn forget(&mut self, job: &JobId) {
        self.0.shared().attended.remove(job);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.return_slot();
        let mut shared = self.0.shared();
        shared.wanted = false;
        shared.attended.clear();
        shared.orders.clear();
        shared.words.clear();
    }
}
