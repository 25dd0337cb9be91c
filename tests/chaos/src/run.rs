//! A run: faults from a deck that the seed shuffles, one by one or several at the same time; then a phase without
//! faults, and the verdict.
//!
//! After each deal the run waits for recovery: there is a leader, no inbox is orphaned, the jobs of the fault are
//! terminal, and a newly submitted job is terminal. The time until then is the fault's recovery time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwether_core::name::JobId;
use bellwether_sim::history::{Event, EventKind};
use fastrand::Rng;

use crate::client::Wish;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::gather::gather;
use crate::inject::{self, Injected};
use crate::record;
use crate::servers::Kind;
use crate::stage::{CHROOT, Stage};
use crate::txn::Frame;
use crate::wait::until;
use crate::work::WORK;

/// Longer than any recovery should take.
pub(crate) const RECOVERS_WITHIN: Duration = Duration::from_secs(60);
/// Time limit for all open jobs to end after the last fault.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);
/// Consecutive checks that must find nothing open.
const LOOKS: u32 = 5;
/// One in this many deals has several faults.
const STORM_EVERY: u32 = 4;
const STORM: usize = 3;

/// The parameters of a run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// The session timeout of nodes.
    pub(crate) session: Duration,
    /// Whether candidates replace a leader whose beats have stopped.
    pub(crate) beats: bool,
    pub(crate) seed: u64,
    pub(crate) lasts: Duration,
    pub(crate) rate: u32,
    /// The faults to inject.
    pub(crate) faults: Vec<Fault>,
    pub(crate) dir: PathBuf,
}

/// An injected fault and its recovery.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) fault: Fault,
    pub(crate) began: u64,
    /// Start of the recovery time.
    pub(crate) from: u64,
    /// End of the recovery; `None` if it took too long.
    pub(crate) well: Option<u64>,
    /// Whether no other fault was active.
    pub(crate) alone: bool,
}

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Ordered by time, up to the end of the run.
    pub(crate) history: Vec<Event>,
    pub(crate) end: u64,
    pub(crate) deals: Vec<Deal>,
    /// Faults that were not possible when they were dealt.
    pub(crate) missed: u32,
    pub(crate) stalls: Vec<(u64, u64)>,
    /// Transactions that only a minority of servers logged.
    pub(crate) dropped: usize,
    /// Leaders' multis that the check of the epoch rejected.
    pub(crate) fenced: u64,
    /// Workers' reports that were rejected because of the record's version or a missing assignment.
    pub(crate) zombies: u64,
    pub(crate) poisoned: u32,
    pub(crate) servers_stuck: u32,
    pub(crate) problems: Vec<String>,
}

