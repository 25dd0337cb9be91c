//! Every run of a handler is logged, and every log entry must match the job's record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bellwether::handler::JobContext;
use bellwether::{JobView, State};
use tokio::sync::watch;

/// The log of runs. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Runs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    log: Mutex<Log>,
    begun: watch::Sender<usize>,
    released: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Log {
    /// Job and attempt of each run, in the order of their starts.
    begun: Vec<(String, u32)>,
    /// The jobs that currently run in the lane.
    in_lane: BTreeSet<String>,
    /// Pairs of jobs of the lane that ran at the same time.
    together: Vec<(String, String)>,
    /// The jobs whose first run has failed.
    failed: BTreeSet<String>,
}

impl Runs {
    pub(crate) fn new() -> Self {
        let (log, begun) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { log, begun, released: watch::Sender::new(false) }))
    }

    pub(crate) fn begin(&self, context: &JobContext) {
        self.0.log.lock().unwrap().begun.push((context.job().to_string(), context.attempt()));
        self.0.begun.send_modify(|begun| *begun += 1);
    }

    /// Starts a run in the lane, and records every other run of the lane that is in progress.
    pub(crate) fn begin_in_lane(&self, context: &JobContext) -> InLane {
        self.begin(context);
        let job = context.job().to_string();
        let mut log = self.0.log.lock().unwrap();
        let overlaps = log.in_lane.iter().map(|other| (other.clone(), job.clone())).collect::<Vec<_>>();
        log.together.extend(overlaps);
        log.in_lane.insert(job.clone());
        InLane { runs: self.clone(), job }
    }

    /// Whether this is the job's first run, which must fail.
    pub(crate) fn first(&self, context: &JobContext) -> bool {
        self.0.log.lock().unwrap().failed.insert(context.job().to_string())
    }

    /// Waits until a run of the job has started.
    pub(crate) async fn begun(&self, job: &str) {
        let mut begun = self.0.begun.subscribe();
        let ran = |_: &usize| self.0.log.lock().unwrap().begun.iter().any(|(ran, _)| ran == job);
        begun.wait_for(ran).await.unwrap();
    }

    /// Lets held runs end.
    pub(crate) fn release(&self) {
        self.0.released.send_replace(true);
    }

    /// Waits until held runs may end.
    pub(crate) async fn released(&self) {
        self.0.released.subscribe().wait_for(|released| *released).await.unwrap();
    }

    /// S2, S6, S9, S10: each attempt ran at most once, every run belongs to an attempt of the record, a job that
    /// succeeded has run, and no two jobs of the lane ran at the same time.
    pub(crate) fn explain(&self, jobs: &[JobView]) {
        let log = self.0.log.lock().unwrap();
        assert!(log.together.is_empty(), "jobs of the lane ran at the same time: {:?}", log.together);
        let mut runs = BTreeMap::<&str, Vec<u32>>::new();
        for (job, attempt) in &log.begun {
            runs.entry(job).or_default().push(*attempt);
        }
        for job in jobs {
            assert!(job.state.is_terminal(), "{job:?}");
            let runs = runs.remove(job.id.as_str()).unwrap_or_default();
            let once = runs.iter().collect::<BTreeSet<_>>();
            assert_eq!(once.len(), runs.len(), "an attempt ran twice: {runs:?} of {job:?}");
            assert!(runs.iter().all(|n| *n <= job.attempt), "a run without an attempt: {runs:?} of {job:?}");
            let succeeded = u32::from(job.state == State::Succeeded);
            assert!(job.failures + job.losses + succeeded <= job.attempt, "more ends than attempts: {job:?}");
            if job.state == State::Succeeded {
                assert!(runs.contains(&job.attempt), "succeeded without a run: {runs:?} of {job:?}");
            }
        }
        assert!(runs.is_empty(), "runs without a job: {runs:?}");
    }
}

/// A run in the lane, until it is dropped.
pub(crate) struct InLane {
    runs: Runs,
    job: String,
}

impl Drop for InLane {
    fn drop(&mut self) {
        self.runs.0.log.lock().unwrap().in_lane.remove(&self.job);
    }
}
