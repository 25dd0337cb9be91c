//! The versions of Python that are installed, in `PATH` and by pyenv.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The oldest version that the package supports: 3.10.
const OLDEST: u32 = 10;
/// Prints the minor version. Fails if no virtual environment can be made.
const MINOR: &str = "import ensurepip, sys; assert sys.version_info[0] == 3; print(sys.version_info[1])";

/// An interpreter of a version that the package supports.
pub(super) struct Interpreter {
    minor: u32,
    pub(super) path: PathBuf,
}

impl Interpreter {
    pub(super) fn name(&self) -> String {
        format!("python3.{}", self.minor)
    }
}

/// Returns an interpreter for each supported version, except for that of `python3`, the oldest first.
pub(super) fn others() -> Result<Vec<Interpreter>, Failure> {
    let python3 = Path::new("python3");
    let main = minor(python3).ok_or_else(|| {
        let source = std::io::Error::other("it is missing, or cannot make virtual environments");
        Failure::Launch { line: "python3".to_owned(), source }
    })?;
    let mut found = BTreeMap::new();
    for path in folders().iter().flat_map(|folder| candidates(folder)) {
        // A shim of pyenv for a version that is not selected fails.
        if let Some(minor) = minor(&path)
            && minor >= OLDEST
            && minor != main
        {
            found.entry(minor).or_insert(path);
        }
    }
    Ok(found.into_iter().map(|(minor, path)| Interpreter { minor, path }).collect())
}

/// The folders of `PATH`, then those of pyenv, which are not in `PATH`.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<_> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv"));
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let mut versions = pyenv.map_or_else(Vec::new, |pyenv| entries(&pyenv.join("versions")));
    // So that the choice does not depend on the file system.
    versions.sort();
    folders.extend(versions.iter().map(|version| version.join("bin")));
    folders
}

/// The files of a folder that are named like an interpreter, `python3.12`.
fn candidates(folder: &Path) -> Vec<PathBuf> {
    let mut found = entries(folder);
    found.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_interpreter));
    found
}

/// Excludes `python3.12-config`, and `python3.13t`, which is another build of the same version.
fn is_interpreter(name: &str) -> bool {
    name.strip_prefix("python3.").is_some_and(|minor| minor.parse::<u32>().is_ok())
}

/// Nothing for a folder of `PATH` that does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten();
    found.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}

fn minor(interpreter: &Path) -> Option<u32> {
    let output = Command::new(interpreter).args(["-c", MINOR]).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok().filter(|_| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_version_is_that_of_the_package() {
        let project = fs::read_to_string(Path::new(super::super::PACKAGE).join("pyproject.toml")).unwrap();
        assert!(project.contains(&format!("requires-python = \">=3.{OLDEST}\"")));
    }

    #[test]
    fn only_names_of_interpreters_are_candidates() {
        for (name, expected) in [
            ("python3.10", true),
            ("python3.9", true),
            ("python3", false),
            ("python3.12-config", false),
            ("python3.13t", false),
            ("pip3.12", false),
        ] {
            assert_eq!(is_interpreter(name), expected, "{name}");
        }
    }

    #[test]
    fn a_file_that_is_no_interpreter_has_no_version() {
        assert_eq!(minor(Path::new("/bin/false")), None);
        assert_eq!(minor(Path::new("/nothing/python3.12")), None);
    }
}
