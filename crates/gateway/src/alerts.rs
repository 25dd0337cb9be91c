//! Problems of the cluster that a gateway detects without Prometheus.
//!
//! The conditions are evaluated at each sample. A condition with the name of an alert of Prometheus means the same: the runbook in
//! docs/operations.md applies. Alerts of what only a node knows are missing here: see docs/console.md.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bellwether::client::{Snapshot, WrongClock};
use bellwether::{InstantText, Kind};
use serde::Serialize;
use utoipa::ToSchema;

/// A leader that is silent for this long is disconnected or hangs, and there is no other candidate. A leader beats every second,
/// and another candidate would replace it after three.
const SILENT: Duration = Duration::from_secs(120);

/// Jobs per slot of a long queue, as in the alert.
const QUEUED_PER_SLOT: u64 = 10;

/// Longest time for which a job should wait for a worker.
const WAITS_LONG: Duration = Duration::from_secs(15 * 60);

/// Most subjects that one summary names.
const NAMED: usize = 5;

const RUNBOOKS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/operations.md");

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// Jobs do not run.
    Critical,
    /// Look at it during working hours.
    Warning,
}

/// A condition that holds.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(super) struct Alert {
    /// Its name, which is the name of the alert in Prometheus, if there is one.
    #[schema(example = "BellwetherNoLeader")]
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    /// The problem in one sentence.
    summary: String,
    /// Since when this gateway has seen it.
    since: InstantText,
    /// The page that describes what to do.
    runbook: String,
}

/// The input of the conditions, at one moment.
#[derive(Debug, Clone)]
pub(super) struct Facts<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Queued jobs ten minutes ago, if that is known.
    pub(super) queued_before: Option<usize>,
    /// Znodes that anyone may change, if they should not be.
    pub(super) open_znodes: &'a [String],
    /// Jobs that died in the last ten minutes, as far as this gateway has seen them.
    pub(super) dead: Vec<(Kind, u32)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    name: &'static str,
    severity: Severity,
    /// For how long it must hold.
    hold: Duration,
    summary: String,
}

/// Returns the conditions that hold at this moment.
fn conditions(facts: &Facts<'_>) -> Vec<Condition> {
    let snapshot = facts.snapshot;
    let since = |then: SystemTime| snapshot.at.duration_since(then).unwrap_or_default();
    let mut found = Vec::new();
    let mut add = |name, severity, hold: u64, summary: String| {
        found.push(Condition { name, severity, hold: Duration::from_secs(hold), summary });
    };
    match &snapshot.leader {
        None => {
            add(
                "BellwetherNoLeader",
                Severity::Critical,
                60,
                "there has never been a leader: no job is assigned".into(),
            );
        }
        Some(leader) if !leader.standing => {
            let summary = format!("there is no leader since {} ended: no job is assigned", leader.node);
            add("BellwetherNoLeader", Severity::Critical, 60, summary);
        }
        Some(leader) => {
            if let Some(silent) = leader.beat_at.map(since).filter(|silent| *silent > SILENT) {
                let (node, minutes) = (&leader.node, silent.as_secs() / 60);
                let summary =
                    format!("the leader {node} has been silent for {minutes} min and assigns no jobs");
                add("BellwetherPausedTooLong", Severity::Warning, 0, summary);
            }
        }
    }
    let slots = snapshot.workers.iter().filter_map(|worker| worker.info.as_ref().ok());
    let slots = slots.map(|info| u64::from(info.slots)).sum::<u64>();
    let queued = snapshot.depths.queued;
    if queued as u64 > QUEUED_PER_SLOT * slots && facts.queued_before.is_some_and(|before| queued > before) {
        let summary = format!("the queue grows: {queued} jobs wait for {slots} slots");
        add("BellwetherBacklogGrowing", Severity::Warning, 0, summary);
    }
    if !facts.dead.is_empty() {
        let kinds = facts.dead.iter().map(|(kind, jobs)| format!("{jobs} of kind {kind}"));
        let summary = format!("jobs died in the last ten minutes: {}", list(kinds));
        add("BellwetherJobsDead", Severity::Warning, 0, summary);
    }
    if snapshot.orphaned > 0 {
        let summary =
            format!("the leader cannot take back {} jobs of lost workers: they are stuck", snapshot.orphaned);
        add("BellwetherOrphans", Severity::Critical, 120, summary);
    }
    if snapshot.depths.quarantined > 0 {
        let summary = format!("{} jobs cannot be read and wait in quarantine", snapshot.depths.quarantined);
        add("BellwetherUnreadable", Severity::Warning, 0, summary);
    }
    if !snapshot.wrong_clocks.is_empty() {
        let hosts = WrongClock::by_host(&snapshot.wrong_clocks).into_iter().map(ToString::to_string);
        let summary = format!("hosts whose clock differs from ZooKeeper's: {}", list(hosts));
        add("BellwetherClockWrong", Severity::Warning, 120, summary);
    }
    let served = |kind: &Kind| {
        let view = snapshot.kinds.iter().find(|view| view.kind == *kind);
        view.is_some_and(|view| !view.workers.is_empty())
    };
    let mut unserved = snapshot.queued.seen.keys().filter(|kind| !served(kind)).peekable();
    if unserved.peek().is_some() {
        let summary =
            format!("jobs wait for a kind that no worker serves: {}", list(unserved.map(Kind::to_string)));
        add("KindWithoutWorker", Severity::Warning, 0, summary);
    }
    if let Some(oldest) = snapshot.oldest_queued.as_ref().filter(|oldest| since(oldest.since) > WAITS_LONG) {
        let summary =
            format!("job {} has waited {} min for a worker", oldest.id, since(oldest.since).as_secs() / 60);
        add("JobWaitsLong", Severity::Warning, 0, summary);
    }
    if !facts.open_znodes.is_empty() {
        let paths = list(facts.open_znodes.iter().cloned());
        let summary = format!("anyone who reaches ZooKeeper may change the namespace: {paths}");
        add("NamespaceOpen", Severity::Warning, 0, summary);
    }
    found
}

