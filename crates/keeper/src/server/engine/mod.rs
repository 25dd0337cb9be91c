//! The thread that owns the model.
//!
//! ```text
//!        ┌──────────────────── one batch ───────────────────┐
//!  inbox ─► model.handle × n ─► effects, encoded per connection ─► seal ─► committer: ONE commit ─► deliver ─► outboxes
//!        └─ tick, when due         the next batch goes on ◄───────────────────┘   │
//!                                                                                  └─ failed: nothing is delivered,
//!                                                                                     the server ends
//! ```
//!
//! * **What is delivered is durable,** and all that it stands on: replies and notifications wait in the connections' own
//!   buffers, then in sealed letters, until the commit of their batch returned. One batch is out at a time, so what a
//!   reply has seen of an earlier one is durable, too. A batch that changed nothing commits nothing, and waits for the
//!   one that is out.
//! * **The store tidies up when nobody comes** for [`TIDY_AFTER`](super::limits::TIDY_AFTER), a little at a time.
//! * **A failed commit ends the server.** Its outcome is unknown, so nothing may be said about it, to anybody: all
//!   connections are closed, and clients see the one thing that they must expect at any time, a lost connection.
//! * **Batches size themselves.** What arrives during a commit is handled meanwhile and is the next batch; a lone
//!   request is not delayed. A long batch is sealed in parts while the committer is idle ([`SEAL_NODES`]), so that disk
//!   and model work at the same time; one that gets too long ([`COMMIT_NODES`], [`BATCH_BYTES`]) waits for the disk.
//! * **A server that was away ends no session for it.** During a long commit, or when the process was stopped, what
//!   clients sent meanwhile waits in the inbox and in sockets. So time passes for the model only up to a look into the
//!   inbox behind which the server has caught up (`looks`); an idle server looks again after
//!   [`LOOK_AGAIN`](super::limits::LOOK_AGAIN).
//! * **A connection that does not read is parked** (see [`Outbox`](super::outbox::Outbox)): its requests wait here,
//!   in order, unanswered. Each of them keeps its session alive when it comes. One that never reads is not read from
//!   in the end, and expires.

mod committer;
mod connections;
mod letter;
mod looks;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

use self::committer::{Committer, Done};
pub(super) use self::connections::{Connection, Connections};
use self::letter::Letter;
use self::looks::Looks;
use super::clock::Clock;
use super::fourletter::{self, Facts, Report, Source};
use super::inbox::{Asked, Inbox, Message};
use super::keeper::StopReason;
use super::limits::{BATCH_BYTES, COMMIT_NODES, INBOX_REQUESTS, LOOK_AGAIN, SEAL_NODES, TIDY_AFTER};
use super::stats::{Arrivals, Traffic};
use crate::model::{ConnectionId, Effect, Input, Model, Now};
use crate::store::Store;

/// Model, who is connected, and where the store is.
pub(super) struct Engine {
    model: Model,
    /// Dropped before the connections: it delivers what is durable, behind which they end.
    committer: Committer,
    inbox: Arc<Inbox>,
    clock: Clock,
    facts: Facts,
    connections: Connections,
    effects: Vec<Effect>,
    /// What the requests weighed that were handled since the last seal.
    handled_bytes: usize,
    /// The newest transaction that was sealed.
    sealed: i64,
    /// The store may have put something off.
    untidy: bool,
    traffic: Traffic,
    arrivals: Arrivals,
    /// Of the batch that is out.
    sealed_arrivals: Arrivals,
    /// Words asked within a batch are answered when all is durable that was handled: what they tell is, too.
    reports: Vec<(Report, oneshot::Sender<String>)>,
    stopping: bool,
    #[cfg(feature = "testing")]
    log: Option<super::testing::Log>,
}

