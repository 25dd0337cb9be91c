//! Runs an allowed program, without a shell, in its own process group.
//!
//! The group is killed when the attempt ends for any reason: the end of the program (remaining descendants are killed
//! with it), a timeout, a cancel, the end of the worker's session, or the end of the node, even by SIGKILL ([`Group`]).
//! Processes that leave the group (`setsid`) are not tracked. The program gets only a few variables of the node's
//! environment, which may contain secrets, and runs as another [`user`] if the node has one for it.
//!
//! | exit status | the attempt |
//! | --- | --- |
//! | 0 | succeeds with the output |
//! | 65 (`EX_DATAERR`) | reports an invalid job: it is dead |
//! | 75 (`EX_TEMPFAIL`) | asks for another attempt after `retry_after`; neither a failure nor a loss |
//! | any other, or a signal | fails |
//!
//! The program may report its [`progress`] to a descriptor.

mod allowed;
mod progress;
mod user;

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

pub use self::allowed::{InvalidProgram, Program};
pub use self::user::{ExecUser, ExecUserError};

use self::allowed::Allowed;
use self::progress::Channel;

use bellwether::DurationText;
use bellwether::handler::{HandlerError, JobContext};

/// Bytes kept of each stream, from its beginning. The rest is read and dropped, so that the program does not block.
const MAX_CAPTURE: usize = 16 * 1024;

/// Limit for a kept stream in the JSON result, where a byte that is not text takes up to six bytes: two streams and the
/// rest fit into 64 KiB, because a program that succeeded must not fail, and run again, because of its output.
const MAX_ESCAPED: usize = 30 * 1024;

/// Bytes of stderr in the text of a failure, from its end.
const TAIL: usize = 2 * 1024;

/// Time for a stream to close after the end of program and group: a process that left the group may keep it open.
const LINGER: Duration = Duration::from_millis(500);

/// Exit status of a program whose job can never succeed (`EX_DATAERR` of `sysexits.h`).
const INVALID: i32 = 65;

/// Exit status of a program that cannot run now (`EX_TEMPFAIL`).
const RETRY_LATER: i32 = 75;

/// The time until the next attempt after [`RETRY_LATER`], unless the job gives another: long enough for a service to restart.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Variables of the node's environment that a program gets.
const ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];

/// Variables of the attempt that a program gets: the job, the number of the attempt, its fencing token, and the descriptor for progress.
pub(crate) const VARIABLES: [&str; 4] =
    ["BELLWETHER_JOB", "BELLWETHER_ATTEMPT", "BELLWETHER_FENCING_TOKEN", "BELLWETHER_PROGRESS_FD"];

/// The programs that jobs of the kind `exec` may run, and their user. Without a program the kind does not exist.
#[derive(Debug, Clone, Default)]
pub struct Exec {
    allowed: Allowed,
    user: Option<ExecUser>,
}

impl Exec {
    /// Allows programs. They run as the user of this process.
    ///
    /// # Errors
    /// Two programs have one name.
    pub fn new(programs: impl IntoIterator<Item = Program>) -> Result<Self, InvalidProgram> {
        Ok(Self { allowed: Allowed::new(programs)?, user: None })
    }

    /// Runs the programs as another user.
    #[must_use]
    pub fn user(mut self, user: ExecUser) -> Self {
        self.user = Some(user);
        self
    }

    /// Whether no program is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    /// A program that may have any arguments, and its arguments.
    argv: Option<Vec<String>>,
    /// The name of a program with an argument template.
    name: Option<String>,
    /// The values for the template.
    #[serde(default)]
    values: BTreeMap<String, String>,
    stdin: Option<String>,
    /// The time until the next attempt after the exit status 75; default `1m`.
    retry_after: Option<DurationText>,
}

#[derive(Serialize)]
pub(super) struct Output {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Reads a pipe that only this node can write to, and never does: end of file means that the node has ended. The guard
/// ignores signals that a program may send to its own group, or a service manager to all processes of a node; only
/// SIGKILL ends it. It reports that it is ready before a program joins its group.
const GUARD: &str = "trap '' HUP INT QUIT TERM USR1 USR2 ALRM; echo; read -r never; kill -KILL 0";

/// A process group that is killed when this value is dropped, and when this process ends.
///
/// Its leader is a guard that runs before the program starts, so that the program is never unguarded. A node that is
/// killed with SIGKILL drops nothing, but the kernel closes its pipes (they are close-on-exec, so no sibling keeps them
/// open), and then the guard kills the group, including itself.
struct Group {
    guard: tokio::process::Child,
    id: Pid,
}

impl Group {
    async fn new(user: Option<&ExecUser>) -> std::io::Result<Self> {
        let mut guard = tokio::process::Command::new("/bin/sh");
        guard
            .args(["-c", GUARD])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(user) = user {
            user.apply(&mut guard);
        }
        let mut guard = guard.spawn()?;
        guard.stdout.take().expect("stdout is a pipe").read_u8().await?;
        let id =
            guard.id().and_then(|id| i32::try_from(id).ok()).expect("a child that was not awaited has an id");
        Ok(Self { guard, id: Pid::from_raw(id) })
    }

