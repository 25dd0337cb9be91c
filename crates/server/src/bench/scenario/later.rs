//! Jobs of the far future: what they cost a leader that sees them come, and one that comes to lead when they are there.

use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::super::load::Counts;
use super::rig::Rig;
use super::{Part, Progress, ScenarioConfig};
use crate::bench::cluster::job;

/// When the first of them is due: after any run of this.
const AHEAD: Duration = Duration::from_secs(30 * 86_400);

/// Minutes over which they are spread: a week of them.
const MINUTES: usize = 10_000;

/// Jobs that are run beside them, for the cost of a job.
const BESIDE: usize = 10_000;

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut rig = Rig::set(config, run, "later", counts).await?;
    let first = SystemTime::now() + AHEAD;
    let later = |n: usize| {
        let minute = u64::try_from(n % MINUTES).map_err(|error| error.to_string())?;
        Ok(job(n)?.run_at(first + Duration::from_secs(60 * minute)))
    };
    rig.fill(config.size, later, progress).await?;
    rig.work(config).await?;
    let mut parts = vec![beside(&rig, "the leader that saw them come", config.size, progress).await?];
    rig.succeed().await?;
    parts.push(beside(&rig, "the leader after it", 0, progress).await?);
    rig.take_down().await;
    Ok((parts, None))
}

/// Runs jobs beside those that wait for their time.
async fn beside(
    rig: &Rig<'_>,
    leader: &str,
    from: usize,
    progress: &mut impl FnMut(Progress),
) -> Result<Part, String> {
    let clock = rig.start().await?;
    let before = rig.runs();
    rig.fill(BESIDE, |n| job(from + n), progress).await?;
    while rig.runs() < before + BESIDE {
        rig.ran(rig.runs() + 1).await?;
        progress(Progress { what: "jobs beside".into(), of: BESIDE, done: rig.runs() - before });
    }
    let mut measured = rig.stop(leader.into(), &clock).await?;
    measured.leader_bytes = rig.leader_bytes()?;
    Ok(measured)
}
