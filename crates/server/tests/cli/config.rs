//! `bellwether config`.

use std::path::PathBuf;

use serde_json::json;

use super::run::{command, ran, run};

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    std::fs::write(&file, text).unwrap();
    (dir, file)
}

#[test]
fn an_option_overrides_the_variable_and_the_variable_overrides_the_file() {
    let (_dir, file) =
        file("[node]\nslots = 16\ntags = [\"gpu\", \"ssd\"]\nroles = [\"worker\"]\ndrain_grace = \"5s\"\n");
    let name = file.to_str().unwrap();
    let mut show = command(&["config", "show", "--output", "json", "--config", name, "--roles", "candidate"]);
    let shown = ran(show.env("BELLWETHER_DRAIN_GRACE", "7s").env("BELLWETHER_ROLES", "worker,candidate"));
    let shown = shown.exits(0).json();
    let of = |key: &str| {
        let is = shown.as_array().unwrap().iter().find(|is| is["key"] == key).unwrap();
        (is["value"].clone(), is["from"].clone())
    };
    assert_eq!(of("slots"), (json!("16"), json!(format!("{name}:2"))));
    assert_eq!(of("tags"), (json!("gpu,ssd"), json!(format!("{name}:3"))));
    assert_eq!(of("drain_grace"), (json!("7s"), json!("BELLWETHER_DRAIN_GRACE")));
    assert_eq!(of("roles"), (json!("candidate"), json!("--roles")));
    assert_eq!(of("election"), (json!("queue"), json!("default")));
    assert_eq!(of("node_id"), (json!(null), json!("default")));
    assert_eq!(of("http_listen"), (json!("127.0.0.1:8080"), json!("default")));
}

#[test]
fn an_invalid_file_is_reported_before_a_node_starts() {
    let (_dir, file) = file("[node]\nslots = 99999\n");
    let file = file.to_str().unwrap();
    let said = format!("{file}:2: slots is \"99999\": 99999 is not in 1..=4096");
    for words in
        [&["config", "check", file][..], &["node", "--config", file], &["config", "show", "--config", file]]
    {
        run(words).exits(2).says(&said);
    }
    run(&["config", "check", "/nowhere.toml"]).exits(2).says("cannot read /nowhere.toml");
    let mut show = command(&["config", "show"]);
    ran(show.env("BELLWETHER_SLOTS", "many")).exits(2).says("invalid value 'many' for '--slots <N>'");
}

#[test]
fn a_misspelt_variable_is_reported() {
    let (_dir, file) = file("[node]\nslots = 16\n");
    let mut check = command(&["config", "check", file.to_str().unwrap()]);
    ran(check.env("BELLWETHER_SLOTS", "16")).exits(0);
    ran(check.env("BELLWETHER_SLOT", "16")).exits(2).says("unknown environment variable BELLWETHER_SLOT:");
    let mut show = command(&["config", "show"]);
    ran(show.env("BELLWETHER_SLOT", "16")).exits(0).says("unknown environment variable BELLWETHER_SLOT:");
}
