//! The thread that owns the model.
//!
//! ```text
//!        ┌──────────────────── one batch ───────────────────┐
//!  inbox ─► model.handle × n ─► effects, encoded per connection ─► seal ─► committer: ONE commit ─► deliver ─► outbox
//!        └─ tick, when due         the next batch goes on ◄───────────────────┘   │
//!                                                                                  └─ failed: nothing is delivered,
//!                                                                                     the server ends
//! ```
//!
//! * **Every delivered byte is durable,** and so is every write that it depends on. Replies and notifications wait in
//!   the buffers of their connections, then in sealed replies, until the commit of their batch returns. One batch is
//!   committed at a time, so a reply can only depend on earlier batches that are durable. A batch without changes needs
//!   no commit, but it waits for the running one.
//! * **The store does deferred work when the server is idle** for [`TIDY_AFTER`](super::limits::TIDY_AFTER), a little
//!   at a time.
//! * **A failed commit ends the server.** Its outcome is unknown, so no reply can be correct. All connections are
//!   closed, and clients see a lost connection, which they must expect at any time.
//! * **Batch size adapts to the load.** Requests that arrive during a commit form the next batch; a single request is
//!   not delayed. A long batch is sealed in parts while the committer is idle ([`SEAL_NODES`]), so that disk and model
//!   work in parallel; a batch above [`COMMIT_NODES`] or [`BATCH_BYTES`] waits for the disk.
//! * **A pause of the server expires no session.** During a long commit, or while the process is stopped, requests of
//!   clients wait in the inbox and in sockets. So the model's time advances only to a look at the inbox after which the
//!   server has caught up (`settled_time`). An idle server looks again after [`LOOK_AGAIN`](super::limits::LOOK_AGAIN).
//! * **A connection that does not read is parked** (see [`Outbox`](super::outbox::Outbox)): its requests wait here
//!   unanswered, in order. Each request keeps the session alive when it arrives. If the client never reads, its socket
//!   is no longer read and its session expires.

mod committer;
mod connections;
mod sealed_replies;
mod settled_time;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

use self::committer::{Committer, Done};
pub(super) use self::connections::{Connection, Connections};
use self::sealed_replies::SealedReplies;
use self::settled_time::SettledTime;
use super::clock::Clock;
use super::fourletter::{self, Facts, Report, Source};
use super::inbox::{Asked, Inbox, Message};
use super::keeper::StopReason;
use super::limits::{BATCH_BYTES, COMMIT_NODES, INBOX_REQUESTS, LOOK_AGAIN, SEAL_NODES, TIDY_AFTER};
use super::stats::{Arrivals, Traffic};
use crate::model::{ConnectionId, Effect, Input, Model, Now};
use crate::store::Store;

/// The model, the connections, and the committer, which has the store.
pub(super) struct Engine {
    model: Model,
    /// Dropped before the connections, because it delivers durable replies, after which connections end.
    committer: Committer,
    inbox: Arc<Inbox>,
    clock: Clock,
    facts: Facts,
    connections: Connections,
    effects: Vec<Effect>,
    /// Bytes of the requests handled since the last seal.
    handled_bytes: usize,
    /// The zxid of the newest sealed transaction.
    sealed: i64,
    /// The store may have deferred work.
    untidy: bool,
    traffic: Traffic,
    arrivals: Arrivals,
    /// Arrivals of the batch that is being committed.
    sealed_arrivals: Arrivals,
    /// Four-letter words are answered when all handled requests are durable, so that the reports only contain durable
    /// data.
    reports: Vec<(Report, oneshot::Sender<String>)>,
    stopping: bool,
    #[cfg(feature = "testing")]
    log: Option<super::testing::Log>,
}

impl Engine {
    /// Creates an engine for a model restored from `store` with its transactions up to `committed`.
    ///
    /// # Errors
    /// If the thread for the commits cannot be started.
    pub(super) fn new(
        model: Model,
        store: Box<dyn Store>,
        committed: i64,
        inbox: Arc<Inbox>,
        clock: Clock,
        facts: Facts,
    ) -> io::Result<Self> {
        let memory = Arc::clone(&inbox.memory);
        Ok(Self {
            model,
            committer: Committer::start(store, Arc::clone(&inbox))?,
            inbox,
            clock,
            facts,
            connections: Connections::new(memory),
            effects: Vec::new(),
            handled_bytes: 0,
            sealed: committed,
            untidy: true,
            traffic: Traffic::default(),
            arrivals: Arrivals::since(Instant::now()),
            sealed_arrivals: Arrivals::since(Instant::now()),
            reports: Vec::new(),
            stopping: false,
            #[cfg(feature = "testing")]
            log: None,
        })
    }

