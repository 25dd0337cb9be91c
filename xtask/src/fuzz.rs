//! Runs the libFuzzer targets one after another, and prints what each has done.
//!
//! Needs a C++ compiler, and neither a nightly compiler nor cargo-fuzz: no target has unsafe code of its own, so there is no
//! sanitizer, and the flags below are stable. Overflow and debug assertions are on.
//!
//! New inputs that reach new code go to `target/fuzz/corpus`, where the next run continues. An input that fails goes to
//! `target/fuzz/failures`: add it to the corpus of its target.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cargo;
use crate::failure::Failure;

/// As cargo-fuzz: coverage of edges, and the operands of comparisons.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Cdebug-assertions -Coverflow-checks";

/// The packages with their targets.
const PACKAGES: [(&str, &[&str]); 4] = [
    ("crates/keeper/fuzz", &["connect", "request", "model"]),
    ("crates/server/fuzz", &["http", "credentials", "configuration", "command_line", "builtin"]),
    ("fuzz", &["connect_string", "job", "document", "frame"]),
    ("crates/core/fuzz", &["name", "path", "wire"]),
];

/// The arguments of `cargo xtask fuzz`.
#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Only these targets.
    #[arg(value_parser = PossibleValuesParser::new(PACKAGES.iter().flat_map(|(_, targets)| targets.iter())))]
    targets: Vec<String>,
    /// Executions of each target.
    #[arg(long, default_value_t = 1_000_000)]
    executions: u64,
    /// The most seconds for each target.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// The seed; by default each run has a new one, which is printed.
    #[arg(long)]
    seed: Option<u32>,
}

/// What a run of one target has done.
struct Done {
    target: &'static str,
    seed: String,
    executions: u64,
    per_second: u64,
}

/// Builds and runs the targets. Stops at the first input that fails.
pub(crate) fn run(fuzz: &Fuzz) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let work = root.join("target/fuzz");
    // Flags count only for the programs, and not for build scripts, if the platform is named.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut all = Vec::new();
    for (package, targets) in PACKAGES {
        let chosen = targets
            .iter()
            .copied()
            .filter(|target| fuzz.targets.is_empty() || fuzz.targets.iter().any(|name| name == target));
        for target in chosen {
            let mut build = cargo::cargo();
            build.args(["build", "--release", "--target", &platform, "--bin", target]);
            build.current_dir(root.join(package)).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &work);
            cargo::run(&mut build)?;
            all.push(one(
                fuzz,
                target,
                &work,
                &work.join(&platform).join("release").join(target),
                &root.join(package).join("corpus").join(target),
            )?);
        }
    }
    eprintln!("| target | executions | per second | seed |\n| --- | --- | --- | --- |");
    for Done { target, seed, executions, per_second } in &all {
        eprintln!("| {target} | {executions} | {per_second} | {seed} |");
    }
    eprintln!("{} executions", all.iter().map(|done| done.executions).sum::<u64>());
    Ok(())
}

fn one(
    fuzz: &Fuzz,
    target: &'static str,
    work: &Path,
    program: &Path,
    seeds: &Path,
) -> Result<Done, Failure> {
    let line = program.display().to_string();
    let launch = |source| Failure::Launch { line: line.clone(), source };
    let dir = |name: &str| -> Result<PathBuf, Failure> {
        let dir = work.join(name).join(target);
        fs::create_dir_all(&dir).map_err(launch)?;
        Ok(dir)
    };
    let (found, failures) = (dir("corpus")?, dir("failures")?);
    let mut command = Command::new(program);
    command.args([&found, seeds]).arg(format!("-runs={}", fuzz.executions));
    command.arg(format!("-max_total_time={}", fuzz.seconds)).arg(format!("-seed={}", fuzz.seed.unwrap_or(0)));
    command.args(["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/", failures.display()));
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(launch)?;
    let mut done = Done { target, seed: String::new(), executions: 0, per_second: 0 };
    for said in BufReader::new(child.stderr.take().expect("a pipe")).lines() {
        let said = said.map_err(launch)?;
        eprintln!("{target}: {said}");
        let number = |name: &str| said.strip_prefix(name).and_then(|number| number.trim().parse().ok());
        done.executions = number("stat::number_of_executed_units:").unwrap_or(done.executions);
        done.per_second = number("stat::average_exec_per_sec:").unwrap_or(done.per_second);
        if let Some(seed) = said.strip_prefix("INFO: Seed:") {
            seed.trim().clone_into(&mut done.seed);
        }
    }
    let status = child.wait().map_err(launch)?;
    if status.success() { Ok(done) } else { Err(Failure::Command { line, status }) }
}
