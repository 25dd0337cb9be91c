//! The JSON that rustdoc writes for a crate, and questions about one of its items.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;

use super::lists::ERROR;

/// The JSON of one crate.
pub(super) struct Doc {
    pub(super) root: String,
    pub(super) index: serde_json::Map<String, Value>,
    paths: serde_json::Map<String, Value>,
}

impl Doc {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
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
    pub(super) fn path(&self, id: &str) -> Option<String> {
        let words = self.paths.get(id)?["path"].as_array()?;
        Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("::"))
    }

    /// The item that is defined under this path.
    pub(super) fn at(&self, path: &str) -> Option<&str> {
        self.paths.keys().find(|id| self.path(id).as_deref() == Some(path)).map(String::as_str)
    }
}

/// Whether a new field or variant of a type breaks users.
pub(super) fn is_closed(item: &Value) -> bool {
    let kind = &item["inner"]["struct"]["kind"];
    let fields = &kind["plain"];
    let is_open_struct = fields["has_stripped_fields"] == false || kind == "unit";
    let is_tuple = kind["tuple"].as_array().is_some_and(|fields| fields.iter().all(|field| !field.is_null()));
    let is_enum = item["inner"].get("enum").is_some();
    (is_open_struct || is_tuple || is_enum) && !item["attrs"].to_string().contains("non_exhaustive")
}

/// Whether the documentation leaves an item out.
pub(super) fn is_hidden(item: &Value) -> bool {
    item["attrs"].to_string().contains("hidden")
}

/// Whether a type is an error: by its name, or because it implements the trait.
pub(super) fn is_error(doc: &Doc, id: &str) -> bool {
    let is_type = ["struct", "enum"].iter().any(|kind| doc.index[id]["inner"].get(kind).is_some());
    let by_name = doc.index[id]["name"].as_str().is_some_and(|name| name.ends_with("Error"));
    let implements = |part: &Value| doc.path(&part["trait"]["id"].to_string()).as_deref() == Some(ERROR);
    is_type && (by_name || impls(doc, id).any(implements))
}

/// Whether a type itself has all of these methods.
pub(super) fn has_methods(doc: &Doc, id: &str, methods: &[&str]) -> bool {
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

/// Whether an item is defined in this crate.
pub(super) fn is_of(doc: &Doc, id: &Value, krate: &str) -> bool {
    doc.path(&id.to_string()).is_some_and(|path| path.split("::").next() == Some(krate))
}

pub(super) fn ids(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter(|id| !id.is_null()).map(Value::to_string).collect()
}