    /// Sends every transaction to `log` before its batch is committed.
    #[cfg(feature = "testing")]
    pub(super) fn log_to(&mut self, mut log: super::testing::Log) {
        self.model.keep_log();
        log.begin(self.sealed);
        self.log = Some(log);
    }

    /// Runs until a stop message, or until a commit fails.
    pub(super) fn run(&mut self) -> Result<(), StopReason> {
        let mut batch = Vec::with_capacity(INBOX_REQUESTS);
        let mut settled_time = SettledTime::default();
        while !self.stopping {
            let timeout = self.timeout();
            let full = self.inbox.take(&mut batch, timeout);
            let now = self.clock.now();
            let idle = batch.is_empty();
            for message in batch.drain(..) {
                self.accept(now, message)?;
                let changed = self.model.changed_nodes();
                let full = changed >= COMMIT_NODES || self.handled_bytes >= BATCH_BYTES;
                if full {
                    self.await_store()?;
                }
                if full || changed >= SEAL_NODES {
                    self.seal_if_clear()?;
                }
            }
            self.look()?;
            // While a commit takes long, connections with unanswered requests are not read, so the inbox may lack
            // requests that their clients have sent.
            if !self.committer.takes_longer(LOOK_AGAIN) {
                self.tick(Now { monotonic_ms: settled_time.at(now.monotonic_ms, full, timeout), ..now });
            }
            self.seal_if_clear()?;
            self.report()?;
            if idle && self.untidy && self.committer.is_idle() {
                self.committer.tidy();
            }
        }
        self.flush()
    }

    /// Returns how long to wait for messages.
    fn timeout(&self) -> Option<Duration> {
        let tick = self.model.next_tick().map(|due| self.clock.until(due).max(LOOK_AGAIN));
        let tidy = (self.untidy && self.committer.is_idle()).then_some(TIDY_AFTER);
        tick.into_iter().chain(tidy).min()
    }

    /// Advances the model's time to `now`, up to which all received requests are handled.
    fn tick(&mut self, now: Now) {
        if self.model.next_tick().is_some_and(|due| due <= now.monotonic_ms) {
            self.model.tick(now, &mut self.effects);
            self.perform(now);
        }
    }

    fn accept(&mut self, now: Now, message: Message) -> Result<(), StopReason> {
        match message {
            // Only wakes the engine; the callers of `seal_if_clear` check the committer.
            Message::Committed => {}
            Message::Crowded => self.relieve(now),
            Message::Connect { connection, request, peer, outbox, password, size: _ } => {
                self.traffic.received += 1;
                self.arrivals.add(Instant::now());
                self.connections.add(connection, Connection::new(peer, outbox));
                self.feed(now, connection, Input::Connect { request, peer: peer.ip(), password });
            }
            Message::Request { connection, asked } => {
                self.traffic.received += 1;
                self.request(now, connection, asked);
            }
            Message::Drained(connection) => self.unpark(now, connection),
            Message::Disconnected(connection) => {
                if self.connections.remove(connection).is_some() {
                    self.feed(now, connection, Input::Disconnected);
                }
            }
            Message::Report(report, answer) => self.reports.push((report, answer)),
            Message::Reader(answer) => hand(answer, self.await_store()?.reader()),
            Message::Stop => self.stopping = true,
            #[cfg(feature = "testing")]
            Message::Expire(session, answer) => {
                let expired = self.model.sessions().any(|known| known.id == session);
                self.model.expire_session(session, &mut self.effects);
                self.perform(now);
                hand(answer, expired);
            }
            #[cfg(feature = "testing")]
            Message::Skip(time) => self.clock.skip(time),
        }
        Ok(())
    }

    /// Handles a request, or parks it if its connection does not read.
    ///
    /// For a connection with parked requests, either the writer will notify the engine or its message is already
    /// queued.
    fn request(&mut self, now: Now, connection: ConnectionId, asked: Asked) {
        // An earlier request of this batch closed the connection, so the reply has no receiver.
        let Some(known) = self.connections.get_mut(connection) else { return };
        if known.parked.is_empty() && known.reads() {
            self.handle(now, connection, asked);
        } else {
            known.parked.push_back(asked);
            self.model.heard_of(now, connection);
        }
    }

