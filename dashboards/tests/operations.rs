//! The metrics, runbooks and log messages that docs/operations.md names exist.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};

use bellwether_core::metric;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn page() -> String {
    std::fs::read_to_string(Path::new(REPOSITORY).join("docs/operations.md")).unwrap()
}

#[test]
fn every_named_metric_exists() {
    let page = page();
    let words = page.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c)));
    // The JSON log example contains the name of a module.
    let words = words.map(|word| word.trim_end_matches(':')).filter(|word| !word.contains("::"));
    for word in words.filter(|word| word.starts_with("bellwether_")) {
        assert!(metric::ALL.iter().any(|metric| metric.name == word), "{word} is not a metric");
    }
}

#[test]
fn every_link_to_a_runbook_has_a_target() {
    let page = page();
    let headings = page.lines().filter_map(|line| line.strip_prefix("### Bellwether"));
    let there = headings.map(|name| format!("bellwether{}", name.to_lowercase())).collect::<Vec<_>>();
    let mut links = 0;
    for link in page.split("](#bellwether").skip(1) {
        let (name, _) = link.split_once(')').unwrap();
        assert!(there.contains(&format!("bellwether{name}")), "there is no runbook {name}");
        links += 1;
    }
    assert!(links > 10, "{links}");
}

/// The code that logs.
const LOGS: &[&str] =
    &["actors/src", "actors/host/src", "src", "crates/zk/src", "crates/gateway/src", "crates/server/src"];

fn sources(of: &[&str]) -> String {
    let mut sources = String::new();
    let mut directories: Vec<_> = of.iter().map(|dir| Path::new(REPOSITORY).join(dir)).collect();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    sources
}

#[test]
fn every_named_log_message_exists_in_the_code() {
    let (page, sources) = (page(), sources(LOGS));
    let mut named = 0;
    for (section, column) in [("## Log messages\n", 1), ("## Symptoms of each fault\n", 3)] {
        let (_, section) = page.split_once(section).unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        for row in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
            let cell = row.split(" | ").nth(column - 1).unwrap();
            for line in cell.split('`').skip(1).step_by(2) {
                assert!(sources.contains(&format!("\"{line}")), "no code logs {line:?}");
                named += 1;
            }
        }
    }
    assert!(named > 30, "{named}");
}

#[test]
fn every_named_field_of_a_log_message_exists_in_the_code() {
    let (page, sources, core) = (page(), sources(LOGS), sources(&["crates/core/src"]));
    let (_, section) = page.split_once("## Log messages\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut named = 0;
    for row in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let (messages, text) = row.split_once(" | ").unwrap();
        let statements: Vec<&str> = messages
            .split('`')
            .skip(1)
            .step_by(2)
            .flat_map(|message| sources.match_indices(&format!("\"{message}")).collect::<Vec<_>>())
            .map(|(at, _)| &sources[sources[..at].rfind("tracing::").unwrap()..at])
            .collect();
        let words = text.split('`').skip(1).step_by(2).filter(|word| !word.contains(' '));
        for word in words {
            let (field, value) = word.split_once('=').unwrap_or((word, ""));
            let has = |statement: &&str| {
                statement.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|part| part == field)
            };
            assert!(statements.iter().any(has), "no statement of {messages} has the field {field:?}");
            let known = value.is_empty() || core.contains(&format!("\"{value}\""));
            assert!(known, "{field} is never {value:?}");
            named += 1;
        }
    }
    assert!(named > 5, "{named}");
}
