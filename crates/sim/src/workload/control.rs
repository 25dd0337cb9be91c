//! Cancelling, retrying and waiting; pausing kinds and draining workers.

use std::time::Duration;

use bellwether::client::{DrainedWorker, Ended, Purge, PurgeError, WorkerChange};
use bellwether_core::name::{JobId, Kind, StrategyName};
use bellwether_core::worker::WorkerSettings;

use super::Env;
use crate::answer;
use crate::history::{Answer, Call, JobSight, Seen};

/// Time limit of one wait for a job's end.
const WAIT: Duration = Duration::from_secs(5);

/// Time that the client takes for its last read after a wait has timed out.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// Time limit of the wait for the end of a job that is retried immediately.
const END: Duration = Duration::from_secs(18);

/// How often all changes of workers are undone after the healing, and the time between.
const RESETS: u32 = 5;
const BETWEEN_RESETS: Duration = Duration::from_secs(5);

impl Env {
    pub(crate) async fn cancel(self, job: JobId) {
        let call = self.invoke(Call::Cancel { job: job.clone() });
        let done = self.client.cancel(&job).await;
        self.answer(call, answer::cancelled(done));
    }

    pub(crate) async fn retry(self, job: JobId) {
        let call = self.invoke(Call::Retry { job: job.clone() });
        let done = self.client.retry(&job).await;
        self.answer(call, answer::retried(done));
    }

    /// Waits for a while until the job is terminal, and retries it.
    pub(crate) async fn retry_at_end(self, job: JobId) {
        // The result does not matter: the retry reports the state of the job.
        drop(self.client.wait(&job, END).await);
        self.retry(job).await;
    }

    /// Waits and reads until the job is terminal, or there is no answer.
    pub(crate) async fn wait(self, job: JobId) {
        loop {
            let what = Call::Read { job: job.clone(), generation: None };
            let call = self.invoke_within(what.clone(), Some(WAIT + LAST_LOOK));
            let waited = answer::waited(self.client.wait(&job, WAIT).await);
            let open = is_open(&waited);
            self.answer(call, waited);
            if !open {
                return;
            }
            let call = self.invoke(what);
            let read = answer::read(self.client.get(&job).await);
            let open = is_open(&read);
            self.answer(call, read);
            if !open {
                return;
            }
        }
    }

    /// Reads a job that another client has just submitted, as this generation, and waits for its end.
    pub(crate) async fn look(self, job: JobId, generation: u32) {
        let call = self.invoke(Call::Read { job: job.clone(), generation: None });
        let read = answer::read(self.client.get(&job).await);
        self.answer(call, read);
        let what = Call::Read { job: job.clone(), generation: Some(generation) };
        let call = self.invoke_within(what, Some(WAIT + LAST_LOOK));
        let waited = answer::waited(self.client.wait_for(&job, generation, WAIT).await);
        self.answer(call, waited);
    }

    /// Pauses a kind and resumes it after a while. Both are retried until they succeed, because the jobs of a kind that
    /// stays paused would not end.
    pub(crate) async fn pause(self, kind: Kind, wait: Duration) {
        while self.client.pause_kind(&kind, "the plan").await.is_err() {}
        self.sleep(wait).await;
        while self.client.resume_kind(&kind).await.is_err() {}
    }

    /// Sets the placement strategy. The outcome does not matter: jobs must run with every strategy.
    pub(crate) async fn set_strategy(self, strategy: StrategyName) {
        drop(self.client.set_placement_strategy(strategy).await);
    }

    /// Purges the records of jobs that ended this way.
    pub(crate) async fn purge(self, ended: Ended) {
        // Each of its pages has its own deadline.
        let call = self.invoke_within(Call::Purge, None);
        let purge = Purge::of(ended).remove(true);
        let answer = match self.client.purge(&purge, |_| {}).await {
            Ok(purged) => Answer::Purged { removed: purged.removed },
            Err(PurgeError::Client(error)) => answer::not_done(&error),
            Err(error) => unreachable!("the purge is valid: {error}"),
        };
        self.answer(call, answer);
    }

    /// Changes one of the workers, and undoes that after a while. It may have another id by then.
    pub(crate) async fn set_worker(self, which: usize, settings: WorkerSettings, wait: Duration) {
        let Ok(workers) = self.client.workers().await else { return };
        let Some(worker) = workers.get(which % workers.len().max(1)).map(|view| view.id) else { return };
        // The outcome does not matter: the rules judge the registration.
        drop(self.client.change_worker(worker, &replacement(settings)).await);
        self.sleep(wait).await;
        self.reset_once().await;
    }

    /// Undoes all changes of workers. Repeated, because a worker may be away and return with its settings.
    pub(crate) async fn reset_workers(self) {
        for _ in 0..RESETS {
            self.reset_once().await;
            self.sleep(BETWEEN_RESETS).await;
        }
    }

    async fn reset_once(&self) {
        for worker in self.client.workers().await.unwrap_or_default() {
            drop(self.client.change_worker(worker.id, &WorkerChange::new().reset(true)).await);
        }
    }

    /// Lists the workers and drains one of them.
    pub(crate) async fn drain_one(self, which: usize) {
        let Ok(workers) = self.client.workers().await else { return };
        let Some(worker) = workers.get(which % workers.len().max(1)).map(|view| view.id) else { return };
        let call = self.invoke(Call::Drain { worker });
        let answer = match self.client.drain_worker(worker).await {
            Ok(DrainedWorker::Marked | DrainedWorker::Already) => Answer::Drains,
            Ok(DrainedWorker::NotFound) => Answer::WorkerGone,
            Err(error) => answer::not_done(&error),
        };
        self.answer(call, answer);
    }
}

fn is_open(answer: &Answer) -> bool {
    matches!(answer, Answer::Seen { job: JobSight::There { is: Seen::Open, .. } })
}

/// Returns the change that sets exactly these settings.
fn replacement(settings: WorkerSettings) -> WorkerChange {
    let WorkerSettings { slots, tags, paused_kinds, .. } = settings;
    let change = WorkerChange::new().reset(true).pause_kinds(paused_kinds);
    let change = slots.map_or(change.clone(), |slots| change.slots(slots));
    tags.map_or(change.clone(), |tags| change.tags(tags))
}
