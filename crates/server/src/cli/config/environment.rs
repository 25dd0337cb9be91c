//! Environment variables that look like ours and are not: a misspelt one would be passed over without a word.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::keys;
use crate::cli::{Arguments, access};

/// What all of ours begin with.
const OURS: &str = "BELLWETHER_";

/// Of the tests and the build, not of the command.
const FOR_TESTS: &str = "BELLWETHER_TEST_";

/// What a handler of the kind `exec` tells its program, in whose environment a command may run.
const OF_JOBS: [&str; 3] = ["BELLWETHER_JOB", "BELLWETHER_ATTEMPT", "BELLWETHER_FENCING_TOKEN"];

/// The variables of this process that nothing of the command reads, each in a line.
pub(super) fn strangers() -> Vec<String> {
    let known = known(&Arguments::command());
    among(std::env::vars_os().map(|(name, _)| name), &known)
        .into_iter()
        .map(|name| format!("nothing reads the environment variable {name}: `bellwether config example` lists the keys, which are BELLWETHER_ and the key in capitals"))
        .collect()
}

/// Tells the log of them.
pub(crate) fn warn_of_strangers() {
    for line in strangers() {
        tracing::warn!("{line}");
    }
}

fn known(command: &Command) -> BTreeSet<OsString> {
    let mut known = OF_JOBS.map(OsString::from).into_iter().collect::<BTreeSet<_>>();
    known.insert(access::PASSWORD.into());
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
        // A name is anybody's text.
        .map(|name| name.escape_debug().to_string())
        .collect::<Vec<_>>();
    strange.sort();
    strange
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_told_and_no_other() {
        let known = known(&Arguments::command());
        let told = |names: &[&str]| among(names.iter().map(OsString::from), &known);
        assert_eq!(
            told(&["BELLWETHER_SLOT", "BELLWETHER_\u{1b}[2J", "SLOTS", "PATH"]),
            ["BELLWETHER_SLOT", "BELLWETHER_\\u{1b}[2J"]
        );
        let ours = ["BELLWETHER_SLOTS", "BELLWETHER_ZOOKEEPER", "BELLWETHER_CONFIG", "BELLWETHER_HTTP_ADDR"];
        assert_eq!(told(&ours), Vec::<String>::new());
        assert_eq!(told(&["BELLWETHER_JOB", "BELLWETHER_TEST_SERVER"]), Vec::<String>::new());
        assert_eq!(told(&["BELLWETHER_KEEPER_SUPER_DIGEST"]), Vec::<String>::new());
    }
}
