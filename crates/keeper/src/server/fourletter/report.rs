//! The replies to the words, in the layout of the Java server, which kazoo, exporters and scripts parse.
//!
//! Lines that Java does not have follow the others, in the `key: value` or `key=value` form that parsers expect.
//! [`LOUD`] is one of them.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::time::SystemTime;

use super::super::clock::Clock;
use super::super::engine::{Connection, Connections};
use super::super::stats::Traffic;
use super::time::Date;
use super::{Facts, Page, Report};
use crate::model::{Compat, Model};
use crate::store::Status;

/// Shown in each report that an operator checks first.
const LOUD: &str = "single node, no failover";
/// Parsers expect a date; a reproducible build has none.
const BUILT: &str = "built on 1970-01-01 00:00 UTC";

/// The data of a report.
pub(in super::super) struct Source<'a> {
    pub(in super::super) facts: &'a Facts,
    pub(in super::super) model: &'a Model,
    pub(in super::super) store: &'a Status,
    pub(in super::super) connections: &'a Connections,
    pub(in super::super) traffic: &'a Traffic,
    pub(in super::super) clock: &'a Clock,
}

/// Returns the reply to a word.
pub(in super::super) fn write(report: Report, source: &Source<'_>) -> String {
    let mut text = String::new();
    let written = match report {
        Report::ResetServer => text.write_str("Server stats reset.\n"),
        Report::ResetConnections => text.write_str("Connection stats reset.\n"),
        Report::Read(page) => source.page(page, &mut text),
    };
    written.expect("writing to a string does not fail");
    text
}