    fn id(&self) -> i32 {
        self.id.as_raw()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The id of a reaped guard may belong to another group.
        if self.guard.id().is_none() {
            return;
        }
        match killpg(self.id, Signal::SIGKILL) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {} // ESRCH: only zombies are left.
            Err(error) => {
                tracing::warn!(group = %self.id, %error, "the node cannot kill the process group of a program")
            }
        }
    }
}

/// Returns the program and the arguments of a job.
fn resolve(command: &Command, allowed: &Allowed) -> Result<(String, Vec<String>), HandlerError> {
    // Another worker may allow it, so these jobs are not invalid.
    let refused = |what: String| HandlerError::new(format!("this worker does not allow {what}"));
    match (&command.argv, &command.name) {
        (Some(argv), None) => {
            let Some((program, arguments)) = argv.split_first() else {
                return Err(HandlerError::new("argv is empty: give a program and its arguments"));
            };
            if !command.values.is_empty() {
                return Err(HandlerError::invalid("values need the name of a program"));
            }
            if !allowed.allows_any(program) {
                return Err(refused(format!("the program {program:?}")));
            }
            Ok((program.clone(), arguments.to_vec()))
        }
        (None, Some(name)) => {
            let template =
                allowed.template(name).ok_or_else(|| refused(format!("a program of the name {name:?}")))?;
            let arguments = template.arguments(&command.values).map_err(HandlerError::invalid)?;
            Ok((template.program().to_owned(), arguments))
        }
        (Some(_), Some(_)) | (None, None) => Err(HandlerError::invalid("give argv or name")),
    }
}

pub(super) async fn run(context: &JobContext, command: Command, exec: &Exec) -> Result<Output, HandlerError> {
    let (program, arguments) = resolve(&command, &exec.allowed)?;
    let group = Group::new(exec.user.as_ref())
        .await
        .map_err(|error| HandlerError::new(format!("cannot create a process group: {error}")))?;
    let retry_after = command.retry_after.map_or(RETRY_AFTER, Duration::from);
    let progress = Channel::new();
    let progress = progress
        .map_err(|error| HandlerError::new(format!("cannot create a pipe for the progress: {error}")))?;
    let [job, attempt, fencing_token, progress_fd] = VARIABLES;
    let mut started = tokio::process::Command::new(&program);
    started
        .args(arguments)
        .env_clear()
        .envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env(job, context.job().as_str())
        .env(attempt, context.attempt().to_string())
        .env(fencing_token, context.fencing_token().to_string())
        .env(progress_fd, progress::DESCRIPTOR.to_string())
        .envs(context.traceparent().map(|trace| ("TRACEPARENT", trace.to_string())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(group.id())
        .kill_on_drop(true);
    if let Some(user) = &exec.user {
        user.apply(&mut started);
    }
    let progress = progress.give_to(&mut started);
    let child = started.spawn();
    // It owns the node's copy of the writing end: without it the pipe ends with the program.
    drop(started);
    let mut child = child.map_err(|error| HandlerError::new(format!("cannot start {program:?}: {error}")))?;

    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = {
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = command.stdin.unwrap_or_default();
        let streams = async {
            let captured = (capture(out, &mut stdout), capture(err, &mut stderr));
            tokio::join!(feed(stdin, &input), captured.0, captured.1, progress.follow(context))
        };
        tokio::pin!(streams);
        let mut open = true;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                _ = &mut streams, if open => open = false,
                () = context.cancelled() => return Err(HandlerError::new("killed: the attempt was asked to stop")),
            }
        };
        drop(group);
        if open && tokio::time::timeout(LINGER, streams).await.is_err() {
            tracing::debug!(job = %context.job(), "a descendant of the program keeps its output open");
        }
        status
    };
    finished(status, retry_after, &stdout, &stderr)
}

fn finished(
    status: ExitStatus,
    retry_after: Duration,
    stdout: &[u8],
    stderr: &[u8],
) -> Result<Output, HandlerError> {
    let reason = || {
        let tail = text(&stderr[stderr.len().saturating_sub(TAIL)..]);
        format!("{status}: {}", tail.trim_end())
    };
    match status.code() {
        Some(0) => Ok(Output { code: 0, stdout: text(stdout), stderr: text(stderr) }),
        Some(INVALID) => Err(HandlerError::invalid(reason())),
        Some(RETRY_LATER) => Err(HandlerError::retry_later(retry_after)),
        Some(_) | None => Err(HandlerError::new(reason())),
    }
}

fn text(bytes: &[u8]) -> String {
    let mut left = MAX_ESCAPED;
    let fits = |c: &char| {
        let escaped = match c {
            '"' | '\\' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        left.checked_sub(escaped).map(|rest| left = rest).is_some()
    };
    String::from_utf8_lossy(bytes).chars().take_while(fits).collect()
}

/// A program that does not read its input is not an error.
async fn feed(stdin: Option<ChildStdin>, input: &str) {
    let Some(mut stdin) = stdin else { return };
    if let Err(error) = stdin.write_all(input.as_bytes()).await {
        tracing::debug!(%error, "the program left input unread");
    }
}

async fn capture(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    let mut chunk = [0; 4_096];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) => return,
            Ok(read) => {
                let room = MAX_CAPTURE - kept.len();
                kept.extend_from_slice(&chunk[..read.min(room)]);
            }
            Err(error) => {
                tracing::debug!(%error, "the program's output ended early");
                return;
            }
        }
    }
}
