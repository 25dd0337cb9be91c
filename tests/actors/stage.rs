//! A cluster, its jobs, and the checks after the test.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::node::NodeError;
use bellwether::schedule::Overlap;
use bellwether::testing::actors::{InjectedFault, Kind, Planned, Probe};
use bellwether::testing::{Cluster, ClusterNode};
use bellwether::{
    HandlerError, Handlers, Job, JobId, JobView, Retention, Schedule, ScheduleId, State, WorkerId,
};
use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::change::Noted;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, SubBucket};
use bellwether_core::schedule::parse_tick;
use bellwether_core::segment::MIN_PACKED;
use bellwether_core::txn::Op;
use bellwether_core::wire;
use bellwether_testkit::{Proxy, RawClient, eventually};
use bellwether_zk::{Zk, connect};
use futures::FutureExt as _;

use crate::case::text;
use crate::namespace::leftovers;
use crate::runs::Runs;

/// The session timeout of the nodes.
pub(crate) const SESSION: Duration = Duration::from_millis(1_500);
/// Longer than any recovery.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// The session timeout of clients without faults.
const LONG: Duration = Duration::from_secs(30);
/// The lease of jobs in tests of leases: the shortest allowed.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// The backoff of failing jobs: long enough for the promoter to learn of the delayed entry first.
const BACKOFF: Duration = Duration::from_millis(200);

/// ZooKeeper's permission bits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Allowed {
    All = 31,
    ButReading = 30,
    ButDeleting = 23,
}

/// The root actor and its children.
const PARTS: &[&str] = &["node", "session", "election", "leader_wing", "worker_wing"];
/// The children of the worker wing.
const CHILDREN: &[&str] = &["inbox_watcher", "executor_pool", "status_reporter"];
/// The members of the leader wing.
const MEMBERS: [&str; 9] = [
    "janitor",
    "job_watcher",
    "promoter",
    "schedule_keeper",
    "group_joiner",
    "worker_registry",
    "lease_watcher",
    "assigner",
    "expirer",
];

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) probe: Probe,
    /// The fault of the case.
    planned: Option<Planned>,
    pub(crate) runs: Runs,
    /// The proxies of the nodes, if requested.
    proxies: Arc<Mutex<Vec<Proxy>>>,
    /// The submitted jobs, each with its allowed final states.
    jobs: RefCell<Vec<(JobId, &'static [State])>>,
    _let_go: LetGo,
}

impl Stage {
    /// Starts two nodes with two slots each, and waits until they are ready.
    pub(crate) async fn set(probe: Probe, planned: Option<Planned>, proxied: bool) -> Self {
        let runs = Runs::new();
        let cluster = Cluster::builder(handlers(&runs))
            .nodes(2)
            .configure(|_, node| {
                node.session_timeout(SESSION).slots(2).drain_grace(Duration::from_millis(100))
            })
            .probe(&probe);
        let proxies = Arc::<Mutex<Vec<Proxy>>>::default();
        let known = Arc::clone(&proxies);
        let cluster = if proxied {
            cluster.by_way_of(move |_, server| {
                let proxy = Proxy::to(&server);
                let address = proxy.connect_string();
                known.lock().unwrap().push(proxy);
                address
            })
        } else {
            cluster
        };
        let _let_go = LetGo(runs.clone());
        let cluster = cluster.start().await.unwrap();
        Self { cluster, probe, planned, runs, proxies, jobs: RefCell::default(), _let_go }
    }

    /// Submits jobs that end in one of these states.
    pub(crate) async fn submit(&self, jobs: impl IntoIterator<Item = Job>, ends: &'static [State]) {
        for answer in self.cluster.client().submit_many(jobs, |_| {}).await {
            self.jobs.borrow_mut().push((answer.unwrap().id().clone(), ends));
        }
    }

    /// Submits jobs that succeed: a segment, more plain jobs than there are slots, jobs of a lane, and a job that fails once.
    pub(crate) async fn submit_some(&self, round: &str) {
        let packed = (0..MIN_PACKED).map(|_| plain("quick"));
        let alone = (0..5).map(|n| job("quick", &format!("{round}-{n}")));
        let lane = (0..3).map(|n| job("laned", &format!("{round}-lane-{n}")).lane("lane"));
        let flaky = job("flaky", &format!("{round}-flaky"));
        self.submit(packed.chain(alone).chain(lane).chain([flaky]), &[State::Succeeded]).await;
    }

