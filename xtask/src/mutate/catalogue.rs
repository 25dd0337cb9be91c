//! The catalogue of fences, each with the change that removes it: `mutations.toml`.
//!
//! A mutation is an exact text of one source file and its replacement. A text that does not occur exactly once is an
//! error, so that a moved or removed fence is noticed. To add a fence, only add an entry.

use std::fs;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::Trouble;

const FILE: &str = "xtask/mutations.toml";

/// A fence and its removal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutation {
    /// Its name on the command line and in the table.
    pub(super) name: String,
    /// The removed check, and the invariant that it protects.
    pub(super) fence: String,
    /// The source file.
    pub(super) file: String,
    search: String,
    pub(super) replace: String,
}

#[derive(Deserialize)]
struct Catalogue {
    mutation: Vec<Mutation>,
}

/// The mutations in the order of the file.
pub(super) fn read(root: &Path) -> Result<Vec<Mutation>, Trouble> {
    let path = root.join(FILE);
    let text = fs::read_to_string(&path).map_err(|source| Trouble::File { path: path.clone(), source })?;
    let catalogue: Catalogue = toml::from_str(&text).map_err(Trouble::Catalogue)?;
    Ok(catalogue.mutation)
}

impl Mutation {
    /// Changes if the mutation changes: verdicts with another digest are invalid.
    pub(super) fn digest(&self) -> String {
        let parts = [&self.file, &self.search, &self.replace].map(|part| part.as_bytes());
        format!("{:016x}", xxh3_64(&parts.join(&0)))
    }

    /// The package that contains the file.
    pub(super) fn package(&self) -> &'static str {
        let packages = [
            ("crates/core/", "bellwether-core"),
            ("crates/zk/", "bellwether-zk"),
            ("crates/keeper/", "bellwether-keeper"),
            ("crates/overflow/", "bellwether-overflow"),
            ("crates/bench/", "bellwether-bench"),
            ("crates/documents/", "bellwether-documents"),
            ("crates/gateway/", "bellwether-gateway"),
            ("crates/server/", "bellwether-server"),
            ("crates/sim/", "bellwether-sim"),
            ("actors/host/", "bellwether-host"),
            ("actors/", "bellwether-actors"),
        ];
        let package = packages.iter().find(|(folder, _)| self.file.starts_with(folder));
        package.map_or("bellwether", |(_, package)| package)
    }

    /// Returns the source without the fence.
    pub(super) fn apply(&self, source: &str) -> Result<String, Trouble> {
        let Range { start, end } = self.text(source)?;
        Ok([&source[..start], &self.replace, &source[end..]].concat())
    }

    /// Returns the position of its text in the source.
    pub(super) fn text(&self, source: &str) -> Result<Range<usize>, Trouble> {
        let mut found = source.match_indices(&self.search);
        match (found.next(), found.count()) {
            (Some((start, text)), 0) => Ok(start..start + text.len()),
            (first, more) => {
                let found = usize::from(first.is_some()) + more;
                Err(Trouble::Text { name: self.name.clone(), file: self.file.clone(), found })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::root;
    use super::*;

    #[test]
    fn every_mutation_has_a_unique_name_and_its_text_occurs_once() {
        let mutations = read(&root()).unwrap();
        let mut names = BTreeSet::new();
        for mutation in &mutations {
            assert!(names.insert(&mutation.name), "{} is used twice", mutation.name);
            let source = fs::read_to_string(root().join(&mutation.file)).unwrap();
            let mutated = mutation.apply(&source).unwrap_or_else(|trouble| panic!("{trouble}"));
            assert_ne!(mutated, source, "{} changes nothing", mutation.name);
        }
        assert!(mutations.len() >= 30, "{} mutations", mutations.len());
    }

    #[test]
    fn a_text_that_is_absent_or_ambiguous_is_refused() {
        let mutation = Mutation {
            name: "n".into(),
            fence: "f".into(),
            file: "src/lib.rs".into(),
            search: "fence".into(),
            replace: "gap".into(),
        };
        assert_eq!(mutation.apply("a fence b").unwrap(), "a gap b");
        for source in ["none", "fence fence"] {
            assert!(matches!(mutation.apply(source), Err(Trouble::Text { .. })), "{source}");
        }
    }
}
