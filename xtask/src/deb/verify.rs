//! Checks a Debian package from the outside: what an administrator would find after its installation.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::failed;
use super::metadata::Metadata;
use crate::cargo;
use crate::failure::Failure;

/// Listed by `bellwether --version` of a build that has TLS to ZooKeeper.
const TLS: &str = "zookeeper-tls";

/// Extracts the package to a folder, and removes the folder if nothing is wrong.
pub(super) fn verify(package: &Path, metadata: &Metadata, folder: &Path) -> Result<(), Failure> {
    cargo::run(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(folder))?;
    let listed = cargo::output(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    let command = folder.join("usr/bin/bellwether");
    let version = cargo::output(Command::new(&command).arg("--version"))?;
    let wrong = findings(metadata, folder, &listed, &version).map_err(|source| failed(folder, source))?;
    if !wrong.is_empty() {
        return Err(failed(package, io::Error::other(wrong.join("; "))));
    }
    cargo::run(
        Command::new(&command).args(["config", "check"]).arg(folder.join("etc/bellwether/bellwether.toml")),
    )?;
    fs::remove_dir_all(folder).map_err(|source| failed(folder, source))
}

/// Returns a sentence for each mistake. `folder` has the contents, `listed` is their list by dpkg-deb, and `version` what the packaged
/// command prints.
fn findings(metadata: &Metadata, folder: &Path, listed: &str, version: &str) -> io::Result<Vec<String>> {
    let mut wrong = Vec::new();
    if !version.split([' ', ',', '\n']).any(|word| word == TLS) {
        wrong.push(format!("the command has no TLS to ZooKeeper: {version:?}"));
    }
    let unit = PathBuf::from("usr/lib/systemd/system").join(format!("{}.service", metadata.name));
    match fs::read_to_string(folder.join(&unit)) {
        Ok(text) => {
            // The program and its configuration.
            let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap_or_default();
            let paths: Vec<_> = start.split(' ').filter_map(|word| word.strip_prefix('/')).collect();
            if paths.is_empty() {
                wrong.push("the unit starts nothing".to_owned());
            }
            let missing = paths.iter().filter(|path| !folder.join(path).is_file());
            wrong.extend(missing.map(|path| format!("the unit needs /{path}, which is not in the package")));
        }
        Err(error) => wrong.push(format!("{}: {error}", unit.display())),
    }
    let kept = fs::read_to_string(folder.join("DEBIAN/conffiles"))?;
    for line in listed.lines() {
        // -rw-r--r-- root/root 16384 2026-01-01 00:00 ./etc/bellwether/bellwether.toml
        let words: Vec<_> = line.split_whitespace().collect();
        let (Some(mode), Some(owner), Some(path)) = (words.first(), words.get(1), words.get(5)) else {
            continue;
        };
        let path = path.trim_start_matches('.');
        if *owner != "root/root" || mode.get(8..9) != Some("-") {
            wrong.push(format!("others than root can write {path}: {mode} {owner}"));
        }
        if mode.starts_with('d') && *mode != "drwxr-xr-x" {
            wrong.push(format!("the folder {path} has the mode {mode}"));
        }
        let is_file = mode.starts_with('-');
        if is_file && path.starts_with("/etc/") && !kept.lines().any(|kept| kept == path) {
            wrong.push(format!("an upgrade would overwrite {path}"));
        }
    }
    for script in ["postinst", "prerm", "postrm"] {
        let path = folder.join("DEBIAN").join(script);
        if !path.is_file() {
            wrong.push(format!("there is no script {script}"));
        } else if !Command::new("sh").arg("-n").arg(&path).status()?.success() {
            wrong.push(format!("sh cannot read the script {script}"));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::stage::Sources;
    use super::super::{SERVER, pack};
    use super::*;

    /// A package with this script as its command, and without further builds.
    fn package(script: &str, damage: impl Fn(&Path)) -> (tempfile::TempDir, Metadata, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (command, generated) = (folder.path().join("command"), folder.path().join("generated"));
        fs::write(&command, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(generated.join("man")).unwrap();
        for name in ["man/bellwether.1", "bellwether.bash", "_bellwether", "bellwether.fish"] {
            fs::write(generated.join(name), name).unwrap();
        }
        let metadata = Metadata::read(Path::new(SERVER)).unwrap();
        let sources = Sources { manifest: Path::new(SERVER), command: &command, generated: &generated };
        let root = folder.path().join("root");
        let control = metadata.control("all", "libc6");
        sources.stage(&metadata, &control, &root).unwrap();
        damage(&root);
        let package = folder.path().join("package.deb");
        pack(&root, &package).unwrap();
        (folder, metadata, package)
    }

    fn verified(script: &str, damage: impl Fn(&Path)) -> Result<(), String> {
        let (folder, metadata, package) = package(script, damage);
        verify(&package, &metadata, &folder.path().join("extracted")).map_err(|failure| failure.to_string())
    }

    const WITH_TLS: &str = "echo 'bellwether 0.1.0\nfeatures: otel, zookeeper-tls'";

    #[test]
    fn the_package_has_the_command_the_unit_and_compressed_pages() {
        let (folder, metadata, package) = package(WITH_TLS, |_| ());
        let listed = cargo::output(Command::new("dpkg-deb").arg("--contents").arg(&package)).unwrap();
        for path in [
            "./usr/bin/bellwether",
            "./usr/lib/systemd/system/bellwether.service",
            "./etc/bellwether/bellwether.toml",
            "./usr/share/man/man1/bellwether.1.gz",
            "./usr/share/doc/bellwether/copyright",
            "./usr/share/doc/bellwether/docs/security.md",
        ] {
            assert!(listed.lines().any(|line| line.ends_with(path)), "{path} is not in\n{listed}");
        }
        verify(&package, &metadata, &folder.path().join("extracted")).unwrap();
    }

    #[test]
    fn each_mistake_in_a_package_is_found() {
        let remove = |path: &'static str| move |root: &Path| fs::remove_file(root.join(path)).unwrap();
        let without_tls = verified("echo 'bellwether 0.1.0\nfeatures: otel'", |_| ()).unwrap_err();
        assert!(without_tls.contains("no TLS to ZooKeeper"), "{without_tls}");
        let without_unit =
            verified(WITH_TLS, remove("usr/lib/systemd/system/bellwether.service")).unwrap_err();
        assert!(without_unit.contains("bellwether.service"), "{without_unit}");
        let without_settings = verified(WITH_TLS, |root| {
            fs::rename(root.join("etc/bellwether/bellwether.toml"), root.join("etc/bellwether/other.toml"))
                .unwrap();
            fs::remove_file(root.join("DEBIAN/conffiles")).unwrap();
            fs::write(root.join("DEBIAN/conffiles"), "").unwrap();
        })
        .unwrap_err();
        assert!(
            without_settings.contains("the unit needs /etc/bellwether/bellwether.toml"),
            "{without_settings}"
        );
        assert!(without_settings.contains("an upgrade would overwrite /etc/bellwether/other.toml"));
        let without_script = verified(WITH_TLS, remove("DEBIAN/prerm")).unwrap_err();
        assert!(without_script.contains("no script prerm"), "{without_script}");
        let broken =
            verified(WITH_TLS, |root| fs::write(root.join("DEBIAN/postinst"), "#!/bin/sh\nif\n").unwrap());
        let broken = broken.unwrap_err();
        assert!(broken.contains("sh cannot read the script postinst"), "{broken}");
        let closed = verified(WITH_TLS, |root| {
            fs::set_permissions(root.join("usr/share"), fs::Permissions::from_mode(0o700)).unwrap();
        })
        .unwrap_err();
        assert!(closed.contains("the folder /usr/share/ has the mode drwx------"), "{closed}");
        let writable = verified(WITH_TLS, |root| {
            fs::set_permissions(root.join("usr/bin/bellwether"), fs::Permissions::from_mode(0o757)).unwrap();
        })
        .unwrap_err();
        assert!(writable.contains("others than root can write /usr/bin/bellwether"), "{writable}");
    }
}
