//! The client library of one process.
//!
//! ```text
//!  Away ──attempt──▶ Up(connection) ──lost──▶ Down ──attempt, same session──▶ Up
//!    ▲                                         │
//!    └────── rejected by the server, or given up after 1.4 to 1.8 timeouts: Expired
//! ```
//!
//! When a connection ends, a request without a reply is *lost*, a recursive watch is dead, and a one-shot watch is set
//! again and reports the change that it missed. The library has no timers of its own: the world calls it.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bellwether_core::contact::Contact;
use bellwether_keeper::proto::{EventKind, Reply, Request, Response, WatchedEvent};
use futures::channel::oneshot;

use super::protocol::Answer;
use super::{View, Zk};

/// The number of a connection; never reused.
pub(crate) type Conn = u64;

/// Converts the answer to a request to a message for the sender.
pub(crate) type Then<M> = Box<dyn FnOnce(Answer) -> M>;

/// Converts a watch event to a message.
pub(crate) type Heard<M> = Box<dyn Fn(&WatchedEvent) -> M>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// There is no session.
    Away,
    Up(Conn),
    /// The connection is lost; the session may still be alive.
    Down,
}

struct Pending<M> {
    xid: i32,
    sent_us: u64,
    then: Option<Then<M>>,
}

/// A recursive watch.
struct Feed<M> {
    id: u64,
    path: String,
    /// The feed ignores events until the server has set it: earlier ones belong to an older watch on the path.
    set: Rc<Cell<bool>>,
    heard: Heard<M>,
}

/// A one-shot watch on a znode's existence and data.
struct Glance<M> {
    path: String,
    then: Box<dyn FnOnce() -> M>,
}

/// Resolved by a change; dropped when the session ends.
pub(crate) type Changed = oneshot::Sender<()>;

/// What a one-shot watch of a read reports. Both report the deletion of the znode, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A change of the data.
    Data,
    /// A new or deleted child.
    Children,
}

impl Part {
    /// The read that also sets the watch, if the znode exists.
    pub(crate) fn read_and_watch(self, path: String) -> Request {
        match self {
            Self::Data => Request::GetData { path, watch: true },
            Self::Children => Request::GetChildren { path, watch: true, stat: false },
        }
    }

    fn hears(self, kind: EventKind) -> bool {
        match kind {
            EventKind::NodeDeleted => true,
            EventKind::NodeDataChanged => self == Self::Data,
            EventKind::NodeChildrenChanged => self == Self::Children,
            EventKind::NodeCreated | EventKind::PersistentWatchRemoved => false,
        }
    }
}

/// A one-shot watch on a part of a znode.
struct Peek {
    path: String,
    part: Part,
    /// Whether the read found the znode and so set the watch.
    set: Rc<Cell<bool>>,
    changed: Changed,
}

pub(crate) struct Library<M> {
    pub(crate) state: State,
    pub(crate) view: View,
    /// What the answered syncs of the session prove, and when the session was requested.
    contact: Option<(Contact, u64)>,
    pub(crate) password: Vec<u8>,
    /// When the last frame from the server arrived.
    pub(crate) heard_us: u64,
    pub(crate) last_zxid: i64,
    next_xid: i32,
    pending: VecDeque<Pending<M>>,
    feeds: Vec<Feed<M>>,
    glances: Vec<Glance<M>>,
    peeks: Vec<Peek>,
    next_feed: u64,
}

/// The fixed xid of `setWatches` and of its reply.
const SET_WATCHES_XID: i32 = -8;