pub(crate) async fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let mut rng = Rng::with_seed(plan.seed);
    let frame = Frame::begin(CHROOT);
    let stalls = Stalls::watch()?;
    let mut stage = Stage::set(plan, &mut rng).await?;
    let faults = plan.faults.clone();
    let (deck, deals, problems) = (Vec::new(), Vec::new(), Vec::new());
    let mut run = Run { faults, deck, deals, missed: 0, canaries: 0, problems };
    let start = Instant::now();
    let mut step = 0_u32;
    while start.elapsed() < plan.lasts {
        step += 1;
        let faults = run.deal(if step.is_multiple_of(STORM_EVERY) { STORM } else { 1 }, &mut rng);
        let names: Vec<_> = faults.iter().map(Fault::to_string).collect();
        let elapsed = start.elapsed().as_secs();
        let took = run.play(faults, &mut stage, &mut rng).await?;
        eprintln!("{elapsed:>4} s  {:<60} {took}", names.join(" + "));
    }
    let (end, client_end) = peace(&mut stage, &mut run.problems, &mut rng).await?;
    let Stage { witness, servers, mut nodes, killed_clients, dir, poisoned, servers_stuck, operator, .. } =
        stage;
    operator.caller.client.close().await;
    for node in &mut nodes {
        node.ask_to_end();
    }
    for node in &mut nodes {
        if let Err(failure) = node.ended().await {
            run.problems.push(format!("L8: {failure}"));
        }
    }
    drop(nodes);
    let (log, dropped) = servers.into_log()?;
    let sent = witness.multis();
    let (mut fenced, mut zombies) = (0, 0);
    for txn in &log {
        if let crate::txn::Done::Refused(index, _) = txn.done
            && let Some(multi) = sent.get(&(txn.session, txn.xid))
        {
            match multi.epoch() {
                Some(_) => fenced += u64::from(index == 0),
                None => zombies += u64::from(multi.reports()),
            }
        }
    }
    let truth = frame.end().events(&log, |txn, index, code| match sent.get(&(txn.session, txn.xid)) {
        Some(multi) => format!("{} failed with code {code}", multi.describe(index)),
        None => format!("operation {index} failed with code {code}"),
    });
    let mut history = gather(&dir, truth, &killed_clients, client_end)?;
    history.retain(|event| event.at <= end);
    let Run { deals, missed, problems, .. } = run;
    let stalls = stalls.seen();
    Ok(Outcome {
        history,
        end,
        deals,
        missed,
        stalls,
        dropped,
        fenced,
        zombies,
        poisoned,
        servers_stuck,
        problems,
    })
}

struct Run {
    /// One deck: all faults of the run.
    faults: Vec<Fault>,
    deck: Vec<Fault>,
    deals: Vec<Deal>,
    missed: u32,
    canaries: u32,
    problems: Vec<String>,
}

impl Run {
    /// Draws faults from a deck, which is shuffled again when it is empty.
    fn deal(&mut self, count: usize, rng: &mut Rng) -> Vec<Fault> {
        (0..count)
            .map(|_| {
                if self.deck.is_empty() {
                    self.deck.clone_from(&self.faults);
                    rng.shuffle(&mut self.deck);
                }
                self.deck.pop().expect("the deck was refilled")
            })
            .collect()
    }

