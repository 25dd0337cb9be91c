//! What one batch has for one connection: sealed by the engine, delivered when the batch is durable.

use std::sync::Arc;

use super::super::outbox::{End, Outbox};
use super::super::stats::Arrivals;
use crate::model::ConnectionId;

/// Replies and notifications on their way to one connection's outbox.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) connection: ConnectionId,
    pub(super) outbox: Arc<Outbox>,
    /// Promised to the outbox; empty when they were delivered.
    pub(super) bytes: Vec<u8>,
    /// As many of them are notifications.
    pub(super) notices: usize,
    /// Requests that they answer, and what those weighed.
    pub(super) requests: (usize, usize),
    /// The connection ends behind them.
    pub(super) last: bool,
    pub(super) frames: u64,
    pub(super) arrivals: Arrivals,
}

impl Letter {
    /// Lets go of what is durable now.
    pub(super) fn deliver(&mut self) {
        self.outbox.deliver(&mut self.bytes, self.notices);
        let (requests, bytes) = self.requests;
        if requests > 0 {
            self.outbox.answer(requests, bytes);
        }
        if self.last {
            self.outbox.end(End::Flushed);
        }
    }
}
