//! The connections, and their replies and notifications of the current batch.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::super::fourletter::operation;
use super::super::inbox::Asked;
use super::super::limits::{BATCH_NOTICE_BYTES, NOTICE_BYTES, REPLIES_HIGH, REPLIES_LOW, REPLY_BYTES};
use super::super::memory::Memory;
use super::super::outbox::{End, Outbox};
use super::super::stats::{Arrivals, Latency};
use super::sealed_replies::SealedReplies;
use crate::model::{ConnectionId, Effect};
use crate::proto::{self, Id, Reply, Response, WatchedEvent};

/// The reason why a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum Excess {
    #[error("more than {NOTICE_BYTES} bytes of notifications are unread")]
    Notices,
    #[error("more than {BATCH_NOTICE_BYTES} bytes of notifications for all clients wait for the disk")]
    AllNotices,
    #[error("a reply would be longer than {REPLY_BYTES} bytes")]
    Reply,
    #[error("the memory of all connections is used up, and this one holds {0} bytes")]
    Memory(usize),
}

/// The engine's view of one connection.
#[derive(Debug)]
pub(in super::super) struct Connection {
    pub(in super::super) peer: SocketAddr,
    pub(in super::super) outbox: Arc<Outbox>,
    /// Requests that wait until the client reads.
    pub(super) parked: VecDeque<Asked>,
    /// Bytes encoded in this batch, while the previous batch is being committed.
    pending: Vec<u8>,
    /// The part of `pending` that is notifications.
    notices: usize,
    /// The model closed the connection in this batch.
    closing: bool,
    /// The connection is in the list `touched`.
    touched: bool,
    done: Done,
    pub(in super::super) record: Record,
}

/// Counts of this batch.
#[derive(Debug)]
struct Done {
    requests: usize,
    bytes: usize,
    arrivals: Arrivals,
    frames: u64,
}

/// The data that `cons` reports about a connection.
#[derive(Debug)]
pub(in super::super) struct Record {
    pub(in super::super) established: SystemTime,
    pub(in super::super) session: Option<(i64, i32)>,
    pub(in super::super) last_operation: &'static str,
    pub(in super::super) last_xid: i32,
    pub(in super::super) last_zxid: i64,
    pub(in super::super) last_response: Option<SystemTime>,
    pub(in super::super) received: u64,
    pub(in super::super) sent: u64,
    pub(in super::super) latency: Latency,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, outbox: Arc<Outbox>) -> Self {
        Self {
            peer,
            outbox,
            parked: VecDeque::new(),
            pending: Vec::new(),
            notices: 0,
            closing: false,
            touched: false,
            done: Done { requests: 0, bytes: 0, arrivals: Arrivals::since(Instant::now()), frames: 0 },
            record: Record {
                established: SystemTime::now(),
                session: None,
                last_operation: "NA",
                last_xid: 0,
                last_zxid: 0,
                last_response: None,
                received: 1,
                sent: 0,
                latency: Latency::default(),
            },
        }
    }

    /// Returns whether the client reads its replies. If not, the writer will notify the engine when it does.
    pub(super) fn reads(&self) -> bool {
        if self.unsent() <= REPLIES_HIGH {
            return true;
        }
        self.outbox.park();
        // All bytes may have been written before `park`; then the writer does not notify.
        self.unsent() <= REPLIES_LOW && self.outbox.unpark()
    }

    /// Frees the memory of requests that are not parked any more, once less than a quarter of it is used, so that a client that
    /// reads slowly does not cause a copy of the others each time.
    pub(super) fn free_parked(&mut self) {
        if self.parked.len() < self.parked.capacity() / 4 {
            self.parked.shrink_to_fit();
        }
    }

    /// Encodes something for the client.
    fn append(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let before = self.pending.len();
        encode(&mut self.pending);
        self.outbox.share.hold(self.pending.len() - before);
    }

    fn unsent(&self) -> usize {
        self.outbox.unsent() + self.pending.len()
    }

    /// Counts a request that is handled now.
    pub(super) fn note(&mut self, asked: &Asked) {
        self.done.requests += 1;
        self.done.bytes += asked.size;
        self.done.arrivals.add(asked.received);
        self.record.received += 1;
        self.record.last_xid = asked.xid;
        self.record.last_operation = operation(&asked.request);
    }

    /// Seals the result of this batch.
    fn seal(&mut self, connection: ConnectionId) -> SealedReplies {
        self.touched = false;
        let notices = std::mem::take(&mut self.notices);
        self.outbox.promise(self.pending.len(), notices);
        SealedReplies {
            connection,
            outbox: Arc::clone(&self.outbox),
            bytes: std::mem::take(&mut self.pending),
            notices,
            requests: (std::mem::take(&mut self.done.requests), std::mem::take(&mut self.done.bytes)),
            last: self.closing,
            frames: std::mem::take(&mut self.done.frames),
            arrivals: self.done.arrivals.take(),
        }
    }

    /// Records delivered replies, and keeps the buffer for the next batch.
    fn delivered(&mut self, replies: SealedReplies, at: Instant) {
        self.record.sent += replies.frames;
        self.record.latency.record(replies.arrivals, at);
        if replies.frames > 0 {
            self.record.last_response = Some(SystemTime::now());
        }
        if self.pending.capacity() == 0 {
            self.pending = replies.bytes;
        }
    }
}

