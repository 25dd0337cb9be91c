//! A namespace, a session behind a proxy, a worker in this session, and a simulated leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::clock_report::Process;
use bellwether_core::job::{Assignment, JobRecord, Payload, Placement, Policy};
use bellwether_core::name::{JobId, Kind, Lane, NodeId, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::worker::WorkerInfo;
use bellwether_core::{path, txn, wire};
use bellwether_host::session::{Session, SessionConfig};
use bellwether_host::worker::{
    Handler, HandlerError, Registry, RunContext, Stage as Life, Worker, WorkerConfig,
};
use bellwether_testkit::{Proxy, eventually_some, namespace};
use bellwether_zk::{Access, Zk, connect, open_namespace};
use futures::FutureExt;
use uuid::Uuid;

pub(crate) const SOON: Duration = Duration::from_secs(20);
const SESSION: Duration = Duration::from_secs(2);

pub(crate) struct Stage {
    pub(crate) proxy: Proxy,
    /// The session of the leader and the client, without faults.
    pub(crate) zk: Zk,
    pub(crate) session: Session,
    pub(crate) worker: Worker,
    pub(crate) runs: Runs,
}

/// The number of started runs.
pub(crate) type Runs = Arc<AtomicU32>;

pub(crate) fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

pub(crate) fn job(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn handlers(runs: &Runs) -> Registry {
    let counted = |kind_name: &str, handler: fn(RunContext) -> futures::future::BoxFuture<'static, _>| {
        let runs = Arc::clone(runs);
        let run = move |context| {
            runs.fetch_add(1, Ordering::SeqCst);
            handler(context)
        };
        (kind(kind_name), Arc::new(run) as Handler)
    };
    let stubborn = |context: RunContext| {
        async move {
            let of = context.clone();
            let code = move || {
                while !of.cancelled.is_cancelled() {
                    std::thread::yield_now();
                }
                Ok(of.payload)
            };
            context.blocking(code).await
        }
        .boxed()
    };
    Registry::new([
        counted("echo", |context| async move { Ok(context.payload) }.boxed()),
        counted("panic", |_| async { panic!("out of cheese") }.boxed()),
        counted("fail", |_| async { Err(HandlerError::new("no luck")) }.boxed()),
        counted("forever", |_| futures::future::pending().boxed()),
        counted("until-told", |context| {
            async move {
                context.cancelled.cancelled().await;
                Err(HandlerError::new("told to stop"))
            }
            .boxed()
        }),
        (kind("stubborn"), Arc::new(stubborn) as Handler),
    ])
    .unwrap()
}

impl Stage {
    pub(crate) async fn set(name: &str) -> Self {
        Self::with_slots(name, 4).await
    }

    pub(crate) async fn with_slots(name: &str, slots: u32) -> Self {
        let namespace = namespace(name);
        let proxy = Proxy::to(&namespace);
        Self::reached(&namespace, proxy, SESSION, slots).await
    }

    /// A stage with its own server and this session timeout.
    pub(crate) async fn on(namespace: &str, session_timeout: Duration) -> Self {
        Self::reached(namespace, Proxy::to(namespace), session_timeout, 4).await
    }

    async fn reached(namespace: &str, proxy: Proxy, session_timeout: Duration, slots: u32) -> Self {
        let zk = connect(&namespace.parse().unwrap(), Duration::from_secs(20)).await.unwrap();
        open_namespace(&zk, true).await.unwrap();
        let connect = proxy.connect_string().parse().unwrap();
        let config = SessionConfig {
            owner: "test".to_owned(),
            is_trusted: true,
            election: None,
            connect,
            access: Access::default(),
            session_timeout,
            create_namespace: false,
            reads_clock: Some(Process { node: None, host: "h".into() }),
        };
        let session = Session::start(config, None).await.unwrap();
        let runs = Runs::default();
        let config = WorkerConfig {
            node: NodeId::new("test").unwrap(),
            host: "localhost".into(),
            slots,
            tags: vec![],
            handlers: handlers(&runs),
            drain_grace: Duration::from_secs(20),
            former: None,
            owner: None,
            takeover: None,
        };
        let worker = Worker::start(config, &session, None).await.unwrap();
        Self { proxy, zk, session, worker, runs }
    }

    pub(crate) fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }

    /// Waits until an incarnation other than `old` serves, and returns its id.
    pub(crate) async fn serving(&self, old: Option<WorkerId>) -> WorkerId {
        let mut status = self.worker.status();
        let serves = status.wait_for(|now| now.stage == Life::Serving && now.id != old);
        tokio::time::timeout(SOON, serves).await.expect("a worker serves in time").unwrap().id.unwrap()
    }

    pub(crate) async fn submit(&self, name: &str, kind_name: &str, policy: Policy) -> JobId {
        let record = JobRecord {
            policy,
            ..JobRecord::new(kind(kind_name), Payload::json(*b"[1]").unwrap(), Uuid::nil(), WallMillis(1))
        };
        assert_eq!(self.zk.commit(txn::submit(&job(name), &record, 0)).await, Outcome::Applied(()));
        job(name)
    }

    pub(crate) async fn submit_laned(&self, name: &str, kind_name: &str) -> JobId {
        let lane = Lane::new("lane").unwrap();
        let record = JobRecord {
            placement: Placement { lane: Some(lane), ..Placement::default() },
            ..JobRecord::new(kind(kind_name), Payload::json(*b"[1]").unwrap(), Uuid::nil(), WallMillis(1))
        };
        assert_eq!(self.zk.commit(txn::submit(&job(name), &record, 0)).await, Outcome::Applied(()));
        job(name)
    }

    /// The place of the entry of a job that is ready.
    pub(crate) async fn waits(&self, job: &JobId) -> ReadyEntry {
        ReadyEntry::of_record(job, &self.record(job).await.0)
    }

    /// Moves a queued job to the worker, as a leader does.
    pub(crate) async fn assign(&self, job: &JobId, worker: WorkerId) -> Outcome<()> {
        let (info, version) = self.info(worker).await.expect("the worker is registered");
        assert!(!info.draining, "a leader does not assign to a draining worker");
        let attempt = self.record(job).await.0.attempts + 1;
        let assignment = Assignment::new(attempt, 1, WallMillis(1));
        let mut ops = vec![txn::check_worker(worker, version)];
        ops.extend(txn::assign(&self.waits(job).await, worker, &assignment, None));
        self.zk.commit(ops).await
    }

    pub(crate) async fn given(&self, name: &str, kind: &str, policy: Policy, worker: WorkerId) -> JobId {
        let job = self.submit(name, kind, policy).await;
        let mut outcome = self.assign(&job, worker).await;
        // The worker has updated its registration. A leader would learn of it and assign with the new version.
        while matches!(&outcome, Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion })) {
            outcome = self.assign(&job, worker).await;
        }
        assert_eq!(outcome, Outcome::Applied(()));
        job
    }

    pub(crate) async fn info(&self, worker: WorkerId) -> Option<(WorkerInfo, i32)> {
        let node = self.zk.get(path::worker(worker)).await.unwrap()?;
        Some((wire::decode(&node.data).unwrap(), node.version))
    }

    pub(crate) async fn record(&self, job: &JobId) -> (JobRecord, i32) {
        let node = self.zk.get(path::record(job)).await.unwrap().expect("the job was submitted");
        (wire::decode(&node.data).unwrap(), node.version)
    }

    pub(crate) async fn assignment(&self, job: &JobId, worker: WorkerId) -> Option<(Assignment, i32)> {
        let node = self.zk.get(path::assignment(worker, job)).await.unwrap()?;
        Some((wire::decode(&node.data).unwrap(), node.version))
    }

    /// Waits until the first attempt is closed, and returns the record.
    pub(crate) async fn closed(&self, job: &JobId) -> JobRecord {
        eventually_some("the attempt is closed", SOON, async || {
            let (record, _) = self.record(job).await;
            (record.attempts > 0).then_some(record)
        })
        .await
    }

    pub(crate) async fn exists(&self, path: String) -> bool {
        self.zk.get(path).await.unwrap().is_some()
    }

    pub(crate) async fn flag_cancel(&self, job: &JobId, worker: WorkerId) {
        let (assignment, version) = self.assignment(job, worker).await.expect("assigned");
        let flag = txn::flag_cancel(job, worker, version, &assignment);
        assert_eq!(self.zk.commit(vec![flag]).await, Outcome::Applied(()));
    }

    pub(crate) async fn started(&self, runs: u32) {
        bellwether_testkit::eventually("handlers are started", SOON, async || self.runs() == runs).await;
    }
}

pub(crate) fn policy() -> Policy {
    Policy {
        backoff: Backoff { initial: Duration::from_secs(60), max: Duration::from_secs(60) },
        ..Policy::default()
    }
}
