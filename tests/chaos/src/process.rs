//! A process of the run, a node or a client: it is started, disturbed and restarted, and each step is recorded.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::name::NodeId;
use bellwether_sim::history::{EventKind, Life};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::failure::Failure;
use crate::links::Links;
use crate::node::ABANDONED;
use crate::record::Recorder;
use crate::wait::until;

/// Time limit for the end of a process that got SIGTERM; it includes a drain.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// How it is started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) arguments: Vec<String>,
    pub(crate) output: PathBuf,
}

/// A process, running or down.
pub(crate) struct Process {
    pub(crate) name: NodeId,
    pub(crate) links: Links,
    program: Program,
    recorder: Arc<Recorder>,
    state: State,
}

enum State {
    Down,
    Runs(Child),
    Frozen(Child),
    /// The process got SIGTERM and has not ended yet.
    Leaves(Child),
}

impl Process {
    pub(crate) fn new(name: NodeId, links: Links, program: Program, recorder: Arc<Recorder>) -> Self {
        Self { name, links, program, recorder, state: State::Down }
    }

    fn record(&self, is: Life) {
        self.recorder.record(EventKind::Node { node: self.name.clone(), is });
    }

    /// Starts the process if it is down.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        if !matches!(self.state, State::Down) {
            return Ok(());
        }
        let output = File::options().create(true).append(true).open(&self.program.output)?;
        self.record(Life::Started);
        // The kernel kills the process with the thread that started it, in case that thread cannot do it.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(std::env::current_exe()?)
            .args(&self.program.arguments)
            .env("RUST_LOG", "info,zookeeper_client=error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()?;
        self.state = State::Runs(child);
        Ok(())
    }

    /// Sets other arguments for the next start.
    pub(crate) fn replace(&mut self, arguments: Vec<String>) {
        self.program.arguments = arguments;
    }

    pub(crate) fn runs(&self) -> bool {
        matches!(self.state, State::Runs(_))
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&mut self) {
        match std::mem::replace(&mut self.state, State::Down) {
            State::Runs(mut child) | State::Frozen(mut child) | State::Leaves(mut child) => {
                // Both fail only for a process that has ended.
                drop(child.kill());
                drop(child.wait());
                self.record(Life::Killed);
            }
            State::Down => {}
        }
    }

    /// Sends SIGSTOP. The process is frozen when this returns.
    pub(crate) fn freeze(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Down) {
            State::Runs(child) => {
                signal(&child, Signal::SIGSTOP);
                // An exit also ends the wait; it is handled later.
                let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
                while waitid(Id::Pid(pid(&child)), stopped) == Err(Errno::EINTR) {}
                self.record(Life::Frozen);
                State::Frozen(child)
            }
            unchanged @ (State::Frozen(_) | State::Leaves(_) | State::Down) => unchanged,
        };
    }

    /// Sends SIGCONT.
    pub(crate) fn thaw(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Down) {
            State::Frozen(child) => {
                self.record(Life::Thawed);
                signal(&child, Signal::SIGCONT);
                State::Runs(child)
            }
            unchanged @ (State::Runs(_) | State::Leaves(_) | State::Down) => unchanged,
        };
    }

    /// Sends SIGTERM, without waiting for the end.
    pub(crate) fn ask_to_end(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Down) {
            State::Runs(child) => {
                signal(&child, Signal::SIGTERM);
                State::Leaves(child)
            }
            unchanged @ (State::Frozen(_) | State::Leaves(_) | State::Down) => unchanged,
        };
    }

    /// Waits for the end of a process that got SIGTERM.
    pub(crate) async fn ended(&mut self) -> Result<(), Failure> {
        let what = format!("{} ends", self.name);
        let mut status = None;
        if let State::Leaves(child) = &mut self.state {
            until(&what, ENDS_WITHIN, async || {
                status = child.try_wait().ok().flatten();
                status.is_some()
            })
            .await?;
        }
        if let Some(status) = status {
            self.state = State::Down;
            self.is_over(status, &[0, i32::from(ABANDONED)]);
        }
        Ok(())
    }

    /// Detects an exit that was not requested. Returns `true` if a job killed the process.
    pub(crate) fn look(&mut self) -> bool {
        let State::Runs(child) = &mut self.state else { return false };
        let Ok(Some(status)) = child.try_wait() else { return false };
        self.state = State::Down;
        self.is_over(status, &[]);
        status.signal() == Some(Signal::SIGKILL as i32)
    }

    fn is_over(&self, status: ExitStatus, expected: &[i32]) {
        let is = match (status.code(), status.signal()) {
            (Some(code), _) if expected.contains(&code) => Life::Stopped,
            // Only a job of the run sends SIGKILL to its own process. It is recorded as a run that never ended.
            (None, Some(signal)) if signal == Signal::SIGKILL as i32 => Life::Killed,
            (_, _) => Life::Failed,
        };
        self.record(is);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("Linux pids fit an i32"))
}

fn signal(child: &Child, signal: Signal) {
    if let Err(error) = kill(pid(child), signal) {
        tracing::debug!(%error, "the test cannot signal a process that has ended");
    }
}

/// Returns the path of a process's output, next to its records.
pub(crate) fn output(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}
