//! What the jobs of these runs do: they take a while, fail a few times, ignore who stops them, hang, or kill their worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether::handler::Handler;
use bellwether::{ContentType, HandlerError, Handlers, JobContext, Payload};
use bellwether_sim::history::{Digest, EventKind, RunStep};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::groups;
use crate::record::Recorder;

/// Runs on the runtime, and can be dropped at any time.
pub(crate) const WORK: &str = "work";
/// Runs on a thread, and heeds nobody.
pub(crate) const BLOCK: &str = "block";
/// Kills the process that runs it, for its first attempts.
pub(crate) const POISON: &str = "poison";

/// Hangs, for its first attempts.
pub(crate) const HANG: &str = "hang";
/// Of jobs that hang: the shortest.
const LEASE: Duration = Duration::from_secs(1);

/// A member of a group, or a sub-job.
pub(crate) const PART: &str = "part";
/// Has sub-jobs, and a finished handler.
pub(crate) const TREE: &str = "tree";

/// What a job of any kind is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// How long a run takes.
    pub(crate) ms: u64,
    /// How many attempts fail, kill, or hang.
    pub(crate) fails: u32,
    /// Bytes that have to arrive as they were sent.
    pub(crate) padding: String,
    /// How many sub-jobs it has.
    pub(crate) subs: u32,
}

impl Task {
    pub(crate) fn new(ms: u64, fails: u32) -> Self {
        Self { ms, fails, padding: String::new(), subs: 0 }
    }

    /// The payloads of its sub-jobs: the same at each attempt.
    pub(crate) fn subs(&self) -> impl Iterator<Item = (u32, String)> {
        let ms = self.ms;
        (0..self.subs).map(move |number| {
            let task = Self::new(ms / 2, u32::from(ms.is_multiple_of(7)) * number);
            (number, serde_json::to_string(&task).expect("plain fields are JSON"))
        })
    }
}

/// Handlers that record when each run begins and ends.
pub(crate) fn handlers(recorder: &Arc<Recorder>) -> Handlers {
    let (work, block, poison) = (Arc::clone(recorder), Arc::clone(recorder), Arc::clone(recorder));
    let hang = Arc::clone(recorder);
    groups::handlers(recorder)
        .raw(
            WORK,
            Handler::Async(Arc::new(move |context| {
                let recorder = Arc::clone(&work);
                Box::pin(async move {
                    let run = Run::begin(&recorder, &context);
                    let task = task(&context)?;
                    tokio::time::sleep(Duration::from_millis(task.ms)).await;
                    run.end(&task)
                })
            })),
        )
        .raw(
            BLOCK,
            Handler::Blocking(Arc::new(move |context| {
                let run = Run::begin(&block, &context);
                let task = task(&context)?;
                let until = Instant::now() + Duration::from_millis(task.ms);
                while let Some(left) = until.checked_duration_since(Instant::now()) {
                    std::thread::park_timeout(left);
                }
                run.end(&task)
            })),
        )
        .raw(
            HANG,
            Handler::Async(Arc::new(move |context| {
                let recorder = Arc::clone(&hang);
                Box::pin(async move {
                    let run = Run::begin(&recorder, &context);
                    let task = task(&context)?;
                    if context.attempt() <= task.fails {
                        std::future::pending::<()>().await;
                    }
                    run.end(&task)
                })
            })),
        )
        .lease(LEASE)
        .raw(
            POISON,
            Handler::Blocking(Arc::new(move |context| {
                let run = Run::begin(&poison, &context);
                let task = task(&context)?;
                if context.attempt() <= task.fails {
                    kill(Pid::this(), Signal::SIGKILL)?;
                    std::thread::park();
                }
                run.end(&task)
            })),
        )
}

pub(crate) fn task(context: &JobContext) -> Result<Task, HandlerError> {
    Ok(serde_json::from_slice(context.payload().bytes())?)
}

/// A run; recorded as over when it is dropped, by whoever drops it.
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
