//! An option over its environment variable over the file over the default.
//!
//! The command line is understood once, to find the file, and then again with what the file says for defaults: so the
//! rules of precedence, and of what a value may be, are clap's, and stand once.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::keys::{self, Key};
use super::{Config, Setting};
use crate::cli::exit::Failure;

/// The commands that take a node's options.
const NODES: [&[&str]; 3] = [&["node"], &["dev"], &["config", "show"]];

/// Why there are no arguments.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The words: clap says how, and what it prints may be help.
    Words(Box<clap::Error>),
    /// The file.
    File(Failure),
}

/// What was said, and where.
#[derive(Debug)]
pub(crate) struct Said {
    /// All of the command line, with what the file adds.
    pub(crate) matches: ArgMatches,
    /// What the file says.
    file: Vec<Setting>,
}

/// A key with what it is in effect.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Effective {
    pub(super) key: String,
    /// `None`: nothing.
    pub(super) value: Option<String>,
    /// Who says so.
    pub(super) from: String,
}

/// Understands a command line.
pub(crate) fn understand<I>(command: Command, words: I) -> Result<Said, Refused>
where
    I: IntoIterator<Item = OsString> + Clone,
{
    let keys = keys::all(&command);
    let command = NODES
        .iter()
        .fold(command, |command, path| below(command, path, |node| keys::with_variables(node, &keys)));
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

/// Changes a command's command.
fn below(command: Command, path: &[&'static str], change: impl FnOnce(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        [first, rest @ ..] => command.mut_subcommand(first, |command| below(command, rest, change)),
    }
}

/// What was said to a command's command, if it was that.
fn of<'a>(matches: &'a ArgMatches, path: &[&str]) -> Option<&'a ArgMatches> {
    path.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name))
}

impl Said {
    /// All keys with what they are.
    pub(super) fn effective(&self, command: &Command) -> Vec<Effective> {
        let node = NODES.iter().find_map(|path| of(&self.matches, path)).unwrap_or(&self.matches);
        keys::all(command).iter().map(|key| self.key(key, node)).collect()
    }

    fn key(&self, key: &Key, node: &ArgMatches) -> Effective {
        let values = node
            .get_raw(key.id())
            .map(|values| values.map(|value| value.to_string_lossy()).collect::<Vec<_>>());
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
