//! How each fault starts and ends.
//!
//! A fault has two steps, so that several can be active at the same time: it starts, lasts for a while, and ends with
//! its undo. A fault that is not possible at the moment (there is no leader, the request does not come) does not fail
//! the run; it counts as missed.

mod aimed;
mod target;

use std::sync::Arc;
use std::time::Duration;

use bellwether::client::DrainedWorker;
use bellwether::{Job, JobId};
use bellwether_core::budget::MAX_PAYLOAD_BYTES;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_sim::history::EventKind;
use bellwether_testkit::Cut;
use fastrand::Rng;

use self::aimed::{killed_at, met, overwritten, repair, stale_write};
use self::target::{any_node, candidate, node, server, servers};
use crate::client::Wish;
use crate::failure::Failure;
use crate::fault::{Fault, Step, Target};
use crate::record::now;
use crate::stage::Stage;
use crate::work::{HANG, POISON, WORK};

/// An active fault.
pub(crate) struct Injected {
    pub(crate) fault: Fault,
    /// When it started.
    pub(crate) began: u64,
    /// How long it lasts.
    pub(crate) lasts: Duration,
    /// Whether recovery counts from its end, because no recovery is possible before.
    pub(crate) from_end: bool,
    /// Jobs that must be terminal for the recovery.
    pub(crate) jobs: Vec<JobId>,
    undo: Undo,
}

enum Undo {
    Nothing,
    /// Restarts all processes that are down.
    Start,
    /// Waits for the end of a process that got SIGTERM.
    Ended(usize),
    /// Stops a node whose worker has left, and restarts it.
    Restart(usize),
    Thaw(usize),
    Heal(usize),
    HealAll,
    Servers,
    /// Restores a record, and releases its job from quarantine.
    Repair(JobId, Vec<u8>),
}

impl Injected {
    fn new(fault: Fault, undo: Undo) -> Self {
        Self { fault, began: now(), lasts: Duration::ZERO, from_end: false, jobs: Vec::new(), undo }
    }

    fn for_(self, lasts: Duration) -> Self {
        Self { lasts, ..self }
    }

    fn counted_from_its_end(self) -> Self {
        Self { from_end: true, ..self }
    }

    fn with(self, job: JobId) -> Self {
        Self { jobs: vec![job], ..self }
    }
}

/// Usually the time that a worker takes to leave: the grace of nodes is 2 s here. A slower worker is stopped during its
/// drain.
const DRAINS_WITHIN: Duration = Duration::from_secs(3);

/// Each transaction reaches the lagging member this late, and its acknowledgements and its clients' touches again.
const LAG: Duration = Duration::from_millis(300);

/// Tenths of the session timeout of nodes.
fn tenths(stage: &Stage, tenths: u64) -> Duration {
    stage.session * u32::try_from(tenths).expect("the number of tenths is small") / 10
}

