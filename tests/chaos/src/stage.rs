//! The cluster of a run: servers, node processes, clients, and an operator that no fault of a link affects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether::client::RetentionChange;
use bellwether::schedule::Overlap;
use bellwether::{Job, Schedule, ScheduleId};
use bellwether_core::budget::MIN_RETENTION;
use bellwether_core::failover::{Failover, MAX_WAIT};
use bellwether_core::group::{GroupRecord, Stage as GroupStage};
use bellwether_core::name::{GroupId, JobId, NodeId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::ready::Shard;
use bellwether_core::txn::Op;
use bellwether_core::{path, wire};
use bellwether_sim::history::{Event, EventKind};
use bellwether_zk::{SessionState, Zk, connect};
use fastrand::Rng;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::{self, Caller};
use crate::failure::Failure;
use crate::links::Links;
use crate::process::{Process, Program, output};
use crate::record::Recorder;
use crate::roster::Roster;
use crate::run::Plan;
use crate::servers::{Kind, Servers};
use crate::wait::until;
use crate::witness::Witness;
use crate::work::{Task, WORK};

/// The namespace.
pub(crate) const CHROOT: &str = "/chaos";
/// The operator's session outlives the faults of the servers.
const OPERATOR_SESSION: Duration = Duration::from_secs(30);
const CONNECTS_WITHIN: Duration = Duration::from_secs(20);
/// Retention of records: the shortest possible, so that removals coincide with all faults.
const KEPT: Duration = MIN_RETENTION;
const NODES: usize = 4;
const SLOTS: u32 = 8;
/// The end of the leader's session always comes before the end of this wait, so the beats have no effect, as before leaders
/// had them.
const WITHOUT_BEATS: Failover =
    Failover { beat: Duration::from_secs(1), trust: Duration::from_secs(3_000), wait: MAX_WAIT };
/// The operator's number among the clients.
const OPERATOR: u32 = 0;
/// They tick until the last phase of a run.
const SCHEDULES: [&str; 2] = ["beat", "alone"];
/// Number of clients in the driver's process.
const CLIENTS_HERE: u32 = 2;

/// The running cluster.
pub(crate) struct Stage {
    pub(crate) dir: PathBuf,
    pub(crate) kind: Kind,
    /// The session timeout of nodes.
    pub(crate) session: Duration,
    pub(crate) servers: Servers,
    pub(crate) nodes: Vec<Process>,
    /// A client process, which can be killed.
    pub(crate) client: Process,
    /// The links of the clients in the driver's process.
    pub(crate) client_links: Vec<Links>,
    pub(crate) operator: Operator,
    pub(crate) witness: Witness,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) poisoned: u32,
    /// How often the servers were up but gave no sessions until they were restarted.
    pub(crate) servers_stuck: u32,
    clients: Vec<JoinHandle<Result<(), Failure>>>,
    stop_clients: CancellationToken,
    next_client: u32,
    rate: u32,
    /// When each client process was killed.
    pub(crate) killed_clients: Vec<(u32, u64)>,
}

/// Observes and acts without any fault of links.
pub(crate) struct Operator {
    to: String,
    zk: Zk,
    pub(crate) caller: Caller,
}

impl Operator {
    async fn connect(to: String, dir: &Path) -> Result<Self, Failure> {
        let caller = Caller::connect(&to, &dir.join("records/operator.jsonl"), OPERATOR).await?;
        let zk = connect(&to.parse()?, OPERATOR_SESSION).await?;
        Ok(Self { to, zk, caller })
    }

    /// Returns a session that has not ended. It may be disconnected.
    pub(crate) async fn zk(&mut self) -> Result<Zk, Failure> {
        if self.zk.state() == SessionState::Ended {
            self.zk = connect(&self.to.parse()?, OPERATOR_SESSION).await?;
        }
        Ok(self.zk.clone())
    }

    /// Sets how candidates wait for a leader's beat. No node may run.
    async fn set_failover(&self, failover: Failover) -> Result<(), Failure> {
        let path = path::FAILOVER.to_owned();
        let found = self.zk.get(path.clone()).await?;
        let version = found.ok_or_else(|| Failure::new("the namespace has no /config/failover"))?.version;
        match self.zk.commit(vec![Op::Set { path, data: wire::encode(&failover), version }]).await {
            Outcome::Applied(()) => Ok(()),
            refused => Err(Failure::new(format!("/config/failover is not set: {refused:?}"))),
        }
    }

    /// Returns the leading node, if there is one.
    pub(crate) async fn leader(&self) -> Option<NodeId> {
        let leader = self.caller.client.leader().await.ok().flatten()?;
        leader.standing.then_some(leader.node)
    }

