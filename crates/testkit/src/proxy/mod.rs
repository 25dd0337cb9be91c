//! A proxy that understands ZooKeeper's frames and loses them on demand.
//!
//! **Why frame-aware:** the faults that matter lie between two frames. "The multi committed and its reply was lost"
//! cannot be staged by cutting a socket at some moment; it takes someone who has the reply in hand and drops it.
//!
//! ```text
//!             ┌ requests: reader → [planned faults] → queue → writer ┐
//!  client ────┤                                                      ├──── server
//!             └ replies:  writer ← queue ← [planned faults] ← reader ┘
//! ```
//!
//! Readers inspect and decide ([`connection`]), writers obey the standing [`controls`] (delay, stall, black hole) and
//! keep the order: a cut that replaces a frame happens after all frames before it are out ([`lane`]). The proxy runs
//! on a thread of its own, so neither a blocked test runtime nor paused time stops it.
//!
//! **Limits:** no four-letter words, no TLS, one server behind it. Faults are planned per proxy, so give the client
//! to be hurt a proxy for itself.

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

/// A victim's reconnect that was on its way may take its session back from us; a second one cannot pass the proxy.
const EXPIRE_TRIES: u32 = 3;

/// A cheap-clone handle on a running proxy; it stops, and closes all its connections, with the last clone.
///
/// All methods but [`expire_session`](Self::expire_session) take effect at once and do not block.
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
    /// When the host cannot be resolved or no port is free.
    pub fn to(connect_string: &str) -> Self {
        let (host, chroot) =
            connect_string.split_at(connect_string.find('/').unwrap_or(connect_string.len()));
        let upstream = host.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let upstream = upstream.unwrap_or_else(|| panic!("not the address of one server: {connect_string}"));
        let (controls, receiver) = watch::channel(Controls::default());
        let (plan, observed) = (Arc::<Plan>::default(), Arc::<Observed>::default());
        let address = listener::spawn(upstream, receiver, Arc::clone(&plan), Arc::clone(&observed))
            .unwrap_or_else(|error| panic!("no proxy to {connect_string}: {error}"));
        let chroot = chroot.to_owned();
        Self { inner: Arc::new(Inner { address, upstream, chroot, controls, plan, observed }) }
    }

    /// The connect string for the client to be hurt: the proxy's address and the chroot given at the start.
    pub fn connect_string(&self) -> String {
        format!("{}{}", self.inner.address, self.inner.chroot)
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.inner.address
    }

    /// Cuts all connections that exist at this moment.
    pub fn cut(&self, cut: Cut) {
        self.control(|controls| {
            controls.cuts += 1;
            controls.cut = cut;
        });
    }

    /// Resets every new connection, until [`accept`](Self::accept). Existing ones go on.
    pub fn refuse(&self) {
        self.control(|controls| controls.door = Door::Closed);
    }

    /// Lets new connections in again.
    pub fn accept(&self) {
        self.control(|controls| controls.door = Door::Open);
    }

    /// Swallows frames and closes silently, on all connections old and new, until [`heal`](Self::heal).
    ///
    /// A connection that lost a frame is reset on its first frame after that, as its stream has a hole.
    pub fn black_hole(&self, direction: Direction) {
        self.control(|controls| controls.set_flow(direction, Flow::Swallow));
    }

    /// Holds all frames back, on all connections, and delivers them on [`heal`](Self::heal): a partition that ends
    /// before the sockets give up.
    pub fn stall(&self, direction: Direction) {
        self.control(|controls| controls.set_flow(direction, Flow::Stall));
    }

    /// Delays each frame, in each direction, by `delay`: a round trip takes twice as long more. Throughput is not
    /// limited, and order is kept.
    pub fn delay(&self, delay: Duration) {
        self.control(|controls| controls.delay = delay);
    }

    /// Delays each watch event by `delay`, and with it what follows on its connection: ZooKeeper promises that an
    /// event is seen before the change that it is about, and no fault of a network breaks that.
    pub fn delay_events(&self, delay: Duration) {
        self.control(|controls| controls.events = Events::Delay(delay));
    }

    /// Swallows watch events, and only them, until [`heal`](Self::heal).
    pub fn drop_events(&self) {
        self.control(|controls| controls.events = Events::Drop);
    }

    /// Ends all standing faults: doors open, frames flow, no delay. Planned one-time faults stay planned.
    pub fn heal(&self) {
        self.control(Controls::heal);
    }

    /// The next request that matches is carried out by the server; its reply is dropped and the connection cut:
    /// *committed, and the client cannot know*.
    pub fn swallow_reply_and_cut(&self, request: impl Matches, cut: Cut) -> Fault {
        let (trigger, fault) = fault::pair("a lost reply", &request);
        self.inner.plan.add(request, Action::LoseReply(cut, trigger));
        fault
    }

    /// The next request that matches never reaches the server; the connection is cut instead: *not committed, and
    /// the client cannot know*.
    pub fn drop_request_and_cut(&self, request: impl Matches, cut: Cut) -> Fault {
        let (trigger, fault) = fault::pair("a lost request", &request);
        self.inner.plan.add(request, Action::LoseRequest(cut, trigger));
        fault
    }

    /// The reply to the next request that matches is held back, and with it all that follows it on the connection,
    /// until the answer of this method is released or dropped. Pings are held too: a client gives up on its
    /// connection after a part of its session timeout.
    pub fn hold_reply(&self, request: impl Matches) -> HeldReply {
        let (trigger, fault) = fault::pair("a held reply", &request);
        let (gate, held) = fault::gate(fault);
        self.inner.plan.add(request, Action::HoldReply(trigger, gate));
        held
    }

    /// Shows every request that comes from now on, with the session that sends it, before any fault is decided: what is
    /// shown may never arrive.
    pub fn witness(&self, witness: impl Fn(i64, &Request<'_>) + Send + 'static) {
        self.inner.plan.witness(witness);
    }

    /// The session that the server granted last through this proxy.
    pub fn session(&self) -> Option<Credentials> {
        self.inner.observed.session()
    }

    /// How many handshakes have succeeded through this proxy: it grows with every reconnect.
    pub fn handshakes(&self) -> u64 {
        self.inner.observed.handshakes()
    }

    /// Makes the server expire the [`session`](Self::session): when this returns, its ephemeral nodes are gone, and
    /// its client learns of it as soon as it reconnects.
    ///
    /// The client is cut and kept out meanwhile, as it would take the session back. Needs a tokio runtime. If it is
    /// cancelled, the door stays closed.
    ///
    /// # Panics
    /// When no client has connected through this proxy, or the server does not answer.
    pub async fn expire_session(&self) -> Credentials {
        let victim = self.session().expect("a client has connected through this proxy");
        let door = self.inner.controls.borrow().door;
        self.refuse();
        self.cut(Cut::Reset);

        let (upstream, credentials) = (self.inner.upstream, victim.clone());
        let ended = tokio::task::spawn_blocking(move || end_session(upstream, &credentials));
        ended
            .await
            .expect("ending a session does not panic")
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()), // It had expired by itself.
            Err(_) if tries < EXPIRE_TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
