//! One large group, from the submission of its first member to its join.

use uuid::Uuid;

use super::super::load::Counts;
use super::rig::Rig;
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
    let mut rig = Rig::set(config, run, "group", counts).await?;
    rig.work(config).await?;
    let total = u32::try_from(config.size).map_err(|error| chain(&error))?;
    let group = Group::new(KIND, "bench").total(total);
    let group = rig.client.group(group).await.map_err(|error| chain(&error))?;
    let clock = rig.start().await?;
    let submitted =
        async { group.submit_all((0..config.size).map(job)).await.map_err(|error| chain(&error)) };
    // The members, and then the join.
    let ran = async {
        while rig.runs() <= config.size {
            rig.ran(rig.runs() + 1).await?;
            progress(Progress { what: "members".into(), of: config.size, done: rig.runs() });
        }
        Ok::<(), String>(())
    };
    let (submitted, ran) = futures::future::join(submitted, ran).await;
    submitted?;
    ran?;
    let name = format!("a group of {} and its join", config.size);
    let mut measured = rig.stop(name, &clock).await?;
    measured.leader_bytes = rig.leader_bytes()?;
    rig.take_down().await;
    Ok((vec![measured], None))
}