    /// Returns the inboxes whose worker has left.
    pub(crate) async fn orphans(&mut self) -> Option<BTreeSet<String>> {
        let zk = self.zk().await.ok()?;
        let workers = zk.children(path::WORKERS.to_owned()).await.ok()?.unwrap_or_default();
        let inboxes = zk.children(path::ASSIGNMENTS.to_owned()).await.ok()?.unwrap_or_default();
        let workers: BTreeSet<_> = workers.into_iter().collect();
        Some(inboxes.into_iter().filter(|inbox| !workers.contains(inbox)).collect())
    }

    /// Returns the registered workers, with their nodes.
    pub(crate) async fn workers(&self) -> Vec<(NodeId, WorkerId)> {
        let workers = self.caller.client.workers().await.unwrap_or_default();
        workers.into_iter().filter_map(|worker| Some((worker.info.ok()?.node, worker.id))).collect()
    }

    /// Counts the jobs that are queued, delayed or assigned.
    pub(crate) async fn open_jobs(&mut self) -> Option<usize> {
        let zk = self.zk().await.ok()?;
        let mut parents: Vec<String> = Shard::all().map(path::ready_shard).collect();
        for _ in 0..2 {
            let lists = zk.children_many(parents.clone()).await.ok()?;
            let below = parents.iter().zip(lists).flat_map(|(parent, names)| {
                names.unwrap_or_default().into_iter().map(move |name| format!("{parent}/{name}"))
            });
            parents = below.collect();
        }
        for (root, names) in [
            (path::DELAYED, zk.children(path::DELAYED.to_owned()).await.ok()?),
            (path::ASSIGNMENTS, zk.children(path::ASSIGNMENTS.to_owned()).await.ok()?),
        ] {
            parents.extend(names.unwrap_or_default().into_iter().map(|name| format!("{root}/{name}")));
        }
        let mut open = 0;
        for parent in parents {
            open += zk.children(parent).await.ok()?.unwrap_or_default().len();
        }
        Some(open)
    }

    /// Returns the groups that are readable and not done.
    pub(crate) async fn open_groups(&mut self) -> Option<Vec<GroupId>> {
        let zk = self.zk().await.ok()?;
        let mut open = Vec::new();
        for bucket in path::Bucket::all() {
            for name in zk.children(bucket.groups()).await.ok()?.unwrap_or_default() {
                let id = GroupId::new(name).ok()?;
                let Some(node) = zk.get(path::group(&id)).await.ok()? else { continue };
                let stage = wire::decode::<GroupRecord>(&node.data).ok()?.stage;
                if !matches!(stage, GroupStage::Done { .. }) {
                    open.push(id);
                }
            }
        }
        Some(open)
    }

    /// Submits the missing members of the groups that are not done. Returns `true` if none is missing.
    pub(crate) async fn complete_groups(&mut self) -> bool {
        let Some(open) = self.open_groups().await else { return false };
        let mut all = true;
        for roster in open.iter().filter_map(Roster::of) {
            all &= self.caller.generate(&roster).await;
        }
        all
    }

    /// Adds one schedule that ticks each second, and one that ticks only when its last job is terminal.
    async fn add_schedules(&self) -> Result<(), Failure> {
        let job = |ms| Job::new(WORK, &Task::new(ms, 0));
        let beat = Schedule::every(SCHEDULES[0], Duration::from_secs(1), job(5));
        let alone = Schedule::cron(SCHEDULES[1], "*/3 * * * * *", job(1_500)).overlap(Overlap::Forbid);
        for schedule in [beat, alone] {
            self.caller.client.schedules().add(&schedule).await?;
        }
        Ok(())
    }

    /// Pauses all schedules. Returns whether that succeeded.
    pub(crate) async fn pause_schedules(&self) -> bool {
        let mut paused = true;
        for name in SCHEDULES {
            let id = ScheduleId::new(name).expect("letters");
            paused &= self.caller.client.schedules().pause(&id).await.is_ok();
        }
        paused
    }

    pub(crate) async fn is_over(&self, job: &JobId) -> bool {
        // If an acknowledged job is absent, it was terminal and its record was removed.
        let view = self.caller.client.get(job).await;
        view.is_ok_and(|view| view.is_none_or(|view| view.state.is_terminal()))
    }
}

