//! A client in the memory of a test: a namespace, virtual time, and a script that loses or refuses chosen requests.
//!
//! The tests on a real server show that the client and ZooKeeper fit together. These show how a client decides: a test
//! states what another process writes between two requests of a call, and which reply is lost. Every request is answered at
//! once, and time passes only while all tasks wait, so a test of a deadline takes no time.

mod cluster;
mod runtime;
mod segments;
mod session;
mod tree;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bellwether_core::change::Author;
use bellwether_core::outcome::{Reason, Rejection};
use bellwether_core::path;
use bellwether_core::port::{Change, ChangeKind};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::Op;
use bellwether_zk::NamespaceError;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

pub(in crate::client) use cluster::{id, kind};
pub(in crate::client) use segments::{member, members};
pub(in crate::client) use tree::Tree;

use self::runtime::InWorld;
use self::session::InMemory;
use super::Client;
use crate::codec::Codec;

/// The deadline of a client's calls.
pub(in crate::client) const DEADLINE: Duration = Duration::from_secs(15);

/// The wall clock at the beginning of a test: 2026-11-21T11:33:00Z.
pub(in crate::client) const BEGINNING: WallMillis = WallMillis(1_795_260_780_000);

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum Request {
    Commit(Vec<Op>),
    Get(Vec<String>),
    List(Vec<String>),
    Glance(String),
    Watch,
    Sync,
}

impl Request {
    pub(in crate::client) fn is_write(&self) -> bool {
        matches!(self, Self::Commit(_))
    }

    /// Whether it reads this znode.
    pub(in crate::client) fn gets(&self, path: &str) -> bool {
        matches!(self, Self::Get(paths) if paths.iter().any(|asked| asked == path))
    }
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub(in crate::client) enum Answer {
    Serve,
    /// The connection is lost after the request was served.
    LoseReply,
    /// The connection is lost before.
    LoseRequest,
    /// The server refuses it, because of the operation at this position.
    Refuse(usize, Reason),
    /// There is no reply.
    Hang,
}

type Script = Box<dyn FnMut(&Request, &mut Tree) -> Answer + Send>;

/// The status of the session.
#[derive(Debug, Clone)]
pub(in crate::client) enum Link {
    Up,
    /// The session is connected, and its server does not serve.
    Lagging,
    Connecting(Option<&'static str>),
    Down,
    Refused(NamespaceError),
    Closed,
}

pub(in crate::client) struct World {
    tree: Mutex<Tree>,
    script: Mutex<Option<Script>>,
    state: Mutex<State>,
}

/// The part of a znode whose next change a watch reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Children,
}

type Glanced = ((String, Part), oneshot::Sender<()>);

struct State {
    now: Millis,
    timers: BTreeMap<(Millis, u64), Waker>,
    last_timer: u64,
    last_uuid: u128,
    tasks: Vec<BoxFuture<'static, ()>>,
    link: Link,
    /// How often the link has changed.
    links: u64,
    followers: Vec<Waker>,
    glances: Vec<Glanced>,
    watches: Vec<mpsc::UnboundedSender<Vec<Change>>>,
    asked: Vec<Request>,
}

impl World {
    pub(in crate::client) fn new() -> Arc<Self> {
        let state = State {
            now: Millis(1_000_000),
            timers: BTreeMap::new(),
            last_timer: 0,
            last_uuid: 0,
            tasks: Vec::new(),
            link: Link::Up,
            links: 0,
            followers: Vec::new(),
            glances: Vec::new(),
            watches: Vec::new(),
            asked: Vec::new(),
        };
        let tree = Mutex::new(Tree::new(BEGINNING));
        Arc::new(Self { tree, script: Mutex::new(None), state: Mutex::new(state) })
    }

    pub(in crate::client) fn client(self: &Arc<Self>) -> Client {
        self.client_with(None)
    }

    pub(in crate::client) fn client_with(self: &Arc<Self>, codec: Option<Codec>) -> Client {
        let runtime = Arc::new(InWorld(Arc::clone(self)));
        Client::with(runtime, DEADLINE, codec, None, Some(Author::cut("tester")))
    }

    /// A session.
    pub(in crate::client) fn zk(self: &Arc<Self>) -> super::runtime::Zk {
        Arc::new(InMemory(Arc::clone(self)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The znodes, to look at them or to change them as another process would.
    pub(in crate::client) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap()
    }

    /// Each request is answered as the script decides, which may also change znodes first.
    pub(in crate::client) fn script(
        &self,
        script: impl FnMut(&Request, &mut Tree) -> Answer + Send + 'static,
    ) {
        *self.script.lock().unwrap() = Some(Box::new(script));
    }

    /// The next requests for which `which` holds are answered so; all others are served.
    pub(in crate::client) fn once(
        &self,
        which: impl Fn(&Request) -> bool + Send + 'static,
        answers: impl IntoIterator<Item = Answer>,
    ) {
        let mut answers = answers.into_iter().collect::<std::collections::VecDeque<_>>();
        self.script(move |request, _| match which(request) {
            true => answers.pop_front().unwrap_or(Answer::Serve),
            false => Answer::Serve,
        });
    }

    /// Takes the requests since the last call.
    pub(in crate::client) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().asked)
    }

