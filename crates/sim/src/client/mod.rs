//! A client: its calls as tasks, and the hands that they have.
//!
//! The façade's calls are sequences of requests, so they are written as such: `async` functions over a shell that sends
//! requests and tells the time. The world polls a task when something came for it. No runtime, no waker: a task that
//! waits has said to the shell what for.

mod calls;
mod group;
mod locate;
mod pause;
mod spawn;
mod submit;
mod workers;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Op;
use bellwether_keeper::proto::Request;

pub(crate) use self::group::Generation;
pub(crate) use self::spawn::{Parent, Spawned};
pub(crate) use self::submit::Wish;
use crate::history::{Answer as Told, Call, EventKind};
use crate::node::context::WALL_MS;
use crate::node::{Msg, Out};
use crate::zk::ask::{self, Answer};
use crate::zk::{ReadResult, View, Zk};

/// How long a call may take, as the façade's default.
const DEADLINE_US: u64 = 15_000_000;

/// How long a call of a handler may take, as the node's client has it.
const HANDLER_DEADLINE_US: u64 = 60_000_000;

pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// One process of a client; or what a process of a node has besides its parts: the tasks of its leader's reads, and its
/// handlers' calls.
pub(crate) struct Client {
    shell: Shell,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
}

/// What a task does things with.
#[derive(Clone)]
pub(crate) struct Shell(Rc<RefCell<Inner>>);

struct Inner {
    number: u32,
    /// Whether somebody waits for its answers as long as its deadlines are: a node may die before.
    promises: bool,
    skew_ms: i64,
    now_us: u64,
    view: View,
    /// The task that is being polled.
    task: u64,
    calls: u64,
    rng: fastrand::Rng,
    out: Vec<Out>,
}

/// Until when a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(u64);

/// The deadline has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TooLate;

/// What a write did, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Applied,
    /// A znode was not as expected: read again and decide anew.
    Lost,
    /// The reply was lost: read again, and remember that it may have been applied.
    Unknown,
}

impl Client {
    pub(crate) fn new(number: u32, skew_ms: i64, seed: u64) -> Self {
        Self::numbered(number, true, skew_ms, seed)
    }

    /// Of the process of a node.
    pub(crate) fn of_node(number: u32, skew_ms: i64, seed: u64) -> Self {
        Self::numbered(number, false, skew_ms, seed)
    }

    fn numbered(number: u32, promises: bool, skew_ms: i64, seed: u64) -> Self {
        let inner = Inner {
            number,
            promises,
            skew_ms,
            now_us: 0,
            view: View::default(),
            task: 0,
            calls: 0,
            rng: fastrand::Rng::with_seed(seed),
            out: Vec::new(),
        };
        Self { shell: Shell(Rc::new(RefCell::new(inner))), tasks: BTreeMap::new(), next_task: 0 }
    }

    /// Begins a task.
    pub(crate) fn begin<F: Future<Output = ()> + 'static>(
        &mut self,
        now_us: u64,
        view: View,
        task: impl FnOnce(Shell) -> F,
    ) -> Vec<Out> {
        self.next_task += 1;
        self.tasks.insert(self.next_task, Box::pin(task(self.shell.clone())));
        self.poll(now_us, view, self.next_task)
    }

    /// Something came for a task.
    pub(crate) fn poll(&mut self, now_us: u64, view: View, task: u64) -> Vec<Out> {
        {
            let mut inner = self.shell.0.borrow_mut();
            (inner.now_us, inner.view, inner.task) = (now_us, view, task);
        }
        if let Some(running) = self.tasks.get_mut(&task)
            && running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        {
            self.tasks.remove(&task);
        }
        std::mem::take(&mut self.shell.0.borrow_mut().out)
    }

    /// Those that have something to wait for.
    pub(crate) fn tasks(&self) -> Vec<u64> {
        self.tasks.keys().copied().collect()
    }
}

impl Inner {
    fn deadline(&self) -> Deadline {
        Deadline(self.now_us + if self.promises { DEADLINE_US } else { HANDLER_DEADLINE_US })
    }
}

impl Shell {
    fn now_us(&self) -> u64 {
        self.0.borrow().now_us
    }

    fn wall(&self) -> WallMillis {
        let inner = self.0.borrow();
        let ms = WALL_MS + inner.skew_ms + (inner.now_us / 1_000).cast_signed();
        WallMillis(ms.cast_unsigned())
    }

    fn random(&self) -> u128 {
        self.0.borrow_mut().rng.u128(..)
    }

    fn out(&self, out: Out) {
        self.0.borrow_mut().out.push(out);
    }

