//! `cargo xtask api`: checks that a program can name every type in the public API of `bellwether`, the gateway, the keeper and the
//! overflow codec.
//!
//! A type in a public signature belongs to the API, and so to its version: a change of it breaks users. The types of
//! private crates must therefore be re-exported on purpose, and third-party types must be on a list with a reason. A type
//! must be `#[non_exhaustive]`, an error must have a class and a remedy, and a public item must be in the documentation, or be on a
//! list with a reason. Items behind features count. The check reads the JSON output of rustdoc, which is unstable: after an update of
//! the compiler, `Doc` may have to follow its format.

mod doc;
mod lists;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::cargo;
use crate::failure::Failure;

use doc::{Doc, has_methods, is_closed, is_error, is_hidden};
use lists::{ALLOWED, EXHAUSTIVE, HIDDEN, PRIVATE, PUBLIC, SEALED, WITHOUT_REMEDY, listed};
use uses::Uses;

/// Generates the JSON of all crates and checks it.
pub(crate) fn run() -> Result<(), Failure> {
    // Another directory: the variable that allows unstable output rebuilds everything.
    let target = Path::new("target/api");
    let names = PUBLIC.into_iter().map(|(name, _)| name).chain(PRIVATE);
    let packages = names.clone().flat_map(|name| ["--package".to_owned(), name.replace('_', "-")]);
    // One command: with a command per package, cargo compiles many crates again, with the features of that package alone.
    cargo::run(
        cargo::cargo()
            .args(["doc", "--no-deps", "--lib", "--all-features", "--target-dir"])
            .arg(target)
            .args(packages)
            .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --document-hidden-items")
            .env("RUSTC_BOOTSTRAP", "1"),
    )?;
    let read = |name| Ok((name, Doc::read(&target.join("doc").join(format!("{name}.json")))?));
    let docs = names.map(read).collect::<Result<BTreeMap<_, _>, Failure>>()?;
    let leaks = Check::of(&docs);
    if leaks.is_empty() {
        eprintln!(
            "xtask: every type in the API has a public name, and may grow or is listed; every error of a call has a remedy; every public \
             item is in the documentation or listed"
        );
        return Ok(());
    }
    Err(Failure::Api(leaks))
}

/// The state of the check of one public crate.
struct Check<'a> {
    docs: &'a BTreeMap<&'static str, Doc>,
    /// The paths of all items that have a public name.
    named: BTreeSet<String>,
    /// Named items whose signatures are to be checked: crate, id.
    queue: Vec<(&'static str, String)>,
    /// The paths of public items that the documentation leaves out. What they contain or use is not checked.
    hidden: BTreeSet<String>,
}

impl<'a> Check<'a> {
    /// Returns one line per violation.
    fn of(docs: &'a BTreeMap<&'static str, Doc>) -> Vec<String> {
        let mut leaks = BTreeSet::new();
        let (mut closed, mut without_remedy, mut hidden) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (public, beside) in PUBLIC {
            let mut check = Self { docs, named: BTreeSet::new(), queue: Vec::new(), hidden: BTreeSet::new() };
            [Some(public), beside]
                .into_iter()
                .flatten()
                .for_each(|krate| check.name(krate, &docs[krate].root));
            for (krate, id) in std::mem::take(&mut check.queue) {
                let doc = &docs[krate];
                let item = doc.path(&id).unwrap_or_else(|| doc.index[&id]["name"].to_string());
                if is_closed(&doc.index[&id]) {
                    closed.insert(item.clone());
                }
                if is_error(doc, &id) && !has_methods(doc, &id, &["class", "remedy", "is_retryable"]) {
                    without_remedy.insert(item.clone());
                }
                let uses = Uses::of(doc, &id);
                check.hidden.extend(uses.hidden.iter().map(|name| format!("{item}::{name}")));
                for path in uses.types.iter().filter_map(|id| doc.path(id)) {
                    let owner = path.split("::").next().unwrap_or_default();
                    let allowed = ALLOWED.iter().any(|(allowed, _)| *allowed == owner);
                    if !allowed && path != SEALED && !check.named.contains(&path) {
                        leaks.insert(format!("{path}, in the signature of {item}, has no name in {public}"));
                    }
                }
            }
            hidden.extend(check.hidden);
        }
        for (found, list, missing, stale) in [
            (
                &closed,
                listed(&EXHAUSTIVE),
                "is neither #[non_exhaustive] nor on the list of exhaustive types",
                "on the list of exhaustive types, is #[non_exhaustive] or no type of the API",
            ),
            (
                &without_remedy,
                listed(&WITHOUT_REMEDY),
                "has no `class`, `remedy` and `is_retryable`, and is not on the list of errors without them",
                "on the list of errors without a remedy, has one or is no error of the API",
            ),
            (
                &hidden,
                listed(&HIDDEN),
                "is public and #[doc(hidden)], and is not on the list of hidden items",
                "on the list of hidden items, is not hidden or not public",
            ),
        ] {
            leaks.extend(found.difference(&list).map(|item| format!("{item} {missing}")));
            leaks.extend(list.difference(found).map(|item| format!("{item}, {stale}")));
        }
        leaks.into_iter().collect()
    }

    /// Gives an item and all public items in it a public name.
    fn name(&mut self, krate: &'static str, id: &str) {
        let doc = &self.docs[krate];
        let Some(item) = doc.index.get(id) else { return };
        if is_hidden(item) {
            let used = item["inner"]["use"]["id"].to_string();
            self.hidden.extend(doc.path(&used).or_else(|| doc.path(id)));
            return;
        }
        if let Some(used) = item["inner"].get("use") {
            let target = used["id"].to_string();
            let globbed = used["is_glob"] == true;
            if doc.index.contains_key(&target) {
                if globbed { self.children(krate, &target) } else { self.name(krate, &target) }
            } else if let Some((owner, id)) = self.foreign(krate, &target) {
                if globbed { self.children(owner, &id) } else { self.name(owner, &id) }
            }
            return;
        }
        if doc.path(id).is_some_and(|path| !self.named.insert(path)) {
            return;
        }
        // An alias names its type.
        let aliased = item["inner"]["type_alias"]["type"]["resolved_path"]["id"].to_string();
        if let Some((owner, id)) = self.foreign(krate, &aliased) {
            self.name(owner, &id);
        }
        if item["inner"].get("module").is_some() {
            self.children(krate, id);
        } else {
            self.queue.push((krate, id.to_owned()));
        }
    }

    fn children(&mut self, krate: &'static str, module: &str) {
        let items = self.docs[krate].index[module]["inner"]["module"]["items"].as_array().cloned();
        for child in items.unwrap_or_default() {
            let child = child.to_string();
            if self.docs[krate].index.get(&child).is_some_and(|item| item["visibility"] == "public") {
                self.name(krate, &child);
            }
        }
    }

    /// Finds the item of another crate that a crate refers to.
    fn foreign(&self, krate: &str, id: &str) -> Option<(&'static str, String)> {
        let path = self.docs[krate].path(id)?;
        let (owner, doc) = self.docs.get_key_value(path.split("::").next()?)?;
        Some((owner, doc.at(&path)?.to_owned()))
    }
}
