//! `bellwether leader`.

use bellwether::client::rfc3339;
use clap::Subcommand;

use super::Global;
use super::exit::{Failure, Kind};
use super::output::{Format, Output};
use crate::document::LeaderDocument;

#[derive(Debug, Subcommand)]
pub(crate) enum Leader {
    /// Show the leader; exit code 4 without a leader.
    ///
    /// JSON: an object with node, epoch, session, since, standing (whether it is still a candidate).
    Show,
}

pub(crate) async fn run(global: &Global, output: Output, command: Leader) -> Result<(), Failure> {
    let Leader::Show = command;
    let client = global.reader().await?;
    let leader = client.leader().await?;
    client.close().await;
    let Some(leader) = leader else {
        return Err(Failure::new(Kind::NotFound, "there is no leader, and this namespace never had one"));
    };
    match output.format {
        Format::Json => output.json(&LeaderDocument::from(&leader))?,
        Format::Table => {
            let standing = if leader.standing { "leading" } else { "left" };
            let (session, since) = (format!("{:#x}", leader.session), rfc3339(leader.since));
            let row =
                [leader.node.to_string(), leader.epoch.to_string(), standing.to_owned(), since, session];
            output.rows(["NODE", "EPOCH", "STATE", "SINCE", "SESSION"], vec![row])?;
        }
    }
    if leader.standing {
        return Ok(());
    }
    let gone =
        format!("there is no leader: {} was the last one and no longer stands for election", leader.node);
    Err(Failure::new(Kind::NotFound, gone))
}
