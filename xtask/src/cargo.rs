//! Cargo, and other commands, run as a shell would: their output is ours, and so is their failure.

use std::path::PathBuf;
use std::process::Command;

use crate::Server;
use crate::failure::Failure;

/// Which server the tests are about.
const SERVER: &str = "BELLWETHER_TEST_SERVER";

/// With what a shipped build does not have.
const TESTING: &str = "--features=bellwether/otel-testing,bellwether/zookeeper-tls";

/// The format, the lints and the documentation, warnings denied.
pub(crate) fn check() -> Result<(), Failure> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", TESTING, "--", "-D", "warnings"]))?;
    // As it is shipped, and as a service embeds it.
    let shipped = ["clippy", "--package", "bellwether"];
    run(cargo().args(shipped).args(["--package", "bellwether-actors", "--", "-D", "warnings"]))?;
    run(cargo().args(shipped).args(["--lib", "--no-default-features", "--", "-D", "warnings"]))?;
    run(cargo().args(["doc", "--workspace", "--no-deps", TESTING]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The packages whose tests meet a server of the protocol, beside those that have one of their own choice.
const ON_A_SERVER: [&str; 4] = ["bellwether", "bellwether-actors", "bellwether-zk", "bellwether-testkit"];

/// The whole suite, or what of it the arguments select, on this server. Cargo would ignore a package beside
/// `--workspace`.
pub(crate) fn test(
    server: Server,
    cargo_arguments: &[String],
    binary_arguments: &[String],
) -> Result<(), Failure> {
    let chosen = cargo_arguments.iter().any(|word| word.starts_with("-p") || word.starts_with("--package"));
    let packages = match (chosen, server) {
        (true, _) => Vec::new(),
        (false, Server::Keeper) => vec!["--workspace"],
        (false, Server::Zookeeper) => ON_A_SERVER.into_iter().flat_map(|name| ["--package", name]).collect(),
    };
    let mut test = cargo();
    test.arg("test").args(&packages).args(cargo_arguments);
    if !binary_arguments.is_empty() {
        test.arg("--").args(binary_arguments);
    }
    test.env(SERVER, server.name());
    // What the shipped library does not have: the test kit, the faults of actors, traces for a collector, and TLS to
    // ZooKeeper. One set of features for all of them, as each set builds the library anew.
    let testing = ["test", "--package", "bellwether", "--features", "otel-testing,zookeeper-tls"];
    if !chosen {
        let tests = ["--test", "groups", "--test", "leases"];
        run(cargo().args(testing).args(tests).env(SERVER, server.name()))?;
    }
    if (chosen, server) == (false, Server::Zookeeper) {
        run(cargo().args(testing).args(["--test", "access", "--", "tls"]).env(SERVER, server.name()))?;
    }
    if (chosen, server) == (false, Server::Keeper) {
        run(cargo().args(testing).args(["--test", "actors", "--test", "otel", "--test", "testing"]))?;
        run(cargo().args(testing).args(["--doc", "testing"]))?;
        // What the shipped keeper does not have.
        let tests = ["--test", "tls", "--test", "hooks"];
        run(cargo()
            .args(["test", "--package", "bellwether-keeper", "--features", "tls,testing"])
            .args(tests))?;
    }
    if !chosen {
        // Builds the command, too, so that no test has to.
        run(cargo().args(["test", "--no-run"]).args(&packages))?;
        test.env("BELLWETHER_TEST_COMMAND", command()?);
    }
    run(&mut test)
}

/// The `bellwether` command of the development profile, as built last: beside this program.
fn command() -> Result<PathBuf, Failure> {
    let here = std::env::current_exe();
    here.map(|here| here.with_file_name("bellwether"))
        .map_err(|source| Failure::Launch { line: "bellwether".to_owned(), source })
}

/// Runs a command in the foreground, after saying which.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = line(command);
    eprintln!("xtask: {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Command { line, status }),
        Err(source) => Err(Failure::Launch { line, source }),
    }
}

/// The cargo that runs this task, from the toolchain that the caller chose.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
