//! Jobs that start far in the future: their cost for the leader that was there at their submission, and for its
//! successor.

use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::super::load::Counts;
use super::setup::Setup;
use super::{Part, Progress, ScenarioConfig};
use crate::cluster::job;

/// Start time of the first of them, after the end of any run.
const AHEAD: Duration = Duration::from_secs(30 * 86_400);

/// Minutes over which they are spread, about a week.
const MINUTES: usize = 10_000;

/// Other jobs that run at the same time, for the cost per job.
const BESIDE: usize = 10_000;

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut setup = Setup::open(config, run, "later", counts).await?;
    let first = SystemTime::now() + AHEAD;
    let later = |n: usize| {
        let minute = u32::try_from(n % MINUTES).expect("less than MINUTES");
        job(n).run_at(first + Duration::from_secs(60) * minute)
    };
    setup.fill(config.size, later, progress).await?;
    setup.work(config).await?;
    let mut parts = vec![beside(&setup, "the leader that saw them come", config.size, progress).await?];
    setup.succeed().await?;
    parts.push(beside(&setup, "the leader after it", 0, progress).await?);
    setup.take_down().await;
    Ok((parts, None))
}

/// Runs other jobs while the delayed jobs wait.
async fn beside(
    setup: &Setup<'_>,
    leader: &str,
    from: usize,
    progress: &mut impl FnMut(Progress),
) -> Result<Part, String> {
    let clock = setup.start().await?;
    let before = setup.runs();
    setup.fill(BESIDE, |n| job(from + n), progress).await?;
    while setup.runs() < before + BESIDE {
        setup.ran(setup.runs() + 1).await?;
        progress(Progress { what: "other jobs".into(), of: BESIDE, done: setup.runs() - before });
    }
    let mut measured = setup.stop(leader.into(), &clock).await?;
    measured.leader_bytes = setup.leader_bytes()?;
    Ok(measured)
}
