//! Jobs through remote workers, compared with workers in this process that have the same slots.
//!
//! The leader, the client and the workers are in this process, the gateway is in its own. Remote workers use real connections:
//! one for polls and one for finishes each. In a round each side runs the same number of jobs. Each job must succeed with its
//! payload as the result, at its first attempt.

mod worker;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bellwether::error::chain;
use bellwether::{Client, ConnectString, Node, State};
use futures::future::{join_all, try_join_all};
use serde::Serialize;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{HttpConfig, ROUNDS};
use crate::cluster::{self, KIND, candidate, handlers, job, named};
use crate::process::{NodeProcess, cpu_of_this_process};
use crate::{Progress, count};
use worker::RemoteWorker;

/// The workers of each side: 100 slots in all.
const SHAPES: [(usize, u32); 2] = [(1, 100), (4, 25)];

/// Connections of the gateway: two for each worker, those of the round before, and registrations.
const CONNECTIONS: usize = 64;

/// Longer than any useful round.
const PATIENCE: Duration = Duration::from_secs(600);

/// Jobs of each side and shape before the measurement, as a warm-up.
const WARM: usize = 100;

/// The results of remote workers.
#[derive(Debug, Clone, Serialize)]
pub struct RemoteReport {
    /// Jobs that each side ran in each shape.
    pub jobs: usize,
    /// The shapes.
    pub shapes: Vec<RemoteShape>,
}

/// The results with a number of workers.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RemoteShape {
    /// Number of workers.
    pub workers: usize,
    /// Slots of each worker.
    pub slots: u32,
    /// Jobs through workers in this process.
    pub in_process: Throughput,
    /// Jobs through remote workers and one gateway.
    pub remote: Throughput,
    /// Jobs per second of `remote` divided by those of `in_process`.
    pub ratio: f64,
}

/// The throughput of jobs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Throughput {
    /// Jobs per second, from the first submission until the last result is read.
    pub jobs_per_second: f64,
    /// Processor time per job of all processes but the server, in microseconds.
    pub cpu_us_per_job: f64,
    /// The part of it that the gateway used.
    pub gateway_cpu_us_per_job: f64,
}

/// The two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    InProcess,
    Remote,
}

/// What the jobs of a side took.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    jobs: usize,
    time: Duration,
    cpu_here: Duration,
    cpu_gateway: Duration,
}

impl Taken {
    fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.time += other.time;
        self.cpu_here += other.cpu_here;
        self.cpu_gateway += other.cpu_gateway;
    }

    fn told(&self) -> Throughput {
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count(self.jobs);
        Throughput {
            jobs_per_second: count(self.jobs) / self.time.as_secs_f64(),
            cpu_us_per_job: each(self.cpu_here + self.cpu_gateway),
            gateway_cpu_us_per_job: each(self.cpu_gateway),
        }
    }
}

struct Setup {
    namespace: ConnectString,
    client: Client,
    leader: Node,
    gateway: NodeProcess,
    at: SocketAddr,
}

pub(super) async fn measure(
    config: &HttpConfig,
    run: Uuid,
    progress: &mut impl FnMut(Progress),
) -> Result<RemoteReport, String> {
    let namespace = named(&config.zookeeper, run, "remote")?;
    let leader = candidate(&namespace, "leader").await?;
    let client = Client::connect(&namespace.to_string()).await.map_err(|error| chain(&error))?;
    let gateway = NodeProcess::gateway(&namespace, CONNECTIONS).await?;
    let at = gateway.http()?;
    let setup = Setup { namespace, client, leader, gateway, at };
    let each = (config.jobs / ROUNDS).max(1);
    let mut shapes = Vec::new();
    for (workers, slots) in SHAPES {
        shapes.push(shape(&setup, each, workers, slots, progress).await?);
    }
    setup.leader.stop().await;
    setup.client.close().await;
    Ok(RemoteReport { jobs: each * ROUNDS, shapes })
}