    /// Injects these faults and waits for recovery. Returns a readable result.
    async fn play(
        &mut self,
        faults: Vec<Fault>,
        stage: &mut Stage,
        rng: &mut Rng,
    ) -> Result<String, Failure> {
        let mut on = Vec::new();
        for fault in faults {
            match inject::begin(fault, stage, rng).await? {
                Some(injected) => on.push(injected),
                None => self.missed += 1,
            }
        }
        let alone = on.len() == 1;
        on.sort_by_key(ends);
        let mut ended = Vec::new();
        for injected in on {
            while record::now() < ends(&injected) {
                stage.tend()?;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let from = inject::end(&injected, stage, rng).await?;
            ended.push((injected, from));
        }
        let jobs: Vec<_> = ended.iter().flat_map(|(injected, _)| injected.jobs.clone()).collect();
        let mut well = self.all_is_well(&jobs, stage).await?;
        if well.is_none() && !stage.servers.give_sessions(Duration::from_secs(1)).await {
            // Recovery is impossible while the servers give no sessions.
            stage.heal_servers().await?;
            well = self.all_is_well(&jobs, stage).await?;
        }
        let mut told = Vec::new();
        for (injected, from) in ended {
            let Injected { fault, began, .. } = injected;
            match well {
                Some(well) => told.push(format!("{} ms", well.saturating_sub(from))),
                None => {
                    self.problems.push(format!("L3: no recovery within {RECOVERS_WITHIN:?} after: {fault}"))
                }
            }
            self.deals.push(Deal { fault, began, from, well, alone });
        }
        Ok(match (told.is_empty(), well) {
            (_, None) => "NOT RECOVERED".to_owned(),
            (true, _) => "missed".to_owned(),
            (false, _) => told.join(", "),
        })
    }

    async fn all_is_well(&mut self, jobs: &[JobId], stage: &mut Stage) -> Result<Option<u64>, Failure> {
        let start = Instant::now();
        let mut canary = None;
        let mut over = 0;
        while start.elapsed() < RECOVERS_WITHIN {
            stage.tend()?;
            match &canary {
                None => {
                    self.canaries += 1;
                    let wish = Wish::new(&format!("canary-{}", self.canaries), WORK, 0, 0);
                    let id = wish.id.clone();
                    canary = stage.operator.caller.submit(wish).await.then_some(id);
                }
                Some(id) => {
                    while over < jobs.len() && stage.operator.is_over(&jobs[over]).await {
                        over += 1;
                    }
                    if over == jobs.len()
                        && stage.operator.is_over(id).await
                        && stage.operator.leader().await.is_some()
                        && stage.operator.orphans().await.is_some_and(|orphans| orphans.is_empty())
                    {
                        return Ok(Some(record::now()));
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(None)
    }
}

fn ends(injected: &Injected) -> u64 {
    injected.began + u64::try_from(injected.lasts.as_millis()).expect("faults last for seconds")
}

/// Ends all faults, restarts everything and waits for every job to end. Returns when all was done, and when the clients
/// had ended.
async fn peace(stage: &mut Stage, problems: &mut Vec<String>, rng: &mut Rng) -> Result<(u64, u64), Failure> {
    for node in &mut stage.nodes {
        node.links.heal();
        node.thaw();
        node.start()?;
    }
    stage.client.links.heal();
    stage.client_links.iter().for_each(|links| links.heal());
    stage.start_client_process(rng)?;
    stage.heal_servers().await?;
    stage.record(EventKind::Healed);
    let clients = record::now();
    stage.stop_clients().await?;
    let client_end = record::now().max(clients);
    let paused =
        until("the schedules are paused", SETTLES_WITHIN, async || stage.operator.pause_schedules().await);
    if let Err(failure) = paused.await {
        problems.push(format!("L4: {failure}"));
    }
    let resumed = until("no kind is paused", SETTLES_WITHIN, async || stage.operator.caller.resume().await);
    if let Err(failure) = resumed.await {
        problems.push(format!("L3: {failure}"));
    }
    let whole =
        until("all groups are complete", SETTLES_WITHIN, async || stage.operator.complete_groups().await);
    if let Err(failure) = whole.await {
        problems.push(format!("S7: {failure}"));
    }
    // No inbox is orphaned and no job is open. One check may miss a job that moves, but several checks do not.
    let mut looks = 0;
    let settled = until("every job is terminal and every group is done", SETTLES_WITHIN, async || {
        let settled = stage.operator.open_jobs().await == Some(0)
            && stage.operator.orphans().await.is_some_and(|orphans| orphans.is_empty())
            && stage.operator.leader().await.is_some()
            && stage.operator.open_groups().await.is_some_and(|open| open.is_empty());
        looks = if settled { looks + 1 } else { 0 };
        looks == LOOKS
    });
    if let Err(failure) = settled.await {
        problems.push(format!("L3: {failure}"));
    }
    Ok((record::now(), client_end))
}

/// Measures how late this machine wakes up a thread. No process on it can be faster.
struct Stalls {
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
}

/// The shortest stall that counts, in milliseconds.
const STALL: u64 = 50;

impl Stalls {
    fn watch() -> Result<Self, Failure> {
        let seen = Arc::<Mutex<Vec<(u64, u64)>>>::default();
        let weak = Arc::downgrade(&seen);
        std::thread::Builder::new().name("stalls".to_owned()).spawn(move || {
            while let Some(seen) = weak.upgrade() {
                let (before, pause) = (record::now(), Duration::from_millis(20));
                std::thread::sleep(pause);
                let late = (record::now() - before).saturating_sub(20);
                if late > STALL {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push((before, late));
                }
            }
        })?;
        Ok(Self { seen })
    }

    /// Returns when each stall occurred, and how long it was.
    fn seen(&self) -> Vec<(u64, u64)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
