//! The machines whose wall clock is wrong, as their processes report it.

use std::fmt;

use bellwether_core::clock_report::{ClockReport, Process};
use bellwether_core::name::NodeId;
use bellwether_core::{path, wire};
use bellwether_zk::ReadResult;

use super::cluster::get_all;
use super::runtime::Zk;

/// The most reports that are read: more than nodes and clients are a mistake, or hostile.
const MAX_REPORTS: usize = 1_000;

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

/// Reads the reports, sorted by host. Foreign znodes are ignored.
pub(super) async fn wrong_clocks(zk: Zk) -> ReadResult<Vec<WrongClock>> {
    // Absent in a namespace that no node of this version has opened yet.
    let mut names = zk.children(path::CLOCKS.to_owned()).await?.unwrap_or_default();
    names.truncate(MAX_REPORTS);
    let paths = names.iter().map(|name| format!("{}/{name}", path::CLOCKS));
    let reports = get_all(&zk, paths).await?.into_iter().flatten().filter_map(|found| {
        let ClockReport { process: Process { node, host }, ahead } = wire::decode(&found.data).ok()?;
        Some(WrongClock { host, node, session: found.owner, ahead })
    });
    let mut clocks = reports.collect::<Vec<_>>();
    clocks.sort();
    Ok(clocks)
}

#[cfg(test)]
mod tests {
    use bellwether_core::txn;

    use super::*;
    use crate::client::SnapshotOptions;
    use crate::client::in_memory::World;

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
        let [found] = &taken()[..] else { panic!("one report") };
        assert_eq!((found.host.as_str(), found.ahead), ("db-1", -12));
        assert_eq!(found.node.as_ref().map(NodeId::as_str), Some("n1"));
        world.apply(&[txn::withdraw_clock_report(5)]);
        world.tree().delete("/clocks/foreign");
        assert_eq!(taken(), []);
    }
}
