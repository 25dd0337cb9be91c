//! What sub-jobs a nest has: drawn from the seed and its job, so that each attempt submits the same.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::group::GroupRecord;
use bellwether_core::job::identity::IfExists;
use bellwether_core::job::{JobRecord, Payload, Policy};
use bellwether_core::machine::worker::Start;
use bellwether_core::name::{Kind, WorkerId};
use bellwether_core::time::WallMillis;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::client::{Parent, Spawned, Wish};

/// Most sub-jobs of one job.
const MOST: u64 = 3;

pub(super) fn of(start: &Start, worker: WorkerId, seed: u64, runs: Rc<Cell<bool>>) -> Spawned {
    let drawn = xxh3_64_with_seed(start.job.as_str().as_bytes(), seed);
    let kind = match start.record.kind.as_str() {
        "nest3" => "nest2",
        "nest2" => "nest1",
        _ => ["sum", "sum", "flaky", "steady", "never", "sum"][usize::try_from(drawn % 6).unwrap_or(0)],
    };
    let kind = Kind::new(kind).expect("letters and a digit");
    // At times none: then its join is made at once. The nests within nests are few, as they multiply.
    let most = if kind.as_str().starts_with("nest") { MOST - 1 } else { MOST };
    let count = (drawn >> 4) % (most + 1);
    let bit = |at: u32| (drawn >> at).is_multiple_of(2);
    // At times more are said than there are: what counts is what was submitted by the end.
    let total = (bit(12) && bit(13)).then(|| u32::try_from(count).unwrap_or(0) + u32::from(bit(14)));
    let group = GroupRecord {
        total,
        fail_fast: bit(16) && bit(17),
        join: bit(18) || bit(19),
        ..GroupRecord::new(kind.clone(), Uuid::nil(), WallMillis(0))
    };
    let parent = Parent {
        job: start.job.clone(),
        kind: start.record.kind.clone(),
        generation: start.record.generation,
        attempt: start.assignment.attempt,
        token: start.version,
        worker,
    };
    let members = (0..count).map(|number| member(&kind, start, number)).collect();
    Spawned { parent, group, finish: bit(20) || bit(21), members, runs }
}

fn member(kind: &Kind, start: &Start, number: u64) -> Wish {
    let text = format!("{number} of {}", start.job);
    let payload = Payload::json(text.into_bytes()).expect("a short text is within the budget");
    let record = JobRecord {
        policy: Policy {
            max_attempts: 3,
            backoff: Backoff { initial: Duration::from_millis(200), max: Duration::from_secs(2) },
            ..Policy::default()
        },
        priority: start.record.priority,
        ..JobRecord::new(kind.clone(), payload, Uuid::nil(), WallMillis(0))
    };
    // Its id is made of its group's.
    let (id, delay, expires_in) = (start.job.clone(), None, None);
    Wish { id, record, delay, expires_in, if_exists: IfExists::Same }
}
