//! Four-letter words: the status commands of ZooKeeper.
//!
//! Clients on this machine can use all words, as with Java's `4lw.commands.whitelist=*`. Other clients can use `ruok` and
//! `srvr`, as load balancers and monitoring do: the other words name clients, sessions, paths, directories and settings, or reset
//! statistics. The engine answers between batches, so `imok` means that the engine is
//! running.

mod report;
mod time;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub(super) use self::report::{Source, write};
use super::limits::Limits;
use super::listener::Admission;
use crate::model::Config;
use crate::proto::{Op, Request};

/// Java's reply of a server that does not serve.
pub(super) const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// Properties of the server that do not change.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) address: SocketAddr,
    pub(super) limits: Limits,
    pub(super) config: Config,
    pub(super) admission: Arc<Admission>,
}

/// A four-letter word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// `srst`
    ResetServer,
    /// `crst`
    ResetConnections,
    /// A word that changes nothing.
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

/// Parses the first four bytes of a connection. As a length, each word is far above the limit for frames, so they
/// cannot be confused with a session's first frame.
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

impl Report {
    /// Returns whether only this machine may use the word.
    fn is_local(self) -> bool {
        match self {
            Self::ResetServer | Self::ResetConnections => true,
            Self::Read(Page::Ok | Page::Server) => false,
            Self::Read(
                Page::ReadOnly
                | Page::Stat
                | Page::Monitor
                | Page::Connections
                | Page::Dump
                | Page::Config
                | Page::Environment
                | Page::Directories
                | Page::WatchSummary
                | Page::WatchesByConnection
                | Page::WatchesByPath,
            ) => true,
        }
    }

    /// Returns Java's error text if `peer` may not use the word.
    pub(super) fn refused(self, word: [u8; 4], peer: IpAddr) -> Option<String> {
        let word = String::from_utf8_lossy(&word);
        let refused = self.is_local() && !peer.to_canonical().is_loopback();
        refused.then(|| format!("{word} is not executed because it is not in the whitelist.\n"))
    }
}

/// Returns the name of a request in `cons`, as in Java.
pub(super) fn operation(request: &Request) -> &'static str {
    match request {
        Request::Write(Op::Create { .. }) => "CREA",
        Request::Write(Op::Delete { .. }) => "DELE",
        Request::Write(Op::SetData { .. }) => "SETD",
        Request::Write(Op::Check { .. }) => "CHEC",
        Request::Write(Op::Unknown { .. }) | Request::Malformed(_) | Request::Unsupported { .. } => "NA",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_use_only_ruok_and_srvr() {
        let refused = |word: &[u8; 4], peer: &str| {
            parse(*word).expect("a word").refused(*word, peer.parse().expect("an address")).is_some()
        };
        for word in [
            b"isro", b"stat", b"mntr", b"cons", b"dump", b"conf", b"envi", b"dirs", b"wchs", b"wchc",
            b"wchp", b"srst", b"crst",
        ] {
            assert!(refused(word, "192.0.2.1") && refused(word, "2001:db8::1"), "{word:?}");
            assert!(!refused(word, "127.0.0.1") && !refused(word, "::1"), "{word:?}");
            assert!(!refused(word, "::ffff:127.0.0.1"), "{word:?}");
        }
        for word in [b"ruok", b"srvr"] {
            assert!(!refused(word, "192.0.2.1"), "{word:?}");
        }
    }
}
