//! The result of a run: the checker's verdict and the figures.

mod figures;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bellwether_core::job::{JobState, Verdict};
use bellwether_core::name::JobId;
use bellwether_core::time::as_millis;
use bellwether_sim::history::{Bounds, Checker, RULES, Violation};
use serde::Serialize;

use self::figures::{Figures, Measured};
use crate::run::{Deal, Outcome, Plan};
use crate::servers::TICK;

/// The bounds of a run with this session timeout of nodes.
pub(crate) fn bounds(session_timeout: Duration) -> Bounds {
    Bounds { session_timeout, tick: TICK }
}

/// Time in which processes catch up after a stall of the machine, in milliseconds. Violations within it are attributed
/// to the stall.
const MACHINE: u64 = 1_000;

/// The scorecard.
#[derive(Debug, Serialize)]
pub(crate) struct Score {
    pub(crate) servers: String,
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    /// The session timeout of nodes.
    pub(crate) session_ms: u64,
    /// Whether candidates replace a leader whose beats have stopped.
    pub(crate) beats: bool,
    pub(crate) calls: u64,
    pub(crate) acknowledged: usize,
    /// Jobs whose submissions were answered with *unknown* and never acknowledged: existing, and absent.
    pub(crate) unknown: [usize; 2],
    pub(crate) conflicts: u64,
    pub(crate) lost: usize,
    pub(crate) ends: BTreeMap<&'static str, usize>,
    /// Created, stopped, done, removed.
    pub(crate) groups: [u64; 4],
    /// Joins and finished handlers that succeeded.
    pub(crate) joins: [u64; 2],
    /// Members that were retried and counted again.
    pub(crate) rejoined: u64,
    pub(crate) expired: u64,
    pub(crate) pauses: u64,
    pub(crate) runs: u64,
    pub(crate) extra_runs_explained: u64,
    pub(crate) extra_runs_unexplained: u64,
    pub(crate) transactions: u64,
    pub(crate) refused: u64,
    pub(crate) never_committed: usize,
    pub(crate) stale_writes_fenced: u64,
    pub(crate) stale_writes_committed: u64,
    pub(crate) zombie_reports_refused: u64,
    /// Overlaps of two leaders within a session timeout after an operator took the leadership from one of them.
    pub(crate) overlaps_by_hand: usize,
    /// Violations of L2 and L5 right after a stall of the machine.
    pub(crate) late_with_machine: usize,
    pub(crate) epochs: u64,
    pub(crate) workers_killed_by_jobs: u32,
    /// How often the servers were up but gave no sessions, not even to a client of the bare protocol, until they were
    /// restarted.
    pub(crate) servers_stuck: u32,
    pub(crate) faults: Vec<Recovery>,
    pub(crate) faults_missed: u32,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) invariants: Vec<Verdicts>,
    /// Stalls of the machine: how often no thread ran for more than 50 ms, and the longest stall in milliseconds.
    pub(crate) stalls: (usize, u64),
    pub(crate) violations: Vec<String>,
}

/// How often a fault was injected, and its recovery times, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Recovery {
    fault: String,
    times: usize,
    alone: usize,
    p50: Option<u64>,
    max: Option<u64>,
}

/// A bound of the invariants and the times measured after faults that were active alone, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Bound {
    id: &'static str,
    what: &'static str,
    times: usize,
    p50: Option<u64>,
    p95: Option<u64>,
    max: Option<u64>,
    bound: u64,
}

/// The verdict on an invariant.
#[derive(Debug, Serialize)]
pub(crate) struct Verdicts {
    id: &'static str,
    says: &'static str,
    violations: usize,
}