/// The first texts, and how many more there are.
fn list(mut texts: impl Iterator<Item = String>) -> String {
    let named = texts.by_ref().take(NAMED).collect::<Vec<_>>().join(", ");
    match texts.count() {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The section of the runbook.
fn runbook(name: &str) -> String {
    let section = match name {
        "NamespaceOpen" => "closing-a-namespace".to_owned(),
        "KindWithoutWorker" | "JobWaitsLong" => "why-does-this-job-not-run".to_owned(),
        name => name.to_lowercase(),
    };
    format!("{RUNBOOKS}#{section}")
}

/// Since when each condition holds.
#[derive(Debug, Default)]
pub(super) struct Alerts(BTreeMap<&'static str, SystemTime>);

impl Alerts {
    /// Evaluates the conditions and returns those that have held long enough, the critical ones first.
    pub(super) fn evaluate(&mut self, facts: &Facts<'_>) -> Vec<Alert> {
        let (now, holding) = (facts.snapshot.at, conditions(facts));
        self.0.retain(|name, _| holding.iter().any(|condition| condition.name == *name));
        let mut firing = Vec::new();
        for Condition { name, severity, hold, summary } in holding {
            let since = *self.0.entry(name).or_insert(now);
            if now.duration_since(since).unwrap_or_default() >= hold {
                firing.push(Alert {
                    name,
                    severity,
                    summary,
                    since: InstantText(since),
                    runbook: runbook(name),
                });
            }
        }
        firing.sort_by_key(|alert| alert.severity);
        firing
    }
}

/// The alert of a gateway that ZooKeeper does not serve.
pub(super) fn cut_off(since: SystemTime) -> Alert {
    let (name, since) = ("BellwetherCutOff", InstantText(since));
    let summary = "ZooKeeper does not serve this gateway: what it shows is old".to_owned();
    Alert { name, severity: Severity::Critical, summary, since, runbook: runbook(name) }
}

#[cfg(test)]
mod tests {
    use bellwether::NodeId;
    use bellwether::testing::views;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + 1_000_000 * SECOND + seconds * SECOND
    }

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    /// A cluster with a leader that beats, and nothing wrong.
    fn healthy(seconds: u32) -> Snapshot {
        let mut snapshot = views::snapshot(at(seconds));
        let mut leader = views::leader(node("node-1"), 1, 7, at(0));
        leader.beat_at = Some(at(seconds));
        snapshot.leader = Some(leader);
        snapshot
    }

    fn facts(snapshot: &Snapshot) -> Facts<'_> {
        Facts { snapshot, queued_before: None, open_znodes: &[], dead: Vec::new() }
    }

    fn names(facts: &Facts<'_>) -> Vec<&'static str> {
        conditions(facts).into_iter().map(|condition| condition.name).collect()
    }

    #[test]
    fn a_healthy_cluster_has_no_alerts() {
        assert_eq!(names(&facts(&healthy(0))), Vec::<&str>::new());
    }

    #[test]
    fn each_condition_is_found_alone() {
        let kind = |name: &str| Kind::new(name).unwrap();
        let changed = |change: fn(&mut Snapshot)| {
            let mut snapshot = healthy(10_000);
            change(&mut snapshot);
            names(&facts(&snapshot))
        };
        assert_eq!(changed(|snapshot| snapshot.leader = None), ["BellwetherNoLeader"]);
        assert_eq!(
            changed(|snapshot| snapshot.leader.as_mut().unwrap().standing = false),
            ["BellwetherNoLeader"]
        );
        let silent =
            |snapshot: &mut Snapshot| snapshot.leader.as_mut().unwrap().beat_at = Some(at(10_000 - 121));
        assert_eq!(changed(silent), ["BellwetherPausedTooLong"]);
        let beats =
            |snapshot: &mut Snapshot| snapshot.leader.as_mut().unwrap().beat_at = Some(at(10_000 - 119));
        assert_eq!(changed(beats), Vec::<&str>::new());
        assert_eq!(changed(|snapshot| snapshot.orphaned = 1), ["BellwetherOrphans"]);
        assert_eq!(changed(|snapshot| snapshot.depths.quarantined = 1), ["BellwetherUnreadable"]);
        let skewed = |snapshot: &mut Snapshot| snapshot.wrong_clocks = vec![views::wrong_clock("db-1", 6)];
        assert_eq!(changed(skewed), ["BellwetherClockWrong"]);
        let waits = |snapshot: &mut Snapshot, since| {
            snapshot.oldest_queued = Some(views::oldest_queued("a".parse().unwrap(), since));
        };
        let mut snapshot = healthy(10_000);
        waits(&mut snapshot, at(10_000 - 901));
        assert_eq!(names(&facts(&snapshot)), ["JobWaitsLong"]);
        waits(&mut snapshot, at(10_000 - 899));
        assert_eq!(names(&facts(&snapshot)), Vec::<&str>::new());

        let calm = healthy(0);
        assert_eq!(names(&Facts { dead: vec![(kind("sum"), 2)], ..facts(&calm) }), ["BellwetherJobsDead"]);
        let open = ["/bellwether".to_owned()];
        assert_eq!(names(&Facts { open_znodes: &open, ..facts(&calm) }), ["NamespaceOpen"]);
    }

    #[test]
    fn a_kind_without_a_worker_is_named_only_if_a_job_waits_for_it() {
        let kind = |name: &str| Kind::new(name).unwrap();
        let mut snapshot = healthy(0);
        let mut served = views::kind(kind("sum"));
        served.workers.push(bellwether::WorkerId::new(uuid::Uuid::from_u128(1)));
        snapshot.kinds = vec![served, views::kind(kind("idle"))];
        snapshot.queued.seen = [(kind("sum"), 3)].into();
        assert_eq!(names(&facts(&snapshot)), Vec::<&str>::new());
        snapshot.queued.seen = [(kind("sum"), 3), (kind("mail"), 1)].into();
        let found = conditions(&facts(&snapshot));
        assert_eq!(found[0].summary, "jobs wait for a kind that no worker serves: mail");
    }

    #[test]
    fn a_host_with_a_wrong_clock_is_named_once() {
        let mut snapshot = healthy(0);
        snapshot.wrong_clocks = [("db-1", -7), ("db-1", -8), ("db-2", 31)]
            .map(|(host, ahead)| views::wrong_clock(host, ahead))
            .into();
        let found = conditions(&facts(&snapshot));
        assert_eq!(
            found[0].summary,
            "hosts whose clock differs from ZooKeeper's: db-1 is 8 s behind, db-2 is 31 s ahead"
        );
    }

    #[test]
    fn a_backlog_must_be_long_and_growing() {
        let mut snapshot = healthy(0);
        snapshot.workers =
            vec![views::worker(bellwether::WorkerId::new(uuid::Uuid::from_u128(1)), node("a"), at(0))];
        let backlog =
            |snapshot: &Snapshot, before| names(&Facts { queued_before: before, ..facts(snapshot) });
        snapshot.depths.queued = 11;
        assert_eq!(backlog(&snapshot, Some(10)), ["BellwetherBacklogGrowing"]);
        assert_eq!(backlog(&snapshot, Some(11)), Vec::<&str>::new());
        assert_eq!(backlog(&snapshot, None), Vec::<&str>::new());
        snapshot.depths.queued = 10;
        assert_eq!(backlog(&snapshot, Some(1)), Vec::<&str>::new());
    }

    #[test]
    fn an_alert_fires_once_its_condition_has_held_without_a_break() {
        let mut alerts = Alerts::default();
        let fires = |alerts: &mut Alerts, seconds, led| {
            let mut snapshot = healthy(seconds);
            snapshot.leader.as_mut().unwrap().standing = led;
            alerts.evaluate(&facts(&snapshot)).len()
        };
        assert_eq!(fires(&mut alerts, 0, false), 0);
        assert_eq!(fires(&mut alerts, 50, false), 0);
        assert_eq!(fires(&mut alerts, 59, true), 0);
        assert_eq!(fires(&mut alerts, 60, false), 0, "it was led in between");
        assert_eq!(fires(&mut alerts, 120, false), 1);
    }

    #[test]
    fn critical_alerts_come_first() {
        let mut snapshot = healthy(0);
        snapshot.depths.quarantined = 1;
        snapshot.orphaned = 1;
        let mut alerts = Alerts::default();
        alerts.evaluate(&facts(&snapshot));
        snapshot.at = at(120);
        snapshot.leader.as_mut().unwrap().beat_at = Some(at(120));
        let found = alerts.evaluate(&facts(&snapshot));
        assert_eq!(
            found.iter().map(|alert| alert.name).collect::<Vec<_>>(),
            ["BellwetherOrphans", "BellwetherUnreadable"]
        );
    }

    /// Prometheus and the gateway use a name for the same condition with the same severity, and each runbook exists.
    #[test]
    fn names_and_runbooks_are_those_of_the_alerts_of_prometheus() {
        let rules = include_str!("../../../dashboards/prometheus/alerts.yml");
        let page = include_str!("../../../docs/operations.md");
        // Without the line breaks of the formatter.
        let source = include_str!("alerts.rs").split_whitespace().collect::<Vec<_>>().join(" ");
        let source = source.replace("add( \"", "add(\"");
        let names = source.split("add(\"").skip(1).map(|rest| rest.split_once('"').unwrap());
        let names = names.filter(|(name, _)| name.starts_with(char::is_uppercase)).collect::<Vec<_>>();
        assert!(names.len() > 10);
        for (name, rest) in names {
            let section = runbook(name).split_once('#').unwrap().1.replace('-', " ");
            let headings =
                page.lines().filter_map(|line| line.strip_prefix("### ").or(line.strip_prefix("## ")));
            let found =
                headings.map(|heading| heading.to_lowercase().replace('?', "")).any(|there| there == section);
            assert!(found, "{name} has no runbook {section}");
            if name.starts_with("Bellwether") {
                let (_, rule) =
                    rules.split_once(&format!("alert: {name}\n")).unwrap_or_else(|| panic!("{name}"));
                let severity = if rest.starts_with(", Severity::Critical") { "critical" } else { "warning" };
                let stated =
                    rule.split_once("severity: ").unwrap().1.lines().next().unwrap().trim_matches('"');
                assert_eq!(stated, severity, "{name}");
            }
        }
    }
}