    pub(crate) async fn submit_held(&self, id: &str) {
        self.submit([job("held", id)], &[State::Succeeded]).await;
    }

    /// Adds a schedule that ticks every second. Without a fault no tick is late.
    pub(crate) async fn tick(&self, schedule: &str, overlap: Overlap) {
        let tick = Schedule::every(schedule, Duration::from_secs(1), plain("quick")).overlap(overlap);
        self.cluster.client().schedules().add(&tick).await.unwrap();
    }

    /// Waits until the schedule has ticked this often, and removes it. Its jobs are treated like submitted jobs.
    pub(crate) async fn ticked(&self, schedule: &str, ticks: u64) {
        let (schedules, id) = (self.cluster.client().schedules(), ScheduleId::new(schedule).unwrap());
        let record = async || schedules.get(&id).await.unwrap().record.unwrap();
        eventually("the schedule ticks", SOON, async || record().await.ticked >= ticks).await;
        let last = schedules.pause(&id).await.unwrap().record.unwrap();
        let zk = self.onlooker().await;
        let mut made = 0;
        let parents = SubBucket::all().map(SubBucket::path).collect::<Vec<_>>();
        for few in parents.chunks(MAX_READ_BATCH) {
            let names = zk.children_many(few.to_vec()).await.unwrap();
            for job in names.iter().flatten().flatten().map(|name| JobId::new(name).unwrap()) {
                if parse_tick(&job).is_some_and(|(of, _)| of == id) {
                    self.jobs.borrow_mut().push((job, &[State::Succeeded]));
                    made += 1;
                }
            }
        }
        // S8: one job for each tick that the schedule has counted.
        assert_eq!(made, last.ticked, "{last:?}");
        assert!(schedules.remove(&id).await.unwrap());
    }

    /// Waits until all submitted jobs have ended.
    pub(crate) async fn over(&self) -> Vec<JobView> {
        let ids = self.jobs.borrow().iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let answers = self.cluster.client().wait_many(&ids, SOON, |_| {}).await;
        answers.into_iter().map(|answer| answer.unwrap()).collect()
    }

    pub(crate) async fn view(&self, id: &str) -> JobView {
        self.cluster.client().get(&JobId::new(id).unwrap()).await.unwrap().unwrap()
    }

    pub(crate) async fn cancel(&self, id: &str) {
        self.cluster.client().cancel(&JobId::new(id).unwrap()).await.unwrap();
    }

    /// Cancels all submitted jobs, and waits until they have ended.
    pub(crate) async fn cancel_all(&self) {
        let ids = self.jobs.borrow().iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        for id in &ids {
            self.cluster.client().cancel(id).await.unwrap();
        }
        self.over().await;
    }

    pub(crate) async fn leader(&self) -> &ClusterNode {
        self.cluster.leader().await.unwrap()
    }

    /// The inbox of the worker of a job, or of any worker.
    pub(crate) async fn inbox(&self, of: Option<&str>) -> String {
        let worker = match of {
            Some(id) => self.assigned(id).await.1,
            None => self.cluster.client().workers().await.unwrap()[0].id,
        };
        path::inbox(worker)
    }

    /// Submits held jobs until one runs on the leader's node, and returns that node.
    pub(crate) async fn busy_leader(&self) -> &ClusterNode {
        let mut held = Vec::new();
        loop {
            let id = format!("held-{}", held.len());
            self.submit_held(&id).await;
            self.runs.begun(&id).await;
            held.push(id);
            let leader = self.leader().await;
            for id in &held {
                if self.view(id).await.node.is_some_and(|node| node.as_str() == leader.name()) {
                    return leader;
                }
            }
        }
    }

    /// The proxy of a node.
    pub(crate) fn proxy(&self, node: &ClusterNode) -> Proxy {
        let index = self.cluster.nodes().iter().position(|other| other.name() == node.name());
        self.proxies.lock().unwrap()[index.unwrap()].clone()
    }

