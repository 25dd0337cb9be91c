//! The copy that is mutated: a git worktree of the last commit outside of the user's tree, with a separate target
//! directory.
//!
//! The copy is kept between runs, because building the dependencies takes longer than a layer. Each run discards
//! what a killed run left in it. A second copy contains all mutations at once ([`super::all_mutants`]). It needs a
//! separate target directory: cargo considers two copies of a package to be the same one, and compares only the
//! modification times of their files with the time of the build.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Trouble;
use super::catalogue::Mutation;
use crate::cargo;

/// The variable of `bellwether-testkit`.
const COMMAND: &str = "BELLWETHER_TEST_COMMAND";

pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    logs: PathBuf,
    server: Option<PathBuf>,
}

impl Scratch {
    /// Checks out the last commit of the tree at `root` into `place`.
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

    /// A second copy of the commit. Files that differ there but were not changed by the commit are kept, together
    /// with their build artifacts.
    pub(super) fn second(&self, root: &Path) -> Result<Self, Trouble> {
        let tree = self.place("schemata");
        let commit = git(root, &["rev-parse", "HEAD"])?;
        if !tree.join(".git").exists() || git(&tree, &["checkout", "--detach", &commit]).is_err() {
            check_out(root, &tree)?;
        }
        let (target, logs, server) = (self.place("schemata-target"), self.logs.clone(), self.server.clone());
        Ok(Self { tree, target, logs, server })
    }

    /// Builds the command from the unmodified tree: the servers that the tests use are not mutated. Does nothing if the
    /// environment names a command.
    pub(super) fn build_server(&mut self) -> Result<(), Trouble> {
        if env::var_os(COMMAND).is_some() {
            return Ok(());
        }
        let built = self.built("debug/bellwether");
        let kept = self.place("bellwether");
        cargo::run(&mut self.cargo(&["build"], &["--package", "bellwether-server", "--bin", "bellwether"]))
            .map_err(Trouble::Command)?;
        fs::copy(&built, &kept).map_err(|source| Trouble::File { path: built, source })?;
        self.server = Some(kept);
        Ok(())
    }

    /// Returns cargo in the tree, with the separate target directory. Incremental, because only one crate changes
    /// per build.
    pub(super) fn cargo(&self, first: &[&str], then: &[&str]) -> Command {
        let mut cargo = self.command(cargo::cargo().get_program());
        cargo.current_dir(&self.tree).args(first).args(then);
        cargo.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        cargo
    }

    /// Returns a program whose tests start the unmodified server.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(server) = &self.server {
            command.env(COMMAND, server);
        }
        command
    }

    /// The path of a source file of the copy.
    pub(super) fn source(&self, file: &str) -> PathBuf {
        self.tree.join(file)
    }

    /// The path of an artifact, relative to the target directory.
    pub(super) fn built(&self, artifact: &str) -> PathBuf {
        self.target.join(artifact)
    }

    /// The path of a file next to the copies.
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

    /// The path for the output of a command.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }
}

/// The default location of the scratch copy.
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

/// Checks out the last commit of the tree at `root` and discards all other changes.
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
