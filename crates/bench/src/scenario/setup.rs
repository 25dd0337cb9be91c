//! A leader in its own process, workers that count their runs, and a client.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bellwether::error::chain;
use bellwether::{Client, ConnectString, Job, Node};
use futures::future::{join_all, try_join};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::sync::Notify;
use tokio::time::sleep;
use uuid::Uuid;

use super::super::cluster::{KIND, handlers, named, worker};
use super::super::load::Counts;
use super::super::process::{NodeProcess, Sent};
use super::super::{count, millis};
use super::{PATIENCE, Part, Progress, ScenarioConfig, Takeover};

/// If no run starts for this long after the kill of the leader, the workers have started every job that it assigned.
const QUIET: Duration = Duration::from_millis(500);

/// Jobs per call of the client, which batches them.
const CHUNK: usize = 1_000;
/// Concurrent calls.
const AT_ONCE: usize = 4;

/// The processes of a measurement, which run until it ends.
pub(super) struct Setup<'a> {
    counts: &'a Counts,
    namespace: ConnectString,
    leader: NodeProcess,
    before: u64,
    workers: Vec<Node>,
    pub(super) client: Client,
    runs: Arc<Runs>,
}

#[derive(Default)]
struct Runs {
    begun: AtomicUsize,
    changed: Notify,
}

impl Runs {
    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

/// A running measurement.
pub(super) struct Clock {
    started: Instant,
    runs: usize,
    sent: Sent,
    leader_bytes: u64,
}

impl<'a> Setup<'a> {
    pub(super) async fn open(
        config: &ScenarioConfig,
        run: Uuid,
        part: &str,
        counts: &'a Counts,
    ) -> Result<Self, String> {
        let namespace = named(&config.zookeeper, run, part)?;
        let client = Client::connect(&namespace.to_string()).await.map_err(|error| chain(&error))?;
        let leader = NodeProcess::lead(&namespace, "candidate", &client).await?;
        let before = leader.bytes()?;
        let runs = Arc::default();
        Ok(Self { counts, namespace, leader, before, workers: Vec::new(), client, runs })
    }

    /// Kills the leader and starts another one.
    pub(super) async fn succeed(&mut self) -> Result<(), String> {
        self.leader.kill().await?;
        self.leader = NodeProcess::lead(&self.namespace, "candidate", &self.client).await?;
        self.before = self.leader.bytes()?;
        Ok(())
    }

    /// Kills the leader, starts another one when the workers are idle, and measures how long that one takes from its claim to
    /// the first run.
    pub(super) async fn take_over(&mut self) -> Result<Takeover, String> {
        self.leader.kill().await?;
        let before = self.idle().await;
        let run = async { self.ran(before + 1).await.map(|()| SystemTime::now()) };
        let next = NodeProcess::lead(&self.namespace, "candidate", &self.client);
        let (next, run) = try_join(next, run).await?;
        self.leader = next;
        let claimed =
            self.client.leader().await.map_err(|error| chain(&error))?.ok_or("the leader is gone")?;
        let first_run = run.duration_since(claimed.since).map_err(|error| chain(&error))?;
        Ok(Takeover { first_run_ms: millis(first_run), leader_bytes: self.leader.bytes()? })
    }

    /// Waits until no run starts for a while, and returns the number of runs.
    async fn idle(&self) -> usize {
        let mut runs = self.runs();
        loop {
            sleep(QUIET).await;
            if runs == self.runs() {
                return runs;
            }
            runs = self.runs();
        }
    }

    /// Starts the workers.
    pub(super) async fn work(&mut self, config: &ScenarioConfig) -> Result<(), String> {
        self.work_on(config, &[KIND, &format!("{KIND}.join")]).await
    }

    /// Starts the workers with these kinds.
    pub(super) async fn work_on(&mut self, config: &ScenarioConfig, kinds: &[&str]) -> Result<(), String> {
        for n in 0..config.workers {
            let runs = Arc::clone(&self.runs);
            let handlers = handlers(kinds, move || runs.begin());
            self.workers.push(worker(&self.namespace, &format!("worker-{n}"), config.slots, handlers).await?);
        }
        Ok(())
    }

    /// Submits jobs in batches.
    pub(super) async fn submit(&self, jobs: Vec<Job>) -> Result<(), String> {
        for accepted in self.client.submit_many(jobs, |_| {}).await {
            accepted.map_err(|error| chain(&error))?;
        }
        Ok(())
    }

    /// Submits jobs.
    pub(super) async fn fill(
        &self,
        jobs: usize,
        job: impl Fn(usize) -> Job,
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), String> {
        let chunk = |from: usize| (from..(from + CHUNK).min(jobs)).map(&job).collect::<Vec<_>>();
        let chunks = stream::iter((0..jobs).step_by(CHUNK).map(chunk)).map(async |chunk| {
            let number = chunk.len();
            self.submit(chunk).await.map(|()| number)
        });
        let (mut chunks, mut done) = (pin!(chunks.buffer_unordered(AT_ONCE)), 0);
        while let Some(number) = chunks.try_next().await? {
            done += number;
            progress(Progress { what: "submitting".into(), of: jobs, done });
        }
        Ok(())
    }

    pub(super) async fn known(&self, jobs: usize) -> Result<(), String> {
        self.leader.knows(jobs).await
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.begun.load(Ordering::Relaxed)
    }

    /// Waits until that many runs have started.
    pub(super) async fn ran(&self, runs: usize) -> Result<(), String> {
        let enough = async {
            loop {
                let changed = self.runs.changed.notified();
                if self.runs() >= runs {
                    return;
                }
                // The timeout covers a missed notification.
                let _ = tokio::time::timeout(Duration::from_millis(50), changed).await.is_ok();
            }
        };
        let ran = tokio::time::timeout(PATIENCE, enough).await;
        ran.map_err(|_| format!("{} of {runs} runs in {} s", self.runs(), PATIENCE.as_secs()))
    }

    pub(super) async fn start(&self) -> Result<Clock, String> {
        let leader_bytes = self.leader.bytes()?;
        let sent = self.sent().await?;
        Ok(Clock { started: Instant::now(), runs: self.runs(), sent, leader_bytes })
    }

    pub(super) async fn stop(&self, name: String, clock: &Clock) -> Result<Part, String> {
        let seconds = clock.started.elapsed().as_secs_f64();
        let jobs = self.runs() - clock.runs;
        let sent = self.sent().await?;
        Ok(Part {
            name,
            jobs,
            seconds,
            jobs_per_second: count(jobs) / seconds,
            requests_per_job: (sent.requests - clock.sent.requests) / count(jobs),
            operations_per_job: (sent.operations - clock.sent.operations) / count(jobs),
            leader_bytes_before: self.before,
            leader_bytes: clock.leader_bytes,
            takeover: None,
        })
    }

    pub(super) fn leader_bytes(&self) -> Result<u64, String> {
        self.leader.bytes()
    }

    /// Requests of all processes.
    async fn sent(&self) -> Result<Sent, String> {
        Ok(self.counts.sent().plus(self.leader.sent().await?, 1.0))
    }

    pub(super) async fn take_down(self) {
        // Running jobs are abandoned with their namespace.
        join_all(self.workers.iter().map(Node::stop)).await;
        self.client.close().await;
    }
}
