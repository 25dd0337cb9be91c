//! `bellwether access`: the access lists of a namespace.

use bellwether::access_lists::{self, AccessListError, Repaired};
use bellwether::error::ErrorClass;
use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::exit::{Failure, Kind, chain};
use super::output::{Format, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Check that every znode of the namespace belongs to the user of --zookeeper-user alone.
    ///
    /// Exit code 1 if one does not. JSON: an object with znodes, differed and examples, each with path and may.
    Check,
    /// Give every znode of the namespace an access list for the user of --zookeeper-user alone.
    ///
    /// Stop all nodes and clients of the namespace first. May be repeated. JSON as for `access check`, where differed are the
    /// lists that were changed.
    Repair,
}

pub(crate) async fn run(global: &Global, output: Output, command: AccessCommand) -> Result<(), Failure> {
    let (to, access) = (global.zookeeper()?, global.access.access()?);
    let done = async {
        match command {
            AccessCommand::Check => access_lists::inspect(to, &access, global.timeout).await,
            AccessCommand::Repair => access_lists::repair(to, &access, global.timeout).await,
        }
    };
    let done = done.await.map_err(|error| failure(&error))?;
    print(output, &command, &done)?;
    match command {
        AccessCommand::Check if done.differed > 0 => {
            Err(Failure::failed(format!("{} znodes do not belong to this user alone", done.differed)))
        }
        AccessCommand::Check | AccessCommand::Repair => Ok(()),
    }
}

fn failure(error: &AccessListError) -> Failure {
    let kind = match error.class() {
        ErrorClass::Invalid => Kind::Usage,
        ErrorClass::Unavailable => Kind::Unreachable,
        _ => Kind::Failed,
    };
    Failure::new(kind, chain(error))
}

fn print(output: Output, command: &AccessCommand, done: &Repaired) -> Result<(), Failure> {
    let Repaired { znodes, differed, examples, .. } = done;
    match output.format {
        Format::Json => {
            let examples: Vec<_> =
                examples.iter().map(|exposed| json!({ "path": exposed.path, "may": exposed.may })).collect();
            output.json(&json!({ "znodes": znodes, "differed": differed, "examples": examples }))
        }
        Format::Table => {
            let verb = match command {
                AccessCommand::Check => "differ",
                AccessCommand::Repair => "were closed",
            };
            let mut text = format!("{znodes} znodes, of which {differed} {verb}");
            for exposed in examples {
                text += &format!("\n  {} {}", exposed.path, exposed.may);
            }
            output.text(&text)
        }
    }
}
