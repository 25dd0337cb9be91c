//! A software bill of materials, as a document of CycloneDX 1.6. It has no time and no random number: equal dependencies have
//! equal documents.

use serde_json::{Value, json};

/// What a product consists of.
pub(super) struct Bom {
    pub(super) product: Component,
    pub(super) components: Vec<Component>,
}

pub(super) struct Component {
    /// Identifies the component in this document.
    pub(super) reference: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    /// The address in a registry. A package that is not in a registry has none.
    pub(super) purl: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) usage: Usage,
    pub(super) depends_on: Vec<String>,
}

/// How the product uses a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Usage {
    /// It is a part of the product.
    Shipped,
    /// It runs only in the build: macros, build scripts and their dependencies.
    Build,
}

impl Bom {
    pub(super) fn document(&self) -> Value {
        let all = std::iter::once(&self.product).chain(&self.components);
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": self.product.document("application")},
            "components": self.components.iter().map(|each| each.document("library")).collect::<Vec<_>>(),
            "dependencies": all
                .map(|each| json!({"ref": each.reference, "dependsOn": each.depends_on}))
                .collect::<Vec<_>>(),
        })
    }
}

impl Component {
    fn document(&self, kind: &str) -> Value {
        let mut document = json!({
            "type": kind,
            "bom-ref": self.reference,
            "name": self.name,
            "version": self.version,
            "scope": match self.usage {
                Usage::Shipped => "required",
                Usage::Build => "excluded",
            },
        });
        if let Some(license) = &self.license {
            document["licenses"] = json!([licence(license)]);
        }
        if let Some(purl) = &self.purl {
            document["purl"] = json!(purl);
        }
        if let Some(sha256) = &self.sha256 {
            document["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
        }
        document
    }
}

/// An expression of SPDX, in which older crates separate licences with `/`; any other text is the name of a licence.
fn licence(text: &str) -> Value {
    let text = text.replace('/', " OR ");
    let words: Vec<_> = text.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let is_operator = |word: &str| ["AND", "OR", "WITH"].contains(&word);
    let is_word = |word: &str| word.chars().all(|char| char.is_ascii_alphanumeric() || ".+-:".contains(char));
    let alternates = words.iter().enumerate().all(|(at, word)| is_operator(word) == (at % 2 == 1));
    if words.len() % 2 == 1 && alternates && words.iter().all(|word| is_word(word)) {
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        return json!({"expression": joined});
    }
    json!({"license": {"name": text}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_expressions_or_names() {
        for (text, expected) in [
            ("MIT", json!({"expression": "MIT"})),
            ("MIT/Apache-2.0", json!({"expression": "MIT OR Apache-2.0"})),
            (
                "(MIT OR Apache-2.0) AND Unicode-3.0",
                json!({"expression": "(MIT OR Apache-2.0) AND Unicode-3.0"}),
            ),
            ("Apache-2.0 WITH LLVM-exception", json!({"expression": "Apache-2.0 WITH LLVM-exception"})),
            ("BSD License", json!({"license": {"name": "BSD License"}})),
            ("MIT OR", json!({"license": {"name": "MIT OR"}})),
        ] {
            assert_eq!(licence(text), expected, "{text}");
        }
    }
}
