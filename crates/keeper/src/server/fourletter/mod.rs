//! Four-letter words: how operators and tools ask a ZooKeeper how it is.
//!
//! All words are answered, as Java does with `4lw.commands.whitelist=*`: the listener is the loopback's unless the
//! operator opened it. They are answered by the engine, between batches, so `imok` means that the engine serves.

mod report;
mod time;

use std::net::SocketAddr;
use std::sync::Arc;

pub(super) use self::report::{Source, write};
use super::limits::Limits;
use super::listener::Admission;
use crate::model::Config;
use crate::proto::{Op, Request};

/// Java's words for a server that does not serve.
pub(super) const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// What a server tells that does not change.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) address: SocketAddr,
    pub(super) limits: Limits,
    pub(super) config: Config,
    pub(super) admission: Arc<Admission>,
}

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// `srst`
    ResetServer,
    /// `crst`
    ResetConnections,
    /// One that changes nothing.
    Read(Page),
}

/// A word that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// `ruok`
    Ok,
    /// `isro`
    ReadOnly,
    /// `srvr`
    Server,
    /// `stat`
    Stat,
    /// `mntr`
    Monitor,
    /// `cons`
    Connections,
    /// `dump`
    Dump,
    /// `conf`
    Config,
    /// `envi`
    Environment,
    /// `dirs`
    Directories,
    /// `wchs`
    WatchSummary,
    /// `wchc`
    WatchesByConnection,
    /// `wchp`
    WatchesByPath,
}

/// The word that a connection begins with. Read as a length, each is far beyond the longest frame, so no session
/// begins with one.
pub(super) fn parse(word: [u8; 4]) -> Option<Report> {
    let page = match &word {
        b"srst" => return Some(Report::ResetServer),
        b"crst" => return Some(Report::ResetConnections),
        b"ruok" => Page::Ok,
        b"isro" => Page::ReadOnly,
        b"srvr" => Page::Server,
        b"stat" => Page::Stat,
        b"mntr" => Page::Monitor,
        b"cons" => Page::Connections,
        b"dump" => Page::Dump,
        b"conf" => Page::Config,
        b"envi" => Page::Environment,
        b"dirs" => Page::Directories,
        b"wchs" => Page::WatchSummary,
        b"wchc" => Page::WatchesByConnection,
        b"wchp" => Page::WatchesByPath,
        _ => return None,
    };
    Some(Report::Read(page))
}

/// What `cons` calls a request, as Java does.
pub(super) fn operation(request: &Request) -> &'static str {
    match request {
        Request::Write(Op::Create { .. }) => "CREA",
        Request::Write(Op::Delete { .. }) => "DELE",
        Request::Write(Op::SetData { .. }) => "SETD",
        Request::Write(Op::Check { .. }) => "CHEC",
        Request::Write(Op::Unknown { .. }) | Request::Unsupported { .. } | Request::Malformed(_) => "NA",
        Request::Multi(_) => "MULT",
        Request::MultiRead(_) => "MLTR",
        Request::Exists { .. } => "EXIS",
        Request::GetData { .. } => "GETD",
        Request::GetChildren { .. } => "GETC",
        Request::CountDescendants { .. } => "GETACN",
        Request::GetEphemerals { .. } => "GETE",
        Request::GetAcl { .. } => "GETA",
        Request::SetAcl { .. } => "SETA",
        Request::Sync { .. } => "SYNC",
        Request::Ping => "PING",
        Request::Auth { .. } => "AUTH",
        Request::SetWatches { .. } => "SETW",
        Request::AddWatch { .. } => "ADDW",
        Request::CheckWatches { .. } => "CHKW",
        Request::RemoveWatches { .. } => "REMW",
        Request::WhoAmI => "HOMI",
        Request::CloseSession => "CLOS",
    }
}
