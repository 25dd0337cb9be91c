//! Faults planned for one request, and how a test learns that they happened.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::controls::Cut;

/// How long a test waits for its fault: more than any reconnect in the suites, so it has gone wrong by then.
const DEADLINE: Duration = Duration::from_secs(20);

/// A request as the proxy sees it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The number that the client gave it.
    pub xid: i32,
    /// Its request code, see [`op`](crate::op).
    pub op: i32,
    /// All behind the header, as jute wrote it.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// Whether the body contains this text: a path, or a part of one, also inside a multi.
    pub fn mentions(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// Which request a fault is for: a request code of [`op`](crate::op), or a predicate.
pub trait Matches: Send + 'static {
    /// Whether it is this one.
    fn matches(&self, request: &Request<'_>) -> bool;

    /// For the message of a fault that never happened.
    fn describe(&self) -> String;
}

impl Matches for i32 {
    fn matches(&self, request: &Request<'_>) -> bool {
        request.op == *self
    }

    fn describe(&self) -> String {
        format!("a request with code {self}")
    }
}

impl<F> Matches for F
where
    F: Fn(&Request<'_>) -> bool + Send + 'static,
{
    fn matches(&self, request: &Request<'_>) -> bool {
        self(request)
    }

    fn describe(&self) -> String {
        format!("a request that satisfies {}", std::any::type_name::<F>())
    }
}

/// A fault that was planned and may have happened. Dropping it does not call the fault off.
#[derive(Debug, Clone)]
#[must_use = "a test that does not await its fault may pass without it"]
pub struct Fault {
    what: String,
    fired: watch::Receiver<bool>,
}

impl Fault {
    /// Waits until the fault has happened, its cut included.
    ///
    /// # Panics
    /// When it has not happened within 20 s of real time.
    pub async fn fired(&self) {
        let mut fired = self.fired.clone();
        match tokio::time::timeout(DEADLINE, fired.wait_for(|fired| *fired)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("the connection or the proxy ended before {}", self.what),
            Err(_) => panic!("not within {DEADLINE:?}: {}", self.what),
        }
    }

    /// Whether it has happened by now.
    pub fn has_fired(&self) -> bool {
        *self.fired.borrow()
    }
}

/// A reply that the proxy keeps until this is released or dropped.
#[derive(Debug)]
#[must_use = "dropping it releases the reply"]
pub struct HeldReply {
    fault: Fault,
    gate: watch::Sender<()>,
}

impl HeldReply {
    /// Waits until the proxy has the reply in hand: the server has carried the request out.
    ///
    /// # Panics
    /// As [`Fault::fired`] does.
    pub async fn fired(&self) {
        self.fault.fired().await;
    }

    /// Lets the reply, and all behind it, go on to the client.
    pub fn release(self) {
        drop(self.gate);
    }
}

/// Tells a [`Fault`] that it happened.
#[derive(Debug)]
pub(super) struct Trigger(watch::Sender<bool>);

impl Trigger {
    pub(super) fn fire(self) {
        self.0.send_replace(true);
    }
}

/// Opens when its [`HeldReply`] is gone.
#[derive(Debug)]
pub(super) struct Gate(watch::Receiver<()>);

impl Gate {
    pub(super) async fn opened(mut self) {
        // Nothing is ever sent, so this returns when the sender is dropped.
        while self.0.changed().await.is_ok() {}
    }
}

pub(super) fn pair(kind: &str, request: &impl Matches) -> (Trigger, Fault) {
    let (trigger, fired) = watch::channel(false);
    (Trigger(trigger), Fault { what: format!("{kind} for {}", request.describe()), fired })
}

pub(super) fn gate(fault: Fault) -> (Gate, HeldReply) {
    let (gate, opened) = watch::channel(());
    (Gate(opened), HeldReply { fault, gate })
}

#[derive(Debug)]
pub(super) enum Action {
    LoseRequest(Cut, Trigger),
    LoseReply(Cut, Trigger),
    HoldReply(Trigger, Gate),
}

/// Sees what passes, and changes nothing.
type Witness = Box<dyn Fn(i64, &Request<'_>) + Send>;

/// The faults that wait for their request; each takes the first that matches, in the order of planning.
#[derive(Default)]
pub(super) struct Plan {
    waiting: Mutex<Vec<(Box<dyn Matches>, Action)>>,
    witnesses: Mutex<Vec<Witness>>,
}

impl Plan {
    pub(super) fn witness(&self, witness: impl Fn(i64, &Request<'_>) + Send + 'static) {
        self.witnesses.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(witness));
    }

    pub(super) fn show(&self, session: i64, request: &Request<'_>) {
        for witness in self.witnesses.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            witness(session, request);
        }
    }

    pub(super) fn add(&self, request: impl Matches, action: Action) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((Box::new(request), action));
    }

    pub(super) fn take(&self, request: &Request<'_>) -> Option<Action> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let index = waiting.iter().position(|(matcher, _)| matcher.matches(request))?;
        Some(waiting.remove(index).1)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(waiting.iter().map(|(matcher, _)| matcher.describe())).finish()
    }
}
