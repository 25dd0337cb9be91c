//! What a part of a node may do while it handles a message, as data: the world carries it out afterwards, in order.

use std::time::Duration;

use bellwether_actors::session::SessionEvent;
use bellwether_core::name::NodeId;
use bellwether_core::time::{Millis, WallMillis, as_millis};
use bellwether_keeper::proto::{Request, WatchedEvent};

use super::Msg;
use crate::history::{EventKind, Leading};
use crate::runtime::Task;
use crate::workload::Env;
use crate::zk::ask::{self, Answer};
use crate::zk::library::Changed;
use crate::zk::library::{Heard, Then};
use crate::zk::{Published, View, Zk};

/// One thing to be done.
pub(crate) enum Out {
    /// Send a request, or answer it as not sent.
    Ask { zk: Zk, request: Request, then: Then<Msg> },
    /// Set a recursive watch; the answer says whether it is set.
    Watch { zk: Zk, path: String, set: Then<Msg>, heard: Heard<Msg> },
    /// Set the campaign's one-shot watch.
    Glance { zk: Zk, path: String, there: Then<Msg>, changed: Box<dyn FnOnce() -> Msg> },
    /// Read a znode and set a one-shot watch on it.
    Peek { zk: Zk, path: String, then: Then<Msg>, changed: Changed },
    /// Tell another part; what one part tells another stays in order.
    Tell(Route, Msg),
    /// Wake up then.
    At(u64, Msg),
    /// Start the session supervisor, with this life.
    StartSession(u64),
    /// The session supervisor has ended, however.
    SessionEnded,
    /// Nobody holds the session any more: the client library closes it.
    CloseSession,
    /// Make a session and open its namespace.
    Connect,
    /// Report the states of the session, which has this generation, to the session supervisor.
    Follow(u64, Zk),
    /// Stop the reports of states.
    Forget,
    /// Send a small read, or answer it as not sent.
    Heartbeat { zk: Zk, then: Then<Msg> },
    /// Publish the session's status to the tasks.
    Publish(Published),
    /// The session supervisor sends this event: note it.
    Session(SessionEvent),
    /// Note it in the history.
    Record(EventKind),
    /// Begin a task.
    Begin(Box<dyn FnOnce(Env) -> Task>),
    /// The process is killed by what it runs.
    Die,
    /// The process ends because a supervisor gave up.
    Fail,
    /// The process has left as it was asked to.
    Left,
    /// The worker has drained, as somebody else than the process told it to.
    Drained,
}

/// From whom to whom: messages of one route arrive in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Route {
    PartToNode,
    /// What the client library reports.
    ZkToSession,
    PartToSession,
    SessionToElection,
    SessionToWorker,
    ElectionToLeader,
    LeaderToElection,
    WingToMembers,
    MemberToWing,
    RegistryToAssigner,
    LeasesToAssigner,
    JobWatcherToAssigner,
    AssignerToExpirer,
    WorkerToInbox,
    WorkerToExecutor,
    WorkerToReporter,
    InboxToExecutor,
    ExecutorToInbox,
    ExecutorToReporter,
    ReporterToExecutor,
    ChildToWorker,
    RunToExecutor,
    RunToReporter,
    /// What a watch reports, by the number of the watch.
    Feed(u64),
}

/// The numbers of the parts that run. A part that is started again gets another number, so that messages to the one that
/// ended are dropped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lives {
    pub(crate) session: u64,
    pub(crate) election: u64,
    pub(crate) leader: u64,
    pub(crate) worker: u64,
}

/// A part's hands.
pub(crate) struct Context<'a> {
    pub(crate) now_us: u64,
    /// By how much this machine's wall clock is ahead, in milliseconds.
    pub(crate) skew_ms: i64,
    pub(crate) node: &'a NodeId,
    pub(crate) view: View,
    /// Set by the node when it takes a message.
    pub(crate) lives: Lives,
    pub(crate) rng: &'a mut fastrand::Rng,
    pub(crate) out: &'a mut Vec<Out>,
}

/// The wall clock of a machine without a skew, when the simulation begins.
pub(crate) const WALL_MS: i64 = 1_700_000_000_000;

impl Context<'_> {
    pub(crate) fn now(&self) -> Millis {
        Millis(self.now_us / 1_000)
    }

    pub(crate) fn wall(&self) -> WallMillis {
        let ms = WALL_MS + self.skew_ms + (self.now_us / 1_000).cast_signed();
        WallMillis(ms.cast_unsigned())
    }

    pub(crate) fn tell(&mut self, route: Route, msg: Msg) {
        self.out.push(Out::Tell(route, msg));
    }

    pub(crate) fn after(&mut self, wait: Duration, msg: Msg) {
        self.out.push(Out::At(self.now_us + as_millis(wait) * 1_000, msg));
    }

    pub(crate) fn record(&mut self, what: EventKind) {
        self.out.push(Out::Record(what));
    }

    /// Begins a task: several requests, one after the other.
    pub(crate) fn begin<F: Future<Output = ()> + 'static>(&mut self, task: impl FnOnce(Env) -> F + 'static) {
        self.out.push(Out::Begin(Box::new(|env| Box::pin(task(env)))));
    }

    pub(crate) fn leads(&mut self, session: i64, epoch: i32, state: Leading, until: Option<Millis>) {
        let until = until.map(|until| until.0);
        self.record(EventKind::Leadership { node: self.node.clone(), session, epoch, state, until });
    }

    pub(crate) fn ask(&mut self, zk: Zk, request: Request, then: impl FnOnce(Answer) -> Msg + 'static) {
        self.out.push(Out::Ask { zk, request, then: Box::new(then) });
    }

    /// A recursive watch: `set` once it is, and `heard` for each change. It ends with the connection.
    pub(crate) fn watch(
        &mut self,
        zk: Zk,
        path: &str,
        set: impl FnOnce(bool) -> Msg + 'static,
        heard: impl Fn(&WatchedEvent) -> Msg + 'static,
    ) {
        let set: Then<Msg> = Box::new(|answer| set(ask::answered(answer).is_ok()));
        self.out.push(Out::Watch { zk, path: path.to_owned(), set, heard: Box::new(heard) });
    }
}
