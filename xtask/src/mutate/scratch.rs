//! The copy that is mutated: a git worktree of the last commit, outside of the user's tree, with a target directory of
//! its own.
//!
//! It is kept from run to run, because building all that Bellwether depends on takes longer than a layer. What a run
//! that was killed left in it is thrown away by the next one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Trouble;
use super::catalogue::Mutation;
use crate::cargo;

/// As `bellwether-testkit` has it.
const COMMAND: &str = "BELLWETHER_TEST_COMMAND";

pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    logs: PathBuf,
    server: Option<PathBuf>,
}

impl Scratch {
    /// Checks the last commit of the tree at `root` out into `place`.
    pub(super) fn of(root: &Path, place: &Path) -> Result<Self, Trouble> {
        let scratch = Self {
            tree: place.join("tree"),
            target: place.join("target"),
            logs: place.join("logs"),
            server: None,
        };
        let made = fs::create_dir_all(&scratch.logs);
        made.map_err(|source| Trouble::File { path: scratch.logs.clone(), source })?;
        let commit = git(root, &["rev-parse", "HEAD"])?;
        if scratch.tree.join(".git").exists() {
            git(&scratch.tree, &["checkout", "--force", "--detach", &commit])?;
            git(&scratch.tree, &["clean", "--force", "-d"])?;
        } else {
            git(root, &["worktree", "prune"])?;
            let tree = scratch.tree.to_string_lossy().into_owned();
            git(root, &["worktree", "add", "--detach", &tree, &commit])?;
        }
        Ok(scratch)
    }

    /// Builds the command from the tree as it was committed: the servers that tests meet are not mutated. Unless somebody
    /// vouches for one, as for the tests themselves.
    pub(super) fn build_server(&mut self) -> Result<(), Trouble> {
        if env::var_os(COMMAND).is_some() {
            return Ok(());
        }
        let built = self.target.join("debug/bellwether");
        let kept = self.logs.with_file_name("bellwether");
        cargo::run(&mut self.cargo(&["build"], &["--package", "bellwether", "--bin", "bellwether"]))
            .map_err(Trouble::Command)?;
        fs::copy(&built, &kept).map_err(|source| Trouble::File { path: built, source })?;
        self.server = Some(kept);
        Ok(())
    }

    /// Cargo in the tree, into its own target directory. Only a crate changes from build to build: incremental pays.
    pub(super) fn cargo(&self, first: &[&str], then: &[&str]) -> Command {
        let mut cargo = cargo::cargo();
        cargo.current_dir(&self.tree).args(first).args(then);
        cargo.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        if let Some(server) = &self.server {
            cargo.env(COMMAND, server);
        }
        cargo
    }

    /// Removes a fence until the guard is dropped.
    pub(super) fn mutate(&self, mutation: &Mutation) -> Result<Mutated, Trouble> {
        let path = self.tree.join(&mutation.file);
        let at = |source| Trouble::File { path: path.clone(), source };
        let original = fs::read_to_string(&path).map_err(at)?;
        fs::write(&path, mutation.apply(&original)?).map_err(at)?;
        Ok(Mutated { path, original })
    }

    /// Where a command's output goes.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }
}

/// Where the scratch copy is unless said otherwise.
pub(super) fn default_place() -> PathBuf {
    env::temp_dir().join("bellwether-mutate")
}

/// A tree without a fence.
pub(super) struct Mutated {
    path: PathBuf,
    original: String,
}

impl Drop for Mutated {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.original) {
            eprintln!("xtask: {} is still mutated: {error}", self.path.display());
        }
    }
}

fn git(at: &Path, arguments: &[&str]) -> Result<String, Trouble> {
    let output = Command::new("git").arg("-C").arg(at).args(arguments).output().map_err(Trouble::Git)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Trouble::GitSaid { arguments: arguments.join(" "), said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