    /// Waits until a job runs, and returns its node.
    pub(crate) async fn node_of(&self, id: &str) -> &ClusterNode {
        self.runs.begun(id).await;
        let name = self.view(id).await.node.unwrap();
        self.cluster.named(name.as_str()).unwrap()
    }

    /// Returns the first of these jobs that does not run on the leader's node, and its node. On the leader's node the
    /// requests of the leader and of the worker cannot be distinguished, because both read assignments.
    pub(crate) async fn beside_the_leader<'a>(&self, ids: &[&'a str]) -> (&'a str, &ClusterNode) {
        let leader = self.leader().await.name();
        for id in ids {
            let node = self.node_of(id).await;
            if node.name() != leader {
                return (id, node);
            }
        }
        panic!("all of {ids:?} run on the leader's node");
    }

    /// The id of a job and the worker that it is assigned to.
    pub(crate) async fn assigned(&self, id: &str) -> (JobId, WorkerId) {
        let view = self.view(id).await;
        (view.id, view.worker.unwrap())
    }

    /// Waits until the actor has received a message of this kind.
    pub(crate) async fn met(&self, actor: &str, kind: &str) {
        self.until(&format!("{actor} receives {kind}"), || self.has_met(actor, kind)).await;
    }

    /// Waits until a condition holds, or until the fault of this case was injected, because the fault may prevent it.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        eventually(what, SOON, async || holds() || self.is_injected()).await;
    }

    pub(crate) fn is_injected(&self) -> bool {
        self.planned.as_ref().is_some_and(Planned::is_injected)
    }

    pub(crate) fn has_met(&self, actor: &str, kind: &str) -> bool {
        let is = |(of, met): &(&'static str, Kind)| *of == actor && met.to_string() == kind;
        self.probe.met().keys().any(is)
    }

    /// Sets the permissions of all users on a znode.
    pub(crate) async fn allow(&self, path: &str, allowed: Allowed) {
        let server = self.cluster.zookeeper();
        let (address, chroot) = server.split_at(server.find('/').unwrap());
        let (address, path) = (address.parse().unwrap(), format!("{chroot}{path}"));
        let set = move || RawClient::connect(address)?.set_permissions(&path, allowed as i32);
        // The server's connections run in this runtime, so blocking calls need their own thread.
        tokio::task::spawn_blocking(set).await.unwrap().unwrap();
    }

    /// Sets the retention to this time or to the default. Clients do not allow a time this short.
    pub(crate) async fn keep(&self, time: Option<Duration>) {
        let (zk, path) = (self.onlooker().await, path::RETENTION.to_owned());
        let version = zk.get(path.clone()).await.unwrap().unwrap().version;
        let by_default = Retention::default();
        let retention = time.map_or(by_default, |time| by_default.succeeded(time).cancelled(time).dead(time));
        let set = Op::Set { path, data: wire::encode(&Noted::unchanged(retention)), version };
        assert_eq!(zk.commit(vec![set]).await, Outcome::Applied(()));
    }

    /// Opens a session without faults.
    pub(crate) async fn onlooker(&self) -> Zk {
        connect(&self.cluster.zookeeper().parse().unwrap(), LONG).await.unwrap()
    }

    /// Checks the state at the end, with all nodes that are still alive.
    pub(crate) async fn check(&self) {
        let zk = self.onlooker().await;
        let workers = self.cluster.nodes().iter().filter(|node| self.lives(node)).count();
        self.cluster.ready().await.unwrap();
        self.submit_some("after").await;
        let jobs = self.over().await;
        for (view, (_, ends)) in jobs.iter().zip(&*self.jobs.borrow()) {
            assert!(ends.contains(&view.state), "not {ends:?}: {view:?}");
        }
        self.runs.explain(&jobs);
        self.check_alive().await;
        let left = RefCell::new(Vec::new());
        let empty = eventually("every place is empty", SOON, async || {
            *left.borrow_mut() = leftovers(&zk, workers).await.unwrap();
            left.borrow().is_empty()
        });
        empty.await;
    }

    /// Whether a node was not stopped and has not ended.
    pub(crate) fn lives(&self, node: &ClusterNode) -> bool {
        !node.node().actors().has_ended()
    }

    /// L8: each live node has each of its actors once, and the members of the leader wing if it is the leader.
    async fn check_alive(&self) {
        let wrong = RefCell::new(Vec::new());
        let complete = eventually("each node has its actors", SOON, async || {
            let living = self.cluster.nodes().iter().filter(|node| self.lives(node));
            let wrongs = living.filter_map(|node| {
                let alive = self.probe.alive(node.name());
                let leads = if node.leads() { &MEMBERS[..] } else { &[] };
                let expected = PARTS.iter().chain(CHILDREN).chain(leads).map(|actor| (*actor, 1));
                (alive != expected.collect()).then(|| (node.name(), alive))
            });
            *wrong.borrow_mut() = wrongs.map(|wrong| format!("{wrong:?}")).collect();
            wrong.borrow().is_empty()
        });
        if let Err(late) = AssertUnwindSafe(complete).catch_unwind().await {
            panic!("{}: {:?}", text(late.as_ref()), wrong.borrow());
        }
    }

    /// L8: exactly the parts that depend on the dead actor were restarted.
    pub(crate) async fn check_death(&self, actor: &str, injected: &InjectedFault) {
        self.check_parts(injected, |part| rebuilt(part, actor));
        if actor == "node" {
            let ended = self.cluster.named(&injected.scope).unwrap().node().ended().await;
            assert!(
                matches!(ended, Err(NodeError::Actors(_))),
                "the node must end with an error of its actors, not {ended:?}"
            );
        }
    }

    /// L8: a stalled actor is not restarted.
    pub(crate) fn check_spared(&self, injected: &InjectedFault) {
        self.check_parts(injected, |_| false);
    }

    fn check_parts(&self, injected: &InjectedFault, rebuilt: impl Fn(&str) -> bool) {
        let now = self.probe.started(&injected.scope);
        for part in PARTS {
            let before = injected.started.get(part).copied().unwrap_or_default();
            let again = now.get(part).copied().unwrap_or_default() - before;
            assert_eq!(again, usize::from(rebuilt(part)), "starts of {part}: {now:?}, after {injected:?}");
        }
    }
}