impl Engine {
    /// Of a model that was made from what `store` holds up to `committed`.
    ///
    /// # Errors
    /// When there is no thread for the commits.
    pub(super) fn new(
        model: Model,
        store: Box<dyn Store>,
        committed: i64,
        inbox: Arc<Inbox>,
        clock: Clock,
        facts: Facts,
    ) -> io::Result<Self> {
        Ok(Self {
            model,
            committer: Committer::start(store, Arc::clone(&inbox))?,
            inbox,
            clock,
            facts,
            connections: Connections::default(),
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

    /// Hands every transaction to a log, before its batch is committed.
    #[cfg(feature = "testing")]
    pub(super) fn log_to(&mut self, mut log: super::testing::Log) {
        self.model.keep_log();
        log.begin(self.sealed);
        self.log = Some(log);
    }

    /// Serves until it is told to stop, or cannot keep its promise.
    pub(super) fn run(&mut self) -> Result<(), StopReason> {
        let mut batch = Vec::with_capacity(INBOX_REQUESTS);
        let mut looks = Looks::default();
        while !self.stopping {
            let patience = self.patience();
            let full = self.inbox.take(&mut batch, patience);
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
            // A connection whose requests wait for the disk is not read from: what it sent meanwhile is not here.
            if !self.committer.takes_longer(LOOK_AGAIN) {
                self.tick(Now { monotonic_ms: looks.at(now.monotonic_ms, full, patience), ..now });
            }
            self.seal_if_clear()?;
            self.report()?;
            if idle && self.untidy && self.committer.is_idle() {
                self.committer.tidy();
            }
        }
        self.flush()
    }

    /// How long to wait for something to come.
    fn patience(&self) -> Option<Duration> {
        let tick = self.model.next_tick().map(|due| self.clock.until(due).max(LOOK_AGAIN));
        let tidy = (self.untidy && self.committer.is_idle()).then_some(TIDY_AFTER);
        tick.into_iter().chain(tidy).min()
    }

    /// Lets time pass up to where all that came was handled.
    fn tick(&mut self, now: Now) {
        if self.model.next_tick().is_some_and(|due| due <= now.monotonic_ms) {
            self.model.tick(now, &mut self.effects);
            self.perform(now);
        }
    }

    fn accept(&mut self, now: Now, message: Message) -> Result<(), StopReason> {
        match message {
            // It wakes; whoever wants to seal looks.
            Message::Committed => {}
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

    /// Handles a request, or parks it when its connection does not read.
    ///
    /// Where something is parked, the writer was asked to tell, or its message is on its way.
    fn request(&mut self, now: Now, connection: ConnectionId, asked: Asked) {
        // A request of a connection that an earlier request of this batch closed has nobody to answer to.
        let Some(known) = self.connections.get_mut(connection) else { return };
        if known.parked.is_empty() && known.reads() {
            self.handle(now, connection, asked);
        } else {
            known.parked.push_back(asked);
            self.model.heard_of(now, connection);
        }
    }

    /// Goes on with what was parked, until the client has enough to read again.
    fn unpark(&mut self, now: Now, connection: ConnectionId) {
        while let Some(known) = self.connections.get_mut(connection) {
            if known.parked.is_empty() || !known.reads() {
                return;
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
    }

    /// Encodes the effects behind their connections' earlier ones. Cutting a connection is an input itself.
    fn perform(&mut self, now: Now) {
        while !self.effects.is_empty() {
            for effect in self.effects.drain(..) {
                self.connections.encode(effect);
            }
            while let Some((connection, excess)) = self.connections.take_cut() {
                warn!(connection = connection.0, %excess, "connection cut");
                self.model.handle(now, connection, Input::Disconnected, &mut self.effects);
            }
        }
    }

    /// Takes note of the batch that came back, if one did.
    fn look(&mut self) -> Result<(), StopReason> {
        if let Some(done) = self.committer.look()? {
            self.done(done);
        }
        Ok(())
    }

    /// Ends the batch at hand, if the one before it is durable, and the store is here to take it or not needed.
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
                let mut letters = self.connections.seal();
                letters.iter_mut().for_each(Letter::deliver);
                self.done(Done::Delivered(letters, Instant::now()));
            }
            return Ok(());
        }
        #[cfg(feature = "testing")]
        if let Some(log) = &mut self.log {
            log.append(self.model.take_log());
        }
        let changes = self.model.take_changes();
        self.sealed = changes.zxid;
        let letters = self.connections.seal();
        self.committer.commit(changes, letters);
        self.untidy = true;
        Ok(())
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Delivered(letters, at) => {
                self.traffic.latency.record(self.sealed_arrivals.take(), at);
                self.traffic.sent += self.connections.delivered(letters, at);
            }
            Done::Tidied { more } => self.untidy = more,
        }
    }

    /// Waits until the store is here. Whatever was handled since the batch that was out is not sealed.
    fn await_store(&mut self) -> Result<&mut dyn Store, StopReason> {
        if let Some(done) = self.committer.wait()? {
            self.done(done);
        }
        Ok(self.committer.store().expect("it was waited for"))
    }

    /// Waits until all that was handled is durable and delivered.
    fn flush(&mut self) -> Result<(), StopReason> {
        self.await_store()?;
        self.seal_if_clear()?;
        self.await_store().map(drop)
    }

    /// Answers the words that were asked.
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

/// Answers who asked; one that no longer waits needs no answer.
fn hand<T>(answer: oneshot::Sender<T>, value: T) {
    if answer.send(value).is_err() {
        debug!("nobody waits for an answer any more");
    }
}
