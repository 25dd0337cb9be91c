//! The world: one clock, one event queue, and all processes.
//!
//! ```text
//!                  faults
//!                    │
//!  nodes, clients ── link ── connection ── server (keeper's model)
//!     ▲ messages      ▲ frames, in order, late      │ commits
//!     └── mailboxes ──┘                             ▼
//!                                              history ──▶ checker, after every step
//! ```
//!
//! Time is virtual and advances from event to event. Two events never happen at the same time: events of the same
//! microsecond are handled in the order in which they were queued. Every random choice comes from the plan's seed, so a
//! plan has exactly one run.
//!
//! * `net`: connections. Frames of one direction arrive in order; frames of two connections arrive in any order.
//! * `session`: the client library's handling of connections.
//! * `supervisor`: the session supervisor of a process, a concern, and the reports that it receives from the client
//!   library.
//! * `faults`: faults and their healing.
//! * `servers`: ZooKeeper: one server (`server`), or an ensemble of three (`ensemble`).
//! * `process`: start and end of nodes and clients, their incoming messages, and the outputs of their actors.
//! * `actions`: the actions of a plan's clients.
//! * `end`: the condition that ends a run.

mod actions;
mod end;
mod ensemble;
mod faults;
mod net;
mod process;
mod server;
mod servers;
mod session;
mod supervisor;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bellwether_core::clock::MAX_DIFFERENCE;
use bellwether_core::name::{JobId, NodeId};
use bellwether_core::time::as_millis;
use bellwether_keeper::proto::{ConnectRequest, ConnectResponse, Reply, Request, WatchedEvent};
use fastrand::Rng;

use self::end::LOOK_US;
use self::net::Connection;
use self::servers::Servers;
use crate::history::{Bounds, Checker, Event, EventKind, Leading, Violation};
use crate::host::concern::Hosted;
use crate::host::session::Supervisor;
use crate::host::worker::{Offer, kinds};
use crate::host::{Msg, Node, NodeConfig, Route};
use crate::plan::{self, Plan};
use crate::report::{Report, Stats};
use crate::trace::Trace;
use crate::workload::Process;
use crate::zk::library::{Conn, Library};

/// The violation id of a panic.
const PANIC: &str = "P";

/// A frame to the server.
#[derive(Debug)]
enum Up {
    /// With random bytes for the session's password.
    Connect(ConnectRequest, [u8; 16]),
    Request(i32, Request),
    Fin,
}

/// A frame from the server.
#[derive(Debug)]
enum Down {
    Connected(ConnectResponse),
    Reply(Reply),
    Event(WatchedEvent),
    Fin,
}

/// Input of a process. It is held back while the process is frozen.
enum Incoming {
    Frame(Conn, Down),
    /// A frame that the network has delivered to the process's socket.
    Arrived(Conn, Down),
    Msg(Msg),
    /// Make the connection attempt with this number.
    Attempt(u64),
    /// The connection attempt with this number has timed out.
    AttemptOver(u64),
    /// Check whether this connection is dead.
    Silence(Conn),
    /// Check whether the session must be given up.
    GiveUp,
    /// Run a client's action.
    Act(usize),
    /// A client reads a job that another one has submitted as this generation.
    Look(JobId, u32),
    /// The time limit of the graceful stop is over: end the process.
    Leave,
}

/// A queued event.
enum Happening {
    ToServer(Conn, Up),
    /// To one process of a peer: the peer's position and the process number.
    ToPeer(usize, u64, Incoming),
    ServerTick,
    /// An event between the members of an ensemble.
    Ensemble(ensemble::Step),
    /// Apply a write of this session that its client believes to be lost.
    Late(i64, Request),
    Fault(usize),
    Mended(faults::Mend),
    Heal,
    /// Check whether all work has ended.
    Look,
}

enum Who {
    Node(NodeConfig, Option<Box<Node>>),
    Client,
}

