//! A run: faults dealt from a deck that the seed shuffles, one by one and several at once; then peace, and the verdict.
//!
//! After each deal the run waits until all is well again: somebody leads, nobody's inbox is orphaned, what the fault was
//! about is over, and a job that is submitted now is done. The time until then is the fault's recovery.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwether_core::name::JobId;
use bellwether_sim::history::{Answer, Event, EventKind};
use fastrand::Rng;

use crate::client::Wish;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::inject::{self, Injected};
use crate::record;
use crate::servers::Kind;
use crate::stage::{CHROOT, Stage};
use crate::txn::Frame;
use crate::wait::until;
use crate::work::WORK;

/// Longer than any recovery should take.
pub(crate) const RECOVERS_WITHIN: Duration = Duration::from_secs(60);
/// For all jobs to end that are open when peace comes.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);
/// Looks in a row that find nothing open.
const LOOKS: u32 = 5;
/// One deal in so many is of several faults at once.
const STORM_EVERY: u32 = 4;
const STORM: usize = 3;

/// What a run is to be.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    pub(crate) lasts: Duration,
    pub(crate) rate: u32,
    pub(crate) dir: PathBuf,
}

/// What was done, and when it was over.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) fault: Fault,
    pub(crate) began: u64,
    /// From here recovery is counted.
    pub(crate) from: u64,
    /// When all was well again; `None` if that took too long.
    pub(crate) well: Option<u64>,
    /// Whether no other fault was on.
    pub(crate) alone: bool,
}

/// All that a run left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// In the order of time, up to its end.
    pub(crate) history: Vec<Event>,
    pub(crate) end: u64,
    pub(crate) deals: Vec<Deal>,
    /// Faults that could not be had when they were dealt.
    pub(crate) missed: u32,
    pub(crate) stalls: Vec<(u64, u64)>,
    /// Transactions that a minority of servers logged.
    pub(crate) dropped: usize,
    /// Leaders' multis that the epoch's check refused.
    pub(crate) fenced: u64,
    /// Workers' reports that the record's version, or the missing assignment, refused.
    pub(crate) zombies: u64,
    pub(crate) poisoned: u32,
    pub(crate) servers_stuck: u32,
    pub(crate) problems: Vec<String>,
}

pub(crate) async fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let mut rng = Rng::with_seed(plan.seed);
    let frame = Frame { chroot: CHROOT.to_owned(), wall: record::wall(), boot: record::now() };
    let stalls = Stalls::watch()?;
    let mut stage = Stage::set(plan.kind, &plan.dir, plan.rate, &mut rng).await?;
    let mut run = Run { deck: Vec::new(), deals: Vec::new(), missed: 0, canaries: 0, problems: Vec::new() };
    let start = Instant::now();
    let mut step = 0_u32;
    while start.elapsed() < plan.lasts {
        step += 1;
        let faults = run.deal(plan.kind, if step.is_multiple_of(STORM_EVERY) { STORM } else { 1 }, &mut rng);
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
    let truth = frame.events(&log, |txn, index, code| match sent.get(&(txn.session, txn.xid)) {
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
    deck: Vec<Fault>,
    deals: Vec<Deal>,
    missed: u32,
    canaries: u32,
    problems: Vec<String>,
}

impl Run {
    /// From a deck that is shuffled again when it is used up.
    fn deal(&mut self, kind: Kind, count: usize, rng: &mut Rng) -> Vec<Fault> {
        (0..count)
            .map(|_| {
                if self.deck.is_empty() {
                    self.deck = Fault::all(kind);
                    rng.shuffle(&mut self.deck);
                }
                self.deck.pop().expect("a deck has cards")
            })
            .collect()
    }

    /// Plays these faults, and waits until all is well. Answers with what became of them, for people.
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
            // Nobody can be well on servers that serve nobody.
            stage.heal_servers().await?;
            well = self.all_is_well(&jobs, stage).await?;
        }
        let mut told = Vec::new();
        for (injected, from) in ended {
            let Injected { fault, began, .. } = injected;
            match well {
                Some(well) => told.push(format!("{} ms", well.saturating_sub(from))),
                None => self.problems.push(format!("L3: not well {RECOVERS_WITHIN:?} after: {fault}")),
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

/// No fault any more: everything is up, every job ends. Answers when that was over, and when the clients had ended.
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
    let whole = until("all groups have their members", SETTLES_WITHIN, async || {
        stage.operator.complete_groups().await
    });
    if let Err(failure) = whole.await {
        problems.push(format!("S7: {failure}"));
    }
    // Nobody's inbox is left, and no job stands anywhere. One that moves may be missed by a look, and not by several.
    let mut looks = 0;
    let settled = until("every job is over, and every group done", SETTLES_WITHIN, async || {
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

/// All records as one history, transactions before what they caused.
fn gather(
    dir: &Path,
    truth: Vec<Event>,
    killed_clients: &[(u32, u64)],
    client_end: u64,
) -> Result<Vec<Event>, Failure> {
    let mut history = truth;
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.join("records"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.sort();
    for file in files {
        history.extend(record::read(&file)?);
    }
    for (client, killed) in killed_clients {
        history.extend(unanswered(&history, *client, (*killed).min(client_end)));
    }
    history.sort_by_key(|event| (event.at, !matches!(event.what, EventKind::Txn { .. })));
    Ok(history)
}

/// A client that was killed hears nothing of what it had asked.
fn unanswered(history: &[Event], client: u32, killed: u64) -> Vec<Event> {
    let mut open = std::collections::BTreeSet::new();
    for event in history {
        match &event.what {
            EventKind::Invoke { client: by, call, .. } if *by == client => {
                open.insert(*call);
            }
            EventKind::Return { call, .. } => {
                open.remove(call);
            }
            _ => {}
        }
    }
    let why = "the client was killed";
    let answer = |call| EventKind::Return { call, answer: Answer::Unknown { why: why.to_owned() } };
    open.into_iter().map(|call| Event { at: killed, what: answer(call) }).collect()
}

/// Watches how late this machine's clock wakes a thread up: what nobody here can be faster than.
struct Stalls {
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
}

/// Lateness that counts.
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

    /// When, and for how long.
    fn seen(&self) -> Vec<(u64, u64)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
