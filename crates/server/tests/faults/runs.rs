//! Every run of a job leaves a line, and every run but one of a job has to be explained by its record.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bellwether::{Job, JobView, State};
use serde_json::json;
use tempfile::TempDir;

/// One short write to a file that is open for appending: lines of different runs do not mix.
const RUN: &str = r#"echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs""#;

/// Ends with the file, or with the directory: no run outlives its test.
const HELD: &str = r#"
echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"
while [ -e "$1/hold" ]; do sleep 0.05; done
"#;

/// As above, and tells of another one that runs at the same time: the lock goes with the last process that has it.
const ALONE: &str = r#"
exec 9>>"$1/alone"
flock -n 9 || echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/together"
echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"
while [ -e "$1/hold" ]; do sleep 0.05; done
"#;

/// Takes its worker with it.
const POISON: &str = r#"echo "$BELLWETHER_JOB $BELLWETHER_ATTEMPT" >>"$1/runs"; kill -KILL "$PPID""#;

/// Records runs.
pub(crate) struct Runs(TempDir);

/// How the attempts of some jobs ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Runs that began, of jobs that are recorded.
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

    /// A job that leaves a line and ends.
    pub(crate) fn job(&self, id: &str) -> Job {
        self.script(id, RUN)
    }

    /// A job that leaves a line and ends, of whichever name.
    pub(crate) fn unnamed(&self) -> Job {
        self.command(RUN)
    }

    /// One that leaves a line and runs while runs are held.
    pub(crate) fn unnamed_held(&self) -> Job {
        self.command(HELD)
    }

    /// A job that leaves a line and runs while runs are held.
    pub(crate) fn held(&self, id: &str) -> Job {
        self.script(id, HELD)
    }

    /// A held job that must not run beside another of its sort.
    pub(crate) fn alone(&self, id: &str) -> Job {
        self.script(id, ALONE)
    }

    /// Those that ran beside another.
    pub(crate) fn together(&self) -> String {
        fs::read_to_string(self.dir().join("together")).unwrap_or_default()
    }

    /// The jobs that ran, one for each run, in the order of their beginnings.
    pub(crate) fn sequence(&self) -> Vec<String> {
        self.lines().lines().map(|line| line.split_once(' ').unwrap().0.to_owned()).collect()
    }

    /// The lines that are complete: a file grows by pages, so half of a line that crosses two can be read.
    fn lines(&self) -> String {
        let mut lines = fs::read_to_string(self.dir().join("runs")).unwrap_or_default();
        lines.truncate(lines.rfind('\n').map_or(0, |end| end + 1));
        lines
    }

    /// A job that leaves a line and kills its worker.
    pub(crate) fn poison(&self, id: &str) -> Job {
        self.script(id, POISON)
    }

    fn script(&self, id: &str, script: &str) -> Job {
        self.command(script).id(id)
    }

    fn command(&self, script: &str) -> Job {
        let argv = ["/bin/sh", "-c", script, "run", self.dir().to_str().unwrap()];
        Job::new("exec", &json!({ "argv": argv })).unwrap()
    }

    pub(crate) fn hold(&self) {
        fs::write(self.dir().join("hold"), "").unwrap();
    }

    pub(crate) fn release(&self) {
        fs::remove_file(self.dir().join("hold")).unwrap();
    }

    /// The attempts that ran, by job, in the order of their beginnings.
    pub(crate) fn begun(&self) -> BTreeMap<String, Vec<u32>> {
        let mut begun = BTreeMap::<_, Vec<u32>>::new();
        for line in self.lines().lines() {
            let (job, attempt) = line.split_once(' ').unwrap();
            begun.entry(job.to_owned()).or_default().push(attempt.parse().unwrap());
        }
        begun
    }

    /// Asserts of jobs that are over: each attempt ran once at most, no run is of an attempt that the record does
    /// not close, and what succeeded ran (S2, S9, S10, and that nothing ran twice unexplained).
    pub(crate) fn explain(&self, jobs: &[JobView]) -> Tally {
        let begun = self.begun();
        let mut tally = Tally::default();
        for job in jobs {
            assert!(job.state.is_terminal(), "{job:?}");
            let succeeded = u32::from(job.state == State::Succeeded);
            // All that is closed and neither a success, a failure nor a loss was handed back.
            let released = job.attempt.checked_sub(succeeded + job.failures + job.losses);
            let released = released.unwrap_or_else(|| panic!("more ends than attempts: {job:?}"));
            tally.succeeded += succeeded;
            tally.failed += job.failures;
            tally.lost += job.losses;
            tally.released += released;
            if job.kind.as_ref().is_none_or(|kind| kind.as_str() != "exec") {
                continue;
            }
            let runs = begun.get(job.id.as_str()).cloned().unwrap_or_default();
            tally.runs += u32::try_from(runs.len()).unwrap();
            let mut attempts = runs.clone();
            attempts.sort_unstable();
            attempts.dedup();
            assert_eq!(attempts.len(), runs.len(), "an attempt ran twice: {runs:?} of {job:?}");
            assert!(runs.iter().all(|n| *n <= job.attempt), "a run of no attempt: {runs:?} of {job:?}");
            if succeeded == 1 {
                assert!(runs.contains(&job.attempt), "succeeded without a run: {runs:?} of {job:?}");
            }
        }
        tally
    }
}
