//! The Debian package, built with dpkg-deb: building cargo-deb would take longer than the package. Its contents are those that
//! `[package.metadata.deb]` of the server lists, which `cargo deb` reads, too.

mod metadata;
mod stage;
mod verify;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::install;

use metadata::Metadata;
use stage::Sources;

/// The folder of the manifest, from which the paths of the assets start.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/server");
const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target");

/// Builds a package with this command, checks it, and returns its path.
pub(crate) fn build(command: &Path) -> Result<PathBuf, Failure> {
    install::dpkg_dev()?;
    let folder = Path::new(TARGET).join("debian");
    let generated = Path::new(TARGET).join("package");
    for old in [&folder, &generated] {
        // A page of a command that has been removed would be packaged.
        if old.exists() {
            fs::remove_dir_all(old).map_err(|source| failed(old, source))?;
        }
    }
    cargo::run(Command::new(command).arg("install-files").arg(&generated))?;

    let metadata = Metadata::read(Path::new(SERVER))?;
    let libraries = libraries(command, &folder)?;
    let architecture = cargo::output(Command::new("dpkg").arg("--print-architecture"))?;
    let control = metadata.control(architecture.trim(), &libraries);
    let root = folder.join("root");
    let sources = Sources { manifest: Path::new(SERVER), command, generated: &generated };
    sources.stage(&metadata, &control, &root).map_err(|source| failed(&root, source))?;
    let package = folder.join(metadata.file_name(architecture.trim()));
    pack(&root, &package)?;
    verify::verify(&package, &metadata, &folder.join("extracted"))?;
    fs::remove_dir_all(&root).map_err(|source| failed(&root, source))?;
    eprintln!("xtask: the Debian package is {}", package.display());
    Ok(package)
}

/// Every file belongs to root. gzip is a tenth of the time of xz, and its level 6 a third of the time of 9, for 1 % more bytes.
fn pack(root: &Path, package: &Path) -> Result<(), Failure> {
    cargo::run(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zgzip", "-z6", "--build"])
            .arg(root)
            .arg(package),
    )
}

/// The packages with the shared libraries of this command, as a list for the field `Depends`.
fn libraries(command: &Path, folder: &Path) -> Result<String, Failure> {
    // It reads this file, and writes nothing with -O.
    let debian = folder.join("shlibs/debian");
    fs::create_dir_all(&debian).map_err(|source| failed(&debian, source))?;
    let control = debian.join("control");
    fs::write(&control, "Source: bellwether\n\nPackage: bellwether\nArchitecture: any\n")
        .map_err(|source| failed(&control, source))?;
    let command = fs::canonicalize(command).map_err(|source| failed(command, source))?;
    let mut shlibdeps = Command::new("dpkg-shlibdeps");
    shlibdeps.current_dir(folder.join("shlibs")).args(["-O", "-e"]).arg(command);
    let output = cargo::output(&mut shlibdeps)?;
    let found = output.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found
        .map(str::to_owned)
        .ok_or_else(|| failed(Path::new("dpkg-shlibdeps"), io::Error::other(output.clone())))
}

fn failed(path: &Path, source: io::Error) -> Failure {
    Failure::Launch { line: path.display().to_string(), source }
}
