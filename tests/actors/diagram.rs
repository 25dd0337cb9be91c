//! The diagram of the actors in the documentation matches the roster.

use std::collections::BTreeSet;

use bellwether::testing::actors::roster;

#[test]
fn the_diagram_shows_exactly_the_actors_of_the_roster() {
    let page = include_str!("../../docs/architecture.md");
    let (_, section) = page.split_once("\n## The actors of a node\n").unwrap();
    let (_, diagram) = section.split_once("```text\n").unwrap();
    let (diagram, _) = diagram.split_once("```").unwrap();
    let name = |line: &str| {
        let node = line.trim_start_matches(|c: char| !c.is_ascii_lowercase());
        node.split_whitespace().next().map(str::to_owned)
    };
    let shown = diagram.lines().filter_map(name).collect::<BTreeSet<_>>();
    let there = roster().into_iter().map(|entry| entry.actor.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(shown, there);
}