/// All connections that sent their first frame.
#[derive(Debug, Default)]
pub(in super::super) struct Connections {
    all: HashMap<ConnectionId, Connection>,
    /// Connections with a result in this batch, in the order of their first one.
    touched: Vec<ConnectionId>,
    cut: Vec<(ConnectionId, Excess)>,
    /// The encoded notification; a field to reuse its memory.
    notice: Vec<u8>,
    /// Bytes of notifications in this batch.
    notices: usize,
    /// Bytes of notifications in the batch that is being committed.
    sealed_notices: usize,
    /// What the connections hold.
    memory: Arc<Memory>,
}

impl Connections {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        let mut connections = Self::default();
        connections.memory = memory;
        connections
    }

    /// If the memory of all connections is used up, cuts those that hold most.
    pub(super) fn relieve(&mut self) {
        let mut excess = self.memory.excess();
        if excess == 0 {
            return;
        }
        let open = self.all.iter().filter(|(_, connection)| !connection.closing);
        let mut holders: Vec<_> =
            open.map(|(id, connection)| (connection.outbox.share.bytes(), *id)).collect();
        holders.sort_unstable();
        while let Some((held, id)) = holders.pop().filter(|(held, _)| *held > 0 && excess > 0) {
            self.cut(id, Excess::Memory(held));
            excess = excess.saturating_sub(held);
        }
    }

    pub(super) fn add(&mut self, id: ConnectionId, connection: Connection) {
        self.all.insert(id, connection);
    }

    /// Returns a connection that the model has not closed.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.all.get_mut(&id).filter(|connection| !connection.closing)
    }

    /// Marks a connection as having a result in this batch.
    pub(super) fn touch(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let connection = self.all.get_mut(&id).filter(|connection| !connection.closing)?;
        if !connection.touched {
            connection.touched = true;
            self.touched.push(id);
        }
        Some(connection)
    }

    /// Removes a connection; `None` if the model closed it before and so needs no input.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        self.all.remove(&id).filter(|connection| !connection.closing)
    }

    /// Returns the connections by id, which is the order of their arrival.
    pub(in super::super) fn sorted(&self) -> Vec<&Connection> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_unstable_by_key(|(id, _)| **id);
        all.into_iter().map(|(_, connection)| connection).collect()
    }

    /// Appends an effect to the buffers of its connections. Effects for a removed connection are dropped.
    pub(super) fn encode(&mut self, effect: Effect) {
        match effect {
            Effect::Connected(id, response) => {
                let Some(connection) = self.touch(id) else { return };
                if response.timeout_ms > 0 {
                    connection.record.session = Some((response.session_id, response.timeout_ms));
                    connection.record.last_operation = "SESS";
                }
                connection.append(|pending| proto::encode_connected(&response, pending));
                connection.done.frames += 1;
            }
            Effect::Reply(id, reply) => {
                let Some(connection) = self.touch(id) else { return };
                if bulk(&reply) > REPLY_BYTES {
                    return self.cut(id, Excess::Reply);
                }
                connection.record.last_zxid = reply.zxid;
                connection.append(|pending| proto::encode_reply(&reply, pending));
                connection.done.frames += 1;
            }
            Effect::Notify(hearers, event) => self.notify(&hearers, &event),
            Effect::Close(id) => {
                if let Some(connection) = self.touch(id) {
                    connection.closing = true;
                }
            }
        }
    }

    fn notify(&mut self, hearers: &[ConnectionId], event: &WatchedEvent) {
        let mut notice = std::mem::take(&mut self.notice);
        notice.clear();
        proto::encode_event(event, &mut notice);
        for &id in hearers {
            let Some(connection) = self.touch(id) else { continue };
            connection.append(|pending| pending.extend_from_slice(&notice));
            connection.notices += notice.len();
            connection.done.frames += 1;
            let unsent = connection.outbox.unsent_notices() + connection.notices;
            self.notices += notice.len();
            if unsent > NOTICE_BYTES {
                self.cut(id, Excess::Notices);
            } else if self.notices + self.sealed_notices > BATCH_NOTICE_BYTES {
                self.cut(id, Excess::AllNotices);
            }
        }
        self.notice = notice;
    }

    fn cut(&mut self, id: ConnectionId, excess: Excess) {
        let connection = self.all.remove(&id).expect("a connection is cut once");
        connection.outbox.end(End::Cut);
        self.notices = self.notices.saturating_sub(connection.notices);
        self.cut.push((id, excess));
    }

    /// Returns a connection that was cut during encoding and that the model does not know about yet.
    pub(super) fn take_cut(&mut self) -> Option<(ConnectionId, Excess)> {
        self.cut.pop()
    }

    /// Returns whether this batch has a result for any connection.
    pub(super) fn has_letters(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Seals the results of this batch and starts the next one. Connections without requests come first, because a client may
    /// wait for the notification. ZooKeeper has the same order.
    pub(super) fn seal(&mut self) -> Vec<SealedReplies> {
        self.sealed_notices = std::mem::take(&mut self.notices);
        let mut sealed = Vec::with_capacity(self.touched.len());
        for id in self.touched.drain(..) {
            // A connection that was cut or removed within the batch is still in the list.
            sealed.extend(self.all.get_mut(&id).map(|connection| connection.seal(id)));
        }
        sealed.sort_by_key(|replies| replies.requests.0 > 0);
        sealed
    }

    /// Records the delivery of sealed replies; returns the number of frames.
    pub(super) fn delivered(&mut self, sealed: Vec<SealedReplies>, at: Instant) -> u64 {
        self.sealed_notices = 0;
        let mut sent = 0;
        for replies in sealed {
            sent += replies.frames;
            if replies.last {
                self.all.remove(&replies.connection);
            } else if let Some(connection) = self.all.get_mut(&replies.connection) {
                connection.delivered(replies, at);
            }
        }
        sent
    }

    /// Resets the counters of `cons`.
    pub(super) fn reset(&mut self) {
        for connection in self.all.values_mut() {
            connection.record.received = 0;
            connection.record.sent = 0;
            connection.record.latency = Latency::default();
        }
    }
}

