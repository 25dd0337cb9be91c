//! The part of a plan that only an ensemble of servers has.

use bellwether_core::name::{JobId, Kind, Lane};
use fastrand::Rng;

use super::{choose, job};
use crate::plan::{Action, Fault, FaultKind, JobPlan, Plan, PlannedCall, Server};

/// Draws the times of the servers and their faults.
pub(super) fn extend(rng: &mut Rng, plan: &mut Plan) {
    // The shortest session timeout is two ticks.
    plan.tick_ms = *choose(rng, &[500, 1_000]);
    plan.sync_limit = Some(*choose(rng, &[5, 10, 20]));
    for _ in 0..rng.usize(..=8) {
        let fault = fault(rng, plan.session_timeout_ms, plan.heal_ms);
        plan.faults.push(fault);
    }
    if rng.u8(..4) == 0 {
        lanes_behind_followers(rng, plan);
    }
}

/// A fault between the servers.
fn fault(rng: &mut Rng, timeout: u64, heal_ms: u64) -> Fault {
    let which = *choose(rng, &[Server::Leading, Server::Following(0), Server::Following(1)]);
    let long = |rng: &mut Rng| timeout * rng.u64(5..=300) / 100;
    let kind = match rng.u8(..10) {
        0..=4 => FaultKind::ServerCutOff { which, ms: long(rng) },
        5..=6 => FaultKind::ServerLags { which, ms: long(rng), delay_ms: rng.u64(5..=timeout / 4) },
        _ => FaultKind::ServerDies { which, down_ms: rng.u64(100..2 * timeout) },
    };
    Fault { at_ms: rng.u64(..heal_ms), kind }
}

/// Long jobs of few lanes are submitted together, and soon a follower is cut off from its leader, for longer than the session
/// timeout. Its clients' sessions end, and the next jobs of the lanes start elsewhere. The timeout is no multiple of the tick, because
/// the leader ends sessions at ticks, and so gives a timeout just below one hardly any extra time.
fn lanes_behind_followers(rng: &mut Rng, plan: &mut Plan) {
    plan.session_timeout_ms = rng.u64(2 * plan.tick_ms..=10 * plan.tick_ms);
    for _ in 0..rng.usize(1..=3) {
        let at_ms = rng.u64(500..plan.heal_ms * 3 / 4);
        let first = plan.jobs.len();
        for number in first..first + rng.usize(4..=12) {
            plan.jobs.push(laned(rng, number));
        }
        let jobs = (first..plan.jobs.len()).collect();
        plan.actions.push(Action { at_ms, client: 0, call: PlannedCall::Submit(jobs) });
        let kind = FaultKind::ServerCutOff {
            which: Server::Following(rng.usize(..2)),
            ms: plan.session_timeout_ms * rng.u64(100..=300) / 100,
        };
        plan.faults.push(Fault { at_ms: at_ms + rng.u64(..4_000), kind });
    }
}

/// A job of one of three lanes that takes up to 12 s and, if its worker is lost, leaves the lane to the next one.
fn laned(rng: &mut Rng, number: usize) -> JobPlan {
    let lane = format!("lane-{}", rng.u8(..3));
    JobPlan {
        id: JobId::new(format!("l{number}")).expect("a letter and digits"),
        kind: Kind::new("slow").expect("letters"),
        lane: Some(Lane::new(lane).expect("letters, digits and a dash")),
        max_losses: 1,
        delay_ms: None,
        expires_ms: None,
        timeout_ms: None,
        lease_ms: None,
        dead_letter: false,
        ..job(rng, number)
    }
}
