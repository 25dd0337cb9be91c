//! `PUT /v1/remote-workers/{key}`.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::describe::Name;
use bellwether::node::HeldAttempt;
use bellwether::{DurationText, JobId, Kind, NodeId, Tag, WorkerId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::extract::{Bounded, Json, Key};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_REMOTE_BODY;
use crate::problem::{Fault, Problem};
use crate::remote::{Former, Id, KindSettings, Life, Settings};
use crate::state::App;

/// The default time without a call after which a worker counts as lost.
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// A worker that calls at a third of its timeout needs a shortest one; and an hour without a call is not a live worker.
const SESSION_TIMEOUTS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3_600));

/// A remote worker.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRemoteWorker {
    /// Id of the worker's process, for people: such as the host and the process id.
    #[schema(value_type = Name)]
    node_id: String,
    /// 1 to 256 kinds that the worker runs.
    kinds: Vec<RemoteKind>,
    /// Number of attempts that run at the same time, 1 to 4096.
    slots: u32,
    /// Tags that the worker offers to jobs, at most 32.
    #[serde(default)]
    tags: Vec<Tag>,
    /// Time without a call after which the worker counts as lost, 2s to 1h; default 30s. Call at least three times as often.
    session_timeout: Option<DurationText>,
    /// The last worker id that this process got, if it registers again: from another gateway, or from this one. The attempts
    /// of that worker are handed back without a loss when it ends, because this process is alive.
    #[schema(example = "0198c5c2-9a3b-7cc4-8f3e-0d6f5a1b2c3d")]
    former_worker: Option<String>,
    /// What the process still runs after it lost its gateway, with `former_worker`. This gateway takes these attempts over, if the same
    /// key and caller registered the former worker and they are still open. The first poll answers to stop the others.
    #[serde(default)]
    running: Vec<HeldDocument>,
}

/// An attempt that a process runs, as it was received. Without the generation and the submission it is not taken over.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HeldAttempt)]
pub(crate) struct HeldDocument {
    /// The job's id.
    #[schema(value_type = JobId)]
    job: JobId,
    /// The generation of the job.
    generation: Option<u32>,
    /// The number of the attempt.
    attempt: u32,
    /// The fencing token of the attempt.
    fencing_token: i32,
    /// The submission of the job.
    #[schema(value_type = Option<String>)]
    submission: Option<Uuid>,
}

/// A kind that a remote worker runs.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteKind {
    /// The kind.
    #[schema(value_type = Kind)]
    kind: String,
    /// The default lease of its jobs, 1s to 7d; default 5m.
    lease: Option<DurationText>,
    /// The number of its attempts that run at the same time; default all slots.
    concurrency: Option<u32>,
}

impl Bounded for NewRemoteWorker {
    const MAX_BYTES: usize = MAX_REMOTE_BODY;
}

/// A registered worker.
#[derive(Serialize, ToSchema)]
pub(crate) struct Registered {
    /// Its id in the namespace. It changes when the gateway's session to ZooKeeper is replaced.
    worker: String,
    /// Time without a call after which the worker counts as lost.
    session_timeout: DurationText,
    /// The attempts of `running` that were taken over. Stop the others.
    taken_over: Vec<TakenDocument>,
}

/// An attempt that was taken over. The process may use its old or its new token at this gateway. At another one it needs the
/// new one.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenAttempt)]
pub(crate) struct TakenDocument {
    /// The job's id.
    job: String,
    /// The number of the attempt.
    attempt: u32,
    /// The fencing token, as it was listed.
    fencing_token: i32,
    /// The new fencing token.
    new_fencing_token: i32,
}

impl HeldDocument {
    fn id(&self) -> Id {
        Id { job: self.job.clone(), attempt: self.attempt, fencing_token: self.fencing_token }
    }
}

impl From<(Id, i32)> for TakenDocument {
    fn from((Id { job, attempt, fencing_token }, new_fencing_token): (Id, i32)) -> Self {
        Self { job: job.to_string(), attempt, fencing_token, new_fencing_token }
    }
}