impl<M> Library<M> {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Away,
            view: View::default(),
            contact: None,
            password: Vec::new(),
            heard_us: 0,
            last_zxid: 0,
            next_xid: 0,
            pending: VecDeque::new(),
            feeds: Vec::new(),
            glances: Vec::new(),
            peeks: Vec::new(),
            next_feed: 0,
        }
    }

    /// Returns the connection, if a holder of this session may send a request.
    pub(crate) fn serves(&self, zk: Zk) -> Option<Conn> {
        match self.state {
            State::Up(conn) if self.view.generation == zk.0 => Some(conn),
            State::Up(_) | State::Down | State::Away => None,
        }
    }

    /// Assigns an xid to a request that is being sent.
    pub(crate) fn sending(&mut self, now_us: u64, then: Option<Then<M>>) -> i32 {
        self.next_xid += 1;
        self.pending.push_back(Pending { xid: self.next_xid, sent_us: now_us, then });
        self.next_xid
    }

    /// Adds a recursive watch. It ignores events until the reply to it sets the returned flag.
    pub(crate) fn add_feed(&mut self, path: String, heard: Heard<M>) -> Rc<Cell<bool>> {
        self.next_feed += 1;
        let set = Rc::new(Cell::new(false));
        self.feeds.push(Feed { id: self.next_feed, path, set: Rc::clone(&set), heard });
        set
    }

    /// Sets the glance on a path. It replaces an earlier one. The receiver drops the messages of glances that it replaced by
    /// others.
    pub(crate) fn glance(&mut self, path: String, then: Box<dyn FnOnce() -> M>) {
        self.glances.retain(|glance| glance.path != path);
        self.glances.push(Glance { path, then });
    }

    /// Adds a one-shot watch. It ignores events until the reply to its read sets the returned flag.
    pub(crate) fn peek(&mut self, path: String, part: Part, changed: Changed) -> Rc<Cell<bool>> {
        self.peeks.retain(|peek| !peek.changed.is_canceled());
        let set = Rc::new(Cell::new(false));
        self.peeks.push(Peek { path, part, set: Rc::clone(&set), changed });
        set
    }

    /// Starts the contact of a new session, which was requested at this time.
    pub(crate) fn began(&mut self, sent_us: u64) {
        self.contact = Some((Contact::new(Duration::from_micros(self.view.timeout_us)), sent_us));
        self.view.last_contact_us = sent_us;
    }

    /// Returns when the oldest unanswered request was sent.
    pub(crate) fn oldest_request_us(&self) -> Option<u64> {
        self.pending.front().map(|pending| pending.sent_us)
    }

    /// Handles a reply.
    pub(crate) fn replied(&mut self, reply: Reply) -> Option<M> {
        if reply.zxid > 0 {
            self.last_zxid = self.last_zxid.max(reply.zxid);
        }
        if reply.xid == SET_WATCHES_XID {
            return None;
        }
        let pending = self.pending.pop_front().filter(|pending| pending.xid == reply.xid);
        let pending = pending.expect("the server replies in order");
        if let (Ok(Response::Synced(_)), Some((contact, began_us))) = (&reply.result, &mut self.contact) {
            let since = |at_us: u64| Duration::from_micros(at_us - *began_us);
            contact.answered(since(pending.sent_us), since(self.heard_us));
            let heard_us = u64::try_from(contact.heard().as_micros()).expect("simulations are short");
            self.view.last_contact_us = *began_us + heard_us;
        }
        pending.then.map(|then| then(Answer::Reply(reply.result)))
    }

    /// Handles a watch event: returns the messages of the feeds, by feed number, and of the glances.
    pub(crate) fn notified(&mut self, event: &WatchedEvent) -> (Vec<(u64, M)>, Vec<M>) {
        self.last_zxid = self.last_zxid.max(event.zxid);
        let below = |parent: &str| {
            event.path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let feeds = self.feeds.iter().filter(|feed| feed.set.get() && below(&feed.path));
        let heard = feeds.map(|feed| (feed.id, (feed.heard)(event))).collect();
        let peeks = std::mem::take(&mut self.peeks).into_iter();
        let (fired, left): (Vec<_>, Vec<_>) =
            peeks.partition(|peek| peek.set.get() && peek.part.hears(event.kind) && peek.path == event.path);
        self.peeks = left;
        for Peek { changed, .. } in fired {
            // An error means that its task has been dropped.
            let _heard = changed.send(());
        }
        let glanced = self.glances.extract_if(.., |glance| glance.path == event.path);
        (heard, glanced.map(|glance| (glance.then)()).collect())
    }

    /// Handles the loss of the connection: every unanswered request is lost.
    pub(crate) fn lost(&mut self) -> Vec<M> {
        self.state = State::Down;
        self.feeds.clear();
        self.peeks.retain(|peek| peek.set.get());
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().filter_map(|pending| Some(pending.then?(Answer::Lost))).collect()
    }

    /// Returns the first request of a new connection of the same session: it sets the one-shot watches.
    pub(crate) fn set_watches(&self) -> Option<(i32, Request)> {
        let peeks = |part| {
            let peeks =
                self.peeks.iter().filter(move |peek| peek.part == part && !peek.changed.is_canceled());
            peeks.map(|peek| &peek.path)
        };
        let glances = self.glances.iter().map(|glance| &glance.path);
        let data = glances.chain(peeks(Part::Data)).collect::<BTreeSet<_>>();
        let child = peeks(Part::Children).collect::<BTreeSet<_>>();
        if data.is_empty() && child.is_empty() {
            return None;
        }
        let request = Request::SetWatches {
            relative_zxid: self.last_zxid,
            data: data.into_iter().cloned().collect(),
            exist: Vec::new(),
            child: child.into_iter().cloned().collect(),
            persistent: Vec::new(),
            recursive: Vec::new(),
        };
        Some((SET_WATCHES_XID, request))
    }

    /// Handles the end of the session.
    pub(crate) fn ended(&mut self) -> Vec<M> {
        self.state = State::Away;
        self.view.connected = false;
        self.peeks.clear();
        self.glances.drain(..).map(|glance| (glance.then)()).collect()
    }
}
