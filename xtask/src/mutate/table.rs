//! The table for people: `docs/mutation.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Trouble;
use super::catalogue::Mutation;
use super::layer::{Layer, Verdict};
use super::results::Results;

const FILE: &str = "docs/mutation.md";

/// Written above the table.
const PREFACE: &str = "# Which test notices that a fence is gone

Each row takes one fence out of the product, by an exact change of its source (`xtask/mutations.toml`), and each column
is a layer of tests that is then run. A layer that stays green would not notice if somebody took the fence out. Every
mutation is caught by at least one layer: `cargo test --package xtask` fails while one is not.

This page is written by `cargo xtask mutate --write`, which works on a copy of the last commit; `--only NAME` and
`--layer NAME` run a part of it and keep the rest, and `--missing` runs what was not run yet. One build of a layer holds all
mutations; an environment variable activates one of them. The few that do not build beside the others are built one by one.

A layer on servers and processes (all but `unit`, `model` and
`simulator`) meets a mutation by chance of timing: what it caught it caught, and what it did not catch once, another run
might.

* **caught**: a test failed, and the layer was stopped; the next table names it. Others might have failed, too.
* **–**: survived.
* **·**: the layer does not run that code.
* Empty: not run.

A fence that comes with something new is one more entry of `xtask/mutations.toml`.

";

/// Writes the page.
pub(super) fn write(root: &Path, mutations: &[Mutation], results: &Results) -> Result<(), Trouble> {
    let path = root.join(FILE);
    fs::write(&path, page(mutations, results)).map_err(|source| Trouble::File { path, source })
}

/// The whole page.
fn page(mutations: &[Mutation], results: &Results) -> String {
    let mut page = PREFACE.to_owned();
    page.push_str(&table(mutations, results));
    page.push_str("\n## What notices\n\n| mutation | layer | test |\n| --- | --- | --- |\n");
    for mutation in mutations {
        for layer in Layer::ALL {
            if let Some(Verdict::Caught { by, seconds }) = results.get(mutation, layer) {
                let (name, layer, by) = (&mutation.name, layer.name(), by.join("`, `"));
                writeln!(page, "| `{name}` | {layer}, {seconds} s | `{by}` |").expect("a String takes it");
            }
        }
    }
    page
}

/// A row per mutation, a column per layer.
pub(super) fn table(mutations: &[Mutation], results: &Results) -> String {
    let names = Layer::ALL.map(Layer::name).join(" | ");
    let mut table =
        format!("| mutation | fence | {names} |\n| --- | --- |{}\n", " --- |".repeat(Layer::ALL.len()));
    for mutation in mutations {
        write!(table, "| `{}` | {} |", mutation.name, mutation.fence).expect("a String takes it");
        for layer in Layer::ALL {
            let cell = match results.get(mutation, layer) {
                _ if !layer.sees(mutation) => "·".to_owned(),
                Some(Verdict::Caught { .. }) => "**caught**".to_owned(),
                Some(Verdict::Survived { .. }) => "–".to_owned(),
                None => String::new(),
            };
            write!(table, " {cell} |").expect("a String takes it");
        }
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::{catalogue, root};
    use super::*;

    #[test]
    fn the_page_is_the_one_of_the_committed_results() {
        let mutations = catalogue::read(&root()).unwrap();
        let results = Results::read(&root(), &mutations).unwrap();
        let written = fs::read_to_string(root().join(FILE)).unwrap();
        assert!(page(&mutations, &results) == written, "run `cargo xtask mutate --write --render`");
    }

    #[test]
    fn the_readme_tells_how_many_fences_there_are() {
        let mutations = catalogue::read(&root()).unwrap();
        let readme = fs::read_to_string(root().join("README.md")).unwrap();
        let told = format!("[docs/mutation.md](docs/mutation.md) takes {} fences away", mutations.len());
        assert!(readme.contains(&told), "{told:?} is not in README.md");
    }
}
