//! Finds Java and ZooKeeper, or reports what to install.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// From Debian's package `libzookeeper-java`; the manifest of the jar lists its dependencies.
const ZOOKEEPER_JAR: &str = "/usr/share/java/zookeeper.jar";
/// Without a logging backend ZooKeeper logs nothing, and a failed start could not be diagnosed. Java ignores the jar if
/// it is missing.
const LOGGER_JAR: &str = "/usr/share/java/slf4j-simple.jar";

/// An installed ZooKeeper.
#[derive(Debug, Clone)]
pub struct Installation {
    pub(super) java: PathBuf,
    pub(super) class_path: String,
}

/// A missing requirement of the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    what: &'static str,
}

impl Installation {
    /// Looks for `java` in `PATH` and for Debian's ZooKeeper jar.
    pub fn find() -> Result<Self, Missing> {
        let path = env::var_os("PATH").unwrap_or_default();
        Self::find_in(env::split_paths(&path), Path::new(ZOOKEEPER_JAR))
    }

    /// Another release: all jars of a directory, with Java from `PATH`.
    pub fn of_jars(dir: &Path) -> Result<Self, Missing> {
        let path = env::var_os("PATH").unwrap_or_default();
        Ok(Self { java: java(env::split_paths(&path))?, class_path: format!("{}/*", dir.display()) })
    }

    fn find_in(path: impl Iterator<Item = PathBuf>, jar: &Path) -> Result<Self, Missing> {
        let java = java(path)?;
        if !jar.is_file() {
            return Err(Missing { what: "no /usr/share/java/zookeeper.jar" });
        }
        Ok(Self { java, class_path: format!("{}:{LOGGER_JAR}", jar.display()) })
    }
}

fn java(mut path: impl Iterator<Item = PathBuf>) -> Result<PathBuf, Missing> {
    let java = path.find_map(|dir| Some(dir.join("java")).filter(|java| java.is_file()));
    java.ok_or(Missing { what: "no `java` in PATH" })
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what } = self;
        write!(
            f,
            "{what}: tests run on Apache ZooKeeper or compare with it; on Debian or Ubuntu run \
             `apt-get install zookeeper` as root, or let `cargo xtask test` do it"
        )
    }
}

impl std::error::Error for Missing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_java_and_a_missing_jar_name_the_package_to_install() {
        let dir = tempfile::tempdir().unwrap();
        let path = || std::iter::once(dir.path().to_owned());
        let jar = dir.path().join("zookeeper.jar");

        let no_java = Installation::find_in(path(), &jar).unwrap_err().to_string();
        assert!(no_java.contains("`java`") && no_java.contains("apt-get install zookeeper"), "{no_java}");

        std::fs::write(dir.path().join("java"), "").unwrap();
        let no_jar = Installation::find_in(path(), &jar).unwrap_err().to_string();
        assert!(no_jar.contains("zookeeper.jar") && no_jar.contains("apt-get install zookeeper"), "{no_jar}");

        std::fs::write(&jar, "").unwrap();
        Installation::find_in(path(), &jar).unwrap();
    }
}
