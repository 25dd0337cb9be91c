//! A proxy that understands ZooKeeper's frames and can drop them.
//!
//! **Why frame-aware:** the important faults lie between two frames. "The multi was committed and its reply was lost"
//! cannot be produced by closing a socket at some moment; a proxy must receive the reply and drop it.
//!
//! ```text
//!             ┌ requests: reader → [planned faults] → queue → writer ┐
//!  client ────┤                                                      ├──── server
//!             └ replies:  writer ← queue ← [planned faults] ← reader ┘
//! ```
//!
//! Readers inspect frames and apply faults ([`connection`]). Writers apply the [`controls`] (delay, stall, black hole)
//! and keep the order: a cut that replaces a frame happens after all earlier frames are written ([`lane`]). The proxy
//! runs on a separate thread, so neither a blocked test runtime nor paused time stops it.
//!
//! **Limits:** no four-letter words, no TLS, one server. Faults are planned per proxy, so a test should use a separate
//! proxy for the client that is to fail.

mod connection;
mod controls;
mod fault;
mod frame;
mod lane;
mod listener;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use controls::{Cut, Direction};
pub use fault::{Fault, HeldReply, Matches, Request};

use crate::{Credentials, RawClient};
use controls::{Controls, Door, Events, Flow};
use fault::{Action, Plan};
use listener::Observed;

/// A reconnect of the client that was in progress can take the session back; a second one cannot pass the proxy.
const EXPIRE_TRIES: u32 = 3;

/// A cheap-clone handle of a running proxy. When the last clone is dropped, the proxy stops and closes all its
/// connections.
///
/// All methods except [`expire_session`](Self::expire_session) take effect immediately and do not block.
#[derive(Debug, Clone)]
pub struct Proxy {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    upstream: SocketAddr,
    chroot: String,
    controls: watch::Sender<Controls>,
    plan: Arc<Plan>,
    observed: Arc<Observed>,
}

impl Proxy {
    /// Starts a proxy to the server of a connect string with one host, with or without a chroot.
    ///
    /// # Panics
    /// If the host cannot be resolved or no port is free.
    pub fn to(connect_string: &str) -> Self {
        let (host, chroot) =
            connect_string.split_at(connect_string.find('/').unwrap_or(connect_string.len()));
        let upstream = host.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let upstream =
            upstream.unwrap_or_else(|| panic!("not the connect string of one server: {connect_string}"));
        let (controls, receiver) = watch::channel(Controls::default());
        let (plan, observed) = (Arc::<Plan>::default(), Arc::<Observed>::default());
        let address = listener::spawn(upstream, receiver, Arc::clone(&plan), Arc::clone(&observed))
            .unwrap_or_else(|error| panic!("could not start a proxy to {connect_string}: {error}"));
        let chroot = chroot.to_owned();
        Self { inner: Arc::new(Inner { address, upstream, chroot, controls, plan, observed }) }
    }

    /// Returns the connect string for the client under test: the proxy's address and the chroot given to
    /// [`to`](Self::to).
    pub fn connect_string(&self) -> String {
        format!("{}{}", self.inner.address, self.inner.chroot)
    }