impl NewRemoteWorker {
    fn former(&self) -> Result<Option<Former>, Problem> {
        let Some(former) = &self.former_worker else { return Ok(None) };
        let invalid =
            || Fault::Invalid.because("former_worker must be the id of a worker, a hyphenated UUID");
        let worker = WorkerId::parse(former).ok_or_else(invalid)?;
        let held = self.running.iter().filter_map(|held| {
            let HeldDocument { job, generation, attempt, fencing_token, submission } = held;
            let (job, attempt, fencing_token) = (job.clone(), *attempt, *fencing_token);
            Some(HeldAttempt {
                job,
                submission: (*submission)?,
                generation: (*generation)?,
                attempt,
                fencing_token,
            })
        });
        Ok(Some(Former { worker, held: held.collect() }))
    }

    fn settings(self) -> Result<Settings, Problem> {
        let Self { node_id, kinds, slots, tags, session_timeout, former_worker: _, running: _ } = self;
        let session_timeout =
            session_timeout.map_or(DEFAULT_SESSION_TIMEOUT, |DurationText(timeout)| timeout);
        let given = DurationText(session_timeout);
        let (least, most) = SESSION_TIMEOUTS;
        let invalid =
            |bounds| Fault::Invalid.because(format!("session_timeout must be {bounds}, not {given}"));
        given.within(least, most).map_err(invalid)?;
        let kind = |RemoteKind { kind, lease, concurrency }| {
            let lease = lease.map(|DurationText(lease)| lease);
            Ok(KindSettings { kind: Kind::new(kind)?, lease, concurrency })
        };
        let kinds = kinds.into_iter().map(kind).collect::<Result<Vec<_>, Problem>>()?;
        if kinds.is_empty() {
            return Err(Fault::Invalid.because("kinds must name at least one kind"));
        }
        Ok(Settings { node_id: NodeId::new(node_id)?, kinds, slots, tags, session_timeout })
    }
}

/// Register a remote worker.
///
/// The key is a UUID that the worker's process draws at its start. Answers when the worker is registered in ZooKeeper: from
/// then on it gets jobs. Repeating the request with the same settings returns the same worker.
///
/// A process whose gateway died registers here with `former_worker` and `running`, and goes on with the attempts that the answer lists
/// as taken over.
#[utoipa::path(
    put, path = "/v1/remote-workers/{key}", tag = "remote workers", security(("token" = ["work"])),
    params(("key" = String, Path, description = "A UUID that the worker's process draws")),
    request_body = NewRemoteWorker,
    responses(
        (status = 200, description = "The worker is registered", body = Registered),
        (status = 409, description = "The key is registered with other settings", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "The worker is not registered", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The worker is not registered, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn register_remote_worker(
    State(app): State<App>,
    Key(key): Key,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewRemoteWorker>,
) -> Result<Response, Problem> {
    let former = new.former()?;
    let running = new.running.iter().map(HeldDocument::id).collect::<Vec<_>>();
    let settings = new.settings()?;
    let session_timeout = DurationText(settings.session_timeout);
    let node = app.client.node_builder();
    let node = node.ok_or_else(|| Fault::Unavailable.because("the client of this gateway has no address"))?;
    let registered = app.remote_workers.register(key, &caller.name, settings, former, node)?;
    let worker = match registered.registered().await {
        Life::Working(id) => id.to_string(),
        Life::Refused(reason) => return Err(Fault::Invalid.because(reason)),
        Life::Starting | Life::Ended => {
            return Err(
                Fault::Unavailable.because("the worker ended before it was registered: register it again")
            );
        }
    };
    registered.adopted().await;
    let taken_over =
        registered.fencing_tokens(&running).into_iter().map(TakenDocument::from).collect::<Vec<_>>();
    let note = match taken_over.len() {
        0 => format!("remote worker {key} is worker {worker}"),
        taken => format!("remote worker {key} is worker {worker}, which took over {taken} attempts"),
    };
    Ok((AuditNote(note), Answer(Registered { worker, session_timeout, taken_over })).into_response())
}