/// A node or client. It keeps its position across restarts of its process.
struct Peer {
    name: NodeId,
    who: Who,
    skew_ms: i64,
    /// Number of processes started so far.
    process: u64,
    /// Present while there is a process.
    tasks: Option<Process>,
    /// Present while there is a process.
    session: Option<Hosted<Supervisor>>,
    /// The inputs that are held back while the process is frozen.
    frozen: Option<Vec<Incoming>>,
    /// Set during a graceful stop: how long the node is down afterwards.
    leaves_ms: Option<u64>,
    library: Library<Msg>,
    attempts: session::Attempts,
    trouble: net::Trouble,
    /// Arrival time of the last message of each route.
    routes: BTreeMap<Route, u64>,
    rng: Rng,
}

/// Runs a plan.
pub(crate) struct World {
    plan: Plan,
    now_us: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    numbered: u64,
    rng: Rng,
    servers: Servers,
    tick_at_us: Option<u64>,
    conns: BTreeMap<Conn, Connection>,
    next_conn: Conn,
    peers: Vec<Peer>,
    leader: Option<usize>,
    /// The last reported leadership state of each node.
    standing: BTreeMap<NodeId, (Leading, i32)>,
    over_since_us: Option<u64>,
    checker: Checker,
    /// The creation of the namespace.
    laid_out: Vec<EventKind>,
    violations: Vec<Violation>,
    stats: Stats,
    trace: Trace,
}

impl World {
    pub(crate) fn new(plan: Plan, trace: Trace) -> Self {
        let timeout = Duration::from_millis(plan.session_timeout_ms);
        // An ensemble's leader hears of a session up to half a tick later, and looks for expired ones every half tick.
        let ticks = if plan.sync_limit.is_some() { 2 } else { 1 };
        let bounds = Bounds { session_timeout: timeout, tick: ticks * Duration::from_millis(plan.tick_ms) };
        let most = as_millis(MAX_DIFFERENCE);
        let wrong = plan.nodes.iter().enumerate().filter(|(_, node)| node.skew_ms.unsigned_abs() > most);
        let wrong_clocks = wrong.map(|(at, _)| name("n", at)).collect::<Vec<_>>();
        let (servers, laid_out) = Servers::new(&plan);
        let mut rng = Rng::with_seed(plan.seed ^ 0x5eed_0f0f_7e77);
        let nodes = plan.nodes.iter().enumerate().map(|(at, node)| {
            let config = NodeConfig {
                name: name("n", at),
                campaign: plan.campaign,
                strategies: crate::placement::strategies(),
                offer: Offer { slots: node.slots, kinds: kinds(), tags: plan::tags(node.tagged) },
                takeover: None,
            };
            (config.name.clone(), Who::Node(config, None), node.skew_ms)
        });
        let clients = plan.clients.iter().enumerate();
        let clients = clients.map(|(at, skew_ms)| (name("c", at), Who::Client, *skew_ms));
        let peers = nodes.chain(clients).map(|(name, who, skew_ms)| Peer {
            name,
            who,
            skew_ms,
            process: 0,
            tasks: None,
            session: None,
            frozen: None,
            leaves_ms: None,
            library: Library::new(),
            attempts: session::Attempts::default(),
            trouble: net::Trouble::default(),
            routes: BTreeMap::new(),
            rng: rng.fork(),
        });
        Self {
            now_us: 0,
            queue: BTreeMap::new(),
            numbered: 0,
            servers,
            tick_at_us: None,
            conns: BTreeMap::new(),
            next_conn: 0,
            peers: peers.collect(),
            leader: None,
            standing: BTreeMap::new(),
            over_since_us: None,
            checker: Checker::new(bounds).with_wrong_clocks(wrong_clocks),
            laid_out,
            violations: Vec::new(),
            stats: Stats::default(),
            trace,
            rng,
            plan,
        }
    }

