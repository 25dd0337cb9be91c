//! Environment variables with our prefix that nothing reads: without this check a misspelt variable is silently
//! ignored.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::keys;
use crate::builtin::exec;
use crate::cli::{Arguments, access, keeper};

/// Prefix of all variables of the command.
const OURS: &str = "BELLWETHER_";

/// Prefix of the variables of the tests and the build.
const FOR_TESTS: &str = "BELLWETHER_TEST_";

/// Returns one line for each environment variable of this process that has our prefix and that nothing reads.
pub(super) fn unknown_variables() -> Vec<String> {
    let known = known(&Arguments::command());
    among(std::env::vars_os().map(|(name, _)| name), &known)
        .into_iter()
        .map(|name| format!("unknown environment variable {name}: `bellwether config example` lists the keys; the variable of a key is BELLWETHER_ and the key in capitals"))
        .collect()
}

/// Logs a warning for each of them.
pub(crate) fn warn_of_unknown_variables() {
    for line in unknown_variables() {
        tracing::warn!(cause = %line, "the command ignores an environment variable");
    }
}

fn known(command: &Command) -> BTreeSet<OsString> {
    // A program of the kind `exec` may call the command.
    let mut known = exec::VARIABLES.map(OsString::from).into_iter().collect::<BTreeSet<_>>();
    known.extend([access::PASSWORD, keeper::SUPER_DIGEST].map(OsString::from));
    known.extend(keys::all(command).iter().map(|key| OsString::from(key.variable())));
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        known.extend(command.get_arguments().filter_map(|arg| arg.get_env().map(OsString::from)));
        commands.extend(command.get_subcommands());
    }
    known
}

fn among(names: impl Iterator<Item = OsString>, known: &BTreeSet<OsString>) -> Vec<String> {
    let names = names.filter(|name| !known.contains(name)).map(|name| name.to_string_lossy().into_owned());
    let mut strange = names
        .filter(|name| name.starts_with(OURS) && !name.starts_with(FOR_TESTS))
        // A name may contain control characters.
        .map(|name| name.escape_debug().to_string())
        .collect::<Vec<_>>();
    strange.sort();
    strange
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_misspelt_variable_is_reported() {
        let known = known(&Arguments::command());
        let told = |names: &[&str]| among(names.iter().map(OsString::from), &known);
        assert_eq!(
            told(&["BELLWETHER_SLOT", "BELLWETHER_\u{1b}[2J", "SLOTS", "PATH"]),
            ["BELLWETHER_SLOT", "BELLWETHER_\\u{1b}[2J"]
        );
        let ours =
            ["BELLWETHER_SLOTS", "BELLWETHER_ZOOKEEPER", "BELLWETHER_CONFIG", "BELLWETHER_HTTP_LISTEN"];
        assert_eq!(told(&ours), Vec::<String>::new());
        assert_eq!(told(&["BELLWETHER_PROGRESS_FD", "BELLWETHER_TEST_SERVER"]), Vec::<String>::new());
        assert_eq!(told(&["BELLWETHER_KEEPER_SUPER_DIGEST"]), Vec::<String>::new());
    }
}
