//! Sends the same random requests to a new ZooKeeper and a new keeper; everything that a client can see must be equal.
//!
//! The test compares all bytes of all replies and notifications, and when connections are closed; [`answer`] normalises
//! values that must differ. [`intended`] lists the intended differences of the keeper, with their reasons.
//!
//! Two new ZooKeepers are compared in the same way, to show that differences are never random.
//!
//! To run it manually, with new random seeds:
//!
//! ```text
//! KEEPER_DIFF_REQUESTS=50000 cargo test -p bellwether-keeper --test differential -- --nocapture keeper
//! KEEPER_DIFF_SEED=17 KEEPER_DIFF_REQUESTS=1000 …      # one script again
//! KEEPER_DIFF_ZOOKEEPER=directory/of/jars …            # another release than the installed one
//! ```
//!
//! The release of the ZooKeeper selects the behaviour of the keeper. `cargo xtask differential` runs both releases.

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

use compare::compare;
use servers::Kind;

/// The seeds in CI.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Requests per script and pair of servers. A script must end within a minute even on a slow machine: after a minute
/// ZooKeeper removes empty containers, which the keeper in this test never does.
const REQUESTS: usize = 1_000;

#[test]
fn two_new_zookeepers_give_equal_replies() {
    check(Kind::ZooKeeper, &SEEDS[..1]);
}

#[test]
fn the_keeper_gives_the_replies_of_zookeeper() {
    check(Kind::Keeper, &SEEDS);
}

/// Runs the scripts of these seeds, or of the seeds given by environment variables.
fn check(kind: Kind, seeds: &[u64]) {
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
        if let Some(difference) = compare(kind, &script) {
            eprintln!("seed {seed} differs, now reducing its script: {difference}");
            let (steps, difference) = minimise::minimise(kind, &script, difference);
            let mut report = format!("seed {seed}: {kind:?} differs from the reference\n");
            for (number, step) in steps.iter().enumerate() {
                writeln!(report, "  {number:3} {step}").expect("writing to a String cannot fail");
            }
            panic!("{report}{difference}");
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}")))
}
