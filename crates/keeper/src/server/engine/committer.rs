//! The thread that makes batches durable, one at a time, while the engine goes on with the next.
//!
//! The store travels: it is with the engine, or out with a batch. So there is no lock, nobody asks the store for
//! anything while it commits, and a second batch cannot overtake the first.
//!
//! ```text
//!  engine ── store, changes, letters ──► committer: commit, then deliver the letters
//!    ▲   └── store, Tidy ──────────────► committer: some of what the store puts off
//!    │                                        │
//!    └── store, what was done ◄───────────────┘  and a nudge by the inbox, which is where the engine sleeps
//! ```
//!
//! * **What is delivered is durable:** letters are delivered here, behind the commit, and nowhere else while a batch is
//!   out.
//! * **A failed commit delivers nothing;** neither does a panic, which shows as a closed channel.
//! * **Ending:** dropping it waits for the batch that is out, and for the store to be closed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::inbox::{Closed, Inbox, Message};
use super::super::keeper::StopReason;
use super::letter::Letter;
use crate::store::{Changes, Store, StoreError};

/// What the thread is to do.
enum Work {
    /// Make a batch durable, and deliver its letters.
    Commit(Changes, Vec<Letter>),
    /// Some of what the store puts off.
    Tidy,
}

/// The store, and what came of the work.
struct Returned {
    store: Box<dyn Store>,
    done: Result<Done, StoreError>,
}

/// What was done.
#[derive(Debug)]
pub(super) enum Done {
    /// A batch is durable, and its letters were delivered at that time.
    Delivered(Vec<Letter>, Instant),
    /// The store is tidier; is there more to do?
    Tidied {
        /// The store puts off more than that.
        more: bool,
    },
}

/// Which thread has the store.
enum StoreOwner {
    /// The engine's.
    Engine(Box<dyn Store>),
    /// The committing thread.
    Committer {
        /// Since then.
        since: Instant,
        /// To tidy up, so that nothing that was handled waits for it.
        tidying: bool,
    },
}

/// The engine's end of it.
pub(super) struct Committer {
    owner: StoreOwner,
    /// `None` only while it is dropped: the thread ends when nobody can send.
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

    /// Whether a batch can be handed over.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.owner, StoreOwner::Engine(_))
    }

    /// Whether all that was sent off is durable and delivered.
    pub(super) fn is_clear(&self) -> bool {
        matches!(self.owner, StoreOwner::Engine(_) | StoreOwner::Committer { tidying: true, .. })
    }

    /// Whether the disk takes longer than this.
    pub(super) fn takes_longer(&self, than: Duration) -> bool {
        match self.owner {
            StoreOwner::Engine(_) => false,
            StoreOwner::Committer { since, .. } => since.elapsed() > than,
        }
    }

    /// The store, unless it is out.
    pub(super) fn store(&mut self) -> Option<&mut dyn Store> {
        match &mut self.owner {
            StoreOwner::Engine(store) => Some(&mut **store),
            StoreOwner::Committer { .. } => None,
        }
    }

    /// Sends a batch off.
    ///
    /// # Panics
    /// When the store is out.
    pub(super) fn commit(&mut self, changes: Changes, letters: Vec<Letter>) {
        self.send(Work::Commit(changes, letters), false);
    }

    /// Lets the store do what it puts off.
    ///
    /// # Panics
    /// When the store is out.
    pub(super) fn tidy(&mut self) {
        self.send(Work::Tidy, true);
    }

    fn send(&mut self, order: Work, tidying: bool) {
        let place =
            std::mem::replace(&mut self.owner, StoreOwner::Committer { since: Instant::now(), tidying });
        let StoreOwner::Engine(store) = place else {
            panic!("whoever sends it off has seen that it is here")
        };
        let work = self.work.as_ref().expect("it is not being dropped");
        // A thread that is gone took the sender of `returned` along: whoever looks for this learns of it there.
        drop(work.send((store, order)));
    }

    /// What has come back since the last look, if the store was out and is here.
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

    /// Waits for the store, if it is out.
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
            // A panic was told by the closed channel, to whom it concerned.
            drop(thread.join());
        }
    }
}

/// Wakes the engine, also when this thread panics.
struct Nudge<'a>(&'a Inbox);

impl Drop for Nudge<'_> {
    fn drop(&mut self) {
        // An engine that is gone needs not be woken.
        let (Ok(()) | Err(Closed)) = self.0.tell(Message::Committed);
    }
}

fn serve(orders: &Receiver<(Box<dyn Store>, Work)>, done: Sender<Returned>, inbox: &Inbox) {
    // Locals are dropped last first, by a panic, too: who is woken finds the channel closed.
    let _nudge = Nudge(inbox);
    let returned = done;
    while let Ok((mut store, order)) = orders.recv() {
        let mut changes = Changes::default();
        let done = match order {
            Work::Commit(batch, mut letters) => {
                changes = batch;
                store.commit(&changes).map(|()| {
                    let at = Instant::now();
                    letters.iter_mut().for_each(Letter::deliver);
                    Done::Delivered(letters, at)
                })
            }
            Work::Tidy => store.tidy().map(|more| Done::Tidied { more }),
        };
        if returned.send(Returned { store, done }).is_err() {
            break;
        }
        drop(Nudge(inbox));
        // Behind the answers: what a large batch takes to be freed is nobody's latency.
        drop(changes);
    }
}
