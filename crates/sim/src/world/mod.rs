//! The world: one clock, one queue of what happens next, and everybody in it.
//!
//! ```text
//!            what goes wrong (faults)
//!                    │
//!  nodes, clients ── link ── connection ── server (keeper's model)
//!     ▲ messages      ▲ frames, in order, late      │ commits
//!     └── mailboxes ──┘                             ▼
//!                                              history ──▶ checker, after every step
//! ```
//!
//! Time is virtual and goes from event to event. Two events never happen at once: what falls on the same microsecond
//! happens in the order in which it was put into the queue. Everything that is drawn comes from the plan's seed, so a
//! plan has one run.
//!
//! * `net`: connections. Frames of one direction arrive in order, those of two connections as it happens.
//! * `session`: what the client library does about a connection that comes or goes.
//! * `supervisor`: the session supervisor of a process, a concern, and the reports that it gets from the client library.
//! * `faults`: what goes wrong, and how it is mended.
//! * `server`: ZooKeeper.
//! * `process`: how nodes and clients begin and end, what comes to them, and what they do of it.
//! * `actions`: what the clients of a plan do.
//! * `end`: when a run is over.

mod actions;
mod end;
mod faults;
mod net;
mod process;
mod server;
mod session;
mod supervisor;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bellwether_core::name::NodeId;
use bellwether_keeper::proto::{ConnectRequest, ConnectResponse, Reply, Request, WatchedEvent};
use fastrand::Rng;

use self::end::LOOK_US;
use self::net::Connection;
use self::server::Server;
use crate::history::{Bounds, Checker, Event, EventKind, Leading, Violation};
use crate::host::concern::Hosted;
use crate::host::session::Supervisor;
use crate::host::worker::{Offer, kinds};
use crate::host::{Msg, Node, NodeConfig, Route};
use crate::plan::Plan;
use crate::report::{Report, Stats};
use crate::trace::Trace;
use crate::workload::Process;
use crate::zk::library::{Conn, Library};

/// The id of a panic.
const PANIC: &str = "P";

/// A frame to the server.
#[derive(Debug)]
enum Up {
    /// With the randomness of the session's password.
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

/// What comes to a process. It waits while the process stands still.
enum Incoming {
    Frame(Conn, Down),
    /// A frame that the network has let through: it is in the process's socket.
    Arrived(Conn, Down),
    Msg(Msg),
    /// Connect now: the attempt with this number.
    Attempt(u64),
    /// The attempt with this number takes too long.
    AttemptOver(u64),
    /// Look whether this connection is dead.
    Silence(Conn),
    /// Look whether the session is to be given up.
    GiveUp,
    /// A client's action.
    Act(usize),
    /// The graceful stop has had its time: leave.
    Leave,
}

/// What happens next.
enum Happening {
    ToServer(Conn, Up),
    /// To a process of a peer, by its number.
    ToPeer(usize, u64, Incoming),
    ServerTick,
    /// A write of this session, whose client thinks that it is lost, is applied after all.
    Late(i64, Request),
    Fault(usize),
    Mended(faults::Mend),
    Heal,
    /// Is everything over?
    Look,
}

enum Who {
    Node(NodeConfig, Option<Box<Node>>),
    Client,
}

/// A process's place: the same before and after its restart.
struct Peer {
    name: NodeId,
    who: Who,
    skew_ms: i64,
    /// Counts the processes.
    process: u64,
    /// Of the process, while there is one.
    tasks: Option<Process>,
    /// Of the process, while there is one.
    session: Option<Hosted<Supervisor>>,
    /// What waits while it stands still.
    frozen: Option<Vec<Incoming>>,
    /// Set while it is told to leave: how long it is down afterwards.
    leaves_ms: Option<u64>,
    library: Library<Msg>,
    attempts: session::Attempts,
    trouble: net::Trouble,
    /// When the last message of a route arrives.
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
    server: Server,
    tick_at_us: Option<u64>,
    conns: BTreeMap<Conn, Connection>,
    next_conn: Conn,
    peers: Vec<Peer>,
    leader: Option<usize>,
    /// How each node said last that it stands.
    standing: BTreeMap<NodeId, (Leading, i32)>,
    over_since_us: Option<u64>,
    checker: Checker,
    violations: Vec<Violation>,
    stats: Stats,
    trace: Trace,
}

impl World {
    pub(crate) fn new(plan: Plan, trace: Trace) -> Self {
        let timeout = Duration::from_millis(plan.session_timeout_ms);
        let bounds = Bounds { session_timeout: timeout, tick: Duration::from_millis(plan.tick_ms) };
        let mut rng = Rng::with_seed(plan.seed ^ 0x5eed_0f0f_7e77);
        let nodes = plan.nodes.iter().enumerate().map(|(at, node)| {
            let config = NodeConfig {
                name: name("n", at),
                campaign: plan.campaign,
                strategy: plan.strategy,
                offer: Offer { slots: node.slots, kinds: kinds(), tags: Vec::new() },
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
            server: Server::new(plan.tick_ms),
            tick_at_us: None,
            conns: BTreeMap::new(),
            next_conn: 0,
            peers: peers.collect(),
            leader: None,
            standing: BTreeMap::new(),
            over_since_us: None,
            checker: Checker::new(bounds),
            violations: Vec::new(),
            stats: Stats::default(),
            trace,
            rng,
            plan,
        }
    }

    /// Runs until everything is over, or something is wrong.
    pub(crate) fn run(mut self) -> Report {
        for event in self.server.lay_out(self.plan.retention_ms, &self.plan.schedules) {
            self.record(event);
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

    /// Somebody met what it takes to be impossible.
    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let (at, zxid) = (self.now_us / 1_000, self.checker.truth().zxid());
        self.violations.push(Violation { id: PANIC, at, zxid, what: format!("panicked: {text}") });
    }

    fn happen(&mut self, next: Happening) {
        let of = match &next {
            Happening::ToPeer(peer, ..) => *peer..*peer + 1,
            Happening::ToServer(..) | Happening::ServerTick | Happening::Late(..) | Happening::Look => 0..0,
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
                let outcome = self.server.tick(self.now_us);
                self.served(outcome);
            }
            Happening::Late(session, request) => {
                let outcome = self.server.late(self.now_us, session, request);
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

    /// Notes what happened, and asks the rules.
    fn record(&mut self, what: EventKind) {
        let event = Event { at: self.now_us / 1_000, what };
        let said_already = matches!(event.what, EventKind::Link { .. });
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

/// What kind of event it is, for the hash of a run.
fn next_tag(next: &Happening) -> [u64; 3] {
    match next {
        Happening::ToServer(conn, _) => [1, *conn, 0],
        Happening::ToPeer(peer, process, _) => [2, *peer as u64, *process],
        Happening::ServerTick => [3, 0, 0],
        Happening::Fault(at) => [4, *at as u64, 0],
        Happening::Mended(_) => [5, 0, 0],
        Happening::Heal => [6, 0, 0],
        Happening::Look => [7, 0, 0],
        Happening::Late(session, _) => [8, session.unsigned_abs(), 0],
    }
}
