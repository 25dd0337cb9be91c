//! Formatting of instants.

use bellwether_core::time::WallMillis;

/// Formats an instant as RFC 3339 in UTC with milliseconds: `2026-11-21T11:33:00.123Z`.
#[must_use]
pub fn rfc3339(at: WallMillis) -> String {
    at.to_string()
}
