//! The standing orders of a proxy: they hold until they are changed.

use std::time::Duration;

/// How a connection is cut. A client library tells the three apart, and must draw the same conclusion from each:
/// the outcome of what was in flight is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// FIN: the client reads an end of file.
    Fin,
    /// RST: the client reads an error.
    Reset,
    /// Nothing: the connection stays open, and no byte passes it any more in either direction.
    Silence,
}

/// Which frames are meant.
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
    /// Counts the cuts: a connection ends when it is no longer what it was at its birth.
    pub(super) cuts: u64,
    /// How the last cut was done.
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

    /// Back to normal; the cuts stay counted, or a heal would undo one that is under way.
    pub(super) fn heal(&mut self) {
        *self = Self { cuts: self.cuts, cut: self.cut, ..Self::default() };
    }
}
