//! Configuration of a node: its file and the effective values.
//!
//! The file is TOML. Each value is checked where it is read, so that an error names the file, the line and the allowed
//! values. An unknown key is an error.

mod command;
mod environment;
mod example;
mod keys;
mod layer;
mod schedule;
mod value;

use std::collections::BTreeMap;
use std::path::Path;

use bellwether::Schedule;
use clap::CommandFactory;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

pub(crate) use command::{ConfigCommand, run};
pub(crate) use environment::warn_of_unknown_variables;
pub(crate) use layer::{Refused, Said, understand, with_variables};

use super::Arguments;
use super::exit::{Failure, chain};
use keys::Key;

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Config {
    /// The settings of the node.
    settings: Vec<Setting>,
    /// The schedules that the node adds.
    pub(crate) schedules: Vec<Schedule>,
}

/// A key with its values in the file.
#[derive(Debug)]
struct Setting {
    key: Key,
    values: Vec<String>,
    /// File and line.
    place: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    node: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default)]
    schedule: Vec<Spanned<Schedule>>,
}

/// Reads a file.
pub(crate) fn read(file: &Path) -> Result<Config, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    parse(&name, &text).map_err(Failure::usage)
}

fn parse(name: &str, text: &str) -> Result<Config, String> {
    parse_with(&keys::all(&Arguments::command()), name, text)
}

fn parse_with(keys: &[Key], name: &str, text: &str) -> Result<Config, String> {
    let place = |at: usize| format!("{name}:{}", line(text, at));
    let wrong = |at: usize, what: &str| format!("{}: {what}", place(at));
    let refused = |error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(at, error.message().lines().next().unwrap_or_default())
    };
    let mut file = DeTable::parse(text).map_err(refused)?;
    let payloads = schedule::take_payloads(file.get_mut());
    let file = File::deserialize(toml::Deserializer::from(file)).map_err(refused)?;
    let mut settings = Vec::new();
    for (named, value) in file.node {
        let at = value.span().start;
        let Some(key) = keys.iter().find(|key| key.name() == named) else {
            let known = keys.iter().map(|key| format!("`{}`", key.name())).collect::<Vec<_>>().join(", ");
            return Err(wrong(at, &format!("unknown key `{named}` in [node], expected one of {known}")));
        };
        let values = value::texts(value.into_inner(), key.several())
            .map_err(|what| wrong(at, &format!("{named} {what}")))?;
        key.check(&values).map_err(|what| wrong(at, &what))?;
        settings.push(Setting { key: key.clone(), values, place: place(at) });
    }
    let mut schedules = Vec::<Schedule>::new();
    debug_assert_eq!(file.schedule.len(), payloads.len(), "one for each schedule");
    for (section, payload) in file.schedule.into_iter().zip(payloads) {
        let at = section.span().start;
        let mut schedule = section.into_inner();
        if let Some(payload) = payload {
            schedule.job = schedule.job.json_payload(payload.map_err(|(at, what)| wrong(at, &what))?);
        }
        if schedules.iter().any(|other| other.id() == schedule.id()) {
            return Err(wrong(at, &format!("two schedules have the id {:?}: use unique ids", schedule.id())));
        }
        schedule.check().map_err(|error| wrong(at, &chain(&error)))?;
        schedules.push(schedule);
    }
    Ok(Config { settings, schedules })
}

/// Fuzz target: a file of any content is accepted, or refused with one line that names its place.
#[cfg(any(test, fuzzing))]
pub fn fuzzed(bytes: &[u8]) {
    // Built once, because that takes longer than parsing.
    thread_local!(static KEYS: Vec<Key> = keys::all(&Arguments::command()));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match KEYS.with(|keys| parse_with(keys, "node.toml", text)) {
        Ok(config) => {
            config
                .schedules
                .iter()
                .for_each(|schedule| schedule.check().expect("an accepted schedule is valid"));
            let last = text.lines().count().max(1);
            assert!(config.settings.iter().all(|setting| {
                setting
                    .place
                    .strip_prefix("node.toml:")
                    .is_some_and(|line| line.parse().is_ok_and(|line: usize| line <= last))
            }));
        }
        Err(refused) => assert!(refused.starts_with("node.toml:"), "{refused}"),
    }
}

/// Returns the line number of a byte offset, counted from 1.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[[schedule]]
id = "nightly"
cron = "30 2 * * *"
zone = "Europe/Berlin"
misfire = "catch_up"
catch_up_limit = 3
catch_up_within = "1d"
grace = "2m"
overlap = "forbid"
expires_after = "6h"

[schedule.job]
kind = "report"
payload = { region = "eu", parts = [1, 2] }

[schedule.job.options]
max_attempts = 3
backoff = { initial = "1s", max = "5m" }
timeout = "10m"
priority = 7
tags = ["gpu"]

[[schedule]]
id = "beat"
every = "5s"
misfire = "skip"
job = { kind = "beat", content_type = "text/plain", payload = "tick" }

