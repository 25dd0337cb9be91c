//! The links of one process: one proxy per server, so that a fault of this process's network affects no other process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_testkit::{Cut, Direction, Fault, Proxy, RawClient, Request};

use crate::witness::Witness;

/// The proxies between one process and the servers, in the servers' order.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    servers: Vec<SocketAddr>,
    proxies: Vec<Proxy>,
    last: Arc<Last>,
}

/// The session that sent last, and the proxy that it used.
#[derive(Debug, Default)]
struct Last {
    session: AtomicI64,
    proxy: AtomicUsize,
}

impl Links {
    pub(crate) fn to(servers: &[SocketAddr], witness: &Witness) -> Self {
        let last = Arc::<Last>::default();
        let proxies: Vec<_> = servers.iter().map(|server| Proxy::to(&server.to_string())).collect();
        for (index, proxy) in proxies.iter().enumerate() {
            witness.watch(proxy);
            let last = Arc::clone(&last);
            proxy.witness(move |session, _| {
                last.session.store(session, Ordering::Relaxed);
                last.proxy.store(index, Ordering::Relaxed);
            });
        }
        Self { servers: servers.to_vec(), proxies, last }
    }

    /// Returns the connect string of the process.
    pub(crate) fn connect_string(&self, chroot: &str) -> String {
        let hosts: Vec<_> = self.proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        format!("{}{chroot}", hosts.join(","))
    }

    pub(crate) fn heal(&self) {
        self.each(Proxy::heal);
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.each(|proxy| proxy.cut(cut));
    }

    /// Refuses new connections and resets the existing ones.
    pub(crate) fn refuse(&self) {
        self.each(|proxy| {
            proxy.refuse();
            proxy.cut(Cut::Reset);
        });
    }

    pub(crate) fn black_hole(&self, direction: Direction) {
        self.each(|proxy| proxy.black_hole(direction));
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.each(|proxy| proxy.delay(delay));
    }

    pub(crate) fn stall(&self, direction: Direction) {
        self.each(|proxy| proxy.stall(direction));
    }

    /// Holds back requests to the server that the process is connected to. Other servers stay reachable.
    pub(crate) fn stall_present(&self) {
        if let Some(proxy) = self.proxies.get(self.last.proxy.load(Ordering::Relaxed)) {
            proxy.stall(Direction::ToServer);
        }
    }

    pub(crate) fn drop_events(&self) {
        self.each(Proxy::drop_events);
    }

    pub(crate) fn delay_events(&self, delay: Duration) {
        self.each(|proxy| proxy.delay_events(delay));
    }

    /// Loses the reply to the next multi that matches, and breaks its connection.
    pub(crate) fn lose_reply(&self, matches: fn(&Request<'_>) -> bool, cut: Cut) -> Planned {
        self.plan(matches, |proxy, matches| proxy.swallow_reply_and_cut(matches, cut))
    }

    /// Loses the next multi that matches, and breaks its connection.
    pub(crate) fn lose_request(&self, matches: fn(&Request<'_>) -> bool, cut: Cut) -> Planned {
        self.plan(matches, |proxy, matches| proxy.drop_request_and_cut(matches, cut))
    }

    fn plan(
        &self,
        matches: fn(&Request<'_>) -> bool,
        plan: impl Fn(&Proxy, Box<dyn Fn(&Request<'_>) -> bool + Send>) -> Fault,
    ) -> Planned {
        let spent = Arc::new(AtomicBool::new(false));
        let on = |proxy: &Proxy| {
            let spent = Arc::clone(&spent);
            plan(proxy, Box::new(move |request| matches(request) && !spent.swap(true, Ordering::AcqRel)))
        };
        let faults = self.proxies.iter().map(on).collect();
        Planned { faults, spent }
    }

    /// Calls `seen` at the next request that matches, before the request is passed on.
    pub(crate) fn at_next(&self, matches: fn(&Request<'_>) -> bool, seen: impl Fn() + Send + Sync + 'static) {
        let (done, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(seen));
        for proxy in &self.proxies {
            let (done, seen) = (Arc::clone(&done), Arc::clone(&seen));
            proxy.witness(move |_, request| {
                if !done.load(Ordering::Acquire) && matches(request) && !done.swap(true, Ordering::AcqRel) {
                    seen();
                }
            });
        }
    }

    /// Ends the process's session with its id and password, from another connection. Returns `None` if the session is
    /// not known, or the server did not end it.
    pub(crate) async fn expire(&self, before: impl FnOnce(i64)) -> Option<()> {
        let (session, index) =
            (self.last.session.load(Ordering::Relaxed), self.last.proxy.load(Ordering::Relaxed));
        let known = self.proxies.get(index).and_then(Proxy::session);
        let credentials = known.filter(|known| known.session_id == session)?;
        before(session);
        // A process that could reconnect would take the session back.
        self.refuse();
        let server = self.servers[index];
        let end = move || RawClient::attach(server, credentials).and_then(RawClient::close);
        let ended = tokio::task::spawn_blocking(end).await.is_ok_and(|ended| ended.is_ok());
        self.each(Proxy::accept);
        ended.then_some(())
    }

    fn each(&self, act: impl Fn(&Proxy)) {
        self.proxies.iter().for_each(act);
    }
}

/// A fault that waits for its request, on every link.
pub(crate) struct Planned {
    faults: Vec<Fault>,
    spent: Arc<AtomicBool>,
}

impl Planned {
    /// Returns whether the fault has happened, including its cut.
    pub(crate) fn has_fired(&self) -> bool {
        self.faults.iter().any(Fault::has_fired)
    }

    /// Cancels the fault, if it has not happened yet.
    pub(crate) fn call_off(&self) {
        self.spent.store(true, Ordering::Release);
    }
}
