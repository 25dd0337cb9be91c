//! Workloads of clients and handlers on the product's client, one client per process.
//!
//! A workload makes the calls of the plan and records each call and its answer. How a call is made (batches, lost
//! replies, reading back, deadlines) is the job of `bellwether::Client`, on the runtime of [`crate::runtime`].

mod control;
mod group;
mod pack;
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
pub(crate) use self::pack::Pack;
pub(crate) use self::spawn::{Spawned, SubJobs};
pub(crate) use self::submit::Wish;
use crate::history::{Answer, Call, EventKind};
use crate::host::concern::change;
use crate::host::{Msg, Out};
use crate::runtime::{Executor, Handle, Shared, Task, Want};
use crate::zk::{Published, View, Zk};

/// Deadline of a client's call: the builder's default.
const DEADLINE: Duration = Duration::from_secs(15);

/// Deadline of a handler's call, as in the node's client.
const HANDLER_DEADLINE: Duration = Duration::from_secs(60);

/// The tasks of one process: the workloads of a client, or the handlers' calls and the concerns' tasks of a node.
pub(crate) struct Process {
    executor: Executor,
    shared: Arc<Shared>,
    env: Env,
}

/// The interface of a task.
#[derive(Clone)]
pub(crate) struct Env {
    client: bellwether::Client,
    handle: Handle,
    number: u32,
    /// Deadline of its calls; `None` for a node, which may die before the answer.
    promise: Option<Duration>,
    calls: Rc<Cell<u64>>,
    out: Rc<RefCell<Vec<Out>>>,
}

impl Process {
    pub(crate) fn new(number: u32, skew_ms: i64, seed: u64) -> Self {
        Self::numbered(number, Some(DEADLINE), skew_ms, seed)
    }

    /// Creates the tasks of a node.
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

    /// Starts a task.
    pub(crate) fn begin(&mut self, now_us: u64, view: View, task: impl FnOnce(Env) -> Task) -> Vec<Out> {
        self.executor.begin(now_us, view, task(self.env.clone()));
        self.outs()
    }

    /// Polls a woken task.
    pub(crate) fn poll(&mut self, now_us: u64, view: View, task: u64) -> Vec<Out> {
        self.executor.poll(now_us, view, task);
        self.outs()
    }

    /// Wakes the task that waits for a timer.
    pub(crate) fn fire(&self, timer: u64) {
        self.shared.fire(timer);
    }

    /// Publishes the session's status, on behalf of the session supervisor.
    pub(crate) fn publish(&self, status: Published) {
        self.shared.publish(status);
    }

    /// Returns the tasks that were woken since the last call.
    pub(crate) fn woken(&mut self) -> VecDeque<u64> {
        self.executor.woken()
    }

    /// Returns whether a workload is still running.
    pub(crate) fn is_busy(&self) -> bool {
        self.executor.is_busy()
    }

    fn outs(&self) -> Vec<Out> {
        let mut outs: Vec<_> = self.shared.wants().into_iter().map(out).collect();
        outs.append(&mut self.env.out.borrow_mut());
        outs
    }
}

/// Converts a request of a task to an output of the world. The reply wakes a task and is not a message.
fn out(want: Want) -> Out {
    match want {
        Want::Timer { at_us, timer } => Out::At(at_us, Msg::Timer(timer)),
        Want::Ask { zk, request, answer } => {
            let then = |answered| {
                // The task may have been dropped.
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
        Want::Glance { zk, path, part, answer, changed } => {
            let then = |answered| {
                drop(answer.send(answered));
                Msg::Nothing
            };
            Out::Peek { zk, path, part, then: Box::new(then), changed }
        }
    }
}

impl Env {
    /// Returns a session of this process.
    pub(crate) fn session(&self, zk: Zk) -> Arc<dyn Session> {
        self.handle.session(zk)
    }

    /// Sends a message to a part of the node that runs this task.
    pub(crate) fn tell(&self, msg: Msg) {
        self.out(Out::At(self.handle.0.now_us(), msg));
    }

    fn out(&self, out: Out) {
        self.out.borrow_mut().push(out);
    }

    pub(crate) async fn sleep(&self, wait: Duration) {
        self.handle.sleep(wait).await;
    }

    /// Records a call that must be answered within its deadline. Returns the call's number.
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
