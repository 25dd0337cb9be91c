//! Faults planned for a single request, and their notification to the test.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::controls::Cut;

/// How long a test waits for its fault: longer than any reconnect in the tests.
const DEADLINE: Duration = Duration::from_secs(20);

/// A request seen by the proxy.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The number given by the client.
    pub xid: i32,
    /// The request code, see [`op`](crate::op).
    pub op: i32,
    /// The encoded body after the header.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// Returns whether the body contains this text, such as a path or a part of it, also inside a multi.
    pub fn mentions(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// The request that a fault is for: a request code of [`op`](crate::op), or a predicate.
pub trait Matches: Send + 'static {
    /// Returns whether the fault is for this request.
    fn matches(&self, request: &Request<'_>) -> bool;

    /// Returns the description for the message about a fault that did not happen.
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

/// A planned fault. Dropping it does not cancel the fault.
#[derive(Debug, Clone)]
#[must_use = "a test that does not await its fault can pass without it"]
pub struct Fault {
    what: String,
    fired: watch::Receiver<bool>,
}

impl Fault {
    /// Waits until the fault has happened, including its cut.
    ///
    /// # Panics
    /// If it does not happen within 20 s of real time.
    pub async fn fired(&self) {
        let mut fired = self.fired.clone();
        match tokio::time::timeout(DEADLINE, fired.wait_for(|fired| *fired)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("the connection or the proxy ended before {}", self.what),
            Err(_) => panic!("did not happen within {DEADLINE:?}: {}", self.what),
        }
    }

    /// Returns whether the fault has happened.
    pub fn has_fired(&self) -> bool {
        *self.fired.borrow()
    }
}

/// A reply that the proxy holds until this is released or dropped.
#[derive(Debug)]
#[must_use = "dropping it releases the reply"]
pub struct HeldReply {
    fault: Fault,
    gate: watch::Sender<()>,
}

impl HeldReply {
    /// Waits until the proxy holds the reply, so the server has executed the request.
    ///
    /// # Panics
    /// As [`Fault::fired`].
    pub async fn fired(&self) {
        self.fault.fired().await;
    }

    /// Forwards the reply, and all later ones, to the client.
    pub fn release(self) {
        drop(self.gate);
    }
}

/// Notifies a [`Fault`] that it has happened.
#[derive(Debug)]
pub(super) struct Trigger(watch::Sender<bool>);

impl Trigger {
    pub(super) fn fire(self) {
        self.0.send_replace(true);
    }
}

/// Opens when its [`HeldReply`] is dropped.
#[derive(Debug)]
pub(super) struct Gate(watch::Receiver<()>);

impl Gate {
    pub(super) async fn opened(mut self) {
        // No value is ever sent, so this returns when the sender is dropped.
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

/// An observer of requests, called with the session and the request.
type Witness = Box<dyn Fn(i64, &Request<'_>) + Send>;

/// The planned faults. A request takes the first one that matches, in the order of planning.
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
