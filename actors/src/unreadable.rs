//! Tells of a znode that cannot be read once, not at every sweep.

use std::collections::BTreeMap;
use std::fmt;

use bellwether_core::machine::worker::Look;
use bellwether_core::metric;
use metrics::counter;

/// Most that are remembered. With more than this, telling some again is the least trouble.
const REMEMBERED: usize = 4_096;

/// The unreadable znodes that were told of, with the version that they had.
#[derive(Debug, Default)]
pub struct Unreadable(BTreeMap<String, i32>);

impl Unreadable {
    /// Logs and counts, unless this version of it was told of already. The znode is left alone: a newer node may
    /// read it, an operator may repair it.
    pub fn tell(&mut self, path: String, version: i32, error: impl fmt::Display) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        if self.0.get(&path) == Some(&version) {
            return;
        }
        tracing::error!(path, version, %error, "a znode cannot be read and is left alone");
        counter!(metric::QUARANTINED).increment(1);
        self.0.insert(path, version);
    }

    /// What was read, if there is something, and it can be read.
    pub fn readable<T>(&mut self, path: impl FnOnce() -> String, look: Look<T>) -> Option<T> {
        match look {
            Look::Absent => None,
            Look::There(value, _) => Some(value),
            Look::Unreadable { why, version, .. } => {
                self.tell(path(), version, why);
                None
            }
        }
    }
}
