//! The machines whose wall clock is wrong, as their processes report it.

use std::fmt;

use bellwether_core::clock_report::{ClockReport, Process};
use bellwether_core::name::NodeId;
use bellwether_core::{path, wire};
use bellwether_zk::ReadResult;

use super::runtime::Zk;

/// Maximum number of reports that are read. Every session can write one, and a hostile one any number.
const MAX_REPORTS: usize = 1_000;

/// Bytes of reports after which no further ones are read. All reports that processes write have less: at most 450 bytes each.
const MAX_BYTES: usize = 1024 * 1024;

/// Reports of one request. A hostile writer can make each of them as long as a znode.
const READ_AT_ONCE: usize = 25;

/// A process whose wall clock differs from ZooKeeper's by more than 5 s. The process compares them every 30 s, and
/// withdraws its report when they agree, or with the end of its session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WrongClock {
    /// The host that it runs on.
    pub host: String,
    /// The node; `None` for a client, for example a gateway.
    pub node: Option<NodeId>,
    /// Its ZooKeeper session.
    pub session: i64,
    /// By how many seconds its clock is ahead of ZooKeeper's; negative if it is behind.
    pub ahead: i64,
}

impl WrongClock {
    /// Returns one report per host, the one with the largest difference: the processes of a machine have the same clock.
    #[must_use]
    pub fn by_host(clocks: &[Self]) -> Vec<&Self> {
        let mut hosts = clocks.iter().collect::<Vec<_>>();
        hosts.sort_by(|a, b| (&a.host, b.ahead.unsigned_abs()).cmp(&(&b.host, a.ahead.unsigned_abs())));
        hosts.dedup_by(|a, b| a.host == b.host);
        hosts
    }
}

/// The host and its difference: `db-1 is 12 s behind`.
impl fmt::Display for WrongClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.ahead < 0 { "behind" } else { "ahead" };
        write!(f, "{} is {} s {side}", self.host, self.ahead.unsigned_abs())
    }
}

/// Reads the reports, sorted by host. Other znodes and reports that cannot be decoded are ignored.
///
/// ZooKeeper removes the report of a process with its session. The number of znodes that other clients create is not bounded, so the
/// reads are: beyond [`MAX_REPORTS`] or [`MAX_BYTES`], further reports are left out.
pub(super) async fn wrong_clocks(zk: Zk) -> ReadResult<Vec<WrongClock>> {
    // Absent in a namespace that no node of this version has opened yet.
    let mut names = zk.children(path::CLOCKS.to_owned()).await?.unwrap_or_default();
    names.retain(|name| is_session(name));
    names.sort_unstable();
    names.truncate(MAX_REPORTS);
    let (mut clocks, mut bytes) = (Vec::new(), 0);
    for names in names.chunks(READ_AT_ONCE) {
        let paths = names.iter().map(|name| format!("{}/{name}", path::CLOCKS));
        for found in zk.get_many(paths.collect()).await?.into_iter().flatten() {
            bytes += found.data.len();
            let Ok(ClockReport { process: Process { node, host }, ahead }) = wire::decode(&found.data) else {
                continue;
            };
            clocks.push(WrongClock { host, node, session: found.owner, ahead });
        }
        if bytes > MAX_BYTES {
            break;
        }
    }
    clocks.sort();
    Ok(clocks)
}

/// Whether it is the name of a report, which is its session.
fn is_session(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bellwether_core::txn;

    use super::*;
    use crate::client::SnapshotOptions;
    use crate::client::in_memory::{Request, World};

    fn clock(host: &str, session: i64, ahead: i64) -> WrongClock {
        WrongClock { host: host.to_owned(), node: None, session, ahead }
    }

    #[test]
    fn a_host_is_named_once_with_its_largest_difference() {
        let clocks = [clock("a", 1, 7), clock("a", 2, -9), clock("b", 3, 6)];
        let shown = WrongClock::by_host(&clocks).into_iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown, ["a is 9 s behind", "b is 6 s ahead"]);
    }

    #[test]
    fn a_snapshot_has_the_reports_and_ignores_foreign_znodes() {
        let world = World::new();
        let client = world.client();
        let taken = || world.run(client.snapshot(SnapshotOptions::default())).unwrap().wrong_clocks;
        assert_eq!(taken(), []);
        let process = Process { node: Some(NodeId::new("n1").unwrap()), host: "db-1".to_owned() };
        world.apply(&[txn::report_clock(5, &ClockReport { process, ahead: -12 })]);
        world.tree().put("/clocks/foreign", *b"?");
        world.tree().put(&path::clock_report(4), *b"?");
        let [found] = &taken()[..] else { panic!("one report") };
        assert_eq!((found.host.as_str(), found.ahead), ("db-1", -12));
        assert_eq!(found.node.as_ref().map(NodeId::as_str), Some("n1"));
        world.apply(&[txn::withdraw_clock_report(5)]);
        world.tree().delete("/clocks/foreign");
        assert_eq!(taken(), []);
    }

    #[test]
    fn the_name_of_a_report_has_sixteen_hexadecimal_digits() {
        assert!(is_session("0000000000abcdef"));
        for name in ["abcdef", "0000000000abcdeg", "0000000000ABCDEF", "00000000000abcdef"] {
            assert!(!is_session(name), "{name}");
        }
    }

    /// Takes a snapshot. Returns its reports, and how many znodes below `/clocks` it read.
    fn read(world: &Arc<World>) -> (Vec<WrongClock>, usize) {
        let client = world.client();
        world.requests();
        let clocks = world.run(client.snapshot(SnapshotOptions::default())).unwrap().wrong_clocks;
        let is_report = |path: &&String| path.starts_with("/clocks/");
        let requests = world.requests();
        let paths = requests
            .iter()
            .flat_map(|request| if let Request::Get(paths) = request { &paths[..] } else { &[] });
        (clocks, paths.filter(is_report).count())
    }

    #[test]
    fn a_hostile_number_of_reports_is_not_read() {
        let world = World::new();
        let process = Process { node: None, host: "db-1".to_owned() };
        world.apply(&[txn::report_clock(5, &ClockReport { process, ahead: -12 })]);
        for n in 0..100_000 {
            world.tree().put(&format!("/clocks/foreign-{n}"), *b"?");
        }
        let (clocks, read) = read(&world);
        assert_eq!((clocks.len(), read), (1, 1), "only the names of sessions are read");
        for session in 6..100_000 {
            // As long as the longest report of a process.
            world.tree().put(&path::clock_report(session), vec![b'?'; 450]);
        }
        let (clocks, read) = self::read(&world);
        assert_eq!(
            (clocks.len(), read),
            (1, MAX_REPORTS),
            "a report that cannot be decoded does not stop the others"
        );
    }

    #[test]
    fn reports_that_are_too_long_end_the_reading() {
        let world = World::new();
        for session in 0..100 {
            world.tree().put(&path::clock_report(session), vec![0; MAX_BYTES / READ_AT_ONCE + 1]);
        }
        assert_eq!(read(&world), (vec![], READ_AT_ONCE));
    }
}
