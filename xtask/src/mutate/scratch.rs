//! The copy that is mutated: a git worktree of the last commit, outside of the user's tree, with a target directory of
//! its own.
//!
//! It is kept from run to run, because building all that Bellwether depends on takes longer than a layer. What a run
//! that was killed left in it is thrown away by the next one. A second copy holds all mutations at once
//! ([`super::all_mutants`]). It has its own target directory: cargo takes two copies of a package for one, and compares only
//! the times of their files with that of the build.

use std::env;
use std::ffi::OsStr;
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
        check_out(root, &scratch.tree)?;
        Ok(scratch)
    }

    /// A second copy of the commit. Files that were changed there and not by the commit are left as they are, and so is
    /// what was built from them.
    pub(super) fn second(&self, root: &Path) -> Result<Self, Trouble> {
        let tree = self.place("schemata");
        let commit = git(root, &["rev-parse", "HEAD"])?;
        if !tree.join(".git").exists() || git(&tree, &["checkout", "--detach", &commit]).is_err() {
            check_out(root, &tree)?;
        }
        let (target, logs, server) = (self.place("schemata-target"), self.logs.clone(), self.server.clone());
        Ok(Self { tree, target, logs, server })
    }

    /// Builds the command from the tree as it was committed: the servers that tests meet are not mutated. Unless somebody
    /// vouches for one, as for the tests themselves.
    pub(super) fn build_server(&mut self) -> Result<(), Trouble> {
        if env::var_os(COMMAND).is_some() {
            return Ok(());
        }
        let built = self.target.join("debug/bellwether");
        let kept = self.place("bellwether");
        cargo::run(&mut self.cargo(&["build"], &["--package", "bellwether-server", "--bin", "bellwether"]))
            .map_err(Trouble::Command)?;
        fs::copy(&built, &kept).map_err(|source| Trouble::File { path: built, source })?;
        self.server = Some(kept);
        Ok(())
    }

    /// Cargo in the tree, into its own target directory. Only a crate changes from build to build: incremental pays.
    pub(super) fn cargo(&self, first: &[&str], then: &[&str]) -> Command {
        let mut cargo = self.command(cargo::cargo().get_program());
        cargo.current_dir(&self.tree).args(first).args(then);
        cargo.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        cargo
    }

    /// A program whose tests start the server that is not mutated.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(server) = &self.server {
            command.env(COMMAND, server);
        }
        command
    }

    /// A source file of the copy.
    pub(super) fn source(&self, file: &str) -> PathBuf {
        self.tree.join(file)
    }

    /// A file beside the copies.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.logs.with_file_name(name)
    }

    /// Removes a fence until the guard is dropped.
    pub(super) fn mutate(&self, mutation: &Mutation) -> Result<Mutated, Trouble> {
        let path = self.source(&mutation.file);
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

/// The last commit of the tree at `root`, and nothing else.
fn check_out(root: &Path, tree: &Path) -> Result<(), Trouble> {
    let commit = git(root, &["rev-parse", "HEAD"])?;
    if tree.join(".git").exists() {
        git(tree, &["checkout", "--force", "--detach", &commit])?;
        git(tree, &["clean", "--force", "-d"])?;
    } else {
        git(root, &["worktree", "prune"])?;
        git(root, &["worktree", "add", "--detach", &tree.to_string_lossy(), &commit])?;
    }
    Ok(())
}

fn git(at: &Path, arguments: &[&str]) -> Result<String, Trouble> {
    let output = Command::new("git").arg("-C").arg(at).args(arguments).output().map_err(Trouble::Git)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Trouble::GitSaid { arguments: arguments.join(" "), said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
