//! The result of one batch for one connection: sealed by the engine, delivered when the batch is durable.

use std::sync::Arc;

use super::super::outbox::{End, Outbox};
use super::super::stats::Arrivals;
use crate::model::ConnectionId;

/// Replies and notifications for the outbox of one connection.
#[derive(Debug)]
pub(super) struct SealedReplies {
    pub(super) connection: ConnectionId,
    pub(super) outbox: Arc<Outbox>,
    /// Promised to the outbox; empty after the delivery.
    pub(super) bytes: Vec<u8>,
    /// The part of `bytes` that is notifications.
    pub(super) notices: usize,
    /// The number of requests that the bytes answer, and the size of those requests.
    pub(super) requests: (usize, usize),
    /// The connection ends after these bytes.
    pub(super) last: bool,
    pub(super) frames: u64,
    pub(super) arrivals: Arrivals,
}

impl SealedReplies {
    /// Delivers the bytes. The batch must be durable.
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
