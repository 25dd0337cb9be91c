//! `cargo xtask api`: checks that a program can name every type in the public API of `bellwether`.
//!
//! A type in a public signature belongs to the API, and so to its version: a change of it breaks users. The types of
//! private crates must therefore be re-exported on purpose, and third-party types must be on a list with a reason. A type
//! must be `#[non_exhaustive]`, also in the gateway and the keeper, and an error must have a class and a remedy, or be on a list
//! with a reason. The check reads the JSON output of rustdoc, which is unstable: after an update of the compiler, `Doc` may have
//! to follow its format.

mod lists;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cargo;
use crate::failure::Failure;

use lists::{ALLOWED, ERROR, EXHAUSTIVE, PRIVATE, SEALED, SERVERS, WITHOUT_REMEDY, listed};

/// Generates the JSON of all crates and checks it.
pub(crate) fn run() -> Result<(), Failure> {
    // Another directory: the variable that allows unstable output rebuilds everything.
    let target = Path::new("target/api");
    let names = ["bellwether"].into_iter().chain(PRIVATE).chain(SERVERS);
    let packages = names.clone().flat_map(|name| ["--package".to_owned(), name.replace('_', "-")]);
    // One command: with a command per package, cargo compiles many crates again, with the features of that package alone.
    cargo::run(
        cargo::cargo()
            .args(["doc", "--no-deps", "--lib", "--features=bellwether/testing", "--target-dir"])
            .arg(target)
            .args(packages)
            .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")
            .env("RUSTC_BOOTSTRAP", "1"),
    )?;
    let read = |name| Ok((name, Doc::read(&target.join("doc").join(format!("{name}.json")))?));
    let docs = names.map(read).collect::<Result<BTreeMap<_, _>, Failure>>()?;
    let leaks = Check::of(&docs);
    if leaks.is_empty() {
        eprintln!(
            "xtask: every type in the API of bellwether has a public name; its types and those of the gateway and the keeper may grow or are \
             listed; every error of a call has a remedy"
        );
        return Ok(());
    }
    Err(Failure::Api(leaks))
}

/// The JSON of one crate.
struct Doc {
    root: String,
    index: serde_json::Map<String, Value>,
    paths: serde_json::Map<String, Value>,
}

impl Doc {
    fn read(file: &PathBuf) -> Result<Self, Failure> {
        let unreadable = |why: String| Failure::Api(vec![format!("{}: {why}", file.display())]);
        let text = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
        let mut doc =
            serde_json::from_slice::<Value>(&text).map_err(|error| unreadable(error.to_string()))?;
        let mut part = |name: &str| match doc[name].take() {
            Value::Object(part) => Ok(part),
            _ => Err(unreadable(format!("no {name}: rustdoc's format has changed"))),
        };
        let (index, paths) = (part("index")?, part("paths")?);
        Ok(Self { root: doc["root"].to_string(), index, paths })
    }

    /// The path under which an item is defined.
    fn path(&self, id: &str) -> Option<String> {
        let words = self.paths.get(id)?["path"].as_array()?;
        Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("::"))
    }

    /// The item that is defined under this path.
    fn at(&self, path: &str) -> Option<&str> {
        self.paths.keys().find(|id| self.path(id).as_deref() == Some(path)).map(String::as_str)
    }
}

/// The state of the check.
struct Check<'a> {
    docs: &'a BTreeMap<&'static str, Doc>,
    /// The paths of all items that have a public name.
    named: BTreeSet<String>,
    /// Named items whose signatures are to be checked: crate, id.
    queue: Vec<(&'static str, String)>,
}