    /// Resumes parked requests until the client has enough to read again.
    fn unpark(&mut self, now: Now, connection: ConnectionId) {
        while let Some(known) = self.connections.get_mut(connection) {
            if known.parked.is_empty() || !known.reads() {
                return known.free_parked();
            }
            let Some(asked) = known.parked.pop_front() else { return };
            self.handle(now, connection, asked);
        }
    }

    fn handle(&mut self, now: Now, connection: ConnectionId, asked: Asked) {
        let Some(known) = self.connections.touch(connection) else { return };
        known.note(&asked);
        self.handled_bytes += asked.size;
        self.arrivals.add(asked.received);
        self.feed(now, connection, Input::Request { xid: asked.xid, request: asked.request });
    }

    fn feed(&mut self, now: Now, connection: ConnectionId, input: Input) {
        self.model.handle(now, connection, input, &mut self.effects);
        self.perform(now);
        self.relieve(now);
    }

    /// Closes the connections that hold most memory if it is used up.
    fn relieve(&mut self, now: Now) {
        self.connections.relieve();
        self.perform(now);
    }

    /// Encodes the effects in order into the buffers of their connections. Cutting a connection is a new input to the
    /// model.
    fn perform(&mut self, now: Now) {
        loop {
            for effect in self.effects.drain(..) {
                self.connections.encode(effect);
            }
            while let Some((connection, excess)) = self.connections.take_cut() {
                warn!(connection = connection.0, %excess, "the keeper closed a connection because of a limit");
                self.model.handle(now, connection, Input::Disconnected, &mut self.effects);
            }
            if self.effects.is_empty() {
                return;
            }
        }
    }

    /// Processes the result of the committer, if there is one.
    fn look(&mut self) -> Result<(), StopReason> {
        if let Some(done) = self.committer.look()? {
            self.done(done);
        }
        Ok(())
    }

    /// Seals the current batch if the previous one is durable and, for a batch with changes, the store is available.
    fn seal_if_clear(&mut self) -> Result<(), StopReason> {
        self.look()?;
        let changed = self.model.changed_since(self.sealed);
        if !self.committer.is_clear() || (changed && !self.committer.is_idle()) {
            return Ok(());
        }
        self.handled_bytes = 0;
        self.sealed_arrivals = self.arrivals.take();
        if !changed {
            if self.connections.has_letters() {
                let mut sealed = self.connections.seal();
                sealed.iter_mut().for_each(SealedReplies::deliver);
                self.done(Done::Delivered(sealed, Instant::now()));
            }
            return Ok(());
        }
        #[cfg(feature = "testing")]
        if let Some(log) = &mut self.log {
            log.append(self.model.take_log());
        }
        let changes = self.model.take_changes();
        self.sealed = changes.zxid;
        let sealed = self.connections.seal();
        self.committer.commit(changes, sealed);
        self.untidy = true;
        Ok(())
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Delivered(sealed, at) => {
                self.traffic.latency.record(self.sealed_arrivals.take(), at);
                self.traffic.sent += self.connections.delivered(sealed, at);
            }
            Done::Tidied { more } => self.untidy = more,
        }
    }

    /// Waits until the engine has the store. The requests handled since the last seal are not sealed yet.
    fn await_store(&mut self) -> Result<&mut dyn Store, StopReason> {
        if let Some(done) = self.committer.wait()? {
            self.done(done);
        }
        Ok(self.committer.store().expect("the wait above returns the store to the engine"))
    }

    /// Waits until all handled requests are durable and their replies are delivered.
    fn flush(&mut self) -> Result<(), StopReason> {
        self.await_store()?;
        self.seal_if_clear()?;
        self.await_store().map(drop)
    }

    /// Answers the queued four-letter words.
    fn report(&mut self) -> Result<(), StopReason> {
        if self.reports.is_empty() {
            return Ok(());
        }
        self.flush()?;
        let store = self.await_store()?.status();
        for (report, answer) in std::mem::take(&mut self.reports) {
            let source = Source {
                facts: &self.facts,
                model: &self.model,
                store: &store,
                connections: &self.connections,
                traffic: &self.traffic,
                clock: &self.clock,
            };
            let text = fourletter::write(report, &source);
            match report {
                Report::ResetServer => self.traffic = Traffic::default(),
                Report::ResetConnections => self.connections.reset(),
                Report::Read(_) => {}
            }
            hand(answer, text);
        }
        Ok(())
    }
}

/// Sends an answer; a receiver that no longer waits is ignored.
fn hand<T>(answer: oneshot::Sender<T>, value: T) {
    if answer.send(value).is_err() {
        debug!("the keeper dropped an answer: its receiver no longer waits");
    }
}
