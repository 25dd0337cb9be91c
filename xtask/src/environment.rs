//! Virtual environments of Python. One of them has pip, which installs into the others: its installation takes six seconds of
//! processor time.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::install;

const PIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/pip");

pub(crate) struct Environment {
    pub(crate) folder: PathBuf,
}

impl Environment {
    pub(crate) fn of(folder: &str, name: &str) -> Self {
        Self { folder: Path::new(folder).join(name) }
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// Creates the environment. Removes what an earlier run installed: a wheel of the same version would not be replaced.
    pub(crate) fn create(&self, interpreter: &Path) -> Command {
        let mut create = Command::new(interpreter);
        create.args(["-m", "venv", "--clear", "--without-pip"]).arg(&self.folder);
        create
    }

    /// `pip install` into this environment. It does not compile to bytecode: Python does so for the modules that are imported.
    pub(crate) fn install(&self) -> Command {
        let mut install = Command::new(Path::new(PIP).join("bin/python"));
        install.args(["-m", "pip", "--python"]).arg(self.python());
        install.args(["install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
        install.arg("--no-warn-script-location");
        install
    }
}

/// Creates the environment that has pip, unless an earlier run did.
pub(crate) fn pip() -> Result<(), Failure> {
    install::python()?;
    // pip is the last file that is written, and python links to an interpreter that may have been removed.
    if ["bin/pip", "bin/python"].iter().all(|file| Path::new(PIP).join(file).exists()) {
        return Ok(());
    }
    cargo::run(Command::new("python3").args(["-m", "venv", "--clear", PIP]))
}
