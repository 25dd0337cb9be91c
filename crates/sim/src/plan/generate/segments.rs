//! Segments that clients submit.

use bellwether_core::name::Kind;
use bellwether_core::segment::{MemberId, SegmentId};
use fastrand::Rng;
use uuid::Builder;

use super::super::{Action, JobPlan, PlannedCall};
use super::{WALL_MS, choose, job};

/// Most segments that the clients of a plan submit.
const SEGMENTS: usize = 2;

/// Segments, whose members are added to the jobs. Drawn separately, so that the rest of the plan does not depend on it.
pub(super) fn extend(
    rng: &mut Rng,
    jobs: &mut Vec<JobPlan>,
    clients: usize,
    heal_ms: u64,
    actions: &mut Vec<Action>,
) {
    let busy = heal_ms * 3 / 4;
    for _ in 0..rng.usize(..=SEGMENTS) {
        let kinds = ["sum", "sum", "flaky", "slow", "steady", "never", "later", "killer", "poison"];
        let kind = Kind::new(*choose(rng, &kinds)).expect("letters");
        let count = rng.u8(4..=20);
        // Members are about this long.
        let bytes = 60 * usize::from(count);
        let unique = Builder::from_unix_timestamp_millis(
            WALL_MS.cast_unsigned(),
            &rng.u128(..).to_be_bytes()[..10].try_into().expect("ten bytes"),
        );
        let segment = SegmentId::new(unique.into_uuid(), count, bytes).expect("few members");
        let (first, head) = (jobs.len(), job(rng, 0));
        let member = |number| JobPlan {
            id: MemberId { segment, number }.job(),
            kind: kind.clone(),
            lane: None,
            delay_ms: None,
            expires_ms: None,
            timeout_ms: None,
            lease_ms: None,
            max_losses: head.max_losses.max(2),
            dead_letter: false,
            ..head.clone()
        };
        jobs.extend((0..count).map(member));
        let (at_ms, client) = (rng.u64(..busy), rng.usize(..clients));
        actions.push(Action { at_ms, client, call: PlannedCall::SubmitPacked(segment, first..jobs.len()) });
        for member in first..jobs.len() {
            let (at_ms, client) = (at_ms + rng.u64(..15_000), rng.usize(..clients));
            let call = match rng.u8(..10) {
                0 => PlannedCall::Cancel(member),
                1 => PlannedCall::Retry(member),
                2 => PlannedCall::RetryAtEnd(member),
                3 => PlannedCall::Wait(member),
                _ => continue,
            };
            actions.push(Action { at_ms, client, call });
        }
    }
}
