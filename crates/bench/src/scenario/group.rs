//! One large group, from the submission of its first member to its join.

use uuid::Uuid;

use super::super::load::Counts;
use super::setup::Setup;
use super::{Part, Progress, ScenarioConfig};
use crate::cluster::{KIND, job};
use bellwether::client::Group;
use bellwether::error::chain;

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut setup = Setup::open(config, run, "group", counts).await?;
    setup.work(config).await?;
    let total = u32::try_from(config.size).map_err(|error| chain(&error))?;
    let group = Group::new(KIND, "bench").total(total);
    let group = setup.client.group(group).await.map_err(|error| chain(&error))?;
    let clock = setup.start().await?;
    let submitted =
        async { group.submit_all((0..config.size).map(job)).await.map_err(|error| chain(&error)) };
    // The members, and then the join.
    let ran = async {
        while setup.runs() <= config.size {
            setup.ran(setup.runs() + 1).await?;
            progress(Progress { what: "members".into(), of: config.size, done: setup.runs() });
        }
        Ok::<(), String>(())
    };
    let (submitted, ran) = futures::future::join(submitted, ran).await;
    submitted?;
    ran?;
    let name = format!("a group of {} and its join", config.size);
    let mut measured = setup.stop(name, &clock).await?;
    measured.leader_bytes = setup.leader_bytes()?;
    setup.take_down().await;
    Ok((vec![measured], None))
}
