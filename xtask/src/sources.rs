//! The sources of the repository, for checks of their text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the files that match these patterns, each with its path in the tree: those that git tracks, and new ones that it does not
/// ignore.
pub(crate) fn read(patterns: &[&str]) -> Vec<(PathBuf, String)> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"];
    let listed = Command::new("git").current_dir(TREE).args(list).args(patterns).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let paths = String::from_utf8(listed.stdout).unwrap();
    let paths = paths.split_terminator('\0').map(PathBuf::from);
    // A file that was deleted without git is still listed.
    let there = paths.filter(|path| Path::new(TREE).join(path).is_file());
    let read = |path: PathBuf| {
        let text = fs::read_to_string(Path::new(TREE).join(&path)).unwrap();
        (path, text)
    };
    there.map(read).collect()
}
