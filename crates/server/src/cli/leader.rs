//! `bellwether leader`.

use bellwether::client::rfc3339;
use clap::Subcommand;

use super::Global;
use super::exit::{Failure, Kind};
use super::output::{Format, Output};
use bellwether_documents::{CandidatesDocument, LeaderDocument};

#[derive(Debug, Subcommand)]
pub(crate) enum Leader {
    /// Show the leader; exit code 4 without a leader.
    ///
    /// JSON: an object with node, epoch, session, since, standing (whether it is still a candidate).
    Show,
    /// List the candidates in their order; the first one is the leader, or the next one to lead.
    ///
    /// With the election strategy `single` only the leader is known. JSON: an object with candidates (node, or null if it
    /// cannot be read; session; since; leads) and unreadable (the number of foreign znodes among the candidates).
    Candidates,
}

pub(crate) async fn run(global: &Global, output: Output, command: Leader) -> Result<(), Failure> {
    match command {
        Leader::Show => show(global, output).await,
        Leader::Candidates => candidates(global, output).await,
    }
}

async fn candidates(global: &Global, output: Output) -> Result<(), Failure> {
    let client = global.reader().await?;
    let candidates = client.candidates().await?;
    client.close().await;
    let document = CandidatesDocument::from(&candidates);
    match output.format {
        Format::Json => output.json(&document),
        Format::Table => {
            output.rows(["NODE", "STATE", "SINCE", "SESSION"], document.rows())?;
            match candidates.unreadable {
                0 => Ok(()),
                count => output.text(&format!("{count} znodes among the candidates cannot be read")),
            }
        }
    }
}

async fn show(global: &Global, output: Output) -> Result<(), Failure> {
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
