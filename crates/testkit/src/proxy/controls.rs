//! The persistent settings of a proxy.

use std::time::Duration;

/// How a connection is cut. A client library can distinguish the three, but must conclude the same from each: the
/// outcome of requests in flight is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// FIN: the client reads an end of file.
    Fin,
    /// RST: the client reads an error.
    Reset,
    /// Nothing: the connection stays open, but no further byte passes in either direction.
    Silence,
}

/// The affected frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Replies and watch events.
    ToClient,
    /// All.
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Pass,
    Swallow,
    Stall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Events {
    Pass,
    Delay(Duration),
    Drop,
}

/// Read by every connection before every frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Controls {
    pub(super) door: Door,
    pub(super) to_server: Flow,
    pub(super) to_client: Flow,
    pub(super) delay: Duration,
    pub(super) events: Events,
    /// Counts the cuts: a connection ends when the count differs from its value at the accept.
    pub(super) cuts: u64,
    /// The manner of the last cut.
    pub(super) cut: Cut,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            door: Door::Open,
            to_server: Flow::Pass,
            to_client: Flow::Pass,
            delay: Duration::ZERO,
            events: Events::Pass,
            cuts: 0,
            cut: Cut::Fin,
        }
    }
}

impl Controls {
    pub(super) fn set_flow(&mut self, direction: Direction, flow: Flow) {
        match direction {
            Direction::ToServer => self.to_server = flow,
            Direction::ToClient => self.to_client = flow,
            Direction::Both => (self.to_server, self.to_client) = (flow, flow),
        }
    }

    /// Resets all settings. The count of cuts is kept: otherwise a heal would revert a cut in progress.
    pub(super) fn heal(&mut self) {
        *self = Self { cuts: self.cuts, cut: self.cut, ..Self::default() };
    }
}
