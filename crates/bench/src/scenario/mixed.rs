//! Loads of different jobs, one after the other: from the submission of the first job until every result is read.

use bellwether::error::chain;
use bellwether::{Job, State};
use uuid::Uuid;

use super::super::load::Counts;
use super::setup::Setup;
use super::{PATIENCE, Part, Progress, ScenarioConfig};
use crate::cluster::{FAIL, KIND, job};

/// Jobs that run before each measurement, as a warm-up.
const WARM: usize = 2_000;

/// Jobs that are submitted one at a time.
const SINGLE: usize = 500;

/// Kinds of the load with many kinds.
const KINDS: usize = 20;

/// Jobs of each lane.
const PER_LANE: usize = 5;

/// Bytes of a large payload, and by how much the number of these jobs is divided.
const LARGE: usize = 16 * 1024;
const FEWER: usize = 5;

/// One kind of load.
#[derive(Debug, Clone, Copy)]
enum Load {
    Plain,
    /// One of twenty fails at its only attempt.
    Failing,
    Ids,
    Lanes,
    /// Twenty kinds and ten priorities, in all combinations.
    Kinds,
    Large,
    /// The next one is submitted when the result of the last one is read.
    Single,
}

impl Load {
    const ALL: [Self; 7] =
        [Self::Plain, Self::Failing, Self::Ids, Self::Lanes, Self::Kinds, Self::Large, Self::Single];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Failing => "5 % fail",
            Self::Ids => "with ids",
            Self::Lanes => "with lanes",
            Self::Kinds => "20 kinds, 10 priorities",
            Self::Large => "16 KiB",
            Self::Single => "one at a time",
        }
    }

    fn jobs(self, size: usize) -> usize {
        match self {
            Self::Single => SINGLE,
            Self::Large => size.div_ceil(FEWER),
            Self::Plain | Self::Failing | Self::Ids | Self::Lanes | Self::Kinds => size,
        }
    }

    /// Whether job `n` fails.
    fn fails(self, n: usize) -> bool {
        matches!(self, Self::Failing) && n.is_multiple_of(20)
    }

    fn job(self, n: usize) -> Job {
        match self {
            Self::Failing if self.fails(n) => Job::new(KIND, FAIL).max_attempts(1),
            Self::Plain | Self::Failing | Self::Single => job(n),
            Self::Ids => job(n).id(format!("job-{n}")),
            Self::Lanes => job(n).lane(format!("lane-{}", n / PER_LANE)),
            Self::Kinds => {
                let priority = u8::try_from(n / KINDS % 10).expect("one digit");
                Job::new(kind(n % KINDS), &n).priority(priority)
            }
            Self::Large => Job::new(KIND, &"x".repeat(LARGE)),
        }
    }
}

fn kind(n: usize) -> String {
    format!("{KIND}-{n}")
}

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut parts = Vec::new();
    for load in Load::ALL {
        let name = format!("mixed-{}", parts.len());
        let mut setup = Setup::open(config, run, &name, counts).await?;
        let kinds = (0..KINDS).map(kind).collect::<Vec<_>>();
        let kinds = kinds.iter().map(String::as_str).chain([KIND]).collect::<Vec<_>>();
        setup.work_on(config, &kinds).await?;
        let jobs = load.jobs(config.size);
        // Other numbers than those that are measured, so that ids and lanes are new.
        let warm = jobs..jobs + WARM.min(jobs);
        all(&setup, load, warm, &mut |_| {}).await?;
        let clock = setup.start().await?;
        let mut note = |done| progress(Progress { what: load.name().into(), of: jobs, done });
        if matches!(load, Load::Single) {
            for n in 0..jobs {
                all(&setup, load, n..n + 1, &mut |_| {}).await?;
                note(n + 1);
            }
        } else {
            all(&setup, load, 0..jobs, &mut note).await?;
        }
        parts.push(setup.stop(load.name().into(), &clock).await?);
        setup.take_down().await;
    }
    Ok((parts, None))
}

/// Submits the jobs with these numbers and reads their results.
async fn all(
    setup: &Setup<'_>,
    load: Load,
    numbers: std::ops::Range<usize>,
    progress: &mut impl FnMut(usize),
) -> Result<(), String> {
    let submitted = setup.client.submit_many(numbers.clone().map(|n| load.job(n)), |_| {}).await;
    let handles = submitted.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| chain(&error))?;
    let ends = setup.client.wait_for_many(&handles, PATIENCE, progress).await;
    for (n, end) in numbers.zip(ends) {
        let state = end.map_err(|error| chain(&error))?.state;
        let expected = if load.fails(n) { State::Dead } else { State::Succeeded };
        if state != expected {
            return Err(format!("job {n} of the load `{}` is {state}; expected {expected}", load.name()));
        }
    }
    Ok(())
}
