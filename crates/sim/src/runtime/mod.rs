//! The runtime of the tasks of one process in virtual time.
//!
//! ```text
//!  reply, timer, session event ──waker──▶ woken ──a little later──▶ poll ──▶ requests, timers, records
//! ```
//!
//! Tasks are futures with real wakers, so channels, `select` and unordered sets work as in a threaded runtime. A woken
//! task is polled by a later event of the world. So the tasks of a process run one at a time, in an order drawn from
//! the seed: two tasks that are woken at the same time run in either order. The clock does not advance during a poll.
//! The requests of a task are sent after the poll, in the order of the calls.
//!
//! * [`Executor`]: the tasks of one process.
//! * [`shared`]: the state that tasks and the world share: clock, session state, timers, requests.
//! * [`session`]: implements core's session port.
//! * [`port`]: the runtime of the product's client.

mod port;
mod session;
mod shared;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) use self::port::Handle;
pub(crate) use self::shared::{Shared, Want};
use crate::zk::View;

pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks of one process, by number.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    tasks: BTreeMap<u64, Task>,
    last: u64,
    /// Tasks that the world started and that have not ended.
    begun: BTreeSet<u64>,
    woken: Arc<Woken>,
}

/// Tasks to poll, in the order in which they were woken.
#[derive(Default)]
struct Woken(Mutex<VecDeque<u64>>);

struct Alarm {
    task: u64,
    woken: Arc<Woken>,
}

impl Woken {
    fn add(&self, task: u64) {
        let mut woken = lock(&self.0);
        if !woken.contains(&task) {
            woken.push_back(task);
        }
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.add(self.task);
    }
}

impl Executor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (tasks, begun) = (BTreeMap::new(), BTreeSet::new());
        Self { shared, tasks, last: 0, begun, woken: Arc::default() }
    }

    /// Starts a task and polls it.
    pub(crate) fn begin(&mut self, now_us: u64, view: View, task: Task) {
        let number = self.add(task);
        self.begun.insert(number);
        self.poll(now_us, view, number);
    }

    fn add(&mut self, task: Task) -> u64 {
        self.last += 1;
        self.tasks.insert(self.last, task);
        self.last
    }

    pub(crate) fn poll(&mut self, now_us: u64, view: View, number: u64) {
        self.shared.set(now_us, view);
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let waker = Waker::from(Arc::new(Alarm { task: number, woken: Arc::clone(&self.woken) }));
        if let Poll::Ready(()) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.begun.remove(&number);
            // It is dropped at this process's time, because dropping it may send requests.
            drop(self.tasks.remove(&number));
        }
    }

    /// Returns the tasks that were woken since the last call.
    pub(crate) fn woken(&mut self) -> VecDeque<u64> {
        for task in self.shared.spawned() {
            let number = self.add(task);
            self.woken.add(number);
        }
        std::mem::take(&mut *lock(&self.woken.0))
    }

    /// Returns whether a task that the world started is still running.
    pub(crate) fn is_busy(&self) -> bool {
        !self.begun.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
