//! Recording: one file of JSON lines per process and purpose. Files are only appended to.
//!
//! A line is one write to a file that is open for appending, so the lines that a process recorded before it was killed
//! are complete. The clock is the machine's time since boot, which all processes share.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bellwether_sim::history::{Event, EventKind};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine's boot.
pub(crate) fn now() -> u64 {
    u64::try_from(clock(ClockId::CLOCK_BOOTTIME).num_milliseconds()).expect("the clock starts at zero")
}

/// The milliseconds to add to a time of ZooKeeper's log, which is since 1970, for the time since boot. Rounded down: the
/// sum is never later than the moment itself.
pub(crate) fn offset() -> i64 {
    let (boot, wall) = (clock(ClockId::CLOCK_BOOTTIME), clock(ClockId::CLOCK_REALTIME));
    let nanos = (boot - wall).num_nanoseconds();
    nanos.div_euclid(1_000_000)
}

fn clock(clock: ClockId) -> TimeSpec {
    clock_gettime(clock).expect("Linux has this clock")
}

/// Appends events to a file.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: Mutex<File>,
}

impl Recorder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// Records an event with the current time.
    ///
    /// # Panics
    /// When the file cannot be written: an incomplete history is useless.
    pub(crate) fn record(&self, what: EventKind) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that times within a file do not decrease.
        let event = Event { at: now(), what };
        let line = format!("{}\n", event.to_line());
        file.write_all(line.as_bytes()).expect("the history file is writable");
    }
}

/// Reads the recorded events. An incomplete last line is ignored: its process was killed during the write.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Event>> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    lines.map(|line| Event::from_line(line).map_err(io::Error::other)).collect()
}
