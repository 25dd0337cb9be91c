//! Whether a job costs more when many wait.
//!
//! As many jobs are submitted as are run, so that the same number waits all the time. Few wait first, then many, then few
//! again: on a machine that does other things, too, what differs between the first and the last is its doing.

use futures::stream::{FuturesUnordered, TryStreamExt};
use uuid::Uuid;

use super::super::load::Counts;
use super::rig::Rig;
use super::{Part, Progress, ScenarioConfig};
use crate::bench::cluster::ranked;

/// Few.
const FEW: usize = 1_000;

/// Jobs that are run before the measurement begins, so that everybody is at work.
const WARM: usize = 5_000;

/// Jobs that are run while it is measured: seconds, and not so many that their records are what is measured.
const MEASURED: usize = 30_000;

/// Jobs of one call while it is measured, and calls at once: so that it is never the submission that is measured.
const STEP: usize = 200;
const AT_ONCE: usize = 8;

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut parts = Vec::new();
    for (name, waiting) in [("few-1", FEW), ("many", config.size), ("few-2", FEW)] {
        parts.push(part(config, run, name, waiting, counts, progress).await?);
    }
    let few = (parts[0].jobs_per_second + parts[2].jobs_per_second) / 2.0;
    let ratio = parts[1].jobs_per_second / few;
    Ok((parts, Some(ratio)))
}

async fn part(
    config: &ScenarioConfig,
    run: Uuid,
    name: &str,
    waiting: usize,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<Part, String> {
    let mut rig = Rig::set(config, run, name, counts).await?;
    rig.fill(waiting, ranked, progress).await?;
    rig.known(waiting).await?;
    rig.work(config).await?;
    let slots = config.workers * config.slots as usize;
    let mut submitted = waiting;
    let mut clock = None;
    let mut under_way = FuturesUnordered::new();
    loop {
        let runs = rig.runs();
        match &clock {
            None if runs >= WARM => clock = Some(rig.start().await?),
            Some(_) if runs >= WARM + MEASURED => break,
            None | Some(_) => {}
        }
        while submitted < runs + waiting + slots && under_way.len() < AT_ONCE {
            let jobs = (submitted..submitted + STEP).map(ranked).collect::<Result<_, _>>()?;
            under_way.push(rig.submit(jobs));
            submitted += STEP;
        }
        if under_way.is_empty() {
            rig.ran(runs + 1).await?;
        } else {
            under_way.try_next().await?;
        }
        progress(Progress { what: format!("{waiting} waiting"), of: WARM + MEASURED, done: runs });
    }
    let clock = clock.ok_or("it was over before it began")?;
    let measured = rig.stop(format!("{waiting} waiting"), &clock).await?;
    while under_way.try_next().await?.is_some() {}
    drop(under_way);
    rig.take_down().await;
    Ok(measured)
}
