//! Whether a job costs more when many wait.
//!
//! As many jobs are submitted as are run, so that the same number waits all the time. Few wait and many in turn, and what
//! is compared are the means: on a machine that does other things, too, what differs between two parts of one kind is its
//! doing, or that of the records that the parts before left behind.

use futures::stream::{FuturesUnordered, TryStreamExt};
use uuid::Uuid;

use super::super::load::Counts;
use super::rig::Rig;
use super::{Part, Progress, ScenarioConfig};
use crate::bench::cluster::ranked;
use crate::bench::count;

/// Few.
const FEW: usize = 1_000;

/// How often many wait. Few wait once more.
const TURNS: usize = 2;

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
    let mut parts = vec![part(config, run, "few-1", FEW, counts, progress).await?];
    for turn in 1..=TURNS {
        parts.push(part(config, run, &format!("many-{turn}"), config.size, counts, progress).await?);
        parts.push(part(config, run, &format!("few-{}", turn + 1), FEW, counts, progress).await?);
    }
    let few = mean(parts.iter().step_by(2));
    let many = mean(parts.iter().skip(1).step_by(2));
    Ok((parts, Some(many / few)))
}

fn mean<'a>(parts: impl ExactSizeIterator<Item = &'a Part>) -> f64 {
    let of = count(parts.len());
    parts.map(|part| part.jobs_per_second).sum::<f64>() / of
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
