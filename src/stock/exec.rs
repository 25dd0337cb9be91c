//! Runs a listed program, without a shell, in a process group of its own.
//!
//! The group is killed when the attempt ends, however it ends: the program's own end (its stragglers go with
//! it), a timeout, a cancel, the end of the worker's session. Only a node that is itself killed outright cannot
//! do that any more. The program sees little of the node's environment, which may hold secrets.

use std::collections::BTreeSet;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use crate::handler::{HandlerError, JobContext};

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

/// Kills its process group when dropped. Its leader may be gone by then: the kernel gives the number to no other
/// group while a member lives, and a group without members is not there to be killed.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        match killpg(self.0, Signal::SIGKILL) {
            // Gone already, or only zombies are left.
            Ok(()) | Err(nix::errno::Errno::ESRCH | nix::errno::Errno::EPERM) => {}
            Err(error) => tracing::warn!(group = %self.0, %error, "a process group could not be killed"),
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
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("BELLWETHER_JOB", context.job().as_str())
        .env("BELLWETHER_ATTEMPT", context.attempt().to_string())
        .env("BELLWETHER_FENCING_TOKEN", context.fencing_token().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| HandlerError::new(format!("{program:?} could not be started: {error}")))?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let group = leader.map(Group);

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
