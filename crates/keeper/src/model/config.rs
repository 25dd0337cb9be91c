//! What an operator may decide about the model.

/// Which release's quirks clients see, where releases differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// 3.9 and newer.
    #[default]
    V3_9,
    /// 3.8.0, as Debian ships it, without its hole: no client hears of what it may not read (CVE-2024-23944). A
    /// `create2` inside a multi is answered as a `create`, notifications carry zxid −1, a connection has one watch per
    /// table and path, and a malformed write takes a number.
    V3_8_0,
}

/// The shortest and the longest session, in ticks, when no bounds are given.
const MIN_TICKS: i32 = 2;
const MAX_TICKS: i32 = 20;
/// A real server's tick.
const TICK_MS: i32 = 2000;
/// How often a real server looks for containers and TTL znodes to remove.
const CLEANING_INTERVAL_MS: u64 = 60_000;

/// What an operator may decide about the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The grain of session expiry, above 0. Sessions last 2 to 20 of it unless the bounds below say otherwise.
    pub tick_ms: i32,
    /// The shortest session that is granted, above 0.
    pub min_session_timeout_ms: Option<i32>,
    /// The longest session that is granted, not below the shortest.
    pub max_session_timeout_ms: Option<i32>,
    /// How often empty containers and outlived TTL znodes are looked for, above 0.
    pub cleaning_interval_ms: u64,
    /// Whether TTL znodes may be created.
    pub extended_types: bool,
    /// `user:base64(sha1(user:password))` of the digest identity that passes every ACL.
    pub super_digest: Option<String>,
    /// Which release's quirks clients see.
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tick_ms: TICK_MS,
            min_session_timeout_ms: None,
            max_session_timeout_ms: None,
            cleaning_interval_ms: CLEANING_INTERVAL_MS,
            extended_types: true,
            super_digest: None,
            compat: Compat::default(),
        }
    }
}

impl Config {
    /// The shortest and the longest session that is granted.
    #[must_use]
    pub fn session_bounds_ms(&self) -> (i32, i32) {
        (
            self.min_session_timeout_ms.unwrap_or(self.tick_ms.saturating_mul(MIN_TICKS)),
            self.max_session_timeout_ms.unwrap_or(self.tick_ms.saturating_mul(MAX_TICKS)),
        )
    }

    /// What a client gets that asks for `asked`.
    pub(super) fn negotiate(&self, asked: i32) -> i32 {
        let (shortest, longest) = self.session_bounds_ms();
        asked.max(shortest).min(longest)
    }
}
