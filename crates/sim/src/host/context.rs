//! The outputs of a part of a node while it handles a message. They are data; the world carries them out afterwards, in
//! order.

use std::time::Duration;

use bellwether_actors::session::SessionEvent;
use bellwether_core::clock::Clock;
use bellwether_core::name::{JobId, NodeId};
use bellwether_core::time::{Millis, WallMillis, as_millis};
use bellwether_keeper::proto::{Request, WatchedEvent};

use super::Msg;
use crate::history::{EventKind, Leading};
use crate::runtime::Task;
use crate::workload::Env;
use crate::zk::library::{Changed, Part};
use crate::zk::library::{Heard, Then};
use crate::zk::protocol::{self, Answer};
use crate::zk::{Published, View, Zk};

/// One output.
pub(crate) enum Out {
    /// Send a request, or answer it as not sent.
    Ask { zk: Zk, request: Request, then: Then<Msg> },
    /// Set a recursive watch. The answer reports whether it is set.
    Watch { zk: Zk, path: String, set: Then<Msg>, heard: Heard<Msg> },
    /// Set the campaign's one-shot watch.
    Glance { zk: Zk, path: String, there: Then<Msg>, changed: Box<dyn FnOnce() -> Msg> },
    /// Read a part of a znode and set a one-shot watch on it.
    Peek { zk: Zk, path: String, part: Part, then: Then<Msg>, changed: Changed },
    /// Send a message to another part. Messages between two parts stay in order.
    Tell(Route, Msg),
    /// Deliver the message at this time.
    At(u64, Msg),
    /// Start the session supervisor with this life.
    StartSession(u64),
    /// The session supervisor has ended, for any reason.
    SessionEnded,
    /// The last holder of the session has dropped it: the client library closes it.
    CloseSession,
    /// Create a session and open its namespace.
    Connect,
    /// Report the states of the session with this generation to the session supervisor.
    Follow(u64, Zk),
    /// Stop reporting states.
    Forget,
    /// Use this clock in all parts of the process.
    SetClock(Clock),
    /// Send a sync, or answer it as not sent.
    Heartbeat { zk: Zk, then: Then<Msg> },
    /// Publish the session's status to the tasks.
    Publish(Published),
    /// Record an event that the session supervisor sends.
    Session(SessionEvent),
    /// Record an event in the history.
    Record(EventKind),
    /// A submission of this job was acknowledged, as this generation.
    Acknowledged(JobId, u32),
    /// Start a task.
    Begin(Box<dyn FnOnce(Env) -> Task>),
    /// A handler kills the process.
    Die,
    /// The process ends because a supervisor gave up.
    Fail,
    /// The process has ended its graceful stop.
    Left,
    /// The worker has drained on request of an operator.
    Drained,
}

/// Sender and receiver of a message. Messages of one route arrive in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Route {
    PartToNode,
    /// Reports of the client library.
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
    /// Events of a watch, by the number of the watch.
    Feed(u64),
}

/// The life numbers of the running parts. A restarted part gets another number, so that messages to its predecessor are
/// dropped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lives {
    pub(crate) session: u64,
    pub(crate) election: u64,
    pub(crate) leader: u64,
    pub(crate) worker: u64,
}

/// The context in which a part handles a message.
pub(crate) struct Context<'a> {
    pub(crate) now_us: u64,
    /// Offset of this machine's wall clock in milliseconds; positive is ahead.
    pub(crate) skew_ms: i64,
    pub(crate) node: &'a NodeId,
    pub(crate) view: View,
    /// Set by the node before it handles a message.
    pub(crate) lives: Lives,
    /// The epoch in which the election permits this process to act as the leader. Set by the node before it handles a
    /// message.
    pub(crate) leads_in: Option<i32>,
    pub(crate) rng: &'a mut fastrand::Rng,
    pub(crate) out: &'a mut Vec<Out>,
}

/// The wall clock at the start of the simulation, on a machine without skew.
pub(crate) const WALL_MS: i64 = 1_700_000_000_000;

/// The wall clock of a machine whose clock is ahead by this.
pub(crate) fn local(now_us: u64, skew_ms: i64) -> WallMillis {
    WallMillis((WALL_MS + skew_ms + (now_us / 1_000).cast_signed()).cast_unsigned())
}

impl Context<'_> {
    pub(crate) fn now(&self) -> Millis {
        Millis(self.now_us / 1_000)
    }

    /// The time by which the process decides.
    pub(crate) fn wall(&self) -> WallMillis {
        self.view.clock.wall(self.now(), self.local())
    }

    /// The wall clock of this machine, which may be wrong.
    pub(crate) fn local(&self) -> WallMillis {
        local(self.now_us, self.skew_ms)
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

    /// Starts a task: several requests in sequence.
    pub(crate) fn begin<F: Future<Output = ()> + 'static>(&mut self, task: impl FnOnce(Env) -> F + 'static) {
        self.out.push(Out::Begin(Box::new(|env| Box::pin(task(env)))));
    }

    pub(crate) fn leads(&mut self, session: i64, epoch: i32, state: Leading, until: Option<Millis>) {
        let until = until.map(|until| until.0);
        self.record(EventKind::Leadership { node: self.node.clone(), session, epoch, state, until });
    }

    pub(crate) fn leader_writes(&mut self, epoch: i32) {
        self.record(EventKind::LeaderWrites { node: self.node.clone(), epoch });
    }

    pub(crate) fn ask(&mut self, zk: Zk, request: Request, then: impl FnOnce(Answer) -> Msg + 'static) {
        self.out.push(Out::Ask { zk, request, then: Box::new(then) });
    }

    /// Sets a recursive watch: `set` is sent with the result, `heard` for each change. The watch ends with the
    /// connection.
    pub(crate) fn watch(
        &mut self,
        zk: Zk,
        path: &str,
        set: impl FnOnce(bool) -> Msg + 'static,
        heard: impl Fn(&WatchedEvent) -> Msg + 'static,
    ) {
        let set: Then<Msg> = Box::new(|answer| set(protocol::answered(answer).is_ok()));
        self.out.push(Out::Watch { zk, path: path.to_owned(), set, heard: Box::new(heard) });
    }
}
