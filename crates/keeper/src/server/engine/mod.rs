//! The thread that owns the model and the store.
//!
//! ```text
//!        ┌──────────────────────────── one batch ─────────────────────────────┐
//!  inbox ─► model.handle × n ─► effects, encoded per connection ─► ONE commit ─► release ─► outboxes
//!        └─ tick, when due                                          │
//!                                                                   └─ failed: nothing is released, the server ends
//! ```
//!
//! * **What is released is durable.** Replies and notifications wait in the connections' own buffers until the
//!   commit of their batch returned. A batch that changed nothing commits nothing.
//! * **A failed commit ends the server.** Its outcome is unknown, so nothing may be said about it, to anybody: all
//!   connections are closed, and clients see the one thing that they must expect at any time, a lost connection.
//! * **Batches size themselves.** What arrives during a commit is the next batch, up to the inbox's bound; a lone
//!   request is not delayed. One that changes very much (multis of thousands) is committed in parts.
//! * **A server that was away ends no session for it.** After a long commit, or when the process was stopped, what
//!   clients sent meanwhile waits in the inbox and in sockets. So time passes for the model only up to a look into the
//!   inbox behind which the server has caught up (`looks`); an idle server looks again after
//!   [`LOOK_AGAIN`](super::limits::LOOK_AGAIN).
//! * **A connection that does not read is parked** (see [`Outbox`](super::outbox::Outbox)): its requests wait here,
//!   in order, unanswered. Each of them keeps its session alive when it comes. One that never reads is not read from
//!   in the end, and expires.

mod connections;
mod looks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

pub(super) use self::connections::{Connection, Connections};
use self::looks::Looks;
use super::clock::Clock;
use super::fourletter::{self, Facts, Report, Source};
use super::inbox::{Asked, Inbox, Message};
use super::keeper::StopReason;
use super::limits::{COMMIT_NODES, INBOX_REQUESTS, LOOK_AGAIN};
use super::stats::{Arrivals, Traffic};
use crate::model::{ConnectionId, Effect, Input, Model, Now};
use crate::store::Store;

/// Model, store, and who is connected.
pub(super) struct Engine {
    model: Model,
    store: Box<dyn Store>,
    inbox: Arc<Inbox>,
    clock: Clock,
    facts: Facts,
    connections: Connections,
    effects: Vec<Effect>,
    /// The newest transaction in the store.
    committed: i64,
    traffic: Traffic,
    arrivals: Arrivals,
    /// Words asked within a batch are answered behind its commit: what they tell is durable, too.
    reports: Vec<(Report, oneshot::Sender<String>)>,
    stopping: bool,
    #[cfg(feature = "testing")]
    log: Option<super::testing::Log>,
}

impl Engine {
    /// Of a model that was made from what `store` holds up to `committed`.
    pub(super) fn new(
        model: Model,
        store: Box<dyn Store>,
        committed: i64,
        inbox: Arc<Inbox>,
        clock: Clock,
        facts: Facts,
    ) -> Self {
        Self {
            model,
            store,
            inbox,
            clock,
            facts,
            connections: Connections::default(),
            effects: Vec::new(),
            committed,
            traffic: Traffic::default(),
            arrivals: Arrivals::since(Instant::now()),
            reports: Vec::new(),
            stopping: false,
            #[cfg(feature = "testing")]
            log: None,
        }
    }

    /// Hands every transaction to a log, before its batch is committed.
    #[cfg(feature = "testing")]
    pub(super) fn log_to(&mut self, mut log: super::testing::Log) {
        self.model.keep_log();
        log.begin(self.committed);
        self.log = Some(log);
    }

    /// Serves until it is told to stop, or cannot keep its promise.
    pub(super) fn run(&mut self) -> Result<(), StopReason> {
        let mut batch = Vec::with_capacity(INBOX_REQUESTS);
        let mut looks = Looks::default();
        while !self.stopping {
            let full = self.inbox.take(&mut batch, self.patience());
            let now = self.clock.now();
            for message in batch.drain(..) {
                self.accept(now, message);
                if self.model.changed_nodes() >= COMMIT_NODES {
                    self.commit()?;
                    self.release();
                }
            }
            self.tick(Now { monotonic_ms: looks.at(now.monotonic_ms, full), ..now });
            self.commit()?;
            self.release();
        }
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        self.model.next_tick().map(|due| self.clock.until(due).max(LOOK_AGAIN))
    }

    /// Lets time pass up to where all that came was handled.
    fn tick(&mut self, now: Now) {
        if self.model.next_tick().is_some_and(|due| due <= now.monotonic_ms) {
            self.model.tick(now, &mut self.effects);
            self.perform(now);
        }
    }

    fn accept(&mut self, now: Now, message: Message) {
        match message {
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
            Message::Reader(answer) => {
                hand(answer, self.store.reader());
            }
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

    fn commit(&mut self) -> Result<(), StopReason> {
        let changes = self.model.take_changes();
        #[cfg(feature = "testing")]
        if let Some(log) = &mut self.log {
            log.append(self.model.take_log());
        }
        if changes.rows.is_empty() && changes.zxid == self.committed {
            return Ok(());
        }
        self.store.commit(&changes).map_err(|source| StopReason::Commit(Arc::new(source)))?;
        self.committed = changes.zxid;
        Ok(())
    }

    fn release(&mut self) {
        let now = Instant::now();
        self.traffic.latency.record(self.arrivals.take(), now);
        self.traffic.sent += self.connections.release(now);
        for (report, answer) in std::mem::take(&mut self.reports) {
            let source = Source {
                facts: &self.facts,
                model: &self.model,
                store: &*self.store,
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
    }
}

/// Answers who asked; one that no longer waits needs no answer.
fn hand<T>(answer: oneshot::Sender<T>, value: T) {
    if answer.send(value).is_err() {
        debug!("nobody waits for an answer any more");
    }
}
