//! `bellwether access`: the access lists of a namespace.

use bellwether::access_lists::{self, Repaired, Role};
use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::exit::Failure;
use super::output::{Format, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Check that every znode of the namespace belongs to the user of --zookeeper-user alone.
    ///
    /// Exit code 1 if one does not. JSON: an object with znodes and differed, which are numbers, and
    /// examples, each with path and may.
    Check,
    /// Give every znode of the namespace an access list for the user of --zookeeper-user alone.
    ///
    /// Stop all nodes and clients of the namespace first. May be repeated. JSON as for `access check`; differed is the number
    /// of access lists that were changed.
    ///
    /// With --zookeeper-roles each list has the permissions of the roles, the user must be the operator, and a missing namespace is
    /// created.
    Repair,
    /// Print the line of --zookeeper-user for the file of --zookeeper-roles. ZooKeeper is not contacted.
    ///
    /// The line has a hash of the password and not the password. JSON: an object with role and identity.
    Identity {
        /// Role of the user: operator, candidate, worker, gateway or client.
        role: Role,
    },
}

pub(crate) async fn run(global: &Global, output: Output, command: AccessCommand) -> Result<(), Failure> {
    match command {
        AccessCommand::Identity { role } => identity(global, output, role),
        AccessCommand::Check => {
            let (to, access) = (global.zookeeper()?, global.access.access()?);
            let done = access_lists::inspect(to, &access, global.deadline).await?;
            print(output, "differ", &done)?;
            let whose = if access.role().is_some() { "its roles" } else { "this user" };
            match done.differed {
                0 => Ok(()),
                differed => Err(Failure::failed(format!("{differed} znodes do not belong to {whose} alone"))),
            }
        }
        AccessCommand::Repair => {
            let (to, access) = (global.zookeeper()?, global.access.access()?);
            let done = access_lists::repair(to, &access, global.deadline).await?;
            print(output, "were closed", &done)
        }
    }
}

fn identity(global: &Global, output: Output, role: Role) -> Result<(), Failure> {
    let identity = global.access.identity()?;
    match output.format {
        Format::Json => output.json(&json!({ "role": role.name(), "identity": identity })),
        Format::Table => output.text(&format!("{role} {identity}")),
    }
}

fn print(output: Output, verb: &str, done: &Repaired) -> Result<(), Failure> {
    let Repaired { znodes, differed, examples, .. } = done;
    match output.format {
        Format::Json => {
            let examples: Vec<_> =
                examples.iter().map(|exposed| json!({ "path": exposed.path, "may": exposed.may })).collect();
            output.json(&json!({ "znodes": znodes, "differed": differed, "examples": examples }))
        }
        Format::Table => {
            let mut text = format!("{znodes} znodes, of which {differed} {verb}");
            for exposed in examples {
                text += &format!("\n  {} {}", exposed.path, exposed.may);
            }
            output.text(&text)
        }
    }
}
