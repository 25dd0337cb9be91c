//! The leader wing on a real server. The test plays the client, the election and the workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_core::change::Noted;
use bellwether_core::job::{
    Assignment, Attempt, Ending, JobRecord, JobState, Payload, Placement, Policy, QueueEntry, Verdict,
};
use bellwether_core::name::{JobId, Kind, Lane, NodeId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::placement::OwnStrategies;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;
use bellwether_core::worker::WorkerInfo;
use bellwether_host::leader::{Leader, LeaderConfig};
use bellwether_testkit::{Cut, Proxy, RawClient, eventually, eventually_some, namespace};
use bellwether_zk::{SessionState, Zk, connect, open_namespace};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc;
use uuid::Uuid;

const SOON: Duration = Duration::from_secs(10);

/// A supervisor for the duration of the test.
struct Root;

impl Actor for Root {
    type Msg = ();
    type State = ();
    type Arguments = ();
    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

fn record(policy: Policy, lane: Option<Lane>) -> JobRecord {
    JobRecord {
        policy,
        placement: Placement { lane, ..Placement::default() },
        ..JobRecord::new(
            Kind::new("sum").expect("a name"),
            Payload::json(*b"{}").expect("small"),
            Uuid::now_v7(),
            WallMillis(1),
        )
    }
}

/// A term that the test has claimed.
#[derive(Clone)]
struct ClaimedTerm {
    zk: Zk,
    epoch: i32,
}

struct Bench {
    zk: Zk,
    to: String,
    wing: Leader,
    fenced: mpsc::UnboundedReceiver<i32>,
    permit: Arc<Permit>,
}

/// The permission of the election to act.
#[derive(Default)]
struct Permit {
    withdrawn: AtomicBool,
    refused: AtomicUsize,
}

impl Permit {
    fn may_act(&self) -> bool {
        let withdrawn = self.withdrawn.load(Ordering::SeqCst);
        self.refused.fetch_add(usize::from(withdrawn), Ordering::SeqCst);
        !withdrawn
    }
}

async fn session(to: &str) -> Zk {
    connect(&to.parse().expect("a connect string"), Duration::from_secs(5)).await.expect("a session")
}

async fn applied(zk: &Zk, ops: Vec<Op>) {
    assert_eq!(zk.commit(ops).await, Outcome::Applied(()));
}

/// Raises the epoch, as a new leader does.
async fn claim(zk: &Zk) -> i32 {
    let version = zk.get(path::EPOCH.into()).await.expect("an answer").expect("an epoch").version;
    applied(zk, vec![Op::Set { path: path::EPOCH.into(), data: Vec::new(), version }]).await;
    version + 1
}

impl Bench {
    async fn new(name: &str) -> Self {
        let to = namespace(name);
        let zk = session(&to).await;
        open_namespace(&zk, true).await.expect("a namespace");
        #[expect(clippy::disallowed_methods, reason = "an actor of this test")]
        let (root, _) = Actor::spawn(None, Root, ()).await.expect("a root");
        let (fenced_out, fenced) = mpsc::unbounded_channel();
        let fenced_out = Box::new(move |epoch| fenced_out.send(epoch).expect("the test receives"));
        let permit = Arc::<Permit>::default();
        let may_act = Arc::clone(&permit);
        let may_act = Arc::new(move |_| may_act.may_act());
        let config = LeaderConfig { strategies: OwnStrategies::default(), fenced_out, may_act };
        let wing = Leader::start(config, root.get_cell()).await.expect("a wing");
        Self { zk, to, wing, fenced, permit }
    }

    /// Starts a term of the wing in its own session.
    async fn lead(&self) -> ClaimedTerm {
        let zk = session(&self.to).await;
        let epoch = claim(&zk).await;
        let term = ClaimedTerm { zk, epoch };
        assert!(self.wing.active(term.zk.clone(), term.epoch), "a wing");
        term
    }

    async fn submit(&self, name: &str, policy: Policy) -> JobId {
        let id = JobId::new(name).expect("a name");
        applied(&self.zk, txn::submit(&id, &record(policy, None), 0)).await;
        id
    }

    /// Submits jobs of one lane in one multi.
    async fn submit_lane(&self, lane: &str, names: &[String]) {
        let lane = Lane::new(lane).expect("a name");
        let record = record(Policy::default(), Some(lane));
        let ops = (0..)
            .zip(names)
            .flat_map(|(index, name)| txn::submit(&JobId::new(name).expect("a name"), &record, index));
        applied(&self.zk, ops.collect()).await;
    }

    /// Closes an assigned job as succeeded, as its worker would.
    async fn succeed(&self, worker: WorkerId, name: &str) {
        let id = JobId::new(name).expect("a name");
        let node = self.zk.get(path::record(&id)).await.expect("an answer").expect("a record");
        let record = wire::decode::<JobRecord>(&node.data).expect("readable");
        let attempt = Attempt { number: record.attempts + 1, worker };
        let ending = Ending::Succeeded(Payload::json(*b"1").expect("small"));
        let (closed, next) = record.close(attempt, ending, WallMillis(2), 0);
        applied(&self.zk, txn::close(&id, worker, node.version, None, &closed, &next)).await;
    }

    /// Registers a worker in its own session, so the worker can die.
    async fn worker(&self, slots: u32) -> (WorkerId, Zk) {
        let (id, zk) = (WorkerId::new(Uuid::now_v7()), session(&self.to).await);
        let info = WorkerInfo {
            node: NodeId::new("n").expect("a name"),
            host: "h".into(),
            kinds: vec![Kind::new("sum").expect("a name")],
            leases: BTreeMap::new(),
            slots,
            tags: vec![],
            codec: wire::SCHEMA,
            started_at: WallMillis(1),
            former: vec![],
            owner: None,
            draining: false,
            settings: Noted::default(),
        };
        applied(&zk, txn::register(id, &info)).await;
        (id, zk)
    }

    async fn inbox(&self, worker: WorkerId) -> Vec<String> {
        let mut jobs = self.zk.children(path::inbox(worker)).await.expect("an answer").unwrap_or_default();
        jobs.sort();
        jobs
    }

    async fn record(&self, job: &JobId) -> JobRecord {
        let node = self.zk.get(path::record(job)).await.expect("an answer").expect("a record");
        wire::decode(&node.data).expect("readable")
    }

    /// The path of the entry of a job while it is ready.
    async fn entry(&self, job: &str) -> String {
        let job = JobId::new(job).expect("a name");
        path::ready_entry(&ReadyEntry::of_record(&job, &self.record(&job).await))
    }

    async fn assigned(&self, worker: WorkerId, count: usize) -> Vec<String> {
        eventually_some("jobs are assigned", SOON, async || {
            let jobs = self.inbox(worker).await;
            (jobs.len() == count).then_some(jobs)
        })
        .await
    }

    /// Deletes the assignment of a job, to free its slot.
    async fn finish(&self, worker: WorkerId, job: &str) {
        let id = JobId::new(job).expect("a name");
        applied(&self.zk, vec![Op::Delete { path: path::assignment(worker, &id), version: None }]).await;
    }
}

#[tokio::test]
async fn waiting_jobs_are_assigned_to_a_new_worker_up_to_its_slots() {
    let bench = Bench::new("slots").await;
    for n in 0..5 {
        bench.submit(&format!("j{n}"), Policy::default()).await;
    }
    bench.lead().await;
    let (worker, _session) = bench.worker(2).await;
    let mut done = 0;
    while done < 5 {
        let held = bench.assigned(worker, 2.min(5 - done)).await;
        assert!(held.len() <= 2);
        bench.finish(worker, &held[0]).await;
        done += 1;
    }
    for n in 0..5 {
        assert!(bench.zk.get(bench.entry(&format!("j{n}")).await).await.expect("an answer").is_none());
    }
}

/// An operator has changed the access to one inbox.
#[tokio::test]
async fn an_inbox_that_cannot_be_listed_stops_only_its_worker() {
    const ALL_BUT_READ: i32 = 30;
    let bench = Bench::new("unlisted").await;
    let (hidden, _hidden) = bench.worker(1).await;
    let (other, _other) = bench.worker(1).await;
    let (address, chroot) = bench.to.split_at(bench.to.find('/').expect("a namespace"));
    let inbox = format!("{chroot}{}", path::inbox(hidden));
    let mut operator = RawClient::connect(address.parse().expect("an address")).expect("a session");
    operator.set_permissions(&inbox, ALL_BUT_READ).expect("an answer");
    bench.lead().await;
    bench.submit("a", Policy::default()).await;
    bench.assigned(other, 1).await;
}

#[tokio::test]
async fn the_jobs_of_a_dead_worker_are_reassigned() {
    let bench = Bench::new("orphan").await;
    bench.lead().await;
    let (dying, session) = bench.worker(1).await;
    let job = bench.submit("a", Policy::default()).await;
    bench.assigned(dying, 1).await;
    drop(session);
    let (other, _session) = bench.worker(1).await;
    bench.assigned(other, 1).await;
    let record = bench.record(&job).await;
    assert_eq!((record.attempts, record.losses), (1, 1));
    let node = bench.zk.get(path::assignment(other, &job)).await.expect("an answer").expect("an assignment");
    let assignment: Assignment = wire::decode(&node.data).expect("readable");
    assert_eq!(assignment.attempt, 2);
    eventually("the dead worker's inbox is removed", SOON, async || {
        bench.zk.get(path::inbox(dying)).await.expect("an answer").is_none()
    })
    .await;
}

#[tokio::test]
async fn workers_that_died_without_a_leader_are_recovered_by_the_next_leader() {
    let bench = Bench::new("no-leader").await;
    bench.lead().await;
    let (dying, session) = bench.worker(1).await;
    let job = bench.submit("a", Policy { max_losses: 1, ..Policy::default() }).await;
    bench.assigned(dying, 1).await;
    assert!(bench.wing.inactive(), "a wing");
    eventually("the term has ended", SOON, async || bench.wing.cell().get_children().is_empty()).await;
    drop(session);
    eventually("the ephemeral is deleted", SOON, async || {
        bench.zk.get(path::worker(dying)).await.expect("an answer").is_none()
    })
    .await;
    assert_eq!(bench.inbox(dying).await, ["a"]);
    bench.lead().await;
    eventually("the job is dead after its only loss", SOON, async || {
        matches!(bench.record(&job).await.state, JobState::Terminal { verdict: Verdict::Dead, .. })
    })
    .await;
}

#[tokio::test]
async fn a_stale_leaders_assignment_is_rejected_and_its_term_ends() {
    let mut bench = Bench::new("stale").await;
    let stale = bench.lead().await;
    let (worker, _session) = bench.worker(1).await;
    claim(&bench.zk).await;
    bench.submit("a", Policy::default()).await;
    assert_eq!(bench.fenced.recv().await, Some(stale.epoch));
    assert!(bench.inbox(worker).await.is_empty());
}

#[tokio::test]
async fn a_delayed_job_is_promoted_and_assigned() {
    let bench = Bench::new("delayed").await;
    bench.lead().await;
    let (worker, _session) = bench.worker(1).await;
    let job = bench.submit("a", Policy::default()).await;
    bench.assigned(worker, 1).await;
    let node = bench.zk.get(path::record(&job)).await.expect("an answer").expect("a record");
    let record: JobRecord = wire::decode(&node.data).expect("readable");
    let attempt = bellwether_core::job::Attempt { number: 1, worker };
    let ending = bellwether_core::job::Ending::Failed("boom".into());
    let (closed, next) = record.close(attempt, ending, bellwether_host::clock::local(), 0);
    applied(&bench.zk, txn::close(&job, worker, node.version, None, &closed, &next)).await;
    let assigned = eventually_some("attempt 2 is assigned", SOON, async || {
        let node = bench.zk.get(path::assignment(worker, &job)).await.expect("an answer")?;
        Some(wire::decode::<Assignment>(&node.data).expect("readable"))
    })
    .await;
    assert_eq!(assigned.attempt, 2);
}

#[tokio::test]
async fn a_corrupt_entry_is_left_unchanged_and_other_jobs_run() {
    let bench = Bench::new("corrupt").await;
    let bad = JobId::new("bad").expect("a name");
    let entry = QueueEntry::new(Kind::new("sum").expect("a name"), 2, 1);
    let entry = path::ready_entry(&ReadyEntry::of(&bad, &entry));
    let garbage =
        Op::Create { path: entry.clone(), data: b"garbage".to_vec(), lifetime: txn::Lifetime::Persistent };
    applied(&bench.zk, vec![garbage]).await;
    bench.submit("good", Policy::default()).await;
    bench.lead().await;
    let (worker, _session) = bench.worker(4).await;
    assert_eq!(bench.assigned(worker, 1).await, ["good"]);
    assert!(bench.zk.get(entry).await.expect("an answer").is_some());
}

#[tokio::test]
async fn a_killed_member_is_restarted_without_loss() {
    let bench = Bench::new("restart").await;
    bench.lead().await;
    let (worker, _session) = bench.worker(16).await;
    bench.submit("a", Policy::default()).await;
    bench.assigned(worker, 1).await;
    let members = bench.wing.cell().get_children().len();
    assert_eq!(members, 9);
    for n in 0..members {
        bench.wing.cell().get_children()[n].kill();
        bench.submit(&format!("after-{n}"), Policy::default()).await;
        bench.assigned(worker, n + 2).await;
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).rev().map(|n| format!("{prefix}-{n}")).collect()
}

/// S6, with free slots for all jobs.
#[tokio::test]
async fn jobs_of_a_lane_are_assigned_one_by_one_in_order_of_submission() {
    let bench = Bench::new("leader-lane").await;
    let first = names("a", 3);
    bench.submit_lane("a", &first).await;
    bench.lead().await;
    let (worker, _session) = bench.worker(20).await;
    let second = names("b", 2);
    bench.submit_lane("b", &second).await;
    bench.submit_lane("a", &["late".to_owned()]).await;
    let order = first.iter().zip([Some(&second[0]), Some(&second[1]), None]);
    for (a, b) in order {
        let mut both = vec![a.clone()];
        both.extend(b.cloned());
        assert_eq!(bench.assigned(worker, both.len()).await, both);
        for job in both {
            bench.succeed(worker, &job).await;
        }
    }
    assert_eq!(bench.assigned(worker, 1).await, ["late"]);
}

/// While its first job runs or waits for a backoff, a lane is blocked. The next leader must know this, too.
#[tokio::test]
async fn a_new_leader_reads_the_order_of_a_lane_from_zookeeper() {
    let bench = Bench::new("leader-lane-handover").await;
    let jobs = names("job", 300);
    bench.submit_lane("lane", &jobs[..150]).await;
    bench.submit_lane("lane", &jobs[150..]).await;
    bench.lead().await;
    let (worker, _session) = bench.worker(20).await;
    assert_eq!(bench.assigned(worker, 1).await, jobs[..1]);
    assert!(bench.wing.inactive(), "a wing");
    bench.lead().await;
    // The assignment of another job shows that the new leader has read the queue.
    bench.submit("other", Policy::default()).await;
    let both = bench.assigned(worker, 2).await;
    assert!(both.contains(&jobs[0]) && both.contains(&"other".to_owned()), "{both:?}");
    bench.succeed(worker, &jobs[0]).await;
    bench.succeed(worker, "other").await;
    assert_eq!(bench.assigned(worker, 1).await, jobs[1..2]);
}

/// No watch event about the worker or the job reaches this leader.
#[tokio::test]
async fn changes_during_a_disconnection_are_found_when_the_term_resumes() {
    let bench = Bench::new("gap").await;
    let proxy = Proxy::to(&bench.to);
    let zk = session(&proxy.connect_string()).await;
    let term = ClaimedTerm { epoch: claim(&zk).await, zk };
    assert!(bench.wing.active(term.zk.clone(), term.epoch));
    let (busy, _its_session) = bench.worker(1).await;
    bench.submit("before", Policy::default()).await;
    bench.assigned(busy, 1).await;

    proxy.refuse();
    proxy.cut(Cut::Fin);
    let is = async |state| term.zk.state() == state;
    eventually("the leader is disconnected", SOON, async || is(SessionState::Disconnected).await).await;
    let (idle, _its_session) = bench.worker(1).await;
    bench.submit("during", Policy::default()).await;
    proxy.accept();
    eventually("the leader is connected again", SOON, async || is(SessionState::Connected).await).await;
    assert!(bench.wing.active(term.zk.clone(), term.epoch));
    assert_eq!(bench.assigned(idle, 1).await, ["during"]);
}

/// The connection is alive, as when the beats of the leader are late.
#[tokio::test]
async fn a_paused_leader_begins_no_write_and_resumes_when_its_term_is_active_again() {
    let bench = Bench::new("paused").await;
    let term = bench.lead().await;
    let (worker, _its_session) = bench.worker(1).await;
    bench.submit("before", Policy::default()).await;
    bench.assigned(worker, 1).await;
    bench.succeed(worker, "before").await;

    bench.permit.withdrawn.store(true, Ordering::SeqCst);
    let job = bench.submit("during", Policy::default()).await;
    let refused = async || bench.permit.refused.load(Ordering::SeqCst) > 0;
    eventually("the request that the watch event causes is refused", SOON, refused).await;
    // A write would be served in the leader's session, between these reads.
    for _ in 0..50 {
        let entry = term.zk.get(bench.entry(job.as_str()).await).await.expect("an answer");
        assert!(entry.is_some(), "the job waits");
    }
    assert_eq!(bench.inbox(worker).await, Vec::<String>::new());

    bench.permit.withdrawn.store(false, Ordering::SeqCst);
    assert!(bench.wing.active(term.zk.clone(), term.epoch), "a wing");
    assert_eq!(bench.assigned(worker, 1).await, ["during"]);
}
