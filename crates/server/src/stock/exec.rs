//! Runs a listed program, without a shell, in a process group of its own.
//!
//! The group is killed when the attempt ends, however it ends: the program's own end (its stragglers go with
//! it), a timeout, a cancel, the end of the worker's session, and the end of the node itself, even by SIGKILL
//! ([`Group`]). What leaves its group (`setsid`) is not followed. The program sees little of the node's
//! environment, which may hold secrets.

use std::collections::BTreeSet;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use bellwether::handler::{HandlerError, JobContext};

/// Kept of each stream, from its beginning; the rest is read and dropped, so that the program does not block.
const MAX_CAPTURE: usize = 16 * 1024;

/// Most that a kept stream takes in the result, where a byte that is no text takes up to six: two of them and
/// the rest fit the 64 KiB, because a program that succeeded must not fail, and run again, for its output.
const MAX_ESCAPED: usize = 30 * 1024;

/// Kept of stderr in a failure's text, from its end.
const TAIL: usize = 2 * 1024;

/// How long a stream may stay open after its program and group are gone: somebody left the group with it.
const LINGER: Duration = Duration::from_millis(500);

/// What a program sees of the node's environment.
const ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];

/// The programs that may be run.
pub(super) type Allowed = BTreeSet<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    argv: Vec<String>,
    stdin: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Output {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Reads a pipe that only this node can write to, and never does: its end of file is the node's end. It ignores what
/// a program may send to its own group, or a service manager to all processes of a node, and goes by SIGKILL alone.
/// It says so before anything joins it.
const GUARD: &str = "trap '' HUP INT QUIT TERM USR1 USR2 ALRM; echo; read -r never; kill -KILL 0";

/// A process group that dies with this value, and with this process.
///
/// Its leader is a guard, on duty before there is anything to guard, so there is no moment in which a program
/// runs unguarded. A node that was killed outright drops nothing, but the kernel closes its pipes (they are
/// close-on-exec: no sibling holds them open), and then the guard kills the group, itself included.
struct Group {
    guard: tokio::process::Child,
    id: Pid,
}

impl Group {
    async fn new() -> std::io::Result<Self> {
        let mut guard = tokio::process::Command::new("/bin/sh")
            .args(["-c", GUARD])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        guard.stdout.take().expect("stdout was asked for as a pipe").read_u8().await?;
        let id =
            guard.id().and_then(|id| i32::try_from(id).ok()).expect("a child that nobody awaited has an id");
        Ok(Self { guard, id: Pid::from_raw(id) })
    }

    fn id(&self) -> i32 {
        self.id.as_raw()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A guard that was reaped no longer keeps the number from being given to another group.
        if self.guard.id().is_none() {
            return;
        }
        match killpg(self.id, Signal::SIGKILL) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {} // ESRCH: only zombies are left.
            Err(error) => tracing::warn!(group = %self.id, %error, "a process group could not be killed"),
        }
    }
}

pub(super) async fn run(
    context: &JobContext,
    command: Command,
    allowed: &Allowed,
) -> Result<Output, HandlerError> {
    let Some((program, arguments)) = command.argv.split_first() else {
        return Err(HandlerError::new("argv is empty: give a program and its arguments"));
    };
    if !allowed.contains(program) {
        return Err(HandlerError::new(format!("this worker does not allow the program {program:?}")));
    }
    let group = Group::new()
        .await
        .map_err(|error| HandlerError::new(format!("no process group to run in: {error}")))?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("BELLWETHER_JOB", context.job().as_str())
        .env("BELLWETHER_ATTEMPT", context.attempt().to_string())
        .env("BELLWETHER_FENCING_TOKEN", context.fencing_token().to_string())
        .envs(context.trace_context().map(|trace| ("TRACEPARENT", trace.to_string())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(group.id())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| HandlerError::new(format!("{program:?} could not be started: {error}")))?;

    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = {
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = command.stdin.unwrap_or_default();
        let streams =
            async { tokio::join!(feed(stdin, &input), capture(out, &mut stdout), capture(err, &mut stderr)) };
        tokio::pin!(streams);
        let mut open = true;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                _ = &mut streams, if open => open = false,
                () = context.cancelled() => return Err(HandlerError::new("killed: told to stop")),
            }
        };
        drop(group);
        if open && tokio::time::timeout(LINGER, streams).await.is_err() {
            tracing::debug!(job = %context.job(), "a descendant of the program keeps its output open");
        }
        status
    };
    finished(status, &stdout, &stderr)
}

fn finished(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Result<Output, HandlerError> {
    match status.code() {
        Some(0) => Ok(Output { code: 0, stdout: text(stdout), stderr: text(stderr) }),
        Some(_) | None => {
            let tail = text(&stderr[stderr.len().saturating_sub(TAIL)..]);
            Err(HandlerError::new(format!("{status}: {}", tail.trim_end())))
        }
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

/// A program that does not read its input is not at fault.
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