impl Drop for Connections {
    /// Also runs when the engine panics: replies that were delivered are still sent.
    fn drop(&mut self) {
        for connection in self.all.values() {
            connection.outbox.end(End::Flushed);
        }
    }
}

/// Returns the size of the part of a reply that can be large, before it is encoded.
fn bulk(reply: &Reply) -> usize {
    let Ok(response) = &reply.result else { return 0 };
    match response {
        Response::Names(names) | Response::NamesStat(names, _) => names_bytes(names),
        Response::Acl(acl, _) => acl.iter().map(|entry| id_bytes(&entry.id)).sum(),
        Response::Identities(ids) => ids.iter().map(id_bytes).sum(),
        // Bounded by the model, by the size of the request that wrote it, or fixed.
        Response::Multi(_)
        | Response::Data(..)
        | Response::Empty
        | Response::WatchAdded
        | Response::Path(_)
        | Response::PathStat(..)
        | Response::Stat(_)
        | Response::Count(_)
        | Response::Synced(_) => 0,
    }
}

fn id_bytes(id: &Id) -> usize {
    3 * size_of::<i32>() + id.scheme.len() + id.id.len()
}

fn names_bytes(names: &[String]) -> usize {
    names.iter().map(|name| size_of::<i32>() + name.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{EventKind, Request};

    fn connections(ids: &[ConnectionId]) -> Connections {
        let mut connections = Connections::default();
        for &id in ids {
            let peer = SocketAddr::from(([127, 0, 0, 1], 1));
            connections.add(id, Connection::new(peer, Arc::new(Outbox::default())));
        }
        connections
    }

    fn notify(hearers: &[ConnectionId]) -> Effect {
        let event = WatchedEvent { kind: EventKind::NodeCreated, path: "/a".to_owned(), zxid: 7 };
        Effect::Notify(hearers.to_vec(), event)
    }

    /// Seals and delivers a batch without changes.
    fn released(connections: &mut Connections) -> u64 {
        let mut sealed = connections.seal();
        sealed.iter_mut().for_each(SealedReplies::deliver);
        connections.delivered(sealed, Instant::now())
    }

    #[test]
    fn all_watchers_of_a_change_receive_the_same_bytes() {
        let (a, b, gone) = (ConnectionId(1), ConnectionId(2), ConnectionId(3));
        let mut connections = connections(&[a, b]);
        connections.encode(notify(&[a, gone, b]));
        let pending = |id| connections.all[&id].pending.clone();
        assert!(!pending(a).is_empty());
        assert_eq!(pending(a), pending(b));
        assert_eq!(released(&mut connections), 2);
    }

    #[test]
    fn the_memory_of_parked_requests_is_freed_when_few_are_left() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut connection = Connection::new(peer, Arc::new(Outbox::default()));
        for xid in 0..1_000 {
            connection.parked.push_back(Asked {
                xid,
                request: Request::Ping,
                size: 0,
                received: Instant::now(),
            });
        }
        let before = connection.parked.capacity();
        connection.parked.drain(..500);
        connection.free_parked();
        assert_eq!(connection.parked.capacity(), before);
        connection.parked.drain(..499);
        connection.free_parked();
        assert_eq!(connection.parked.len(), 1);
        assert!(connection.parked.capacity() < 8, "{}", connection.parked.capacity());
    }

    #[test]
    fn watchers_of_a_change_are_sealed_before_its_author() {
        let (author, watcher) = (ConnectionId(1), ConnectionId(2));
        let mut connections = connections(&[author, watcher]);
        connections.touch(author).unwrap().done.requests = 1;
        connections.encode(notify(&[watcher]));
        let sealed = connections.seal();
        assert_eq!(sealed.iter().map(|replies| replies.connection).collect::<Vec<_>>(), [watcher, author]);
    }

    #[test]
    fn connections_beyond_the_notification_limit_of_a_batch_are_cut() {
        let (a, b) = (ConnectionId(1), ConnectionId(2));
        let mut connections = connections(&[a, b]);
        connections.encode(notify(&[a]));
        let one = connections.notices;
        connections.notices = BATCH_NOTICE_BYTES - one;
        connections.encode(notify(&[a, b]));
        assert_eq!(connections.take_cut(), Some((b, Excess::AllNotices)));
        assert_eq!(connections.take_cut(), None);
        released(&mut connections);
        connections.encode(notify(&[a]));
        assert_eq!(
            (connections.take_cut(), connections.notices),
            (None, one),
            "the limit applies to each batch"
        );
    }
}