    /// Returns the listen address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.inner.address
    }

    /// Cuts all current connections.
    pub fn cut(&self, cut: Cut) {
        self.control(|controls| {
            controls.cuts += 1;
            controls.cut = cut;
        });
    }

    /// Resets every new connection, until [`accept`](Self::accept). Current ones are kept.
    pub fn refuse(&self) {
        self.control(|controls| controls.door = Door::Closed);
    }

    /// Accepts new connections again.
    pub fn accept(&self) {
        self.control(|controls| controls.door = Door::Open);
    }

    /// Drops frames and closes silently, on all current and new connections, until [`heal`](Self::heal).
    ///
    /// A connection that lost a frame is reset on its first frame after that, because its stream has a gap.
    pub fn black_hole(&self, direction: Direction) {
        self.control(|controls| controls.set_flow(direction, Flow::Swallow));
    }

    /// Holds all frames of all connections and delivers them on [`heal`](Self::heal): a partition that ends before the
    /// sockets time out.
    pub fn stall(&self, direction: Direction) {
        self.control(|controls| controls.set_flow(direction, Flow::Stall));
    }

    /// Delays each frame in each direction by `delay`: a round trip takes twice that longer. Throughput is not limited,
    /// and the order is kept.
    pub fn delay(&self, delay: Duration) {
        self.control(|controls| controls.delay = delay);
    }

    /// Delays each watch event by `delay`, and all later frames on its connection: ZooKeeper guarantees that a client
    /// sees an event before the change itself, and no network fault breaks that guarantee.
    pub fn delay_events(&self, delay: Duration) {
        self.control(|controls| controls.events = Events::Delay(delay));
    }

    /// Drops watch events, and only them, until [`heal`](Self::heal).
    pub fn drop_events(&self) {
        self.control(|controls| controls.events = Events::Drop);
    }

    /// Ends all persistent faults: accepts connections, passes frames, no delay. Planned faults for single requests
    /// remain planned.
    pub fn heal(&self) {
        self.control(Controls::heal);
    }

    /// Lets the server execute the next matching request, drops its reply and cuts the connection: *committed, but the
    /// client cannot know*.
    pub fn swallow_reply_and_cut(&self, request: impl Matches, cut: Cut) -> Fault {
        let (trigger, fault) = fault::pair("a lost reply", &request);
        self.inner.plan.add(request, Action::LoseReply(cut, trigger));
        fault
    }

    /// Drops the next matching request and cuts the connection: *not committed, but the client cannot know*.
    pub fn drop_request_and_cut(&self, request: impl Matches, cut: Cut) -> Fault {
        let (trigger, fault) = fault::pair("a lost request", &request);
        self.inner.plan.add(request, Action::LoseRequest(cut, trigger));
        fault
    }

    /// Holds the reply to the next matching request, and all later replies on the connection, until the returned value
    /// is released or dropped. Pings are held too: a client closes its connection after a part of its session timeout.
    pub fn hold_reply(&self, request: impl Matches) -> HeldReply {
        let (trigger, fault) = fault::pair("a held reply", &request);
        let (gate, held) = fault::gate(fault);
        self.inner.plan.add(request, Action::HoldReply(trigger, gate));
        held
    }

    /// Calls `witness` for every later request, with the session that sends it, before any fault is applied: a request
    /// that it sees may never reach the server.
    pub fn witness(&self, witness: impl Fn(i64, &Request<'_>) + Send + 'static) {
        self.inner.plan.witness(witness);
    }

    /// Returns the session that the server granted last through this proxy, of those that their clients have not closed.
    pub fn session(&self) -> Option<Credentials> {
        self.inner.observed.session()
    }

    /// Returns the number of successful handshakes through this proxy, which grows with every reconnect.
    pub fn handshakes(&self) -> u64 {
        self.inner.observed.handshakes()
    }

    /// Makes the server expire the [`session`](Self::session). When this returns, its ephemeral nodes are deleted; its
    /// client is notified when it reconnects.
    ///
    /// Until then the client is cut and refused, because it would take the session back. Needs a tokio runtime. If the
    /// future is dropped, the proxy keeps refusing connections.
    ///
    /// # Panics
    /// If no client has connected through this proxy, or the server does not reply.
    pub async fn expire_session(&self) -> Credentials {
        let victim = self.session().expect("a client has connected through this proxy");
        let door = self.inner.controls.borrow().door;
        self.refuse();
        self.cut(Cut::Reset);

        let (upstream, credentials) = (self.inner.upstream, victim.clone());
        let ended = tokio::task::spawn_blocking(move || end_session(upstream, &credentials));
        ended
            .await
            .expect("ending a session cannot panic")
            .unwrap_or_else(|error| panic!("session {:#x} could not be expired: {error}", victim.session_id));

        self.control(|controls| controls.door = door);
        victim
    }

    fn control(&self, change: impl FnOnce(&mut Controls)) {
        self.inner.controls.send_modify(change);
    }
}

fn end_session(upstream: SocketAddr, victim: &Credentials) -> io::Result<()> {
    let mut tries = 1;
    loop {
        match RawClient::attach(upstream, victim.clone()).and_then(RawClient::close) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()), // It had already expired.
            Err(_) if tries < EXPIRE_TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
