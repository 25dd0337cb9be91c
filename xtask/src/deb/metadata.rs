//! What the manifest of the server says about the Debian package.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::failed;
use crate::failure::Failure;

/// The first package of a version.
const REVISION: u32 = 1;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Metadata {
    pub(super) name: String,
    maintainer: String,
    pub(super) copyright: String,
    section: String,
    depends: String,
    recommends: String,
    extended_description: String,
    pub(super) conf_files: Vec<String>,
    /// The file or pattern, where it is installed, and its mode.
    pub(super) assets: Vec<(String, String, String)>,
    /// Only for cargo-deb, which has its own scripts for the unit.
    #[serde(rename = "maintainer-scripts")]
    _maintainer_scripts: String,
    pub(super) systemd_units: Units,
    #[serde(skip)]
    package: Package,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Units {
    /// The folder with the unit.
    pub(super) unit_scripts: String,
    enable: bool,
    start: bool,
}

#[derive(Deserialize, Default)]
struct Package {
    description: String,
    version: String,
    repository: String,
}

impl Metadata {
    /// Reads the manifest in this folder, and the version from that of the workspace.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let read = |path: &Path| {
            let text = fs::read_to_string(path).map_err(|source| failed(path, source))?;
            text.parse::<toml::Table>().map_err(|error| failed(path, io::Error::other(error)))
        };
        let path = folder.join("Cargo.toml");
        let (own, workspace) = (read(&path)?, read(&folder.join("../../Cargo.toml"))?);
        Self::of(&own, &workspace).map_err(|error| failed(&path, io::Error::other(error)))
    }

    fn of(
        own: &toml::Table,
        workspace: &toml::Table,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let table = |table: &toml::Table, keys: &[&str]| {
            keys.iter().try_fold(table.clone(), |table, key| table.get(*key)?.as_table().cloned())
        };
        let deb = table(own, &["package", "metadata", "deb"]).ok_or("there is no package.metadata.deb")?;
        let mut metadata: Self = deb.try_into()?;
        let mut package =
            table(workspace, &["workspace", "package"]).ok_or("there is no workspace.package")?;
        package.insert("description".to_owned(), own["package"]["description"].clone());
        metadata.package = package.try_into()?;
        let Units { enable, start, .. } = metadata.systemd_units;
        if enable || start {
            return Err("packaging/debian has no scripts that enable or start the unit".into());
        }
        Ok(metadata)
    }

    pub(super) fn file_name(&self, architecture: &str) -> String {
        format!("{}_{}-{REVISION}_{architecture}.deb", self.name, self.package.version)
    }

    /// Returns the file `control`, without the size. `libraries` replaces `$auto`.
    pub(super) fn control(&self, architecture: &str, libraries: &str) -> String {
        let fields = [
            ("Package", self.name.as_str()),
            ("Version", &format!("{}-{REVISION}", self.package.version)),
            ("Architecture", architecture),
            ("Maintainer", &self.maintainer),
            ("Section", &self.section),
            ("Priority", "optional"),
            ("Depends", &self.depends.replace("$auto", libraries)),
            ("Recommends", &self.recommends),
            ("Homepage", &self.package.repository),
            ("Description", &self.package.description),
        ];
        let mut control = String::new();
        for (name, value) in fields {
            writeln!(control, "{name}: {value}").expect("writing to a String cannot fail");
        }
        for line in self.extended_description.trim().lines() {
            let line = if line.trim().is_empty() { "." } else { line };
            writeln!(control, " {line}").expect("writing to a String cannot fail");
        }
        control
    }
}

#[cfg(test)]
mod tests {
    use super::super::SERVER;
    use super::*;

    #[test]
    fn the_manifest_of_the_server_becomes_a_control_file() {
        let metadata = Metadata::read(Path::new(SERVER)).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(metadata.file_name("amd64"), format!("bellwether_{version}-1_amd64.deb"));
        let control = metadata.control("amd64", "libc6 (>= 2.36)");
        for line in [
            "Package: bellwether",
            &format!("Version: {version}-1"),
            "Depends: libc6 (>= 2.36)",
            "Recommends: zookeeper",
        ] {
            assert!(control.lines().any(|each| each == line), "{line} is not in\n{control}");
        }
        let (_, description) = control.split_once("\nDescription: ").unwrap();
        assert!(description.lines().skip(1).all(|line| line.starts_with(' ')), "{description}");
        assert!(description.lines().count() > 2);
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        let own = "[package]\ndescription = 'a'\n[package.metadata.deb]\npre-depends = 'b'\n";
        let workspace = "[workspace.package]\nversion = '1'\nrepository = 'c'\n";
        let error = Metadata::of(&own.parse().unwrap(), &workspace.parse().unwrap()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("pre-depends"), "{error}");
    }
}