    /// Runs until all work has ended or an invariant is broken.
    pub(crate) fn run(mut self) -> Report {
        for event in std::mem::take(&mut self.laid_out) {
            self.record(event);
        }
        if let Some((at_us, step)) = self.servers.first_step() {
            self.put(at_us, Happening::Ensemble(step));
        }
        for peer in 0..self.peers.len() {
            self.start(peer);
        }
        for at in 0..self.plan.actions.len() {
            let action = &self.plan.actions[at];
            let peer = self.plan.nodes.len() + action.client;
            let (at_us, process) = (action.at_ms * 1_000, self.peers[peer].process);
            self.put(at_us, Happening::ToPeer(peer, process, Incoming::Act(at)));
        }
        for at in 0..self.plan.faults.len() {
            self.put(self.plan.faults[at].at_ms * 1_000, Happening::Fault(at));
        }
        let heal_us = self.plan.heal_ms * 1_000;
        self.put(heal_us, Happening::Heal);
        self.put(heal_us + LOOK_US, Happening::Look);
        while let Some(((at, number), next)) = self.queue.pop_first() {
            self.now_us = at;
            self.stats.steps += 1;
            self.trace.step(at, number, &next_tag(&next));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.happen(next))) {
                self.panicked(panic.as_ref());
            }
            if !self.violations.is_empty() || self.is_over() {
                break;
            }
        }
        self.finish()
    }

    /// Records a panic as a violation.
    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let (at, zxid) = (self.now_us / 1_000, self.checker.truth().zxid());
        self.violations.push(Violation { id: PANIC, at, zxid, what: format!("panicked: {text}") });
    }

    fn happen(&mut self, next: Happening) {
        let of = match &next {
            Happening::ToPeer(peer, ..) => *peer..*peer + 1,
            Happening::ToServer(..)
            | Happening::ServerTick
            | Happening::Ensemble(_)
            | Happening::Late(..)
            | Happening::Look => 0..0,
            Happening::Fault(_) | Happening::Mended(_) | Happening::Heal => 0..self.peers.len(),
        };
        self.happens(next);
        of.for_each(|peer| self.wake(peer));
    }

    fn happens(&mut self, next: Happening) {
        match next {
            Happening::ToServer(conn, frame) => self.frame_up(conn, frame),
            Happening::ToPeer(peer, process, incoming) => self.incoming(peer, process, incoming),
            Happening::ServerTick => {
                self.tick_at_us = None;
                let outcome = self.servers.tick(self.now_us);
                self.served(outcome);
            }
            Happening::Ensemble(step) => {
                let outcome = self.servers.step(self.now_us, step);
                self.served(outcome);
            }
            Happening::Late(session, request) => {
                let outcome = self.servers.late(self.now_us, session, request);
                self.served(outcome);
            }
            Happening::Fault(at) => self.fault(at),
            Happening::Mended(mend) => self.mended(mend),
            Happening::Heal => self.heal(),
            Happening::Look => self.look(),
        }
    }

    fn put(&mut self, at_us: u64, what: Happening) {
        self.numbered += 1;
        self.queue.insert((at_us.max(self.now_us), self.numbered), what);
    }

    fn put_peer(&mut self, at_us: u64, peer: usize, incoming: Incoming) {
        let process = self.peers[peer].process;
        self.put(at_us, Happening::ToPeer(peer, process, incoming));
    }

    /// Records an event in the trace and checks it against the rules.
    fn record(&mut self, what: EventKind) {
        let event = Event { at: self.now_us / 1_000, what };
        let said_already = matches!(event.what, EventKind::Link { .. } | EventKind::LeaderWrites { .. });
        if !self.note_leader(&event.what) && !said_already {
            self.stats.note(&event.what);
            self.trace.event(self.now_us, &event.what);
        }
        self.violations.extend(self.checker.observe(&event));
    }

    fn name(&self, at: usize) -> String {
        self.peers[at].name.to_string()
    }
}

fn name(sort: &str, at: usize) -> NodeId {
    NodeId::new(format!("{sort}{at}")).expect("a letter and digits")
}

/// Identifies an event for the hash of the run.
fn next_tag(next: &Happening) -> [u64; 3] {
    match next {
        Happening::ToServer(conn, _) => [1, *conn, 0],
        Happening::ToPeer(peer, process, _) => [2, *peer as u64, *process],
        Happening::ServerTick => [3, 0, 0],
        Happening::Fault(at) => [4, *at as u64, 0],
        Happening::Mended(_) => [5, 0, 0],
        Happening::Heal => [6, 0, 0],
        Happening::Look => [7, 0, 0],
        Happening::Ensemble(_) => [9, 0, 0],
        Happening::Late(session, _) => [8, session.unsigned_abs(), 0],
    }
}
