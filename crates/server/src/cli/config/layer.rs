//! Precedence: command line, environment variable, file, default.
//!
//! The command line is parsed twice: first to find the file, then with the values of the file as defaults. So clap
//! alone defines the precedence and the allowed values.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::keys::{self, Key};
use super::{Config, Setting};
use crate::cli::exit::Failure;

/// Commands that accept the options of a node.
const NODES: [&[&str]; 3] = [&["node"], &["dev"], &["config", "show"]];

/// Why the command line was rejected.
#[derive(Debug)]
pub(crate) enum Refused {
    /// clap's error for the command line; it may also be the help text.
    Words(Box<clap::Error>),
    /// The configuration file is invalid.
    File(Failure),
}

/// The parsed command line and the settings of the file.
#[derive(Debug)]
pub(crate) struct Said {
    /// The whole command line, with the settings of the file as defaults.
    pub(crate) matches: ArgMatches,
    /// The settings of the file.
    file: Vec<Setting>,
}

/// A key with its effective value.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Effective {
    pub(super) key: String,
    /// `None`: not set.
    pub(super) value: Option<String>,
    /// The source of the value.
    pub(super) from: String,
}

/// Gives each key its environment variable.
pub(crate) fn with_variables(command: Command) -> Command {
    let keys = keys::all(&command);
    let command = keys::with_variables(command, &keys);
    NODES.iter().fold(command, |command, path| below(command, path, |node| keys::with_variables(node, &keys)))
}

/// Parses a command line.
pub(crate) fn understand<I>(command: Command, words: I) -> Result<Said, Refused>
where
    I: IntoIterator<Item = OsString> + Clone,
{
    let read = |command: &Command| {
        command.clone().try_get_matches_from(words.clone()).map_err(|error| Refused::Words(Box::new(error)))
    };
    let matches = read(&command)?;
    let named = NODES.iter().find_map(|path| Some((path, of(&matches, path)?)));
    let Some((path, file)) =
        named.and_then(|(path, node)| Some((path, node.get_one::<PathBuf>(keys::FILE)?)))
    else {
        return Ok(Said { matches, file: Vec::new() });
    };
    let Config { settings, .. } = super::read(file).map_err(Refused::File)?;
    let (root, own): (Vec<_>, Vec<_>) = settings.iter().partition(|setting| setting.key.global());
    let command = root.into_iter().fold(command, with_default);
    let command = below(command, path, |node| own.into_iter().fold(node, with_default));
    Ok(Said { matches: read(&command)?, file: settings })
}

fn with_default(command: Command, setting: &Setting) -> Command {
    command.mut_arg(setting.key.id(), |arg| arg.default_values(setting.values.clone()))
}

/// Changes a nested subcommand.
fn below(command: Command, path: &[&'static str], change: impl FnOnce(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        [first, rest @ ..] => command.mut_subcommand(first, |command| below(command, rest, change)),
    }
}

/// Returns the matches of a nested subcommand if the command line names it.
fn of<'a>(matches: &'a ArgMatches, path: &[&str]) -> Option<&'a ArgMatches> {
    path.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name))
}

impl Said {
    /// Returns all keys with their effective values.
    pub(super) fn effective(&self, command: &Command) -> Vec<Effective> {
        let node = NODES.iter().find_map(|path| of(&self.matches, path)).unwrap_or(&self.matches);
        keys::all(command).iter().map(|key| self.key(key, node)).collect()
    }

    fn key(&self, key: &Key, node: &ArgMatches) -> Effective {
        let values = node
            .get_raw(key.id())
            .map(|values| values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>())
            .or_else(|| Some(key.defaults()).filter(|defaults| !defaults.is_empty()));
        let from = match (
            node.value_source(key.id()),
            self.file.iter().find(|setting| setting.key.id() == key.id()),
        ) {
            (Some(ValueSource::CommandLine), _) => format!("--{}", key.option()),
            (Some(ValueSource::EnvVariable), _) => key.variable(),
            (_, Some(setting)) => setting.place.clone(),
            (_, None) => "default".to_owned(),
        };
        Effective { key: key.name(), value: values.map(|values| values.join(",")), from }
    }
}