/// Starts a fault. Returns `None` if it is not possible now.
pub(crate) async fn begin(
    fault: Fault,
    stage: &mut Stage,
    rng: &mut Rng,
) -> Result<Option<Injected>, Failure> {
    let down = Duration::from_millis(rng.u64(300..2_500));
    let away = tenths(stage, rng.u64(4..20));
    let injected = match fault {
        Fault::Killed(target) => {
            let Some(victim) = node(stage, target, rng).await else { return Ok(None) };
            let injected = Injected::new(fault, Undo::Start).for_(down);
            stage.nodes[victim].kill();
            injected
        }
        Fault::KilledAt(step, when) => return killed_at(fault, step, when, stage, rng).await,
        Fault::Frozen(target, share) => {
            let Some(victim) = node(stage, target, rng).await else { return Ok(None) };
            stage.nodes[victim].freeze();
            let injected = Injected::new(fault, Undo::Thaw(victim)).for_(tenths(stage, u64::from(share)));
            // A freeze shorter than the session timeout only delays the node.
            if share < 10 { injected.counted_from_its_end() } else { injected }
        }
        Fault::Drained(target) => {
            let Some(victim) = node(stage, target, rng).await else { return Ok(None) };
            stage.nodes[victim].ask_to_end();
            Injected::new(fault, Undo::Ended(victim))
        }
        Fault::WorkerDrained => {
            let workers = stage.operator.workers().await;
            let Some((node, worker)) = rng.choice(workers) else { return Ok(None) };
            let Some(victim) = stage.index_of(&node).filter(|victim| stage.nodes[*victim].runs()) else {
                return Ok(None);
            };
            let injected = Injected::new(fault, Undo::Restart(victim)).for_(DRAINS_WITHIN);
            match stage.operator.caller.client.drain_worker(worker).await {
                // Without an answer the worker may drain, too.
                Ok(DrainedWorker::Marked) | Err(_) => injected,
                Ok(DrainedWorker::Already | DrainedWorker::NotFound) => return Ok(None),
            }
        }
        Fault::Poison => {
            let wish = Wish::new(&name("poison", rng), POISON, 0, rng.u32(1..3));
            let (injected, id) = (Injected::new(fault, Undo::Nothing), wish.id.clone());
            if !stage.operator.caller.submit(wish).await {
                return Ok(None);
            }
            injected.with(id)
        }
        Fault::Hang => {
            let wish = Wish::new(&name("hang", rng), HANG, 0, rng.u32(1..3));
            let (injected, id) = (Injected::new(fault, Undo::Nothing), wish.id.clone());
            if !stage.operator.caller.submit(wish).await {
                return Ok(None);
            }
            injected.with(id)
        }
        Fault::Cut(cut) => {
            let Some(victim) = any_node(stage, rng) else { return Ok(None) };
            stage.nodes[victim].links.cut(cut);
            Injected::new(fault, Undo::Nothing)
        }
        Fault::Refused => {
            let Some(victim) = any_node(stage, rng) else { return Ok(None) };
            stage.nodes[victim].links.refuse();
            Injected::new(fault, Undo::Heal(victim)).for_(away)
        }
        Fault::BlackHole(direction) => {
            let Some(victim) = any_node(stage, rng) else { return Ok(None) };
            stage.nodes[victim].links.black_hole(direction);
            Injected::new(fault, Undo::Heal(victim)).for_(away)
        }
        Fault::Slow(ms) => {
            let delay = Duration::from_millis(ms);
            stage.nodes.iter().for_each(|node| node.links.delay(delay));
            Injected::new(fault, Undo::HealAll).for_(2 * stage.session).counted_from_its_end()
        }
        Fault::Flapping => {
            let Some(victim) = any_node(stage, rng) else { return Ok(None) };
            let injected = Injected::new(fault, Undo::Nothing).counted_from_its_end();
            for _ in 0..8 {
                stage.nodes[victim].links.cut(Cut::Reset);
                tokio::time::sleep(Duration::from_millis(rng.u64(50..300))).await;
            }
            injected
        }
        Fault::LostReply(step) => {
            let cut = *rng.choice(&[Cut::Fin, Cut::Reset, Cut::Silence]).expect("the list is not empty");
            let links: Vec<_> = match step {
                Step::Submit => stage.client_links.clone(),
                _ => stage.nodes.iter().map(|node| node.links.clone()).collect(),
            };
            let planned: Vec<_> = links.iter().map(|links| links.lose_reply(step.matches(), cut)).collect();
            if !met(&planned, stage).await {
                return Ok(None);
            }
            Injected::new(fault, Undo::Nothing)
        }
        Fault::LateRequests => {
            let Some(victim) = any_node(stage, rng) else { return Ok(None) };
            stage.nodes[victim].links.stall_present();
            Injected::new(fault, Undo::Heal(victim)).for_(tenths(stage, rng.u64(5..9)))
        }
        Fault::EventsLost => {
            stage.nodes.iter().for_each(|node| node.links.drop_events());
            let injected = Injected::new(fault, Undo::HealAll).for_(down / 2);
            // The leader finds the job only by a sweep.
            let wish = Wish::new(&name("unheard", rng), WORK, 0, 0);
            let id = wish.id.clone();
            if stage.operator.caller.submit(wish).await { injected.with(id) } else { injected }
        }
        Fault::EventsLate => {
            stage.nodes.iter().for_each(|node| node.links.delay_events(Duration::from_millis(500)));
            Injected::new(fault, Undo::HealAll).for_(2 * stage.session).counted_from_its_end()
        }
        Fault::StaleWrite => return stale_write(fault, stage).await,
        Fault::Expired(target) => {
            let Some(victim) = node(stage, target, rng).await else { return Ok(None) };
            let injected = Injected::new(fault, Undo::Nothing);
            let recorder = Arc::clone(&stage.recorder);
            let evicted = move |session| recorder.record(EventKind::Evicted { session });
            if stage.nodes[victim].links.expire(evicted).await.is_none() {
                return Ok(None);
            }
            injected
        }
        Fault::ServerKilled(target) => {
            let Some(victim) = server(stage, target, rng) else { return Ok(None) };
            stage.servers.kill(victim);
            Injected::new(fault, Undo::Servers).for_(down)
        }
        Fault::ServerFrozen(target) => {
            let Some(victim) = server(stage, target, rng) else { return Ok(None) };
            stage.servers.freeze(victim);
            Injected::new(fault, Undo::Servers).for_(down)
        }
        Fault::ServerCutOff(target) => {
            let Some(victim) = server(stage, target, rng) else { return Ok(None) };
            stage.servers.cut_off(victim);
            // Up to the end of the time in which the member answers reads, or beyond it.
            Injected::new(fault, Undo::Servers).for_(tenths(stage, rng.u64(8..30))).counted_from_its_end()
        }
        Fault::ServerLags => {
            let Some(victim) = server(stage, Target::Other, rng) else { return Ok(None) };
            stage.servers.delay(victim, LAG);
            Injected::new(fault, Undo::Servers).for_(2 * stage.session).counted_from_its_end()
        }
        Fault::MajorityDown => {
            let spared = rng.usize(0..3);
            (0..3).filter(|member| *member != spared).for_each(|member| stage.servers.kill(member));
            Injected::new(fault, Undo::Servers).for_(down).counted_from_its_end()
        }
        Fault::AllServersKilled => {
            servers(stage).for_each(|member| stage.servers.kill(member));
            Injected::new(fault, Undo::Servers).for_(down / 2).counted_from_its_end()
        }
        Fault::AllServersFrozen => {
            servers(stage).for_each(|member| stage.servers.freeze(member));
            Injected::new(fault, Undo::Servers).for_(down).counted_from_its_end()
        }
        Fault::CandidateDeleted => {
            let Some(candidate) = candidate(stage).await else { return Ok(None) };
            let injected = Injected::new(fault, Undo::Nothing);
            if !delete(stage, path::candidate(&candidate)).await {
                return Ok(None);
            }
            injected
        }
        Fault::WorkerDeleted => {
            let workers = stage.operator.workers().await;
            let Some((_, worker)) = rng.choice(&workers) else { return Ok(None) };
            let injected = Injected::new(fault, Undo::Nothing);
            if !delete(stage, path::worker(*worker)).await {
                return Ok(None);
            }
            injected
        }
        Fault::WorkersParentDeleted => {
            let injected = Injected::new(fault, Undo::Nothing);
            for (_, worker) in stage.operator.workers().await {
                delete(stage, path::worker(worker)).await;
            }
            // A worker may have registered again in the meantime; then `/workers` is not empty and stays.
            delete(stage, path::WORKERS.to_owned()).await;
            injected
        }
        Fault::EpochDeleted => {
            let injected = Injected::new(fault, Undo::Nothing);
            if !delete(stage, path::EPOCH.to_owned()).await {
                return Ok(None);
            }
            injected
        }
        Fault::Overwritten(garbage) => return overwritten(fault, garbage, stage, rng).await,
        Fault::Oversize => {
            let injected = Injected::new(fault, Undo::Nothing);
            if Job::raw(WORK, "text/plain", vec![b'x'; MAX_PAYLOAD_BYTES + 1]).check().is_ok() {
                return Err(Failure::new("a payload above its limit was accepted"));
            }
            injected
        }
        Fault::ClientKilled => {
            if !stage.client.runs() {
                return Ok(None);
            }
            stage.kill_client_process();
            Injected::new(fault, Undo::Start).for_(down)
        }
    };
    Ok(Some(injected))
}

