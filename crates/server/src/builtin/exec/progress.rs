//! The progress that a program reports.
//!
//! The environment variable `BELLWETHER_PROGRESS_FD` names a descriptor that the program inherits. Each line that it writes
//! there is a percentage, and optionally a space and a message: `40 sending`. Other lines are ignored, because a progress
//! report must not fail a program.

use std::io;
use std::os::fd::OwnedFd;

use bellwether::JobContext;
use command_fds::{CommandFdExt as _, FdMapping};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;

/// The descriptor in the program: the first one after the standard streams.
pub(super) const DESCRIPTOR: i32 = 3;

/// The longest line: a percentage and a message of 1 KiB. The rest of a longer line is dropped.
const MAX_LINE: usize = 4 + 1_024;

/// A pipe whose ends are both in this process.
pub(super) struct Channel {
    reports: Receiver,
    program: OwnedFd,
}

/// The reading end of a pipe whose other end belongs to a program.
pub(super) struct Reports(Receiver);

impl Channel {
    /// Creates a pipe that no other child process inherits.
    pub(super) fn new() -> io::Result<Self> {
        let (reports, program) = io::pipe()?;
        Ok(Self { reports: Receiver::from_owned_fd(reports.into())?, program: program.into() })
    }

    /// Lets the program inherit the writing end. The command owns it.
    pub(super) fn give_to(self, command: &mut Command) -> Reports {
        let mapping = FdMapping { parent_fd: self.program, child_fd: DESCRIPTOR };
        command.fd_mappings(vec![mapping]).expect("one descriptor is mapped once");
        Reports(self.reports)
    }
}

impl Reports {
    /// Reports each line as the progress of the attempt, until no process has the writing end.
    pub(super) async fn follow(mut self, context: &JobContext) {
        let (mut line, mut chunk) = (Vec::new(), [0; 4_096]);
        loop {
            match self.0.read(&mut chunk).await {
                Ok(0) => return,
                Ok(read) => chunk[..read].iter().for_each(|byte| match byte {
                    b'\n' => report(context, &std::mem::take(&mut line)),
                    byte if line.len() < MAX_LINE => line.push(*byte),
                    // The rest of a line that is too long.
                    _ => {}
                }),
                Err(error) => {
                    tracing::debug!(%error, "the program's progress ended early");
                    return;
                }
            }
        }
    }
}

fn report(context: &JobContext, line: &[u8]) {
    let reported = parse(line).map(|(percent, message)| context.progress(percent, message));
    if !matches!(reported, Some(Ok(()))) {
        let line = String::from_utf8_lossy(line);
        tracing::debug!(job = %context.job(), %line, "the program wrote a line that is not progress: it is ignored");
    }
}

fn parse(line: &[u8]) -> Option<(u8, &str)> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let (percent, message) = line.split_once(' ').unwrap_or((line, ""));
    Some((percent.parse().ok()?, message.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_percentage_and_a_message() {
        for (line, parsed) in [
            ("40 sending mail", Some((40, "sending mail"))),
            ("100", Some((100, ""))),
            ("0  two spaces \r", Some((0, "two spaces"))),
            ("256 too much", None),
            ("-1", None),
            ("half", None),
            ("", None),
        ] {
            assert_eq!(parse(line.as_bytes()), parsed, "{line:?}");
        }
        assert_eq!(parse(b"40 \xff"), None);
    }
}
