//! The same random requests to a fresh ZooKeeper and to a fresh keeper: whatever a client can see has to be the same.
//!
//! Compared are all bytes of all answers and notifications, and when connections are closed; [`answer`] tells what
//! is made alike first. Differences that the keeper means to have stand in [`intended`], with their reasons.
//!
//! Two fresh ZooKeepers are compared in the same way: that shows that a difference is never chance.
//!
//! By hand, with seeds that nobody has seen yet:
//!
//! ```text
//! KEEPER_DIFF_REQUESTS=50000 cargo test -p bellwether-keeper --test differential -- --nocapture keeper
//! KEEPER_DIFF_SEED=17 KEEPER_DIFF_REQUESTS=1000 …      # one script again
//! ```

mod answer;
mod compare;
mod connection;
mod generate;
mod intended;
mod minimise;
mod run;
mod script;
mod servers;
mod wire;

use std::fmt::Write as _;
use std::time::Instant;

use compare::{Pair, compare};
use servers::Kind;

/// The seeds of every run in CI.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Requests per script and pair of servers. Short of a minute even on a slow machine: after one, ZooKeeper would look
/// for empty containers, which the keeper does at another moment.
const REQUESTS: usize = 1_000;

#[test]
fn two_fresh_zookeepers_answer_alike() {
    check((Kind::ZooKeeper, Kind::ZooKeeper), &SEEDS[..1]);
}

#[test]
fn the_keeper_answers_as_zookeeper_does() {
    check((Kind::ZooKeeper, Kind::Keeper), &SEEDS);
}

/// Runs the scripts of these seeds, or of those that the environment asks for.
fn check(pair: Pair, seeds: &[u64]) {
    let requests = variable("KEEPER_DIFF_REQUESTS");
    let seeds = match (variable("KEEPER_DIFF_SEED"), requests) {
        (Some(seed), _) => vec![seed],
        (None, Some(requests)) => {
            let scripts = requests.div_ceil(REQUESTS as u64);
            (0..scripts).map(|_| fastrand::u64(..1 << 40)).collect()
        }
        (None, None) => seeds.to_vec(),
    };
    let began = Instant::now();
    for (number, seed) in seeds.iter().enumerate() {
        let script = generate::script(*seed, REQUESTS);
        eprintln!("script {number} of {}, seed {seed}, after {:?}", seeds.len(), began.elapsed());
        if let Some(difference) = compare(pair, &script) {
            eprintln!("seed {seed} differs, now looking for the shortest script that does: {difference}");
            let (steps, difference) = minimise::minimise(pair, &script, difference);
            let mut report = format!("seed {seed}: {} is not like {:?}\n", format!("{:?}", pair.1), pair.0);
            for (number, step) in steps.iter().enumerate() {
                writeln!(report, "  {number:3} {step}").expect("a String takes all that is written");
            }
            panic!("{report}{difference}");
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} has to be a number, not {value:?}")))
}