impl<'a> Check<'a> {
    /// Returns one line per violation.
    fn of(docs: &'a BTreeMap<&'static str, Doc>) -> Vec<String> {
        let mut check = Self { docs, named: BTreeSet::new(), queue: Vec::new() };
        check.name("bellwether", &docs["bellwether"].root.clone());
        let mut leaks = BTreeSet::new();
        let (mut closed, mut without_remedy) = (BTreeSet::new(), BTreeSet::new());
        for (krate, id) in std::mem::take(&mut check.queue) {
            let doc = &docs[krate];
            let item = doc.path(&id).unwrap_or_else(|| doc.index[&id]["name"].to_string());
            if is_closed(&doc.index[&id]) {
                closed.insert(item.clone());
            }
            if is_error(doc, &id) && !has_methods(doc, &id, &["class", "remedy", "is_retryable"]) {
                without_remedy.insert(item.clone());
            }
            let mut used = BTreeSet::new();
            uses(doc, &id, &mut used);
            for path in used.iter().filter_map(|id| doc.path(id)) {
                let krate = path.split("::").next().unwrap_or_default();
                let allowed = ALLOWED.iter().any(|(allowed, _)| *allowed == krate);
                if !allowed && path != SEALED && !check.named.contains(&path) {
                    leaks.insert(format!("{path}, in the signature of {item}"));
                }
            }
        }
        closed.extend(SERVERS.into_iter().flat_map(|server| Self::closed(docs, server)));
        let exhaustive = listed(&EXHAUSTIVE);
        let (missing, stale) = differences(&closed, &exhaustive);
        leaks.extend(
            missing.map(|item| {
                format!("{item} is neither #[non_exhaustive] nor on the list of exhaustive types")
            }),
        );
        leaks.extend(stale.map(|item| {
            format!("{item}, on the list of exhaustive types, is #[non_exhaustive] or no type of the API")
        }));
        let excepted = listed(&WITHOUT_REMEDY);
        let (missing, stale) = differences(&without_remedy, &excepted);
        leaks.extend(missing.map(|item| {
            format!("{item} has no `class`, `remedy` and `is_retryable`, and is not on the list of errors without them")
        }));
        leaks.extend(stale.map(|item| {
            format!("{item}, on the list of errors without a remedy, has one or is no error of the API")
        }));
        leaks.into_iter().collect()
    }

    /// Returns the types of a crate that may not grow.
    fn closed(docs: &'a BTreeMap<&'static str, Doc>, krate: &'static str) -> Vec<String> {
        let doc = &docs[krate];
        let mut check = Self { docs, named: BTreeSet::new(), queue: Vec::new() };
        check.name(krate, &doc.root);
        let own = check.queue.iter().filter(|(owner, id)| *owner == krate && is_closed(&doc.index[id]));
        own.filter_map(|(_, id)| doc.path(id)).collect()
    }

    /// Gives an item and all public items in it a public name.
    fn name(&mut self, krate: &'static str, id: &str) {
        let doc = &self.docs[krate];
        let Some(item) = doc.index.get(id) else { return };
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

    /// Finds the item of a private crate that another crate refers to.
    fn foreign(&self, krate: &str, id: &str) -> Option<(&'static str, String)> {
        let path = self.docs[krate].path(id)?;
        let owner = PRIVATE.into_iter().find(|owner| path.split("::").next() == Some(owner))?;
        Some((owner, self.docs[owner].at(&path)?.to_owned()))
    }
}

/// Returns the found paths that are not listed, and the listed ones that were not found.
fn differences<'a>(
    found: &'a BTreeSet<String>,
    listed: &'a BTreeSet<String>,
) -> (impl Iterator<Item = &'a String>, impl Iterator<Item = &'a String>) {
    (found.difference(listed), listed.difference(found))
}

/// Whether a new field or variant of a type breaks users.
fn is_closed(item: &Value) -> bool {
    let kind = &item["inner"]["struct"]["kind"];
    let fields = &kind["plain"];
    let is_open_struct = fields["has_stripped_fields"] == false || kind == "unit";
    let is_tuple = kind["tuple"].as_array().is_some_and(|fields| fields.iter().all(|field| !field.is_null()));
    let is_enum = item["inner"].get("enum").is_some();
    (is_open_struct || is_tuple || is_enum) && !item["attrs"].to_string().contains("non_exhaustive")
}