impl Source<'_> {
    fn page(&self, page: Page, to: &mut String) -> fmt::Result {
        match page {
            Page::Ok => to.write_str("imok"),
            Page::ReadOnly => to.write_str("rw"),
            Page::Server => {
                writeln!(to, "Zookeeper version: {}", self.version())?;
                self.server(to)
            }
            Page::Stat => {
                writeln!(to, "Zookeeper version: {}\nClients:", self.version())?;
                for connection in self.connections.sorted() {
                    brief(connection, to)?;
                    to.write_str(")\n")?;
                }
                to.write_str("\n")?;
                self.server(to)
            }
            Page::Monitor => self.monitor(to),
            Page::Connections => self.connections(to),
            Page::Dump => self.dump(to),
            Page::Config => self.config(to),
            Page::Environment => self.environment(to),
            Page::Directories => {
                let bytes = self.store.bytes;
                write!(to, "datadir_size: {bytes}\nlogdir_size: {bytes}\n")
            }
            Page::WatchSummary => {
                let (connections, paths) = (self.model.watches().count(), self.model.watched_paths());
                writeln!(to, "{connections} connections watching {paths} paths")?;
                writeln!(to, "Total watches:{}", self.model.watch_count())
            }
            Page::WatchesByConnection => {
                for watch in self.model.watches() {
                    group(&format_args!("{:#x}", watch.session), watch.paths, to)?;
                }
                to.write_str("\n")
            }
            Page::WatchesByPath => {
                let mut by_path: BTreeMap<&str, Vec<String>> = BTreeMap::new();
                for watch in self.model.watches() {
                    for path in watch.paths {
                        by_path.entry(path).or_default().push(format!("{:#x}", watch.session));
                    }
                }
                for (path, sessions) in by_path {
                    group(&path, sessions, to)?;
                }
                to.write_str("\n")
            }
        }
    }

    /// Returns the version. Clients use its leading digits to detect supported operations.
    fn version(&self) -> String {
        let release = match self.facts.config.compat {
            Compat::V3_9 => "3.9.3",
            Compat::V3_8_0 => "3.8.0",
        };
        format!("{release}-bellwether-keeper-{}, {BUILT}", env!("CARGO_PKG_VERSION"))
    }

    fn server(&self, to: &mut String) -> fmt::Result {
        let Traffic { received, sent, latency } = *self.traffic;
        writeln!(
            to,
            "Latency min/avg/max: {}/{:?}/{}",
            latency.min_ms(),
            rounded(latency.average_ms()),
            latency.max_ms()
        )?;
        writeln!(to, "Received: {received}\nSent: {sent}")?;
        writeln!(to, "Connections: {}\nOutstanding: {}", self.facts.admission.open(), self.outstanding())?;
        writeln!(to, "Zxid: {:#x}\nMode: standalone", self.model.zxid())?;
        writeln!(to, "Node count: {}\nFailover: none ({LOUD})", self.model.node_count())
    }

    fn monitor(&self, to: &mut String) -> fmt::Result {
        let Traffic { received, sent, latency } = *self.traffic;
        let ephemerals: usize = self.model.ephemeral_owners().map(|(_, paths)| paths).sum();
        let status = self.store;
        writeln!(to, "zk_version\t{}\nzk_server_state\tstandalone", self.version())?;
        writeln!(to, "zk_avg_latency\t{:?}", rounded(latency.average_ms()))?;
        let numbers: &[(&str, u128)] = &[
            ("min_latency", latency.min_ms()),
            ("max_latency", latency.max_ms()),
            ("packets_received", received.into()),
            ("packets_sent", sent.into()),
            ("num_alive_connections", count(self.facts.admission.open())),
            ("connection_rejected", count(self.facts.admission.rejected())),
            ("outstanding_requests", count(self.outstanding())),
            ("znode_count", count(self.model.node_count())),
            ("watch_count", count(self.model.watch_count())),
            ("ephemerals_count", count(ephemerals)),
            ("approximate_data_size", self.model.data_bytes().into()),
            ("global_sessions", count(self.model.sessions().count())),
            ("local_sessions", 0),
            ("commit_count", status.commits.into()),
            ("data_dir_bytes", status.bytes.into()),
            ("unsent_bytes", count(self.connections.sorted().iter().map(|one| one.outbox.unsent()).sum())),
            ("uptime", self.clock.elapsed().as_millis()),
        ];
        for (name, number) in numbers {
            writeln!(to, "zk_{name}\t{number}")?;
        }
        if let (Some(open), Some(most)) = (open_files(), most_files()) {
            writeln!(to, "zk_open_file_descriptor_count\t{open}\nzk_max_file_descriptor_count\t{most}")?;
        }
        Ok(())
    }

    fn connections(&self, to: &mut String) -> fmt::Result {
        for connection in self.connections.sorted() {
            brief(connection, to)?;
            let record = &connection.record;
            if let Some((session, timeout_ms)) = record.session {
                write!(to, ",sid={session:#x},lop={}", record.last_operation)?;
                write!(to, ",est={},to={timeout_ms}", millis(Some(record.established)))?;
                write!(to, ",lcxid={:#x},lzxid={:#x}", record.last_xid, record.last_zxid)?;
                let latency = &record.latency;
                write!(
                    to,
                    ",lresp={},llat={},minlat={},avglat={:.0},maxlat={}",
                    millis(record.last_response),
                    latency.last_ms(),
                    latency.min_ms(),
                    latency.average_ms(),
                    latency.max_ms()
                )?;
            }
            to.write_str(")\n")?;
        }
        to.write_str("\n")
    }

    fn dump(&self, to: &mut String) -> fmt::Result {
        let now = self.clock.now();
        let mut sets: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
        let mut sessions = 0;
        for session in self.model.sessions() {
            sets.entry(session.ends_at_ms).or_default().push(session.id);
            sessions += 1;
        }
        writeln!(to, "SessionTracker dump:\nSession Sets ({})/({sessions}):", sets.len())?;
        for (end, ids) in sets {
            let left = i64::try_from(end).unwrap_or(i64::MAX).saturating_sub_unsigned(now.monotonic_ms);
            writeln!(to, "{} expire at {}:", ids.len(), Date(now.wall_ms.saturating_add(left)))?;
            for id in ids {
                writeln!(to, "\t{id:#x}")?;
            }
        }
        let owners: Vec<_> = self.model.ephemeral_owners().collect();
        writeln!(to, "ephemeral nodes dump:\nSessions with Ephemerals ({}):", owners.len())?;
        for (session, _) in owners {
            group(&format_args!("{session:#x}:"), self.model.ephemerals_of(session), to)?;
        }
        writeln!(to, "Connections dump:")?;
        let connections = self.connections.sorted();
        writeln!(to, "Connections Sets (1)/({}):", connections.len())?;
        for connection in connections {
            let session = connection.record.session.map_or(0, |(id, _)| id);
            writeln!(to, "\tip: {} sessionId: {session:#x}", Slashed(connection.peer))?;
        }
        Ok(())
    }

    fn config(&self, to: &mut String) -> fmt::Result {
        let Facts { address, limits, config, .. } = self.facts;
        let status = self.store;
        let directory = status.file.as_deref().and_then(std::path::Path::parent);
        let directory = directory.map_or_else(|| "<memory>".to_owned(), |path| path.display().to_string());
        let (shortest, longest) = config.session_bounds_ms();
        writeln!(to, "clientPort={}\nsecureClientPort=-1", address.port())?;
        writeln!(to, "dataDir={directory}\ndataDirSize={}", status.bytes)?;
        writeln!(to, "dataLogDir={directory}\ndataLogSize={}", status.bytes)?;
        // As in Java, 0 is no limit.
        let [most, of_address] =
            [limits.connections, limits.connections_per_address].map(Option::unwrap_or_default);
        writeln!(to, "tickTime={}\nmaxClientCnxns={of_address}", config.tick_ms)?;
        writeln!(to, "minSessionTimeout={shortest}\nmaxSessionTimeout={longest}")?;
        writeln!(to, "serverId=0\nmaxCnxns={most}\nfailover=none ({LOUD})")
    }

    fn environment(&self, to: &mut String) -> fmt::Result {
        writeln!(to, "Environment:\nzookeeper.version={}", self.version())?;
        writeln!(to, "os.name={}\nos.arch={}", std::env::consts::OS, std::env::consts::ARCH)?;
        writeln!(to, "process.id={}\nfailover=none ({LOUD})", std::process::id())
    }

    fn outstanding(&self) -> usize {
        self.connections.sorted().iter().map(|connection| connection.outbox.outstanding()).sum()
    }
}

/// Writes the part of a line that `stat` and `cons` have in common.
fn brief(connection: &Connection, to: &mut String) -> fmt::Result {
    let record = &connection.record;
    let readable = u8::from(record.session.is_some());
    write!(
        to,
        " {}[{readable}](queued={},recved={},sent={}",
        Slashed(connection.peer),
        connection.outbox.outstanding(),
        record.received,
        record.sent
    )
}

fn group(
    head: &dyn fmt::Display,
    lines: impl IntoIterator<Item = impl fmt::Display>,
    to: &mut String,
) -> fmt::Result {
    writeln!(to, "{head}")?;
    lines.into_iter().try_for_each(|line| writeln!(to, "\t{line}"))
}

/// An address in the format of Java.
struct Slashed(SocketAddr);

impl fmt::Display for Slashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

fn rounded(ms: f64) -> f64 {
    (ms * 10_000.0).round() / 10_000.0
}

fn count(count: usize) -> u128 {
    count as u128
}

fn millis(time: Option<SystemTime>) -> u128 {
    time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).map_or(0, |time| time.as_millis())
}

/// Returns the number of open file descriptors, where the system provides it.
fn open_files() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// Returns the limit of open file descriptors.
fn most_files() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
