//! The thread that makes batches durable, one at a time, while the engine handles the next batch.
//!
//! The store is moved between the two threads: the engine has it, or the committer has it with a batch. So there is no
//! lock, no access to the store during a commit, and a second batch cannot overtake the first.
//!
//! ```text
//!  engine ── store, changes, replies ──► committer: commit, then deliver them
//!    ▲   └── store, Tidy ──────────────► committer: part of the store's deferred work
//!    │                                        │
//!    └── store, result ◄───────────────────┘  and a message to the inbox, which wakes the engine
//! ```
//!
//! * **Every delivered byte is durable:** while a batch is being committed, replies are delivered only here, after the
//!   commit.
//! * **A failed commit delivers nothing,** and neither does a panic, which the engine sees as a closed channel.
//! * **Drop:** dropping the committer waits for the running commit and for the store to be closed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::inbox::{Closed, Inbox, Message};
use super::super::keeper::StopReason;
use super::sealed_replies::SealedReplies;
use crate::store::{Changes, Store, StoreError};

/// An order for the thread.
enum Work {
    /// Make a batch durable and deliver its replies.
    Commit(Changes, Vec<SealedReplies>),
    /// Do part of the store's deferred work.
    Tidy,
}

/// The store and the result of an order.
struct Returned {
    store: Box<dyn Store>,
    done: Result<Done, StoreError>,
}

/// The result of a completed order.
#[derive(Debug)]
pub(super) enum Done {
    /// A batch is durable, and its replies were delivered at that time.
    Delivered(Vec<SealedReplies>, Instant),
    /// Part of the deferred work is done.
    Tidied {
        /// The store has more deferred work.
        more: bool,
    },
}

/// The thread that has the store.
enum StoreOwner {
    /// The engine thread.
    Engine(Box<dyn Store>),
    /// The committing thread.
    Committer {
        /// Since this time.
        since: Instant,
        /// For deferred work, so no handled request waits for it.
        tidying: bool,
    },
}

/// The engine's side of the committer.
pub(super) struct Committer {
    owner: StoreOwner,
    /// `None` only during drop: the thread ends when the sender is dropped.
    work: Option<Sender<(Box<dyn Store>, Work)>>,
    returned: Receiver<Returned>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    pub(super) fn start(store: Box<dyn Store>, inbox: Arc<Inbox>) -> io::Result<Self> {
        let (work, orders) = channel();
        let (done, returned) = channel();
        let thread = std::thread::Builder::new()
            .name("keeper-commit".to_owned())
            .spawn(move || serve(&orders, done, &inbox))?;
        Ok(Self { owner: StoreOwner::Engine(store), work: Some(work), returned, thread: Some(thread) })
    }

    /// Returns whether a batch can be handed over.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.owner, StoreOwner::Engine(_))
    }

    /// Returns whether every batch handed over is durable and delivered.
    pub(super) fn is_clear(&self) -> bool {
        matches!(self.owner, StoreOwner::Engine(_) | StoreOwner::Committer { tidying: true, .. })
    }

    /// Returns whether the current order has taken longer than `than`.
    pub(super) fn takes_longer(&self, than: Duration) -> bool {
        match self.owner {
            StoreOwner::Engine(_) => false,
            StoreOwner::Committer { since, .. } => since.elapsed() > than,
        }
    }

    /// Returns the store, if the engine has it.
    pub(super) fn store(&mut self) -> Option<&mut dyn Store> {
        match &mut self.owner {
            StoreOwner::Engine(store) => Some(&mut **store),
            StoreOwner::Committer { .. } => None,
        }
    }

    /// Hands over a batch.
    ///
    /// # Panics
    /// If the engine does not have the store.
    pub(super) fn commit(&mut self, changes: Changes, sealed: Vec<SealedReplies>) {
        self.send(Work::Commit(changes, sealed), false);
    }

    /// Lets the store do part of its deferred work.
    ///
    /// # Panics
    /// If the engine does not have the store.
    pub(super) fn tidy(&mut self) {
        self.send(Work::Tidy, true);
    }

    fn send(&mut self, order: Work, tidying: bool) {
        let place =
            std::mem::replace(&mut self.owner, StoreOwner::Committer { since: Instant::now(), tidying });
        let StoreOwner::Engine(store) = place else {
            panic!("the caller checks that the engine has the store")
        };
        let work = self.work.as_ref().expect("`work` is `None` only during drop");
        // If the thread has ended, `returned` is closed too, and the next `look` or `wait` reports it.
        drop(work.send((store, order)));
    }

    /// Returns the result since the last look, if the store has been returned.
    pub(super) fn look(&mut self) -> Result<Option<Done>, StopReason> {
        if self.is_idle() {
            return Ok(None);
        }
        match self.returned.try_recv() {
            Ok(returned) => self.receive(returned).map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(StopReason::Panicked),
        }
    }

    /// Waits until the engine has the store.
    pub(super) fn wait(&mut self) -> Result<Option<Done>, StopReason> {
        if self.is_idle() {
            return Ok(None);
        }
        let returned = self.returned.recv().map_err(|_gone| StopReason::Panicked)?;
        self.receive(returned).map(Some)
    }

    fn receive(&mut self, returned: Returned) -> Result<Done, StopReason> {
        self.owner = StoreOwner::Engine(returned.store);
        returned.done.map_err(|source| StopReason::Commit(Arc::new(source)))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic was already reported through the closed channel.
            drop(thread.join());
        }
    }
}

/// Wakes the engine, also when this thread panics.
struct Nudge<'a>(&'a Inbox);

impl Drop for Nudge<'_> {
    fn drop(&mut self) {
        // If the inbox is closed, the engine has already ended.
        let (Ok(()) | Err(Closed)) = self.0.tell(Message::Committed);
    }
}

fn serve(orders: &Receiver<(Box<dyn Store>, Work)>, done: Sender<Returned>, inbox: &Inbox) {
    // Locals are dropped in reverse order, also during a panic: `returned` is closed before `_nudge` wakes the engine.
    let _nudge = Nudge(inbox);
    let returned = done;
    while let Ok((mut store, order)) = orders.recv() {
        let mut changes = Changes::default();
        let done = match order {
            Work::Commit(batch, mut sealed) => {
                changes = batch;
                store.commit(&changes).map(|()| {
                    let at = Instant::now();
                    sealed.iter_mut().for_each(SealedReplies::deliver);
                    Done::Delivered(sealed, at)
                })
            }
            Work::Tidy => store.tidy().map(|more| Done::Tidied { more }),
        };
        if returned.send(Returned { store, done }).is_err() {
            break;
        }
        drop(Nudge(inbox));
        // After the replies: the time to free a large batch adds to no latency.
        drop(changes);
    }
}