    pub(in crate::client) fn now(&self) -> Millis {
        self.state().now
    }

    pub(in crate::client) fn wall(&self) -> WallMillis {
        self.tree().now
    }

    fn set_now(&self, now: Millis) {
        let passed = now.since(self.state().now);
        self.state().now = now;
        let mut tree = self.tree();
        tree.now = tree.now + passed;
    }

    /// Lets time pass.
    pub(in crate::client) fn pass(&self, time: Duration) {
        let now = self.now() + time;
        self.set_now(now);
    }

    pub(in crate::client) fn link(&self, link: Link) {
        let mut state = self.state();
        (state.link, state.links) = (link, state.links + 1);
        std::mem::take(&mut state.followers).into_iter().for_each(Waker::wake);
    }

    /// The server serves again, without an event of the session.
    pub(in crate::client) fn serve(&self) {
        self.state().link = Link::Up;
    }

    /// Applies operations of another process.
    pub(in crate::client) fn apply(&self, ops: &[Op]) {
        self.applied(ops).unwrap();
    }

    fn applied(&self, ops: &[Op]) -> Result<(), Rejection> {
        let applied = self.tree().apply(ops);
        self.notify();
        applied
    }

    /// Reports the changes to the watches.
    pub(in crate::client) fn notify(&self) {
        let changes = std::mem::take(&mut self.tree().changes);
        if changes.is_empty() {
            return;
        }
        let mut state = self.state();
        let seen = |((path, part), _): &Glanced| {
            changes.iter().any(|(there, kind)| match (part, kind) {
                (Part::Children, ChangeKind::Created | ChangeKind::Deleted)
                    if tree::parent(there) == path =>
                {
                    true
                }
                (Part::Data, ChangeKind::DataChanged) | (_, ChangeKind::Deleted) => there == path,
                (Part::Data, ChangeKind::Created)
                | (Part::Children, ChangeKind::Created | ChangeKind::DataChanged) => false,
            })
        };
        for (_, changed) in state.glances.extract_if(.., |glance| seen(glance)) {
            let _dropped_wait = changed.send(());
        }
        let changes = changes.into_iter().map(|(path, kind)| Change { place: path::parse(&path), kind });
        let changes = changes.collect::<Vec<_>>();
        state.watches.retain(|watch| watch.send(changes.clone()).is_ok());
    }

    /// Ends the recursive watches, as the loss of a connection does.
    pub(in crate::client) fn end_watches(&self) {
        self.state().watches.clear();
    }

    fn asked(&self, request: Request) -> Answer {
        let mut script = self.script.lock().unwrap();
        let answer = script.as_mut().map(|script| script(&request, &mut self.tree()));
        drop(script);
        self.notify();
        self.state().asked.push(request);
        answer.unwrap_or(Answer::Serve)
    }

    fn is_connected(&self) -> bool {
        matches!(self.state().link, Link::Up)
    }

    fn add_watch(&self, changes: mpsc::UnboundedSender<Vec<Change>>) {
        self.state().watches.push(changes);
    }

    fn add_glance(&self, watched: (String, Part), changed: oneshot::Sender<()>) {
        self.state().glances.push((watched, changed));
    }

    /// How many znodes are watched for one change.
    pub(in crate::client) fn watched(&self) -> usize {
        let mut state = self.state();
        state.glances.retain(|(_, changed)| !changed.is_closed());
        state.glances.len()
    }

    /// How many tasks the clients have.
    pub(in crate::client) fn tasks(&self) -> usize {
        self.state().tasks.len()
    }

    /// Ends the tasks of the clients, as the end of a runtime does.
    pub(in crate::client) fn end_tasks(&self) {
        let tasks = std::mem::take(&mut self.state().tasks);
        drop(tasks);
    }

    /// Lets each task run once.
    pub(in crate::client) fn turn(&self) {
        self.run(turn());
    }

    /// Runs a future and the tasks of the clients. While all of them wait, time passes until the next timer.
    pub(in crate::client) fn run<T>(&self, main: impl Future<Output = T>) -> T {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut main = pin!(main);
        let mut tasks = std::mem::take(&mut self.state().tasks);
        loop {
            woken.0.store(false, Ordering::SeqCst);
            if let Poll::Ready(output) = main.as_mut().poll(&mut context) {
                self.state().tasks.extend(tasks);
                return output;
            }
            tasks.append(&mut self.state().tasks);
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            if woken.0.load(Ordering::SeqCst) || !self.state().tasks.is_empty() {
                continue;
            }
            let next = self.state().timers.first_key_value().map(|((at, _), _)| *at);
            let next = next.expect("a task or a timer goes on").max(self.now());
            self.set_now(next);
            let mut state = self.state();
            let later = state.timers.split_off(&(next, u64::MAX));
            let due = std::mem::replace(&mut state.timers, later);
            drop(state);
            due.into_values().for_each(Waker::wake);
        }
    }
}

/// Lets each task run once.
pub(in crate::client) async fn turn() {
    let mut polled = false;
    poll_fn(|context| match std::mem::replace(&mut polled, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