/// Ends a fault. Returns the time from which its recovery counts.
pub(crate) async fn end(injected: &Injected, stage: &mut Stage, rng: &mut Rng) -> Result<u64, Failure> {
    match &injected.undo {
        Undo::Nothing => {}
        Undo::Start => {
            for node in &mut stage.nodes {
                node.start()?;
            }
            stage.start_client_process(rng)?;
        }
        Undo::Ended(node) => {
            stage.nodes[*node].ended().await?;
            stage.nodes[*node].start()?;
        }
        Undo::Restart(node) => {
            let node = &mut stage.nodes[*node];
            // The node may be frozen, and would return without a worker. If another fault has stopped the node, that
            // fault restarts it.
            node.thaw();
            if node.runs() {
                node.ask_to_end();
                node.ended().await?;
                node.start()?;
            }
        }
        Undo::Thaw(node) => stage.nodes[*node].thaw(),
        Undo::Heal(node) => stage.nodes[*node].links.heal(),
        Undo::HealAll => stage.nodes.iter().for_each(|node| node.links.heal()),
        Undo::Servers => {
            stage.servers.reconnect();
            for member in servers(stage) {
                stage.servers.thaw(member);
                stage.servers.launch(member)?;
            }
            stage.heal_servers().await?;
        }
        Undo::Repair(job, bytes) => repair(job, bytes, stage).await?,
    }
    Ok(if injected.from_end { now() } else { injected.began })
}

fn name(what: &str, rng: &mut Rng) -> String {
    format!("{what}-{}", rng.u32(..))
}

async fn delete(stage: &mut Stage, path: String) -> bool {
    let Ok(zk) = stage.operator.zk().await else { return false };
    zk.commit(vec![Op::Delete { path, version: None }]).await == Outcome::Applied(())
}
