//! The state that the tasks of a process share with the world.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bellwether_core::outcome::Outcome;
use bellwether_core::port::Change;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::{Delivery, Op, Parents, SeenParents};
use bellwether_keeper::proto::Request;
use fastrand::Rng;
use futures::channel::{mpsc, oneshot};
use futures::future::BoxFuture;
use uuid::{Builder, Uuid};

use super::lock;
use crate::host::context::local;
use crate::zk::library::Part;
use crate::zk::protocol::Answer;
use crate::zk::{Published, View, Zk};

/// A request of a task to the world, recorded during a poll.
pub(crate) enum Want {
    /// Send a request.
    Ask { zk: Zk, request: Request, answer: oneshot::Sender<Answer> },
    /// Set a recursive watch.
    Watch { zk: Zk, path: String, set: oneshot::Sender<Answer>, changes: mpsc::UnboundedSender<Change> },
    /// Read a part of a znode and set a one-shot watch on it.
    Glance { zk: Zk, path: String, part: Part, answer: oneshot::Sender<Answer>, changed: oneshot::Sender<()> },
    /// Call [`Shared::fire`] with this timer at that time.
    Timer { at_us: u64, timer: u64 },
}

/// The clock, the session state, and the timers and requests of the tasks.
pub(crate) struct Shared(Mutex<Inner>);

struct Inner {
    skew_ms: i64,
    now_us: u64,
    /// The session as the client library sees it.
    view: View,
    published: Published,
    /// Number of publications.
    publications: u64,
    followers: Vec<Waker>,
    timers: BTreeMap<u64, Waker>,
    last_timer: u64,
    rng: Rng,
    wants: Vec<Want>,
    spawned: Vec<BoxFuture<'static, ()>>,
    /// The containers that this process has seen.
    seen: SeenParents,
}

impl Shared {
    pub(crate) fn new(skew_ms: i64, seed: u64) -> Self {
        Self(Mutex::new(Inner {
            skew_ms,
            now_us: 0,
            view: View::default(),
            published: Published::default(),
            publications: 0,
            followers: Vec::new(),
            timers: BTreeMap::new(),
            last_timer: 0,
            rng: Rng::with_seed(seed),
            wants: Vec::new(),
            spawned: Vec::new(),
            seen: SeenParents::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.0)
    }

    pub(super) fn set(&self, now_us: u64, view: View) {
        let mut inner = self.lock();
        (inner.now_us, inner.view) = (now_us, view);
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.lock().now_us
    }

    pub(super) fn wall(&self) -> WallMillis {
        let inner = self.lock();
        let (now, local) = (Millis(inner.now_us / 1_000), local(inner.now_us, inner.skew_ms));
        inner.view.clock.wall(now, local)
    }

    pub(super) fn view(&self) -> View {
        self.lock().view
    }

    /// A UUIDv7 of the process's own clock, which can be wrong.
    pub(super) fn uuid(&self) -> Uuid {
        let mut inner = self.lock();
        let local = local(inner.now_us, inner.skew_ms);
        let random = inner.rng.u128(..).to_be_bytes();
        let (_, random) = random.split_last_chunk::<10>().expect("16 bytes");
        Builder::from_unix_timestamp_millis(local.0, random).into_uuid()
    }

    pub(super) fn want(&self, want: Want) {
        self.lock().wants.push(want);
    }

    /// Takes the requests since the last call, in order.
    pub(crate) fn wants(&self) -> Vec<Want> {
        std::mem::take(&mut self.lock().wants)
    }

    /// Returns the containers that these operations need.
    pub(crate) fn parents<'a>(&self, ops: impl Iterator<Item = &'a Op>) -> Option<Parents> {
        Parents::of(ops, &self.lock().seen)
    }

    /// Takes the outcome of a multi with these containers.
    pub(super) fn delivered(&self, parents: &mut Parents, outcome: Outcome<()>) -> Delivery {
        parents.answered(&mut self.lock().seen, outcome)
    }

    pub(super) fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.lock().spawned.push(task);
    }

    pub(super) fn spawned(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.lock().spawned)
    }

    /// Stores the session's status, published by the session supervisor.
    pub(crate) fn publish(&self, status: Published) {
        let mut inner = self.lock();
        inner.published = status;
        inner.publications += 1;
        let followers = std::mem::take(&mut inner.followers);
        drop(inner);
        followers.into_iter().for_each(Waker::wake);
    }

    /// Returns the last published status and its number.
    pub(super) fn published(&self) -> (Published, u64) {
        let inner = self.lock();
        (inner.published.clone(), inner.publications)
    }

    /// Waits for a publication after number `seen`.
    pub(super) fn poll_published(&self, seen: u64, context: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.publications > seen {
            return Poll::Ready(());
        }
        if !inner.followers.iter().any(|waker| waker.will_wake(context.waker())) {
            inner.followers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Wakes the task that waits for this timer.
    pub(crate) fn fire(&self, timer: u64) {
        let waker = self.lock().timers.remove(&timer);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Sleeps until a time of the virtual clock.
pub(super) struct Until {
    shared: Arc<Shared>,
    at_us: u64,
    timer: Option<u64>,
}

impl Until {
    pub(super) fn new(shared: Arc<Shared>, at_us: u64) -> Self {
        Self { shared, at_us, timer: None }
    }
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut inner = this.shared.lock();
        if this.at_us <= inner.now_us {
            return Poll::Ready(());
        }
        let timer = *this.timer.get_or_insert_with(|| {
            inner.last_timer += 1;
            let timer = inner.last_timer;
            inner.wants.push(Want::Timer { at_us: this.at_us, timer });
            timer
        });
        inner.timers.insert(timer, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            let waker = self.shared.lock().timers.remove(&timer);
            drop(waker);
        }
    }
}
