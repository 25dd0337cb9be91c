//! The test programs of a layer, built once from the tree that contains all mutations.

use std::num::NonZero;
use std::ops::Range;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::Trouble;
use super::layer::{self, BUILD, Layer, Verdict};
use super::schemata::VARIABLE;
use super::scratch::Scratch;
use super::watch::watched;
use crate::messages::{self, Message, TestProgram};

/// Optimised for the simulator and the model check, whose runs are long and share one build.
const OPTIMISED: [&str; 3] = ["bellwether-core", "bellwether-keeper", "bellwether-actors"];

/// The test programs of a layer.
pub(super) struct Binaries {
    layer: Layer,
    programs: Vec<TestProgram>,
    jobs: usize,
    bound: Duration,
}

/// The result of a build.
pub(super) enum Built {
    Binaries(Binaries),
    /// For each error the files and byte ranges that it refers to. Empty if the build failed for another reason.
    Errors(Vec<Vec<(String, Range<usize>)>>),
}

impl Binaries {
    /// Builds a layer. `jobs` of its runs share the machine.
    pub(super) fn build(
        layer: Layer,
        package: &str,
        scratch: &Scratch,
        jobs: usize,
    ) -> Result<Built, Trouble> {
        let log = scratch.log(&Self::build_log(layer, package));
        let mut build =
            scratch.cargo(&["test", "--no-run", "--message-format=json"], &layer.arguments(package));
        let optimised = if matches!(layer, Layer::Model | Layer::Simulator) { &OPTIMISED[..] } else { &[] };
        for package in optimised {
            build.args(["--config", &format!("profile.dev.package.{package}.opt-level=1")]);
        }
        let built = watched(&mut build, &log, BUILD)?;
        let mut programs = Vec::new();
        let mut errors = Vec::new();
        for message in messages::parse(&built.said) {
            match message {
                Message::Artifact(artifact) => programs.extend(artifact.test_program()),
                Message::Said { message } if message.level == "error" => {
                    let spans = message.spans.into_iter();
                    errors.push(
                        spans
                            .map(|span| {
                                let bytes = span.bytes();
                                (span.file_name, bytes)
                            })
                            .collect(),
                    );
                }
                Message::Said { .. } | Message::Other => {}
            }
        }
        // Without a test program, every mutation would survive.
        if built.ended.is_some_and(|status| status.success()) && !programs.is_empty() {
            return Ok(Built::Binaries(Self { layer, programs, jobs, bound: layer.bound() }));
        }
        Ok(Built::Errors(errors))
    }

    /// The name of a build's log.
    pub(super) fn build_log(layer: Layer, package: &str) -> String {
        format!("schemata-{}-{package}.build", layer.name())
    }

    /// Runs the layer without a mutation. It must pass, and its duration determines the time limit of the other runs.
    pub(super) fn control(&mut self, scratch: &Scratch, package: &str) -> Result<Duration, Trouble> {
        let log = format!("green-{}-{package}", self.layer.name());
        let begun = Instant::now();
        if self.run(None, scratch, &log)?.is_caught() {
            return Err(Trouble::Red { layer: self.layer.name(), log: scratch.log(&log) });
        }
        let took = begun.elapsed();
        self.bound = bound(self.layer.bound(), took, self.jobs);
        Ok(took)
    }

    /// Runs its programs with this mutation, one after another, until one fails.
    pub(super) fn run(
        &self,
        number: Option<usize>,
        scratch: &Scratch,
        log: &str,
    ) -> Result<Verdict, Trouble> {
        let begun = Instant::now();
        for program in &self.programs {
            let left = self.bound.saturating_sub(begun.elapsed());
            let mut test = command(program, scratch, self.jobs);
            if let Some(number) = number {
                test.env(VARIABLE, number.to_string());
            }
            let ran = watched(&mut test, &scratch.log(log), left)?;
            let verdict = layer::verdict(ran.ended, &ran.said, begun.elapsed().as_secs());
            if verdict.is_caught() {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Survived { seconds: begun.elapsed().as_secs() })
    }
}

/// The command that cargo would run, but with a share of the machine.
fn command(program: &TestProgram, scratch: &Scratch, jobs: usize) -> Command {
    let mut test = scratch.command(&program.path);
    program.place(&mut test);
    test.env_remove(VARIABLE);
    layer::limit_cases(&mut test);
    if jobs > 1 {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        test.env("RUST_TEST_THREADS", (cores / jobs).max(1).to_string());
    }
    test
}

/// The time limit of a run with a mutation: that of the layer, or longer if the control shows that the machine is slow.
/// The factor is large, because the machine may become slower and a stopped run counts as a catch.
fn bound(layer: Duration, control: Duration, jobs: usize) -> Duration {
    let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
    layer.max(control.saturating_mul(10).saturating_mul(jobs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_of_a_run_grows_with_the_control_run() {
        let [layer, quick, slow] = [300, 10, 40].map(Duration::from_secs);
        assert_eq!(bound(layer, quick, 1), layer);
        assert_eq!(bound(layer, quick, 2), layer);
        assert_eq!(bound(layer, slow, 1), Duration::from_secs(400));
        assert_eq!(bound(layer, slow, 2), Duration::from_secs(800));
    }
}
