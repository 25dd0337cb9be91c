//! Whether a job costs more when many jobs wait.
//!
//! Jobs are submitted as fast as they run, so that the number of waiting jobs is constant. Parts with few and with many
//! waiting jobs alternate, and their means are compared: differences between equal parts come from other load on the
//! machine or from the records of earlier parts. At the end of each part the leader is killed, to measure how long the next one
//! takes to assign the first job.

use futures::stream::{FuturesUnordered, TryStreamExt};
use uuid::Uuid;

use super::super::load::Counts;
use super::setup::Setup;
use super::{Part, Progress, ScenarioConfig};
use crate::cluster::ranked;
use crate::count;

/// The small number of waiting jobs.
const FEW: usize = 1_000;

/// Number of parts with many waiting jobs. There is one more part with few.
const TURNS: usize = 2;

/// Jobs that run before the measurement, as a warm-up.
const WARM: usize = 5_000;

/// Jobs that are measured: enough for some seconds, but not so many that their records dominate.
const MEASURED: usize = 30_000;

/// Jobs per submission, and concurrent submissions, so that submission is not the bottleneck.
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
    let mut setup = Setup::open(config, run, name, counts).await?;
    setup.fill(waiting, ranked, progress).await?;
    setup.known(waiting).await?;
    setup.work(config).await?;
    let slots = config.workers * config.slots as usize;
    let mut submitted = waiting;
    let mut clock = None;
    let mut under_way = FuturesUnordered::new();
    loop {
        let runs = setup.runs();
        match &clock {
            None if runs >= WARM => clock = Some(setup.start().await?),
            Some(_) if runs >= WARM + MEASURED => break,
            None | Some(_) => {}
        }
        while submitted < runs + waiting + slots && under_way.len() < AT_ONCE {
            let jobs = (submitted..submitted + STEP).map(ranked).collect();
            under_way.push(setup.submit(jobs));
            submitted += STEP;
        }
        if under_way.is_empty() {
            setup.ran(runs + 1).await?;
        } else {
            under_way.try_next().await?;
        }
        progress(Progress { what: format!("{waiting} waiting"), of: WARM + MEASURED, done: runs });
    }
    let clock = clock.ok_or("it was over before it began")?;
    let mut measured = setup.stop(format!("{waiting} waiting"), &clock).await?;
    while under_way.try_next().await?.is_some() {}
    drop(under_way);
    measured.takeover = Some(setup.take_over().await?);
    setup.take_down().await;
    Ok(measured)
}