async fn shape(
    setup: &Setup,
    each: usize,
    workers: usize,
    slots: u32,
    progress: &mut impl FnMut(Progress),
) -> Result<RemoteShape, String> {
    for side in [Side::InProcess, Side::Remote] {
        round(setup, side, WARM, workers, slots, &mut |_| {}).await?;
    }
    let (mut in_process, mut remote) = (Taken::default(), Taken::default());
    for n in 0..ROUNDS {
        for (side, taken) in [(Side::InProcess, &mut in_process), (Side::Remote, &mut remote)] {
            let what = match side {
                Side::InProcess => format!("{workers} × {slots} slots in this process"),
                Side::Remote => format!("{workers} × {slots} remote slots"),
            };
            let mut show = |over| {
                progress(Progress { what: what.clone(), of: ROUNDS * each, done: n * each + over });
            };
            taken.add(round(setup, side, each, workers, slots, &mut show).await?);
        }
    }
    let (in_process, remote) = (in_process.told(), remote.told());
    let ratio = remote.jobs_per_second / in_process.jobs_per_second;
    Ok(RemoteShape { workers, slots, in_process, remote, ratio })
}

/// Runs jobs on new workers of a side. The start and the end of the workers are not measured.
async fn round(
    setup: &Setup,
    side: Side,
    jobs: usize,
    workers: usize,
    slots: u32,
    progress: &mut impl FnMut(usize),
) -> Result<Taken, String> {
    let names = (0..workers).map(|n| format!("worker-{n}"));
    match side {
        Side::InProcess => {
            let nodes = names.map(async |name| {
                cluster::worker(&setup.namespace, &name, slots, handlers(&[KIND], || {})).await
            });
            let nodes = try_join_all(nodes).await?;
            let taken = run_jobs(setup, jobs, progress).await;
            join_all(nodes.iter().map(Node::stop)).await;
            taken
        }
        Side::Remote => {
            let remote = names.map(async |name| RemoteWorker::register(setup.at, &name, slots).await);
            let remote = try_join_all(remote).await?;
            let mut running = JoinSet::new();
            for worker in &remote {
                running.spawn(worker.clone().work());
            }
            let failed = async { running.join_next().await };
            let taken = tokio::select! {
                taken = run_jobs(setup, jobs, progress) => taken,
                Some(ended) = failed => match ended {
                    Ok(Ok(never)) => match never {},
                    Ok(Err(reason)) => Err(reason),
                    Err(error) => Err(error.to_string()),
                },
            };
            running.shutdown().await;
            try_join_all(remote.iter().map(RemoteWorker::remove)).await?;
            taken
        }
    }
}

/// Submits jobs with the native client, waits for them, and checks each result.
async fn run_jobs(setup: &Setup, jobs: usize, progress: &mut impl FnMut(usize)) -> Result<Taken, String> {
    let (here, gateway) = (cpu_of_this_process()?, setup.gateway.cpu()?);
    let started = Instant::now();
    let submitted = setup.client.submit_many((0..jobs).map(job), |_| {}).await;
    let handles = submitted.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| chain(&error))?;
    let ids = handles.iter().map(|handle| handle.id().clone()).collect::<Vec<_>>();
    let ends = setup.client.wait_many(&ids, PATIENCE, progress).await;
    let time = started.elapsed();
    let (here, gateway) = (cpu_of_this_process()? - here, setup.gateway.cpu()? - gateway);
    for end in ends {
        let end = end.map_err(|error| chain(&error))?;
        if end.state != State::Succeeded || end.attempt != 1 || end.result != end.payload {
            let (id, state, attempt) = (end.id, end.state, end.attempt);
            return Err(format!(
                "job {id} is {state} after attempt {attempt}, or its result is not its payload"
            ));
        }
    }
    Ok(Taken { jobs, time, cpu_here: here, cpu_gateway: gateway })
}
