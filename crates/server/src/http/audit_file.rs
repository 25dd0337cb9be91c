//! A file of audit lines, which no log level silences: one JSON document per line.
//!
//! Each line is written with one call to a file that is opened for appending, so several processes can share a file, and a
//! program that rotates logs may copy and truncate it. A line that cannot be written is an error in the log; the request
//! goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use super::audit_log::AuditEntry;

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AuditFile(Arc<File>);

impl AuditFile {
    /// Opens the file, or creates it for its owner only.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self(Arc::new(file)))
    }

    pub(super) fn write(&self, entry: &AuditEntry) {
        let mut line = serde_json::to_vec(entry).expect("a struct of texts and numbers is JSON");
        line.push(b'\n');
        if let Err(error) = (&*self.0).write_all(&line) {
            tracing::error!(%error, "cannot write to the audit file");
        }
    }
}