impl Stage {
    pub(crate) async fn set(plan: &Plan, rng: &mut Rng) -> Result<Self, Failure> {
        let Plan { kind, session, beats, rate, .. } = *plan;
        let dir = plan.dir.as_path();
        std::fs::create_dir_all(dir.join("records"))?;
        let servers = Servers::start(kind, session, dir).await?;
        let addresses = servers.addresses();
        let hosts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let operator = Operator::connect(format!("{}{CHROOT}", hosts.join(",")), dir).await?;
        let kept = RetentionChange::new().succeeded(KEPT).cancelled(KEPT).dead(KEPT);
        operator.caller.client.change_retention(&kept).await?;
        if !beats {
            operator.set_failover(WITHOUT_BEATS).await?;
        }
        let witness = Witness::default();
        let recorder = Arc::new(Recorder::open(&dir.join("records/driver.jsonl"))?);
        let links = || Links::to(&addresses, &witness);
        let process = |name: &str, links: Links, arguments: Vec<String>| {
            let name = NodeId::new(name).expect("letters and digits");
            let program = Program { arguments, output: output(dir, name.as_str()) };
            Process::new(name, links, program, Arc::clone(&recorder))
        };
        let nodes = (1..=NODES).map(|number| {
            let (name, links) = (format!("n{number}"), links());
            let arguments = node_arguments(&name, &links, session, dir, number == NODES);
            process(&name, links, arguments)
        });
        let nodes = nodes.collect();
        let client = process("client", links(), Vec::new());
        let client_links = (0..CLIENTS_HERE).map(|_| links()).collect();
        let mut stage = Self {
            dir: dir.to_owned(),
            kind,
            session,
            servers,
            nodes,
            client,
            client_links,
            operator,
            witness,
            recorder,
            poisoned: 0,
            servers_stuck: 0,
            clients: Vec::new(),
            stop_clients: CancellationToken::new(),
            next_client: OPERATOR + 1,
            rate,
            killed_clients: Vec::new(),
        };
        for node in &mut stage.nodes {
            node.start()?;
        }
        let workers = async || stage.operator.workers().await.len() == NODES;
        until("every node is a worker", CONNECTS_WITHIN, workers).await?;
        stage.operator.add_schedules().await?;
        stage.start_clients(rng)?;
        Ok(stage)
    }

    fn start_clients(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        for links in self.client_links.clone() {
            let arguments = self.client_arguments(&links, rng.u64(..));
            self.clients.push(tokio::spawn(client::run(arguments, self.stop_clients.clone())));
        }
        self.start_client_process(rng)
    }

    fn client_arguments(&mut self, links: &Links, seed: u64) -> client::Arguments {
        let number = self.next_client;
        self.next_client += 1;
        let zookeeper = links.connect_string(CHROOT);
        let records = self.dir.join(format!("records/client-{number}.jsonl"));
        client::Arguments { zookeeper, records, number, seed, rate: self.rate }
    }

    /// Starts the client process with a new number, if it is down.
    pub(crate) fn start_client_process(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        if self.client.runs() {
            return Ok(());
        }
        let arguments = self.client_arguments(&self.client.links.clone(), rng.u64(..));
        let line = ["client", "--zookeeper", &arguments.zookeeper, "--records"].map(str::to_owned);
        let mut line = line.to_vec();
        line.push(arguments.records.display().to_string());
        line.extend(["--number".to_owned(), arguments.number.to_string()]);
        line.extend(["--seed".to_owned(), arguments.seed.to_string()]);
        line.extend(["--rate".to_owned(), arguments.rate.to_string()]);
        self.client.replace(line);
        self.client.start()
    }

    /// Sends SIGKILL to the client process. Its open calls are never answered.
    pub(crate) fn kill_client_process(&mut self) {
        self.client.kill();
        self.killed_clients.push((self.next_client - 1, crate::record::now()));
    }

    /// Waits until every server serves.
    pub(crate) async fn heal_servers(&mut self) -> Result<(), Failure> {
        let dir = self.dir.clone();
        self.servers_stuck += u32::from(self.servers.all_serve(&dir).await?);
        Ok(())
    }

    /// Detects processes that a job killed, and restarts them.
    pub(crate) fn tend(&mut self) -> Result<(), Failure> {
        for node in &mut self.nodes {
            if node.look() {
                self.poisoned += 1;
                node.start()?;
            }
        }
        Ok(())
    }

    pub(crate) async fn stop_clients(&mut self) -> Result<(), Failure> {
        self.stop_clients.cancel();
        self.client.ask_to_end();
        for client in self.clients.drain(..) {
            client.await??;
        }
        self.client.ended().await
    }

    /// Returns the position of the node with this name.
    pub(crate) fn index_of(&self, node: &NodeId) -> Option<usize> {
        self.nodes.iter().position(|process| process.name == *node)
    }

    pub(crate) fn record(&self, what: EventKind) -> Event {
        let event = Event { at: crate::record::now(), what: what.clone() };
        self.recorder.record(what);
        event
    }
}

fn node_arguments(
    name: &str,
    links: &Links,
    session: Duration,
    dir: &Path,
    worker_only: bool,
) -> Vec<String> {
    let records = dir.join(format!("records/{name}.jsonl"));
    let mut arguments = ["node", "--name", name, "--zookeeper"].map(str::to_owned).to_vec();
    arguments.push(links.connect_string(CHROOT));
    arguments.extend(["--records".to_owned(), records.display().to_string()]);
    arguments.extend(["--session-ms".to_owned(), session.as_millis().to_string()]);
    arguments.extend(["--slots".to_owned(), SLOTS.to_string()]);
    arguments.extend(worker_only.then(|| "--worker-only".to_owned()));
    arguments
}
