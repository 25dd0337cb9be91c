//! The jobs of a run: they take a while, fail a few times, ignore signals, hang, or kill their worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether::handler::with_state;
use bellwether::{ContentType, HandlerError, Handlers, JobContext, Payload};
use bellwether_sim::history::{Digest, EventKind, RunStep};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::groups;
use crate::record::Recorder;

/// Runs on the async runtime; can be dropped at any time.
pub(crate) const WORK: &str = "work";
/// Runs on a thread, and ignores signals.
pub(crate) const BLOCK: &str = "block";
/// Kills the process that runs it, in its first attempts.
pub(crate) const POISON: &str = "poison";

/// Hangs in its first attempts.
pub(crate) const HANG: &str = "hang";
/// The lease of jobs that hang: the shortest possible.
const LEASE: Duration = Duration::from_secs(1);

/// A member of a group, or a sub-job.
pub(crate) const PART: &str = "part";
/// Has sub-jobs, and a finished handler.
pub(crate) const TREE: &str = "tree";

/// The payload of a job of any kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Duration of a run.
    pub(crate) ms: u64,
    /// Number of attempts that fail, kill or hang.
    pub(crate) fails: u32,
    /// Bytes whose digest is checked.
    pub(crate) padding: String,
    /// Number of sub-jobs.
    pub(crate) subs: u32,
}

impl Task {
    pub(crate) fn new(ms: u64, fails: u32) -> Self {
        Self { ms, fails, padding: String::new(), subs: 0 }
    }

    /// Returns the payloads of its sub-jobs, which are the same in each attempt.
    pub(crate) fn subs(&self) -> impl Iterator<Item = (u32, String)> {
        let ms = self.ms;
        (0..self.subs).map(move |number| {
            let task = Self::new(ms / 2, u32::from(ms.is_multiple_of(7)) * number);
            (number, serde_json::to_string(&task).expect("plain fields are JSON"))
        })
    }
}

/// Returns handlers that record the start and end of each run.
pub(crate) fn handlers(recorder: &Arc<Recorder>) -> Handlers {
    let recorded = with_state(Arc::clone(recorder));
    let work = recorded.raw(WORK, |recorder, context| async move {
        let run = Run::begin(&recorder, &context);
        let task = task(&context)?;
        tokio::time::sleep(Duration::from_millis(task.ms)).await;
        run.end(&task)
    });
    let block = recorded.blocking_raw(BLOCK, |recorder, context| {
        let run = Run::begin(&recorder, &context);
        let task = task(&context)?;
        let until = Instant::now() + Duration::from_millis(task.ms);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        run.end(&task)
    });
    let hang = recorded.raw(HANG, |recorder, context| async move {
        let run = Run::begin(&recorder, &context);
        let task = task(&context)?;
        if context.attempt() <= task.fails {
            std::future::pending::<()>().await;
        }
        run.end(&task)
    });
    let poison = recorded.blocking_raw(POISON, |recorder, context| {
        let run = Run::begin(&recorder, &context);
        let task = task(&context)?;
        if context.attempt() <= task.fails {
            kill(Pid::this(), Signal::SIGKILL)?;
            std::thread::park();
        }
        run.end(&task)
    });
    groups::handlers(recorder).add(work).add(block).add(hang.lease(LEASE)).add(poison)
}

pub(crate) fn task(context: &JobContext) -> Result<Task, HandlerError> {
    Ok(serde_json::from_slice(context.payload().bytes())?)
}

/// A run. It is recorded as ended when it is dropped.
pub(crate) struct Run<'a> {
    recorder: &'a Recorder,
    context: &'a JobContext,
}

impl<'a> Run<'a> {
    pub(crate) fn begin(recorder: &'a Recorder, context: &'a JobContext) -> Self {
        let run = Self { recorder, context };
        run.record(RunStep::Started);
        run
    }

    fn record(&self, step: RunStep) {
        let context = self.context;
        self.recorder.record(EventKind::Run {
            worker: context.worker(),
            job: context.job().clone(),
            generation: context.generation(),
            attempt: context.attempt(),
            token: context.fencing_token(),
            payload: Digest::of(context.payload().bytes()),
            step,
        });
    }

    pub(crate) fn end(self, task: &Task) -> Result<Payload, HandlerError> {
        let attempt = self.context.attempt();
        if attempt <= task.fails {
            return Err(HandlerError::new(format!("attempt {attempt} of {} fails", task.fails + 1)));
        }
        Ok(Payload::new(ContentType::new("application/json")?, *b"true")?)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.record(RunStep::Ended);
    }
}
