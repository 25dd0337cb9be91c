//! The sub-jobs of a nested job, in one to three groups: drawn from the seed and the job, so that each attempt submits the same
//! ones.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bellwether::client::Attempt;
use bellwether::{Group, Job};
use bellwether_core::machine::worker::Start;
use bellwether_core::name::{Kind, WorkerId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::workload::{Spawned, SubJobs, Wish};

/// Maximum number of sub-jobs in one group.
const MOST: u64 = 3;

/// The kinds of further groups.
const FURTHER: [&str; 3] = ["steady", "flaky", "sum"];

pub(super) fn of(start: &Start, worker: WorkerId, seed: u64, runs: Rc<Cell<bool>>) -> Spawned {
    let drawn = xxh3_64_with_seed(start.job.as_str().as_bytes(), seed);
    let first = match start.record.kind.as_str() {
        "nest3" => "nest2",
        "nest2" => "nest1",
        _ => ["sum", "sum", "flaky", "steady", "never", "sum"][usize::try_from(drawn % 6).unwrap_or(0)],
    };
    let further = match (drawn >> 32) % 8 {
        0 => 2,
        1 => 1,
        _ => 0,
    };
    let further = FURTHER.into_iter().filter(|kind| *kind != first).take(further);
    let kinds = std::iter::once(first).chain(further);
    let mut groups = (0..)
        .zip(kinds)
        .map(|(at, kind)| group(kind, start, worker, drawn.rotate_right(at * 9)))
        .collect::<Vec<_>>();
    // Each attempt opens them in another order: the first attempt that succeeds in opening one decides on the first group.
    let attempt = usize::try_from(start.assignment.attempt).unwrap_or(0);
    let turn = attempt % groups.len();
    groups.rotate_left(turn);
    Spawned { groups, runs }
}

fn group(kind: &str, start: &Start, worker: WorkerId, drawn: u64) -> SubJobs {
    let kind = Kind::new(kind).expect("letters and a digit");
    // Sometimes there are none; then the join is created immediately. Groups that nest further groups are smaller, because the
    // numbers multiply.
    let most = if kind.as_str().starts_with("nest") { MOST - 1 } else { MOST };
    let count = (drawn >> 4) % (most + 1);
    let bit = |at: u32| (drawn >> at).is_multiple_of(2);
    // Sometimes the total is higher than the number of sub-jobs; then the number submitted by the end counts.
    let total = (bit(12) && bit(13)).then(|| u32::try_from(count).unwrap_or(0) + u32::from(bit(14)));
    // The group's id is derived from the job's id.
    let group = Group::new(kind.as_str(), "sub-jobs");
    let mut group = group.fail_fast(bit(16) && bit(17)).join(bit(18) || bit(19));
    if let Some(total) = total {
        group = group.total(total);
    }
    let attempt = Attempt {
        job: start.job.clone(),
        kind: start.record.kind.clone(),
        generation: start.record.generation,
        attempt: start.assignment.attempt,
        fencing_token: start.version,
        worker,
        finish: bit(20) || bit(21),
    };
    let members = (0..count).map(|number| member(&kind, start, number)).collect();
    SubJobs { attempt, group, members }
}

fn member(kind: &Kind, start: &Start, number: u64) -> Wish {
    let text = format!("{number} of {}", start.job);
    let job = Job::new(kind.as_str(), &text)
        .max_attempts(3)
        .backoff(Duration::from_millis(200), Duration::from_secs(2))
        .priority(start.record.priority.get());
    Wish::new(kind.clone(), None, &text, job)
}
