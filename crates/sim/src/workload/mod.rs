//! What clients do: workloads over the real client, one of it for each process.
//!
//! A workload makes the calls of the plan and records each call and its answer. How a call is done (batches, lost replies,
//! read-back, deadlines) is not written here: `bellwether::Client` does it, on the runtime of [`crate::runtime`].

mod answer;
mod control;
mod group;
mod spawn;
mod submit;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::port::Session;
use bellwether_core::time::as_millis;

pub(crate) use self::group::Generation;
pub(crate) use self::spawn::Spawned;
pub(crate) use self::submit::Wish;
use crate::history::{Answer, Call, EventKind};
use crate::host::concern::change;
use crate::host::{Msg, Out};
use crate::runtime::{Executor, Handle, Shared, Task, Want};
use crate::zk::{Published, View, Zk};

/// How long a call may take, as the builder's default.
const DEADLINE: Duration = Duration::from_secs(15);

/// How long a call of a handler may take, as the node's client has it.
const HANDLER_DEADLINE: Duration = Duration::from_secs(60);

/// The tasks of one process: of a client its workloads, of a node its handlers' calls and its concerns' tasks.
pub(crate) struct Process {
    executor: Executor,
    shared: Arc<Shared>,
    env: Env,
}

/// What a task does things with.
#[derive(Clone)]
pub(crate) struct Env {
    client: bellwether::Client,
    handle: Handle,
    number: u32,
    /// How long its calls may take; `None` for a node, which may die before it answers.
    promise: Option<Duration>,
    calls: Rc<Cell<u64>>,
    out: Rc<RefCell<Vec<Out>>>,
}

impl Process {
    pub(crate) fn new(number: u32, skew_ms: i64, seed: u64) -> Self {
        Self::numbered(number, Some(DEADLINE), skew_ms, seed)
    }

    /// Of a node.
    pub(crate) fn of_node(number: u32, skew_ms: i64, seed: u64) -> Self {
        Self::numbered(number, None, skew_ms, seed)
    }

    fn numbered(number: u32, promise: Option<Duration>, skew_ms: i64, seed: u64) -> Self {
        let shared = Arc::new(Shared::new(skew_ms, seed));
        let handle = Handle(Arc::clone(&shared));
        let client = bellwether::Client::over(Arc::new(handle.clone()), promise.unwrap_or(HANDLER_DEADLINE));
        let (calls, out) = (Rc::default(), Rc::default());
        let env = Env { client, handle, number, promise, calls, out };
        Self { executor: Executor::new(Arc::clone(&shared)), shared, env }
    }

    /// Begins a task.
    pub(crate) fn begin(&mut self, now_us: u64, view: View, task: impl FnOnce(Env) -> Task) -> Vec<Out> {
        self.executor.begin(now_us, view, task(self.env.clone()));
        self.outs()
    }

    /// Polls a task that was woken.
    pub(crate) fn poll(&mut self, now_us: u64, view: View, task: u64) -> Vec<Out> {
        self.executor.poll(now_us, view, task);
        self.outs()
    }

    /// Wakes what waits for a timer.
    pub(crate) fn fire(&self, timer: u64) {
        self.shared.fire(timer);
    }

    /// The session supervisor says how the session is now.
    pub(crate) fn publish(&self, status: Published) {
        self.shared.publish(status);
    }

    /// The tasks that are to be polled since the last call.
    pub(crate) fn woken(&mut self) -> VecDeque<u64> {
        self.executor.woken()
    }

    /// Whether a workload goes on.
    pub(crate) fn is_busy(&self) -> bool {
        self.executor.is_busy()
    }

    fn outs(&self) -> Vec<Out> {
        let mut outs: Vec<_> = self.shared.wants().into_iter().map(out).collect();
        outs.append(&mut self.env.out.borrow_mut());
        outs
    }
}

/// As the world carries it out. What comes back wakes a task and is no message.
fn out(want: Want) -> Out {
    match want {
        Want::Timer { at_us, timer } => Out::At(at_us, Msg::Timer(timer)),
        Want::Ask { zk, request, answer } => {
            let then = |answered| {
                // Its task may have given up.
                drop(answer.send(answered));
                Msg::Nothing
            };
            Out::Ask { zk, request, then: Box::new(then) }
        }
        Want::Watch { zk, path, set, changes } => {
            let set = |answered| {
                drop(set.send(answered));
                Msg::Nothing
            };
            let heard = move |event: &_| {
                if let Some(change) = change(event) {
                    drop(changes.unbounded_send(change));
                }
                Msg::Nothing
            };
            Out::Watch { zk, path, set: Box::new(set), heard: Box::new(heard) }
        }
        Want::Glance { zk, path, answer, changed } => {
            let then = |answered| {
                drop(answer.send(answered));
                Msg::Nothing
            };
            Out::Peek { zk, path, then: Box::new(then), changed }
        }
    }
}

impl Env {
    /// A session of this process.
    pub(crate) fn session(&self, zk: Zk) -> Arc<dyn Session> {
        self.handle.session(zk)
    }

    /// Tells a part of the node that it is a task of.
    pub(crate) fn tell(&self, msg: Msg) {
        self.out(Out::At(self.handle.0.now_us(), msg));
    }

    fn out(&self, out: Out) {
        self.out.borrow_mut().push(out);
    }

    pub(crate) async fn sleep(&self, wait: Duration) {
        self.handle.sleep(wait).await;
    }

    /// Records that a call is made that a client promises to answer within its deadline; its number.
    fn invoke(&self, what: Call) -> u64 {
        self.invoke_within(what, self.promise)
    }

    fn invoke_within(&self, what: Call, within: Option<Duration>) -> u64 {
        self.calls.set(self.calls.get() + 1);
        let call = u64::from(self.number) << 32 | self.calls.get();
        let deadline = within.map(|within| self.handle.0.now_us() / 1_000 + as_millis(within));
        self.out(Out::Record(EventKind::Invoke { client: self.number, call, what, deadline }));
        call
    }

    fn answer(&self, call: u64, answer: Answer) {
        self.out(Out::Record(EventKind::Return { call, answer }));
    }
}
