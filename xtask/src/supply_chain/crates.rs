//! The crates in the command: `cargo tree` knows which of them are built with the features that are shipped, `cargo metadata`
//! their licences, and `Cargo.lock` their checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;

use super::bom::{Bom, Component, Usage};
use super::failed;
use crate::cargo::{self, cargo};
use crate::failure::Failure;

const PRODUCT: &str = "bellwether-server";
/// As in `deny.toml`.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");

pub(super) fn bom() -> Result<Bom, Failure> {
    let all = tree("normal,build")?;
    let shipped = tree("normal,no-proc-macro")?;
    let metadata =
        cargo::output(cargo().args(["metadata", "--locked", "--format-version", "1", "--all-features"]))?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).map_err(|error| failed("cargo metadata", error))?;
    let lock = fs::read_to_string(LOCK).map_err(|error| failed(LOCK, error))?;
    let lock: Lock = toml::from_str(&lock).map_err(|error| failed(LOCK, error))?;

    let mut described: BTreeMap<_, _> =
        metadata.packages.into_iter().map(|each| (Id::new(&each.name, &each.version), each)).collect();
    let checksums: BTreeMap<_, _> =
        lock.package.into_iter().map(|each| (Id::new(&each.name, &each.version), each.checksum)).collect();
    let mut components = Vec::new();
    let mut product = None;
    for (id, depends_on) in &all {
        let Some(described) = described.remove(id) else {
            return Err(failed("cargo metadata", format!("it has no {} {}", id.name, id.version)));
        };
        let component = Component {
            reference: id.reference(),
            name: id.name.clone(),
            version: id.version.clone(),
            license: described.license,
            // A crate of this workspace may have the name of a stranger's crate in the registry.
            purl: described.source.is_some().then(|| id.reference()),
            sha256: checksums.get(id).cloned().flatten(),
            usage: if shipped.contains_key(id) { Usage::Shipped } else { Usage::Build },
            depends_on: depends_on.iter().map(Id::reference).collect(),
        };
        if id.name == PRODUCT {
            product = Some(Component { name: "bellwether".to_owned(), ..component });
        } else {
            components.push(component);
        }
    }
    let product = product.ok_or_else(|| failed("cargo tree", format!("it has no {PRODUCT}")))?;
    Ok(Bom { product, components })
}

/// A crate. The sources of crates are checked elsewhere, so a name and a version identify it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    name: String,
    version: String,
}

impl Id {
    fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned() }
    }

    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version.replace('+', "%2B"))
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

type Graph = BTreeMap<Id, BTreeSet<Id>>;

fn tree(edges: &str) -> Result<Graph, Failure> {
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--package", PRODUCT, "--prefix", "depth", "--format", " {p}"]);
    tree.args(["--edges", edges]).args(TARGETS.iter().flat_map(|target| ["--target", target]));
    Ok(graph(&cargo::output(&mut tree)?))
}

/// Reads lines such as `3 http v1.5.0 (*)`: a crate below the last line of depth 2. A line with `(*)` has no lines below it,
/// because an earlier line of the same crate has them.
fn graph(tree: &str) -> Graph {
    let mut graph = Graph::new();
    let mut path: Vec<Id> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(depth) = depth.parse() else { continue };
        let id = Id::new(name, version.trim_start_matches('v'));
        graph.entry(id.clone()).or_default();
        path.truncate(depth);
        if let Some(parent) = path.last() {
            graph.entry(parent.clone()).or_default().insert(id.clone());
        }
        path.push(id);
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_has_the_edges_of_the_tree() {
        let tree = "0 app v0.1.0 (/source)\n1 http v1.5.0\n2 bytes v1.0.0\n1 macro v2.0.0 (proc-macro)\n2 http v1.5.0 (*)\n";
        let edges: Vec<_> = graph(tree)
            .into_iter()
            .map(|(id, to)| (id.name, to.into_iter().map(|to| to.name).collect::<Vec<_>>()))
            .collect();
        let expected = [
            ("app", vec!["http", "macro"]),
            ("bytes", vec![]),
            ("http", vec!["bytes"]),
            ("macro", vec!["http"]),
        ];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(id, to)| (id.to_owned(), to.into_iter().map(str::to_owned).collect()))
            .collect();
        assert_eq!(edges, expected);
    }

    #[test]
    fn the_command_has_its_crates_with_licences_and_checksums_and_no_crates_of_tests() {
        let bom = bom().unwrap();
        let find = |name: &str| bom.components.iter().find(|each| each.name == name);
        for each in &bom.components {
            assert!(each.license.is_some(), "{} has no licence", each.name);
            assert_eq!(each.purl.is_some(), each.sha256.is_some(), "{} is in a registry or here", each.name);
        }
        // TLS to ZooKeeper is a default feature of the command.
        let client = find("zookeeper-client").unwrap();
        assert!(client.depends_on.iter().any(|each| each.starts_with("pkg:cargo/rustls@")));
        assert_eq!(find("bellwether-core").map(|each| &each.purl), Some(&None));
        assert_eq!(find("serde").map(|each| each.usage), Some(Usage::Shipped));
        assert_eq!(find("serde_derive").map(|each| each.usage), Some(Usage::Build));
        for test in ["proptest", "fantoccini", "bellwether-testkit", "windows-sys"] {
            assert!(find(test).is_none(), "{test} is not in the command");
        }
    }
}
