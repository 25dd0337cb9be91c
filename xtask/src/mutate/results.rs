//! The verdict of each mutation and layer, in `xtask/mutations.json`, which is committed.
//!
//! A run adds its verdicts to the existing ones, so that layers can be run separately. The verdicts of a changed
//! mutation are dropped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Trouble;
use super::catalogue::Mutation;
use super::layer::{Layer, Verdict};

const FILE: &str = "xtask/mutations.json";

/// Verdicts by the name of the mutation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Results(BTreeMap<String, Known>);

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    digest: String,
    verdicts: BTreeMap<Layer, Verdict>,
}

impl Results {
    /// Reads the stored verdicts of these mutations.
    pub(super) fn read(root: &Path, mutations: &[Mutation]) -> Result<Self, Trouble> {
        let path = root.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(Trouble::File { path, source }),
        };
        let mut results: Self = serde_json::from_str(&text).map_err(Trouble::Results)?;
        results.0.retain(|name, known| {
            mutations.iter().any(|mutation| mutation.name == *name && mutation.digest() == known.digest)
        });
        Ok(results)
    }

    pub(super) fn write(&self, root: &Path) -> Result<PathBuf, Trouble> {
        let path = root.join(FILE);
        let mut text = serde_json::to_string_pretty(self).map_err(Trouble::Results)?;
        text.push('\n');
        fs::write(&path, text).map_err(|source| Trouble::File { path: path.clone(), source })?;
        Ok(path)
    }

    pub(super) fn note(&mut self, mutation: &Mutation, layer: Layer, verdict: Verdict) {
        let fresh = || Known { digest: mutation.digest(), verdicts: BTreeMap::new() };
        let known = self.0.entry(mutation.name.clone()).or_insert_with(fresh);
        known.verdicts.insert(layer, verdict);
    }

    pub(super) fn get(&self, mutation: &Mutation, layer: Layer) -> Option<&Verdict> {
        self.0.get(&mutation.name)?.verdicts.get(&layer)
    }

    pub(super) fn is_caught(&self, mutation: &Mutation) -> bool {
        Layer::ALL.iter().any(|layer| self.get(mutation, *layer).is_some_and(Verdict::is_caught))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{catalogue, root};
    use super::*;

    /// A new or changed fence is complete only once a layer has caught its mutation.
    #[test]
    fn every_fence_has_a_caught_verdict() {
        let mutations = catalogue::read(&root()).unwrap();
        let results = Results::read(&root(), &mutations).unwrap();
        let unproved: Vec<_> =
            mutations.iter().filter(|m| !results.is_caught(m)).map(|m| m.name.as_str()).collect();
        assert!(unproved.is_empty(), "run `cargo xtask mutate --write` for {unproved:?}");
    }

    #[test]
    fn a_mutation_that_changed_has_no_verdicts() {
        let mutations = catalogue::read(&root()).unwrap();
        let mut results = Results::default();
        results.note(&mutations[0], Layer::Unit, Verdict::Survived { seconds: 1 });
        results.0.get_mut(&mutations[0].name).unwrap().digest = "of another text".into();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("xtask")).unwrap();
        results.write(dir.path()).unwrap();
        assert!(Results::read(dir.path(), &mutations).unwrap().0.is_empty());
    }
}
