//! `bellwether config`.

use std::path::PathBuf;

use clap::{CommandFactory, Subcommand};

use super::environment::{unknown_variables, warn_of_unknown_variables};
use super::layer::Effective;
use super::{Said, example};
use crate::cli::exit::{Failure, Kind};
use crate::cli::output::{Format, Output};
use crate::cli::{Arguments, node};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Validate configuration files without starting a node.
    ///
    /// Errors name the file, the line and the allowed values, and the exit code is 2. An environment variable that
    /// begins with BELLWETHER_ and that no option reads is an error, too. JSON: an array of objects with file, keys,
    /// schedules.
    Check {
        /// Configuration files, as for `node --config`.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Show the effective configuration of a node and the source of each value.
    ///
    /// Combines the given options, the environment, the file and the defaults. JSON: an array of objects with key,
    /// value, from.
    Show(Box<node::Node>),
    /// Print an example file with every key, its description and its default.
    Example,
}

#[derive(serde::Serialize)]
struct Checked {
    file: String,
    keys: usize,
    schedules: usize,
}

pub(crate) fn run(output: Output, command: &ConfigCommand, said: &Said) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check { files } => check(output, files),
        ConfigCommand::Show(_) => {
            warn_of_unknown_variables();
            show(output, &said.effective(&Arguments::command()))
        }
        ConfigCommand::Example => output.text(example::text(&Arguments::command()).trim_end()),
    }
}

fn check(output: Output, files: &[PathBuf]) -> Result<(), Failure> {
    let unknown = unknown_variables().into_iter().map(|line| (Kind::Usage, line)).collect::<Vec<_>>();
    Failure::all(unknown)?;
    let mut checked = Vec::new();
    for file in files {
        let config = super::read(file)?;
        let (keys, schedules) = (config.settings.len(), config.schedules.len());
        checked.push(Checked { file: file.display().to_string(), keys, schedules });
    }
    match output.format {
        Format::Json => output.json(&checked),
        Format::Table => {
            let row =
                |checked: Checked| [checked.file, checked.keys.to_string(), checked.schedules.to_string()];
            output.rows(["FILE", "KEYS", "SCHEDULES"], checked.into_iter().map(row).collect())
        }
    }
}

fn show(output: Output, effective: &[Effective]) -> Result<(), Failure> {
    match output.format {
        Format::Json => output.json(effective),
        Format::Table => {
            let row = |is: &Effective| {
                [is.key.clone(), is.value.clone().unwrap_or_else(|| "-".to_owned()), is.from.clone()]
            };
            output.rows(["KEY", "VALUE", "FROM"], effective.iter().map(row).collect())
        }
    }
}
