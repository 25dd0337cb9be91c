//! A ZooKeeper for experiments.

use std::path::PathBuf;

use bellwether_testkit::{Profile, Program, StartError, ZooKeeperServer};

use crate::failure::Failure;

/// ZooKeeper's default tick: sessions of 4 s and more, which suits interactive use.
pub(crate) const TICK_MS: u32 = 2_000;

/// Runs until ZooKeeper ends. Ctrl-C ends this process, and its watchdog then ends ZooKeeper.
pub(crate) fn run(port: u16, data_dir: Option<PathBuf>) -> Result<(), Failure> {
    let mut builder = ZooKeeperServer::builder()
        .program(Program::Apache)
        .tick_ms(TICK_MS)
        .profile(Profile::Production)
        .port(port);
    if let Some(data_dir) = data_dir {
        builder = builder.data_dir(data_dir);
    }
    let mut server = builder.try_start().map_err(not_started)?;
    eprintln!("xtask: ZooKeeper is ready; press Ctrl-C to end it. Connect string:");
    say(&server.connect_string());
    Err(Failure::Ended(server.wait()))
}

pub(crate) fn not_started(error: StartError) -> Failure {
    match error {
        StartError::Missing(missing) => Failure::Missing(missing),
        error @ (StartError::Io(_) | StartError::Exited { .. } | StartError::NotReady { .. }) => {
            Failure::Start(error)
        }
    }
}

#[expect(clippy::print_stdout, reason = "the connect string is this command's output")]
pub(crate) fn say(connect_string: &str) {
    println!("{connect_string}");
}