impl Score {
    /// Checks a run.
    pub(crate) fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let mut checker = Checker::new(bounds(plan.session));
        let mut found: Vec<Violation> = Vec::new();
        let mut figures = Figures::default();
        for event in &outcome.history {
            found.extend(checker.observe(event));
            figures.note(event.at, &event.what);
        }
        let truth = checker.truth();
        let record = |job: &JobId| truth.record(job);
        // A removed record belonged to a terminal job; otherwise a rule reports it.
        let removed = |job: &JobId| truth.jobs().get(job).is_some_and(|job| job.removed);
        let known = |job: &JobId| record(job).is_some() || removed(job);
        let lost = figures.acknowledged.iter().filter(|job| !known(job)).count();
        let doubtful: Vec<_> = figures.unknown.difference(&figures.acknowledged).collect();
        let there = doubtful.iter().filter(|job| known(job)).count();
        let mut ends = BTreeMap::new();
        for (job, _) in truth.jobs().all() {
            let end = match record(job).map(|znode| znode.record().map(|record| &record.state)) {
                None if removed(job) => "removed",
                None => continue,
                Some(None) => "unreadable",
                Some(Some(JobState::Open { .. })) => "open",
                Some(Some(JobState::Terminal { verdict, .. })) => match verdict {
                    Verdict::Succeeded(_) => "succeeded",
                    Verdict::Cancelled => "cancelled",
                    Verdict::Dead => "dead",
                },
            };
            *ends.entry(end).or_default() += 1;
        }
        found.extend(checker.finish(outcome.end));
        let by_hand = |violation: &Violation| {
            let during =
                |deal: &Deal| (deal.began..=deal.from + as_millis(plan.session)).contains(&violation.at);
            let mut by_hand = outcome.deals.iter().filter(|deal| deal.fault.takes_leadership_by_hand());
            violation.id == "S5" && by_hand.any(during)
        };
        let overlaps_by_hand = found.extract_if(.., |violation| by_hand(violation)).count();
        let stood_still = |violation: &Violation| {
            let during = |(at, late): &(u64, u64)| at + late + MACHINE >= violation.at && *at <= violation.at;
            matches!(violation.id, "L2" | "L5") && outcome.stalls.iter().any(during)
        };
        let late_with_machine = found.extract_if(.., |violation| stood_still(violation)).count();
        let measured = figures.bounds(outcome, plan.session);
        let mut violations: Vec<String> = found.iter().map(ToString::to_string).collect();
        violations.extend(outcome.problems.iter().chain(&figures.groups.violations).cloned());
        let mut bounds = Vec::new();
        for Measured { id, what, bound, times } in measured {
            let late = times.iter().filter(|(took, slack)| *took > bound + slack);
            violations.extend(late.map(|(took, _)| format!("{id}: {what}: {took} ms, bound {bound} ms")));
            let took: Vec<_> = times.iter().map(|(took, _)| *took).collect();
            let [p50, p95, max] = percentiles(took);
            bounds.push(Bound { id, what, times: times.len(), p50, p95, max, bound });
        }
        let count = |id: &str| found.iter().filter(|violation| violation.id == id).count();
        let mut invariants: Vec<_> = RULES
            .iter()
            .map(|rule| Verdicts { id: rule.id, says: rule.says, violations: count(rule.id) })
            .collect();
        let whole = "the history is complete: every transaction follows from the previous ones";
        invariants.insert(0, Verdicts { id: "H", says: whole, violations: count("H") });
        let unexplained = count("S10") as u64;
        Self {
            servers: match plan.kind {
                crate::servers::Kind::Ensemble => "Apache ZooKeeper, ensemble of 3".to_owned(),
                crate::servers::Kind::Keeper => "bellwether keeper".to_owned(),
            },
            seed: plan.seed,
            seconds: plan.lasts.as_secs(),
            session_ms: as_millis(plan.session),
            beats: plan.beats,
            calls: figures.calls,
            acknowledged: figures.acknowledged.len(),
            unknown: [there, doubtful.len() - there],
            conflicts: figures.conflicts,
            lost,
            ends,
            groups: [
                figures.groups.made,
                figures.groups.stopped,
                figures.groups.done,
                figures.groups.removed,
            ],
            joins: [figures.groups.joins, figures.groups.finishes],
            rejoined: figures.groups.rejoined,
            expired: figures.expired,
            pauses: figures.pauses,
            runs: figures.runs,
            extra_runs_explained: figures.extra.saturating_sub(unexplained),
            extra_runs_unexplained: unexplained,
            transactions: figures.transactions,
            refused: figures.refused,
            never_committed: outcome.dropped,
            stale_writes_fenced: outcome.fenced,
            stale_writes_committed: count("S3") as u64,
            zombie_reports_refused: outcome.zombies,
            overlaps_by_hand,
            late_with_machine,
            epochs: figures.claims.len() as u64,
            workers_killed_by_jobs: outcome.poisoned,
            servers_stuck: outcome.servers_stuck,
            faults: recoveries(&outcome.deals),
            faults_missed: outcome.missed,
            bounds,
            invariants,
            stalls: (
                outcome.stalls.len(),
                outcome.stalls.iter().map(|(_, late)| *late).max().unwrap_or_default(),
            ),
            violations,
        }
    }

    /// Formats the scorecard as Markdown tables.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a String does not fail");
        line("| jobs and runs | |\n| --- | ---: |".to_owned());
        let [there, absent] = self.unknown;
        let ends: Vec<_> = self.ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        let ([made, stopped, done, removed], [joins, finishes]) = (self.groups, self.joins);
        let rows = [
            ("servers", self.servers.clone()),
            ("seed, duration", format!("{}, {} s", self.seed, self.seconds)),
            (
                "session timeout of nodes",
                format!("{} ms{}", self.session_ms, if self.beats { "" } else { ", no beats" }),
            ),
            ("calls of clients", self.calls.to_string()),
            ("jobs acknowledged", self.acknowledged.to_string()),
            ("**lost**", format!("**{}**", self.lost)),
            ("submissions without an answer, later present / absent", format!("{there} / {absent}")),
            ("conflicts reported", self.conflicts.to_string()),
            ("jobs by end state", ends.join(", ")),
            ("jobs ended by their expiry", self.expired.to_string()),
            ("pauses of a kind", self.pauses.to_string()),
            ("groups created / stopped / done / removed", format!("{made} / {stopped} / {done} / {removed}")),
            ("members retried and counted again", self.rejoined.to_string()),
            ("joins / finished handlers that succeeded", format!("{joins} / {finishes}")),
            ("runs", self.runs.to_string()),
            ("extra runs, explained by a closed attempt or a retry", self.extra_runs_explained.to_string()),
            ("**extra runs, unexplained**", format!("**{}**", self.extra_runs_unexplained)),
            ("transactions committed / rejected", format!("{} / {}", self.transactions, self.refused)),
            ("transactions logged and never committed", self.never_committed.to_string()),
            ("stale leaders' writes attempted and fenced", self.stale_writes_fenced.to_string()),
            ("**stale leaders' writes committed**", format!("**{}**", self.stale_writes_committed)),
            ("zombies' reports rejected", self.zombie_reports_refused.to_string()),
            (
                "overlapping leaders after a candidate or `/epoch` was deleted manually",
                self.overlaps_by_hand.to_string(),
            ),
            (
                "L2 and L5: exceeded within a second after a stall of the machine",
                self.late_with_machine.to_string(),
            ),
            ("epochs claimed", self.epochs.to_string()),
            ("workers killed by their jobs", self.workers_killed_by_jobs.to_string()),
            ("restarts of servers that gave no sessions", self.servers_stuck.to_string()),
            ("stalls of the machine over 50 ms, longest", format!("{}, {} ms", self.stalls.0, self.stalls.1)),
            ("**violations**", format!("**{}**", self.violations.len())),
        ];
        for (what, value) in rows {
            line(format!("| {what} | {value} |"));
        }
        line(
            "\n| fault | times | alone | recovery, p50 ms | max ms |\n| --- | ---: | ---: | ---: | ---: |"
                .to_owned(),
        );
        let shown = |value: Option<u64>| value.map_or("–".to_owned(), |value| value.to_string());
        for row in &self.faults {
            let Recovery { fault, times, alone, p50, max } = row;
            line(format!("| {fault} | {times} | {alone} | {} | {} |", shown(*p50), shown(*max)));
        }
        line(
            "\n| bound | | times | p50 ms | p95 ms | max ms | bound ms |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |"
                .to_owned(),
        );
        for row in &self.bounds {
            let Bound { id, what, times, p50, p95, max, bound } = row;
            let [p50, p95, max] = [p50, p95, max].map(|value| shown(*value));
            line(format!("| {id} | {what} | {times} | {p50} | {p95} | {max} | {bound} |"));
        }
        line("\n| invariant | what the checker verifies | violations |\n| --- | --- | ---: |".to_owned());
        for row in &self.invariants {
            line(format!("| {} | {} | {} |", row.id, row.says, row.violations));
        }
        text
    }
}

fn recoveries(deals: &[Deal]) -> Vec<Recovery> {
    let mut by_fault = BTreeMap::<String, Vec<&Deal>>::new();
    for deal in deals {
        by_fault.entry(deal.fault.to_string()).or_default().push(deal);
    }
    by_fault
        .into_iter()
        .map(|(fault, deals)| {
            let alone: Vec<_> = deals.iter().filter(|deal| deal.alone).collect();
            let took: Vec<_> =
                alone.iter().filter_map(|deal| Some(deal.well?.saturating_sub(deal.from))).collect();
            let [p50, _, max] = percentiles(took);
            Recovery { fault, times: deals.len(), alone: alone.len(), p50, max }
        })
        .collect()
}

/// Returns the median, the 95th percentile and the maximum, by the nearest rank.
fn percentiles(mut values: Vec<u64>) -> [Option<u64>; 3] {
    values.sort_unstable();
    [50, 95, 100].map(|percent| {
        let rank = (values.len() * percent).div_ceil(100);
        values.get(rank.checked_sub(1)?).copied()
    })
}
