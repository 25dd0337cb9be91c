//! Formatting of instants.

use std::time::SystemTime;

use bellwether_core::time::WallMillis;

/// Formats an instant as RFC 3339 in UTC with milliseconds: `2026-11-21T11:33:00.123Z`. An instant before 1970 is
/// formatted as 1970.
#[must_use]
pub fn rfc3339(at: SystemTime) -> String {
    WallMillis::from(at).to_string()
}
