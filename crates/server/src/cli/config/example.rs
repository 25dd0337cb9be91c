//! A file with every key, from the description of the options.

use std::fmt::Write;

use clap::Command;

use super::keys::{self, Key};

const HEAD: &str = "\
# What a node is told: `bellwether node --config FILE`. Made by `bellwether config example`.
#
# Every key may also be an option, which wins, or an environment variable, which wins over this file. What is commented out
# is the default. `bellwether config check FILE` says whether a file is right, `bellwether config show --config FILE` what
# is in effect, and by whom.

[node]
";

const SCHEDULES: &str = r#"
# Schedules that every node with this file adds, under one name: they make one. See docs/operations.md.
#
# [[schedule]]
# name = "nightly"
# cron = "30 2 * * *"
# zone = "Europe/Berlin"
# misfire = { catch_up = 3, within = "1d" }   # or "skip", "once"
# overlap = "forbid"                          # or "allow", "queue"
# job = { kind = "echo", payload = { region = "eu" }, max_attempts = 3 }
"#;

/// The text of the file.
pub(super) fn text(command: &Command) -> String {
    let mut text = HEAD.to_owned();
    for key in keys::all(command) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{}", of(&key));
    }
    text + SCHEDULES
}

fn of(key: &Key) -> String {
    let mut text = String::new();
    for line in key.help().lines() {
        let _ = writeln!(text, "# {line}");
    }
    let possible = key.possible();
    if !possible.is_empty() {
        let _ = writeln!(
            text,
            "# One of {}{}.",
            possible.join(", "),
            if key.several() { ", or several" } else { "" }
        );
    }
    let _ = writeln!(text, "# {}", key.variable());
    let _ = writeln!(text, "# {} = {}", key.name(), value(key));
    text
}

fn value(key: &Key) -> String {
    let defaults = key.defaults();
    match &defaults[..] {
        [] if key.switch() => "false".to_owned(),
        [] if key.several() => "[]".to_owned(),
        [] => quoted(&key.placeholder()),
        [one] if one.bytes().all(|byte| byte.is_ascii_digit()) => one.clone(),
        values if key.several() => {
            format!("[{}]", values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", "))
        }
        values => quoted(&values.join(",")),
    }
}

fn quoted(text: &str) -> String {
    // A text of JSON is one of TOML.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn the_defaults_of_the_example_are_accepted_as_a_file() {
        let example = text(&Arguments::command());
        let keys = keys::all(&Arguments::command());
        let defaults =
            keys.iter().filter(|key| !key.defaults().is_empty()).map(|key| format!("# {} = ", key.name()));
        let mut said = example.clone();
        for line in defaults.collect::<Vec<_>>() {
            said = said.replace(&line, &line[2..]);
        }
        assert_ne!(said, example);
        let config = super::super::parse("example", &said).unwrap();
        for setting in config.settings {
            assert_eq!(setting.values, setting.key.defaults(), "{}", setting.key.name());
        }
    }

    #[test]
    fn the_packaged_example_is_of_this_build() {
        let packaged = include_str!("../../../../../packaging/bellwether.toml");
        assert_eq!(
            packaged,
            text(&Arguments::command()),
            "run: bellwether config example > packaging/bellwether.toml"
        );
    }
}
