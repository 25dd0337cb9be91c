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
const PREFACE: &str = "# Which tests detect a removed fence

Each row removes one fence from the product, by an exact change of its source (`xtask/mutations.toml`). Each column is a
layer of tests that runs on the changed source. A layer that passes would not detect the removal of this fence. Every
mutation is caught by at least one layer: `cargo test --package xtask` fails as long as one is not.

`cargo xtask mutate --write` writes this page. It works on a copy of the last commit. `--only NAME` and `--layer NAME` run
a part of it and keep the other results; `--missing` runs the layers without a result. One build of a layer contains all
mutations, and an environment variable activates one of them. The few mutations that cannot be built together with the
others are built one at a time.

Whether a layer that uses servers and processes (all but `unit`, `model` and `simulator`) catches a mutation may depend on
timing: a mutation that survived one run may be caught by another.

* **caught**: a test failed, and the layer was stopped; the second table names the test. Other tests might have failed, too.
* **–**: survived.
* **·**: the layer does not run that code.
* Empty: not run.

A new fence needs a new entry in `xtask/mutations.toml`.

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
    page.push_str("\n## Tests that caught a mutation\n\n| mutation | layer | test |\n| --- | --- | --- |\n");
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