/// Whether a type is an error: by its name, or because it implements the trait.
fn is_error(doc: &Doc, id: &str) -> bool {
    let is_type = ["struct", "enum"].iter().any(|kind| doc.index[id]["inner"].get(kind).is_some());
    let by_name = doc.index[id]["name"].as_str().is_some_and(|name| name.ends_with("Error"));
    let implements = |part: &Value| doc.path(&part["trait"]["id"].to_string()).as_deref() == Some(ERROR);
    is_type && (by_name || impls(doc, id).any(implements))
}

/// Whether a type itself has all of these methods.
fn has_methods(doc: &Doc, id: &str, methods: &[&str]) -> bool {
    let own = impls(doc, id).filter(|part| part["trait"].is_null());
    let items = own.flat_map(|part| ids(&part["items"]));
    let names = items.filter_map(|id| doc.index.get(&id)?["name"].as_str()).collect::<BTreeSet<_>>();
    methods.iter().all(|method| names.contains(method))
}

/// The implementations of a type.
fn impls<'a>(doc: &'a Doc, id: &str) -> impl Iterator<Item = &'a Value> {
    let parts = doc.index[id]["inner"].as_object().into_iter().flat_map(serde_json::Map::values);
    let all = parts.flat_map(|part| ids(&part["impls"]));
    all.filter_map(|id| Some(&doc.index.get(&id)?["inner"]["impl"]))
}

/// Collects the ids of the types and traits in the public signatures of an item, its fields, variants and methods.
fn uses(doc: &Doc, id: &str, used: &mut BTreeSet<String>) {
    let Some(item) = doc.index.get(id) else { return };
    let is_public = item["visibility"] == "public" || item["visibility"] == "default";
    let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next()) else { return };
    if !is_public {
        return;
    }
    if kind == "impl" {
        let is_ours = inner["blanket_impl"].is_null() && inner["is_synthetic"] == false;
        if !is_ours {
            return;
        }
        if inner["trait"].is_null() {
            ids(&inner["items"]).iter().for_each(|id| uses(doc, id, used));
        } else if !PRIVATE.iter().any(|name| is_of(doc, &inner["trait"]["id"], name)) {
            // Its items have the signatures of the trait. A program cannot use the implementation of a trait that it
            // cannot name.
            types(&inner["trait"], used);
        }
        return;
    }
    match kind.as_str() {
        "struct" => {
            let kind = &inner["kind"];
            ids(&kind["plain"]["fields"]).iter().for_each(|id| uses(doc, id, used));
            ids(&kind["tuple"]).iter().for_each(|id| uses(doc, id, used));
        }
        "enum" => ids(&inner["variants"]).iter().for_each(|id| uses(doc, id, used)),
        "variant" => {
            let kind = &inner["kind"];
            ids(&kind["struct"]["fields"]).iter().for_each(|id| uses(doc, id, used));
            ids(&kind["tuple"]).iter().for_each(|id| uses(doc, id, used));
        }
        "trait" => ids(&inner["items"]).iter().for_each(|id| uses(doc, id, used)),
        _ => {}
    }
    types(inner, used);
    ids(&inner["impls"]).iter().for_each(|id| uses(doc, id, used));
}

/// Whether an item is defined in this crate.
fn is_of(doc: &Doc, id: &Value, krate: &str) -> bool {
    doc.path(&id.to_string()).is_some_and(|path| path.split("::").next() == Some(krate))
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter(|id| !id.is_null()).map(Value::to_string).collect()
}

/// Collects the ids of the types and traits in a part of a signature.
fn types(part: &Value, used: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            if fields.contains_key("id") && fields.contains_key("path") && fields.contains_key("args") {
                used.insert(fields["id"].to_string());
            }
            // The default of a type parameter is replaced by each alias that names the type.
            let parts = fields.iter().filter(|(name, _)| *name != "default");
            parts.for_each(|(_, part)| types(part, used));
        }
        Value::Array(parts) => parts.iter().for_each(|part| types(part, used)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
