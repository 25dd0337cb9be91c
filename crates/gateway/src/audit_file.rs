//! A file of audit lines, which no log level silences: one JSON document per line.
//!
//! Each line is written with one call to a file that is opened for appending, so several processes can share a file, and a
//! program that rotates logs may copy and truncate it. The first line that cannot be written is an error in the log, and the
//! next line that can be written ends it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditFile(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    path: PathBuf,
    file: File,
    /// Lines that were not written since the last one that was.
    lost: Mutex<u64>,
}

/// A line was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unwritten;

impl AuditFile {
    /// Opens the file, or creates it for its owner only.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self::of(path, file))
    }

    fn of(path: &Path, file: File) -> Self {
        Self(Arc::new(Inside { path: path.to_owned(), file, lost: Mutex::new(0) }))
    }

    /// Appends a line. It is then in the system's memory, and after a crash of the machine it may be lost.
    pub(super) fn append(&self, line: &impl Serialize) -> Result<(), Unwritten> {
        let Inside { path, file, lost } = &*self.0;
        let path = path.display();
        let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
        // A line that was written in part ends here, and cannot spoil this one.
        let mut bytes = if *lost > 0 { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut bytes, line).expect("a struct of texts and numbers is JSON");
        bytes.push(b'\n');
        match (&*file).write_all(&bytes) {
            Ok(()) => {
                if *lost > 0 {
                    tracing::info!(%path, lost = *lost, "the gateway writes audit lines to the file again");
                }
                *lost = 0;
                Ok(())
            }
            Err(error) => {
                if *lost == 0 {
                    tracing::error!(%path, %error, "the gateway cannot write to the audit file");
                }
                *lost += 1;
                Err(Unwritten)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use nix::fcntl::OFlag;
    use nix::unistd::pipe2;

    use super::*;

    /// A pipe without a reader that reads is full after some lines.
    #[test]
    fn a_line_that_was_written_in_part_does_not_spoil_the_next_one() {
        let (reader, writer) = pipe2(OFlag::O_NONBLOCK).unwrap();
        let file = AuditFile::of(Path::new("pipe"), File::from(writer));
        // Not a divisor of the pipe's size, so that the last line is written in part.
        let long = "x".repeat(10_000);
        let written = std::iter::from_fn(|| file.append(&long).ok()).count();
        assert_eq!(file.append(&"lost"), Err(Unwritten));
        let mut reader = File::from(reader);
        let mut text = vec![0; 1 << 20];
        let read = reader.read(&mut text).unwrap();
        text.truncate(read);
        let mut rest = vec![0; 1 << 20];
        while let Ok(read @ 1..) = reader.read(&mut rest) {
            text.extend_from_slice(&rest[..read]);
        }
        assert_eq!(file.append(&"again"), Ok(()));
        assert_eq!(file.append(&"and again"), Ok(()));
        let read = reader.read(&mut rest).unwrap();
        text.extend_from_slice(&rest[..read]);
        let text = String::from_utf8(text).unwrap();
        let lines =
            text.lines().filter(|line| serde_json::from_str::<String>(line).is_ok()).collect::<Vec<_>>();
        assert_eq!(lines.len(), written + 2, "all lines that were acknowledged");
        assert_eq!(lines[written..], ["\"again\"", "\"and again\""]);
    }
}
