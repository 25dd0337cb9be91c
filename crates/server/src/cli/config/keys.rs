//! The options of `bellwether node` with their names on the command line, in a file and in the environment.
//!
//! clap's description is the only one. A key is the option's name with `_` for `-`, and its environment variable is
//! `BELLWETHER_` and the key in capitals. So each new option also becomes a key, a variable and an entry of the
//! example.

use clap::{Arg, ArgAction, Command};

use crate::cli::node;
use bellwether_gateway::DEFAULT_ADDRESS;

/// The option that names the file. It is not a key of the file.
pub(super) const FILE: &str = "config";

/// Options of every command that a node also needs.
const GLOBAL: [&str; 12] = [
    "zookeeper",
    "zookeeper_user",
    "zookeeper_password_file",
    "zookeeper_former_password_file",
    "zookeeper_roles",
    "zookeeper_scheme",
    "zookeeper_tls_ca",
    "zookeeper_tls_cert",
    "zookeeper_tls_key",
    "zookeeper_insecure",
    "log_format",
    "otlp_endpoint",
];

/// An option of a node.
#[derive(Debug, Clone)]
pub(super) struct Key(Arg);

/// Returns all keys, in the order of the help.
pub(super) fn all(command: &Command) -> Vec<Key> {
    let node = <node::Node as clap::Args>::augment_args(Command::new("node"));
    let global = command.get_arguments().filter(|arg| GLOBAL.iter().any(|id| arg.get_id() == id));
    let own = node.get_arguments().filter(|arg| arg.get_id() != FILE);
    global.chain(own).cloned().map(Key).collect()
}

/// Gives each of these options that the command has its environment variable.
pub(super) fn with_variables(command: Command, keys: &[Key]) -> Command {
    let known = |arg: &Arg| arg.get_env().is_none() && keys.iter().any(|key| key.id() == arg.get_id());
    command.mut_args(|arg| if known(&arg) { variable(arg) } else { arg })
}

fn variable(arg: Arg) -> Arg {
    let name = Key(arg.clone()).variable();
    let several = Key(arg.clone()).several();
    let arg = arg.env(name).hide_env_values(true);
    // A variable holds one text, so several values are separated by commas.
    if several { arg.value_delimiter(',') } else { arg }
}

impl Key {
    /// The id in clap.
    pub(super) fn id(&self) -> &str {
        self.0.get_id().as_str()
    }

    /// Whether every command has this option.
    pub(super) fn global(&self) -> bool {
        GLOBAL.contains(&self.id())
    }

    /// The name on the command line.
    pub(super) fn option(&self) -> &str {
        self.0.get_long().unwrap_or_default()
    }

    /// The name in a file.
    pub(super) fn name(&self) -> String {
        self.option().replace('-', "_")
    }

    /// The name in the environment.
    pub(super) fn variable(&self) -> String {
        format!("BELLWETHER_{}", self.name().to_uppercase())
    }

    /// Whether the option accepts several values.
    pub(super) fn several(&self) -> bool {
        matches!(self.0.get_action(), ArgAction::Append) || self.0.get_value_delimiter().is_some()
    }

    /// Whether the option is a flag without a value.
    pub(super) fn switch(&self) -> bool {
        matches!(self.0.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
    }

    /// The help text.
    pub(super) fn help(&self) -> String {
        self.0.get_help().map(ToString::to_string).unwrap_or_default()
    }

    /// The allowed values, if they can be listed.
    pub(super) fn possible(&self) -> Vec<String> {
        if self.switch() {
            return Vec::new();
        }
        self.0.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    }

    /// The default values.
    pub(super) fn defaults(&self) -> Vec<String> {
        // clap does not know this default, because `dev` must know whether the address was given.
        if self.name() == "http_listen" {
            return vec![DEFAULT_ADDRESS.to_string()];
        }
        let texts = self.0.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        let delimiter = self.0.get_value_delimiter();
        texts
            .flat_map(|text| match delimiter {
                Some(delimiter) => text.split(delimiter).map(str::to_owned).collect(),
                None => vec![text],
            })
            .collect()
    }

    /// The placeholder for the value in the help text.
    pub(super) fn placeholder(&self) -> String {
        let names = self.0.get_value_names().unwrap_or_default();
        names.first().map_or_else(|| self.name().to_uppercase(), ToString::to_string)
    }

    /// Checks the values with the option's own parser.
    pub(super) fn check(&self, values: &[String]) -> Result<(), String> {
        use clap::error::{ContextKind, ContextValue};
        let arg = self.0.clone().env(None::<&str>).required(false).default_values(Vec::<String>::new());
        let command =
            Command::new("node").no_binary_name(true).disable_help_flag(true).arg(arg.global(false));
        let option = self.option();
        let error =
            match command.try_get_matches_from(values.iter().map(|value| format!("--{option}={value}"))) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.clone()),
            Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
            Some(_) | None => None,
        };
        let value = context(ContextKind::InvalidValue).unwrap_or_default();
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let allowed = context(ContextKind::ValidValue).map(|values| format!("one of {values} is allowed"));
        let why = why.or(allowed).unwrap_or_else(|| error.kind().to_string());
        Err(format!("{} is {value:?}: {why}", self.name()))
    }
}
