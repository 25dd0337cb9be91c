//! Reports an unreadable znode once, not at every sweep.

use std::collections::BTreeMap;
use std::fmt;

use bellwether_core::machine::worker::Lookup;
use bellwether_core::metric;
use metrics::counter;

/// The number of remembered znodes. Beyond it the memory is cleared, and some znodes are reported a second time.
const REMEMBERED: usize = 4_096;

/// The reported znodes, each with its version.
#[derive(Debug, Default)]
pub struct Unreadable(BTreeMap<String, i32>);

impl Unreadable {
    /// Logs and counts an unreadable znode, unless this version was already reported. The znode is left unchanged,
    /// because a newer build may be able to read it, or an operator may repair it.
    pub fn tell(&mut self, path: String, version: i32, error: impl fmt::Display) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        if self.0.get(&path) == Some(&version) {
            return;
        }
        tracing::error!(path, version, %error, "the node cannot read a znode and leaves it unchanged");
        counter!(metric::ZNODES_QUARANTINED).increment(1);
        self.0.insert(path, version);
    }

    /// Returns the value if the znode exists and can be read; reports it if it cannot.
    pub fn readable<T>(&mut self, path: impl FnOnce() -> String, look: Lookup<T>) -> Option<T> {
        match look {
            Lookup::Absent => None,
            Lookup::Found(value, _) => Some(value),
            Lookup::Unreadable { why, version, .. } => {
                self.tell(path(), version, why);
                None
            }
        }
    }
}
