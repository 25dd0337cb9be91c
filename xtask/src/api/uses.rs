//! The public signatures of an item: the types and traits in them, and the hidden members.

use std::collections::BTreeSet;

use serde_json::Value;

use super::doc::{Doc, ids, is_hidden, is_of};
use super::lists::PRIVATE;

/// The result of a walk through the signatures of an item, its fields, variants and methods.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The ids of the types and traits.
    pub(super) types: BTreeSet<String>,
    /// The names of the members that the documentation leaves out. Their signatures are not part of the API.
    pub(super) hidden: BTreeSet<String>,
}

impl Uses {
    pub(super) fn of(doc: &Doc, id: &str) -> Self {
        let mut uses = Self::default();
        uses.item(doc, id);
        uses
    }

    fn item(&mut self, doc: &Doc, id: &str) {
        let Some(item) = doc.index.get(id) else { return };
        let is_public = item["visibility"] == "public" || item["visibility"] == "default";
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next()) else {
            return;
        };
        if !is_public {
            return;
        }
        if let (true, Some(name)) = (is_hidden(item), item["name"].as_str()) {
            self.hidden.insert(name.to_owned());
            return;
        }
        if kind == "impl" {
            return self.implementation(doc, inner);
        }
        let parts = match kind.as_str() {
            "struct" => vec![&inner["kind"]["plain"]["fields"], &inner["kind"]["tuple"]],
            "enum" => vec![&inner["variants"]],
            "variant" => vec![&inner["kind"]["struct"]["fields"], &inner["kind"]["tuple"]],
            "trait" => vec![&inner["items"]],
            _ => Vec::new(),
        };
        self.items(doc, parts);
        self.types(inner);
        self.items(doc, [&inner["impls"]]);
    }

    fn items<'a>(&mut self, doc: &Doc, lists: impl IntoIterator<Item = &'a Value>) {
        lists.into_iter().flat_map(ids).for_each(|id| self.item(doc, &id));
    }

    fn implementation(&mut self, doc: &Doc, inner: &Value) {
        let is_ours = inner["blanket_impl"].is_null() && inner["is_synthetic"] == false;
        if !is_ours {
            return;
        }
        if inner["trait"].is_null() {
            self.items(doc, [&inner["items"]]);
        } else if !PRIVATE.iter().any(|name| is_of(doc, &inner["trait"]["id"], name)) {
            // A program cannot use the implementation of a trait that it cannot name. The functions have the signatures of the trait;
            // the associated types, such as the error of `FromStr`, are written here.
            self.types(&inner["trait"]);
            let items = ids(&inner["items"]);
            let items = items.iter().filter_map(|id| doc.index.get(id));
            items.for_each(|item| self.types(&item["inner"]["assoc_type"]["type"]));
        }
    }

    /// Collects the ids of the types and traits in a part of a signature.
    fn types(&mut self, part: &Value) {
        match part {
            Value::Object(fields) => {
                if fields.contains_key("id") && fields.contains_key("path") && fields.contains_key("args") {
                    self.types.insert(fields["id"].to_string());
                }
                // The default of a type parameter is replaced by each alias that names the type.
                let parts = fields.iter().filter(|(name, _)| *name != "default");
                parts.for_each(|(_, part)| self.types(part));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.types(part)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