[[schedule]]
id = "launch"
at = "2100-01-01T00:00:00Z"
job = { kind = "launch" }
"#;

    #[test]
    fn an_invalid_node_key_is_reported_with_its_line_and_the_allowed_values() {
        for (line, said) in [
            (
                "slot = 3",
                "node.toml:3: unknown key `slot` in [node], expected one of `zookeeper`, `zookeeper_user`, `zookeeper_password_file`",
            ),
            ("slots = 0", "node.toml:3: slots is \"0\": 0 is not in 1..=4096"),
            ("slots = \"many\"", "node.toml:3: slots is \"many\": invalid digit found in string"),
            ("slots = [1, 2]", "node.toml:3: slots must be one value, not a list"),
            ("slots = { a = 1 }", "node.toml:3: slots must be a string, a number or a boolean, not a table"),
            ("roles = [\"leader\"]", "node.toml:3: roles is \"leader\": one of candidate, worker"),
            (
                "session_timeout = 10",
                "node.toml:3: session_timeout is \"10\": \"10\" is not a duration: give a whole number and a unit",
            ),
            (
                "session_timeout = \"1ms\"",
                "node.toml:3: session_timeout is \"1ms\": session timeout must be 100ms to",
            ),
            (
                "metrics_listen = \"here\"",
                "node.toml:3: metrics_listen is \"here\": invalid socket address syntax",
            ),
            ("config = \"other.toml\"", "node.toml:3: unknown key `config` in [node]"),
        ] {
            let error = parse("node.toml", &format!("\n[node]\n{line}\n")).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn a_file_defines_all_properties_of_a_schedule() {
        let config = parse("node.toml", FILE).unwrap();
        let names = config.schedules.iter().map(Schedule::id).collect::<Vec<_>>();
        assert_eq!(names, ["nightly", "beat", "launch"]);
        assert!(parse("node.toml", "").unwrap().schedules.is_empty());
    }

    #[test]
    fn an_invalid_schedule_is_reported_with_its_line_and_the_allowed_values() {
        for (from, to, said) in [
            (
                "grace = \"2m\"",
                "gracy = \"2m\"",
                "node.toml:9: unknown field `gracy`, expected one of `cron`, `zone`",
            ),
            (
                "grace = \"2m\"",
                "grace = \"2\"",
                "node.toml:9: \"2\" is not a duration: give a whole number and a unit, such as 500ms",
            ),
            (
                "grace = \"2m\"",
                "grace = 2",
                "node.toml:9: invalid type: integer `2`, expected a duration as text",
            ),
            ("grace = \"2m\"", "grace = \"0s\"", "node.toml:2: grace must be 1s to 7d, not 0s"),
            (
                "\"30 2 * * *\"",
                "\"30 24 * * *\"",
                "node.toml:4: cron field hour is \"24\": 0-23 with * , - / is allowed",
            ),
            ("\"30 2 * * *\"", "\"0 0 31 2 *\"", "node.toml:2: cron expression \"0 0 31 2 *\" never ticks"),
            ("Europe/Berlin", "Europe/Atlantis", "node.toml:5: zone \"Europe/Atlantis\" is not an IANA zone"),
            (
                "\"forbid\"",
                "\"no\"",
                "node.toml:10: unknown variant `no`, expected one of `allow`, `forbid`, `queue`",
            ),
            (
                "\"skip\"",
                "\"later\"",
                "node.toml:27: unknown variant `later`, expected one of `skip`, `once`, `catch_up`",
            ),
            ("every = \"5s\"", "every = \"1ms\"", "node.toml:24: every must be 1s to 366d"),
            ("every = \"5s\"", "", "node.toml:24: give one of cron, every and at"),
            (
                "every = \"5s\"",
                "every = \"5s\"\nat = \"2100-01-01T00:00:00Z\"",
                "node.toml:24: give one of cron, every and at",
            ),
            ("kind = \"report\"", "kind = \"a/b\"", "node.toml:2: kind has '/' at byte 1"),
            (
                "max_attempts = 3",
                "max_attempt = 3",
                "node.toml:18: unknown field `max_attempt`, expected one of `max_attempts`",
            ),
            ("\"10m\"", "\"10\"", "node.toml:20: \"10\" is not a duration: give a whole number and a unit"),
            ("\"10m\"", "\"8d\"", "node.toml:2: timeout must be 1ms to 7d, not 8d"),
            ("priority = 7", "priority = 10", "node.toml:2: priority must be 0 to 9"),
            ("id = \"beat\"", "id = \"nightly\"", "node.toml:24: two schedules have the id \"nightly\""),
            (
                "[[schedule]]\nid = \"nightly\"",
                "slots = 3\n[[schedule]]\nid = \"nightly\"",
                "node.toml:2: unknown field `slots`, expected `node` or `schedule`",
            ),
            ("kind = \"beat\", ", "", "node.toml:28: missing field `kind`"),
            (
                "\"tick\"",
                "[1]",
                "node.toml:24: payload must be a string, because its content_type is \"text/plain\"",
            ),
            (
                "payload = { region = \"eu\", parts = [1, 2] }",
                "payload = { a = nan }",
                "node.toml:15: payload: NaN cannot be written as JSON",
            ),
            ("[[schedule]]\nid = \"launch\"", "[[schedule\nid = \"launch\"", "node.toml:30: "),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = parse("node.toml", &FILE.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(said), "{to}: {error}");
        }
    }
}