    /// Notes that a call is made; until when, and its number.
    fn invoke(&self, what: Call) -> (Deadline, u64) {
        let mut inner = self.0.borrow_mut();
        inner.calls += 1;
        let call = u64::from(inner.number) << 32 | inner.calls;
        let (by, client) = (inner.deadline().0, inner.number);
        let deadline = inner.promises.then_some(by / 1_000);
        inner.out.push(Out::Record(EventKind::Invoke { client, call, what, deadline }));
        (Deadline(by), call)
    }

    /// Until when a call may take that begins now.
    fn by(&self) -> Deadline {
        self.0.borrow().deadline()
    }

    /// Tells a part of the node that it is a task of.
    pub(crate) fn tell(&self, msg: Msg) {
        self.out(Out::At(self.now_us(), msg));
    }

    fn answer(&self, call: u64, answer: Told) {
        self.out(Out::Record(EventKind::Return { call, answer }));
    }

    /// Waits for a session that serves.
    async fn usable(&self, by: Deadline) -> Result<Zk, TooLate> {
        self.until(by, Serving(self.clone())).await
    }

    /// Awaits, but no longer than that.
    async fn until<F: Future + Unpin>(&self, by: Deadline, future: F) -> Result<F::Output, TooLate> {
        let task = self.0.borrow().task;
        self.out(Out::At(by.0, Msg::Task(task)));
        Until { shell: self.clone(), by, future }.await
    }

    async fn sleep(&self, us: u64) {
        let at = Deadline(self.now_us() + us);
        let slept = self.until(at, std::future::pending::<()>()).await;
        debug_assert!(slept.is_err(), "what is pending for ever does not come");
    }

    /// Sends a request. This task is polled once its answer was stored.
    pub(crate) fn send(&self, zk: Zk, request: Request, store: impl FnOnce(Answer) + 'static) {
        let task = self.0.borrow().task;
        let then = move |answer| {
            store(answer);
            Msg::Task(task)
        };
        self.out(Out::Ask { zk, request, then: Box::new(then) });
    }

    fn ask(&self, zk: Zk, request: Request) -> Reply {
        let slot = Rc::new(RefCell::new(None));
        let reply = Reply(Rc::clone(&slot));
        self.send(zk, request, move |answer| *slot.borrow_mut() = Some(answer));
        reply
    }

    /// Reads, and reads again after a lost connection, until there is an answer.
    async fn read<T>(
        &self,
        by: Deadline,
        request: impl Fn() -> Request,
        decode: impl Fn(Answer) -> ReadResult<T>,
    ) -> Result<T, TooLate> {
        loop {
            let zk = self.usable(by).await?;
            let answer = self.until(by, self.ask(zk, request())).await?;
            match decode(answer) {
                Ok(read) => return Ok(read),
                // The session's actor may not have said so yet.
                Err(_) => self.sleep(20_000).await,
            }
        }
    }

    /// Commits once.
    async fn commit(&self, by: Deadline, ops: &[Op]) -> Result<Written, TooLate> {
        let zk = self.usable(by).await?;
        let Ok(answer) = self.until(by, self.ask(zk, ask::commit(ops))).await else {
            return Ok(Written::Unknown);
        };
        Ok(match ask::written(answer) {
            Outcome::Applied(()) => Written::Applied,
            Outcome::Unknown => Written::Unknown,
            Outcome::Rejected(rejection) => match rejection.reason {
                Reason::NotSent => {
                    self.sleep(20_000).await;
                    Written::Lost
                }
                Reason::NoNode
                | Reason::NodeExists
                | Reason::BadVersion
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_) => Written::Lost,
            },
        })
    }

    /// Makes a container. Whether it is there, the write that needs it tells.
    async fn make_container(&self, by: Deadline, path: String) -> Result<(), TooLate> {
        let zk = self.usable(by).await?;
        self.until(by, self.ask(zk, ask::create_container(path))).await.map(|_| ())
    }
}

/// An answer on its way.
struct Reply(Rc<RefCell<Option<Answer>>>);

impl Future for Reply {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        self.0.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// A session that serves. The world polls every task when that changes.
struct Serving(Shell);

impl Future for Serving {
    type Output = Zk;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Zk> {
        let view = self.0.0.borrow().view;
        if view.connected { Poll::Ready(Zk(view.generation)) } else { Poll::Pending }
    }
}

struct Until<F> {
    shell: Shell,
    by: Deadline,
    future: F,
}

impl<F: Future + Unpin> Future for Until<F> {
    type Output = Result<F::Output, TooLate>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.future).poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if self.by.0 <= self.shell.now_us() => Poll::Ready(Err(TooLate)),
            Poll::Pending => Poll::Pending,
        }
    }
}
