//! Faults at a certain request, or on one record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether::client::Retried;
use bellwether::{JobId, State};
use bellwether_core::job::JobRecord;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_core::wire;
use bellwether_testkit::{Cut, Direction};
use fastrand::Rng;

use super::target::{candidate, node};
use super::{Injected, Undo, delete, end, name, tenths};
use crate::client::Wish;
use crate::failure::Failure;
use crate::fault::{Fault, Garbage, Step, Target, When};
use crate::links::Planned;
use crate::run::RECOVERS_WITHIN;
use crate::stage::Stage;
use crate::wait::until;
use crate::work::WORK;

/// Time limit for the request that a fault waits for, in tenths of the session timeout: some requests come when a session
/// has ended.
const MEETS_WITHIN: u64 = 40;

/// An overwritten record is repaired after this time, which is enough for a process to read it.
const REPAIRED_AFTER: Duration = Duration::from_secs(4);

/// Waits until one of these faults has happened, and cancels the others.
pub(super) async fn met(planned: &[Planned], stage: &Stage) -> bool {
    let within = tenths(stage, MEETS_WITHIN);
    let met = until("the request is sent", within, async || planned.iter().any(Planned::has_fired));
    let met = met.await.is_ok();
    planned.iter().for_each(Planned::call_off);
    met
}

pub(super) async fn killed_at(
    fault: Fault,
    step: Step,
    when: When,
    stage: &mut Stage,
    rng: &mut Rng,
) -> Result<Option<Injected>, Failure> {
    let Some(leader) = node(stage, Target::Leader, rng).await else { return Ok(None) };
    let victims: Vec<usize> = match step {
        // Any of the other candidates.
        Step::Claim => (0..stage.nodes.len()).filter(|node| *node != leader).collect(),
        _ => vec![leader],
    };
    let plan = |victim: &usize| {
        let links = &stage.nodes[*victim].links;
        match when {
            When::Before => links.lose_request(step.matches(), Cut::Silence),
            When::After => links.lose_reply(step.matches(), Cut::Silence),
        }
    };
    let planned: Vec<_> = victims.iter().map(plan).collect();
    match step {
        Step::Claim => stage.nodes[leader].kill(),
        Step::Recover => {
            // The worker whose jobs the leader must recover.
            let Some(other) = node(stage, Target::Other, rng).await else { return Ok(None) };
            stage.nodes[other].kill();
        }
        Step::Submit | Step::Assign | Step::Close | Step::Promote | Step::Join => {}
    }
    let met = met(&planned, stage).await;
    let injected = Injected::new(fault, Undo::Start).for_(Duration::from_millis(rng.u64(300..1_500)));
    for (victim, planned) in victims.iter().zip(&planned) {
        if planned.has_fired() {
            stage.nodes[*victim].kill();
        }
    }
    if !met {
        end(&injected, stage, rng).await?;
        return Ok(None);
    }
    Ok(Some(injected))
}

/// Delays a leader's assignment, deletes its candidate, and delivers the assignment after another node has claimed.
pub(super) async fn stale_write(fault: Fault, stage: &mut Stage) -> Result<Option<Injected>, Failure> {
    let Some(name) = stage.operator.leader().await else { return Ok(None) };
    let (Some(leader), Some(candidate)) = (stage.index_of(&name), candidate(stage).await) else {
        return Ok(None);
    };
    let links = stage.nodes[leader].links.clone();
    let (sent, hand) = (Arc::new(AtomicBool::new(false)), links.clone());
    let eye = Arc::clone(&sent);
    links.at_next(Step::Assign.matches(), move || {
        hand.stall(Direction::ToServer);
        eye.store(true, Ordering::Release);
    });
    let within = tenths(stage, MEETS_WITHIN);
    if until("a job is assigned", within, async || sent.load(Ordering::Acquire)).await.is_err() {
        return Ok(None);
    }
    links.drop_events();
    let injected = Injected::new(fault, Undo::Heal(leader)).counted_from_its_end();
    delete(stage, path::candidate(&candidate)).await;
    // The new claim must come before the old session ends; otherwise the fence is not needed.
    let others = async || stage.operator.leader().await.is_some_and(|now| now != name);
    let claimed = until("another node leads", tenths(stage, 7), others).await;
    links.heal();
    Ok(claimed.is_ok().then_some(injected))
}

pub(super) async fn overwritten(
    fault: Fault,
    garbage: Garbage,
    stage: &mut Stage,
    rng: &mut Rng,
) -> Result<Option<Injected>, Failure> {
    let wish = Wish::new(&name("garbled", rng), WORK, rng.u64(500..1_500), 0);
    let id = wish.id.clone();
    if !stage.operator.caller.submit(wish).await {
        return Ok(None);
    }
    let zk = stage.operator.zk().await?;
    let Ok(Some(record)) = zk.get(path::record(&id)).await else { return Ok(None) };
    let data = match garbage {
        Garbage::Random => (0..rng.usize(1..200)).map(|_| rng.u8(..)).collect(),
        Garbage::Truncated => record.data[..rng.usize(1..record.data.len())].to_vec(),
        Garbage::Future => {
            // The schema version follows the magic, the format and the record kind.
            let mut data = record.data.clone();
            data[4..6].copy_from_slice(&u16::MAX.to_le_bytes());
            data
        }
    };
    let injected = Injected::new(fault, Undo::Repair(id.clone(), record.data)).for_(REPAIRED_AFTER);
    let set = Op::Set { path: path::record(&id), data, version: record.version };
    // The job may have ended in the meantime.
    let done = zk.commit(vec![set]).await == Outcome::Applied(());
    Ok(done.then(|| injected.counted_from_its_end().with(id)))
}

pub(super) async fn repair(id: &JobId, bytes: &[u8], stage: &mut Stage) -> Result<(), Failure> {
    let zk = stage.operator.zk().await?;
    let client = stage.operator.caller.client.clone();
    let put_back = async || {
        let Ok(Some(now)) = zk.get(path::record(id)).await else { return false };
        // A write whose reply was lost may have restored it, and the job may have ended since.
        if wire::decode::<JobRecord>(&now.data).is_ok() {
            return true;
        }
        let set = Op::Set { path: path::record(id), data: bytes.to_vec(), version: now.version };
        zk.commit(vec![set]).await == Outcome::Applied(())
    };
    // The servers may have been stopped at the same time, and have to elect their leader first.
    until("the record is restored", RECOVERS_WITHIN, put_back).await?;
    // The job may be in quarantine already, or its worker has yet to notice that it cannot report or that the job is in
    // its inbox. If events were lost at the same time, the worker notices it at its next listing (30 s).
    until("the job is out of quarantine", RECOVERS_WITHIN, async || match client.get(id).await {
        Ok(Some(view)) if view.state.is_terminal() => true,
        Ok(Some(view)) if view.state == State::Quarantined => {
            matches!(client.retry(id).await, Ok(Retried::Released))
        }
        _ => false,
    })
    .await
}
