//! Every run of a job writes a line, and the job's record must explain every run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bellwether::{Job, JobView, State};
use serde_json::json;
use tempfile::TempDir;

/// Writes a line with one short append, so lines of different runs do not mix.
const RUN: &str = r#"echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs""#;

/// Writes a line and runs until the file `hold` or its directory is removed, so no run outlives its test.
const HELD: &str = r#"
echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"
while [ -e "$1/hold" ]; do sleep 0.05; done
"#;

/// As above, and records whether another such job runs at the same time. The lock is held until the last process that
/// has it ends.
const ALONE: &str = r#"
exec 9>>"$1/alone"
flock -n 9 || echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/together"
echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"
while [ -e "$1/hold" ]; do sleep 0.05; done
"#;

/// Writes a line and runs for a second.
const BRIEF: &str = r#"echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"; sleep 1"#;

/// Writes a line and kills its worker.
const POISON: &str = r#"echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"; kill -KILL "$PPID""#;

/// Records runs.
pub(crate) struct Runs(TempDir);

/// A failed test prints the last lines of its nodes' logs, which are in the directory.
impl Drop for Runs {
    #[expect(clippy::print_stderr, reason = "the logs explain the failure")]
    fn drop(&mut self) {
        const LINES: usize = 20;
        if !std::thread::panicking() {
            return;
        }
        let files = fs::read_dir(self.dir()).into_iter().flatten().flatten().map(|entry| entry.path());
        for log in files.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
            let text = fs::read_to_string(&log).unwrap_or_else(|error| error.to_string());
            let lines = text.lines().collect::<Vec<_>>();
            let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
            eprintln!("{}:\n{last}\n", log.display());
        }
    }
}

/// How the attempts of some jobs ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AttemptCounts {
    /// The number of recorded runs.
    pub(crate) runs: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    pub(crate) lost: u32,
    /// Handed back by a worker that drained.
    pub(crate) released: u32,
}

impl Runs {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("bellwether-runs-").tempdir().unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    /// A job that writes a line and ends.
    pub(crate) fn job(&self, id: &str) -> Job {
        self.script(id, RUN)
    }

    /// A job without an id that writes a line and ends.
    pub(crate) fn unnamed(&self) -> Job {
        self.command(RUN)
    }

    /// A job without an id that writes a line and runs while runs are held.
    pub(crate) fn unnamed_held(&self) -> Job {
        self.command(HELD)
    }

    /// A job that writes a line and runs while runs are held.
    pub(crate) fn held(&self, id: &str) -> Job {
        self.script(id, HELD)
    }

    /// A held job that records whether another such job runs at the same time.
    pub(crate) fn alone(&self, id: &str) -> Job {
        self.script(id, ALONE)
    }

    /// The jobs that ran at the same time as another one.
    pub(crate) fn together(&self) -> String {
        fs::read_to_string(self.dir().join("together")).unwrap_or_default()
    }

    /// The job of each run, in the order of their starts.
    pub(crate) fn sequence(&self) -> Vec<String> {
        self.lines().lines().map(|line| line.split_once(' ').unwrap().0.to_owned()).collect()
    }

    /// The complete lines. A file grows by pages, so a line that crosses a page boundary may be read in part.
    fn lines(&self) -> String {
        let mut lines = fs::read_to_string(self.dir().join("runs")).unwrap_or_default();
        lines.truncate(lines.rfind('\n').map_or(0, |end| end + 1));
        lines
    }

    /// A job that writes a line and runs for a second.
    pub(crate) fn brief(&self, id: &str) -> Job {
        self.script(id, BRIEF)
    }

    /// A job that writes a line and kills its worker.
    pub(crate) fn poison(&self, id: &str) -> Job {
        self.script(id, POISON)
    }

    fn script(&self, id: &str, script: &str) -> Job {
        self.command(script).id(id)
    }

    fn command(&self, script: &str) -> Job {
        let argv = ["/bin/sh", "-c", script, "run", self.dir().to_str().unwrap()];
        Job::new("exec", &json!({ "argv": argv }))
    }

    pub(crate) fn hold(&self) {
        fs::write(self.dir().join("hold"), "").unwrap();
    }

    pub(crate) fn release(&self) {
        fs::remove_file(self.dir().join("hold")).unwrap();
    }

    /// The attempts that ran, by job, in the order of their starts.
    pub(crate) fn begun(&self) -> BTreeMap<String, Vec<u32>> {
        let mut begun = BTreeMap::<_, Vec<u32>>::new();
        for line in self.lines().lines() {
            let (job, attempt) = line.split_once(' ').unwrap();
            begun.entry(job.to_owned()).or_default().push(attempt.parse().unwrap());
        }
        begun
    }

    /// Asserts for finished jobs that each attempt ran at most once, that every run belongs to a closed attempt of the
    /// record, and that a job that succeeded has run (S2, S9, S10; no unexplained second run).
    pub(crate) fn explain(&self, jobs: &[JobView]) -> AttemptCounts {
        let begun = self.begun();
        let mut counts = AttemptCounts::default();
        for job in jobs {
            assert!(job.state.is_terminal(), "{job:?}");
            let succeeded = u32::from(job.state == State::Succeeded);
            // A closed attempt that is neither a success, a failure nor a loss was handed back.
            let released = job.attempt.checked_sub(succeeded + job.failures + job.losses);
            let released = released.unwrap_or_else(|| panic!("more ends than attempts: {job:?}"));
            counts.succeeded += succeeded;
            counts.failed += job.failures;
            counts.lost += job.losses;
            counts.released += released;
            if job.kind.as_ref().is_none_or(|kind| kind.as_str() != "exec") {
                continue;
            }
            let runs = begun.get(job.id.as_str()).cloned().unwrap_or_default();
            counts.runs += u32::try_from(runs.len()).unwrap();
            let mut attempts = runs.clone();
            attempts.sort_unstable();
            attempts.dedup();
            assert_eq!(attempts.len(), runs.len(), "an attempt ran twice: {runs:?} of {job:?}");
            assert!(runs.iter().all(|n| *n <= job.attempt), "a run without an attempt: {runs:?} of {job:?}");
            if succeeded == 1 {
                assert!(runs.contains(&job.attempt), "succeeded without a run: {runs:?} of {job:?}");
            }
        }
        counts
    }
}
