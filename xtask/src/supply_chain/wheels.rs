//! The packages that pip installs with the Python package. It allows ranges of versions, so these are the newest of today; a report
//! of pip has their metadata and checksums, and nothing is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::bom::{Bom, Component, Usage};
use super::failed;
use crate::cargo;
use crate::environment::Environment;
use crate::failure::Failure;

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
/// Classifiers of packages without another statement of their licence.
const CLASSIFIER: &str = "License :: OSI Approved :: ";

pub(super) fn bom(environment: &Environment, folder: &Path) -> Result<Bom, Failure> {
    let path = folder.join("pip-report.json");
    // With the pinned pip of this environment.
    let mut report = Command::new(environment.python());
    report.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    cargo::run(report.args(["--dry-run", "--ignore-installed", "--report"]).arg(&path).arg(PACKAGE))?;
    let name = path.display().to_string();
    let text = fs::read_to_string(&path).map_err(|error| failed(&name, error))?;
    bom_of(&text).map_err(|error| failed(&name, error))
}

fn bom_of(report: &str) -> Result<Bom, Box<dyn std::error::Error + Send + Sync>> {
    let report: Report = serde_json::from_str(report)?;
    let names: BTreeSet<_> = report.install.iter().map(|each| normalized(&each.metadata.name)).collect();
    let references: Vec<_> =
        report.install.iter().map(|each| reference(&each.metadata.name, &each.metadata.version)).collect();
    let mut components = Vec::new();
    let mut product = None;
    for (installed, own) in report.install.iter().zip(&references) {
        let metadata = &installed.metadata;
        let needs: BTreeSet<_> = metadata
            .requires_dist
            .iter()
            .filter_map(|line| needed(line))
            .filter(|name| names.contains(name))
            .collect();
        let depends_on = needs.iter().flat_map(|name| {
            references.iter().filter(move |each| each.starts_with(&format!("pkg:pypi/{name}@"))).cloned()
        });
        let component = Component {
            reference: own.clone(),
            name: metadata.name.clone(),
            version: metadata.version.clone(),
            license: metadata.licence(),
            purl: (!installed.is_direct).then(|| own.clone()),
            sha256: installed.download_info.archive_info.hashes.sha256.clone(),
            usage: Usage::Shipped,
            depends_on: depends_on.collect(),
        };
        if installed.is_direct {
            product = Some(component);
        } else {
            components.push(component);
        }
    }
    components.sort_by(|a, b| a.reference.cmp(&b.reference));
    Ok(Bom { product: product.ok_or("it does not have the package itself")?, components })
}

/// The name in a requirement such as `httpcore==1.*` or `h2<5; extra == 'http2'`. `None` for one of an extra. Other conditions need no
/// evaluation: pip leaves out each package that is not needed.
fn needed(requirement: &str) -> Option<String> {
    let (specifier, marker) = requirement.split_once(';').unwrap_or((requirement, ""));
    if marker.contains("extra") {
        return None;
    }
    let end = specifier.find(|char: char| !(char.is_ascii_alphanumeric() || "._-".contains(char)));
    Some(normalized(&specifier[..end.unwrap_or(specifier.len())]))
}

/// The form in which PyPI compares names.
fn normalized(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:pypi/{}@{}", normalized(name), version.replace('+', "%2B"))
}

#[derive(Deserialize)]
struct Report {
    install: Vec<Installed>,
}

#[derive(Deserialize)]
struct Installed {
    /// Whether it was named by a path and not found in the index.
    is_direct: bool,
    download_info: Download,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Download {
    #[serde(default)]
    archive_info: Archive,
}

#[derive(Deserialize, Default)]
struct Archive {
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Deserialize, Default)]
struct Hashes {
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
    license_expression: Option<String>,
    license: Option<String>,
    #[serde(default)]
    classifier: Vec<String>,
    #[serde(default)]
    requires_dist: Vec<String>,
}

impl Metadata {
    fn licence(&self) -> Option<String> {
        // Some packages have the whole text of the licence here.
        let short = self.license.clone().filter(|text| !text.contains('\n'));
        let classified = self.classifier.iter().find_map(|line| line.strip_prefix(CLASSIFIER));
        self.license_expression.clone().or(short).or(classified.map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"install": [
        {"is_direct": true, "download_info": {"url": "file:///python", "dir_info": {}},
         "metadata": {"name": "bellwether", "version": "0.1.0", "license_expression": "Apache-2.0 OR MIT",
                      "requires_dist": ["httpx<1,>=0.27", "mypy>=1; extra == 'dev'"]}},
        {"is_direct": false, "download_info": {"archive_info": {"hashes": {"sha256": "aa"}}},
         "metadata": {"name": "httpx", "version": "0.28.1", "license": "BSD-3-Clause",
                      "requires_dist": ["typing.extensions>=4; python_version < '3.15'", "exceptiongroup; python_version < '3.11'"]}},
        {"is_direct": false, "download_info": {"archive_info": {"hashes": {"sha256": "bb"}}},
         "metadata": {"name": "typing_extensions", "version": "4.16.0+local", "license": "a\nlong text",
                      "classifier": ["License :: OSI Approved :: Python License"]}}
    ]}"#;

    #[test]
    fn the_report_of_pip_has_packages_licences_checksums_and_the_graph() {
        let bom = bom_of(REPORT).unwrap();
        assert_eq!(bom.product.depends_on, ["pkg:pypi/httpx@0.28.1"]);
        assert_eq!((&bom.product.purl, &bom.product.sha256), (&None, &None));
        let [httpx, typing] = &bom.components[..] else { panic!("two packages are installed with it") };
        assert_eq!(httpx.depends_on, ["pkg:pypi/typing-extensions@4.16.0%2Blocal"]);
        assert_eq!(httpx.license.as_deref(), Some("BSD-3-Clause"));
        assert_eq!(typing.license.as_deref(), Some("Python License"));
        assert_eq!(typing.sha256.as_deref(), Some("bb"));
        assert_eq!(typing.purl.as_deref(), Some("pkg:pypi/typing-extensions@4.16.0%2Blocal"));
    }

    #[test]
    fn a_report_without_the_package_is_an_error() {
        assert!(bom_of(r#"{"install": []}"#).is_err());
    }
}