/// Releases held runs at the end, also after a panic: a held thread would block the shutdown of its runtime.
struct LetGo(Runs);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Whether a part of the node is restarted when this actor dies.
fn rebuilt(part: &str, dead: &str) -> bool {
    match dead {
        "session" => part != "node",
        "election" => matches!(part, "election" | "leader_wing"),
        "leader_wing" | "worker_wing" => part == dead,
        // The node ends, or the part restarts its own children.
        _ => false,
    }
}

pub(crate) fn job(kind: &str, id: &str) -> Job {
    plain(kind).id(id)
}

pub(crate) fn plain(kind: &str) -> Job {
    let job = Job::new(kind, &()).backoff(BACKOFF, BACKOFF);
    // The injected faults must not exhaust the limits.
    job.max_losses(20).max_attempts(20)
}

fn handlers(runs: &Runs) -> Handlers {
    let runs = with_state(runs.clone());
    Handlers::new()
        .add(runs.job("quick", |runs, context, (): ()| async move {
            runs.begin(&context);
            Ok(())
        }))
        .add(runs.job("laned", |runs, context, (): ()| async move {
            let in_lane = runs.begin_in_lane(&context);
            tokio::task::yield_now().await;
            drop(in_lane);
            Ok(())
        }))
        .add(runs.job("flaky", |runs, context, (): ()| async move {
            runs.begin(&context);
            if runs.first(&context) { Err(HandlerError::new("not at first")) } else { Ok(()) }
        }))
        .add(runs.job("held", |runs, context, (): ()| async move {
            runs.begin(&context);
            runs.released().await;
            Ok(())
        }))
        .add(runs.job("telling", |runs, context, (): ()| async move {
            runs.begin(&context);
            context.progress(50, "half of it")?;
            runs.released().await;
            Ok(())
        }))
        .add(runs.job("stubborn", |runs, context, (): ()| {
            runs.begin(&context);
            std::future::pending::<Result<(), HandlerError>>()
        }))
        .add(runs.blocking_job("deaf", |runs, context, (): ()| {
            runs.begin(&context);
            // Ignores its token.
            futures::executor::block_on(runs.released());
            Ok(())
        }))
}
