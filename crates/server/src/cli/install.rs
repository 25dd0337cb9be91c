//! Man pages and completions, generated from the description of the command line.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::command_line;
use super::exit::Failure;
use super::output::Output;

const NAME: &str = "bellwether";

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Target directory for `man/*.1` and one file per shell.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Completions {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command_line(), NAME, &mut text);
        output.text(String::from_utf8_lossy(&text).trim_end())
    }
}

impl Files {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.write()
            .map_err(|error| Failure::failed(format!("cannot write to {}: {error}", self.dir.display())))
    }

    fn write(&self) -> io::Result<()> {
        let pages = self.dir.join("man");
        fs::create_dir_all(&pages)?;
        clap_mangen::generate_to(command_line(), pages)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut command_line(), NAME, &self.dir)?;
        }
        Ok(())
    }
}
