//! Many lanes, each with a few jobs, which run one at a time.

use uuid::Uuid;

use super::super::load::Counts;
use super::setup::Setup;
use super::{Part, Progress, ScenarioConfig};
use crate::cluster::job;

/// Jobs per lane.
const EACH: usize = 5;

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut setup = Setup::open(config, run, "lanes", counts).await?;
    let jobs = EACH * config.size;
    let laned = |n: usize| job(n).lane(format!("lane-{}", n % config.size));
    setup.fill(jobs, laned, progress).await?;
    // The leader knows only the first job of each lane.
    setup.known(config.size).await?;
    let clock = setup.start().await?;
    setup.work(config).await?;
    while setup.runs() < jobs {
        setup.ran(setup.runs() + 1).await?;
        progress(Progress { what: "jobs of lanes".into(), of: jobs, done: setup.runs() });
    }
    let measured = setup.stop(format!("{} lanes, {EACH} jobs each", config.size), &clock).await?;
    setup.take_down().await;
    Ok((vec![measured], None))
}
