//! Makes ZooKeeper available where that is ours to do: as root on a machine with apt.

use std::process::Command;

use bellwether_testkit::Installation;

use crate::cargo;
use crate::failure::Failure;

/// Installs Debian's ZooKeeper and Java unless they are there; where it may not, says what to run.
pub(crate) fn zookeeper() -> Result<(), Failure> {
    let Err(missing) = Installation::find() else {
        return Ok(());
    };
    if !(nix::unistd::geteuid().is_root() && has_apt()) {
        return Err(Failure::Missing(missing));
    }
    cargo::run(Command::new("apt-get").arg("update"))?;
    cargo::run(
        Command::new("apt-get")
            .args(["install", "--yes", "--no-install-recommends", "zookeeper"])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    Installation::find().map(drop).map_err(Failure::Missing)
}

fn has_apt() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join("apt-get").is_file())
}
